/* SPDX-License-Identifier: MIT */
/*
 * read.c - who reads a connection: whoever waits on it, and its service thread while nobody waits
 *
 * A thread waits for an answer, for a message, or for the connection to come up and have room. While nobody reads, it
 * takes the role and reads for all; else it sleeps in line. A reader that leaves gives the role to the first in line, under
 * conn->mu, so the role is never lost.
 *
 * Some connections have a thread at their service, their owner. It looks after the reader, and reads while nobody waits.
 * A reader leaves it without a word if it is to come back soon anyway: nobody misses what is not read meanwhile. Threads
 * that are cancelled in ppoll() confuse ThreadSanitizer, so one that may be cancelled leaves reading to the owner.
 *
 * A reader is a thread of the program, and may stand still: in a signal handler, under a debugger. Who sees for a fifth
 * of the command timeout that bytes lie there and nobody reads them ends its role. A reader that was in ppoll() finds on
 * its return that its term is over, and waits in line. One that was in the parser loses the stream, as nobody else can go on
 * with it.
 *
 * The parser is touched without conn->mu, by the reader alone; each reply is handed out under that lock. The parsed
 * bytes stay in the stream, so the next reader goes on in the middle of a reply.
 *
 * A thread that gets an answer, or the role, is woken after conn->mu was left: on a processor that both share it runs at
 * once, comes back with its next command, and would sleep again where the reader still has the lock. All else is done
 * before, under the lock: a request that has its answer is in no place of the connection any more, and its state says
 * so. Whoever looks, because its time is up or somebody closes the connection, finds it answered, takes the answer and may
 * free the request; the reader has only its parker left, see parker.c. A reader that stands still just then delays that
 * one thread: it finds its answer when it next looks at its reader, and waits for the reader where it ends its parker. In
 * the role's case the new reader finds the role likewise.
 *
 * The reader hands out one answer after the other, and sends what those threads ask meanwhile in one write, when it has
 * handed out all.
 */
#include "redis/connection_inside.h"

#include <string.h>

enum {
    LOOKS = 10,         /* at the reader within a command timeout, ... */
    SELDOM = 5,         /* ... and a fifth of that by the owner while nothing lies there */
    ABSENT_US = 100000, /* so long after a reader left the owner comes back */
    SLICE_US = 1000000, /* of a reader's poll: that does not count the time of a suspend */
    PAUSE_NS = 1000000
};

/* --- the role ------------------------------------------------------------------------------------------------------ */

static bool has_owner(const struct lk__conn *conn)
{
    return conn->owner_wake_fd >= 0;
}

/* Have the owner look by then. */
static void call_owner(struct lk__conn *conn, int64_t by_us)
{
    assert(lk__mu_held(&conn->mu));
    if (!has_owner(conn) || conn->owner_until_us <= by_us)
        return;
    conn->owner_until_us = by_us;
    lk__eventfd_set(conn->owner_wake_fd);
}

/* May that thread be the reader? */
static bool can_read(const struct lk__conn *conn, const struct lk__waiting *waiting)
{
    return !has_owner(conn) || waiting->cancel_state == PTHREAD_CANCEL_DISABLE;
}

static void begin_term(struct lk__conn *conn, struct lk__waiting *reader)
{
    assert(lk__mu_held(&conn->mu));
    conn->reader = reader;
    conn->term++;
    conn->look.since_us = 0;
}

/* Nobody reads: the calling thread does, if there is something to read. An owner that polls does not read before it looked. */
static bool take_role(struct lk__conn *conn, struct lk__waiting *me)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader != NULL || conn->stream == NULL || conn->dispatching || !can_read(conn, me))
        return false;
    begin_term(conn, me);
    if (conn->owner_polls)
        lk__eventfd_set(conn->owner_wake_fd);
    return true;
}

/* The first in line that can read has the role. What it has to be woken by when conn->mu was left, or NULL. */
static sem_t *promote(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    conn->reader = NULL;
    if (conn->stream == NULL)
        return NULL;
    for (struct lk__link *l = lk__list_first(&conn->waiting); l != NULL; l = lk__list_next(&conn->waiting, l)) {
        struct lk__waiting *next = LK__CONTAINER(l, struct lk__waiting, link);
        if (!can_read(conn, next))
            continue;
        lk__list_remove(l);
        begin_term(conn, next);
        return lk__parker_note(next->parker, LK__NUDGED);
    }
    return NULL;
}

/* The calling thread waits no more. Whom to wake, as above. */
static sem_t *leave(struct lk__conn *conn, const struct lk__waiting *me)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader != me)
        return NULL;
    sem_t *next = promote(conn);
    if (conn->reader == NULL && has_owner(conn)) {
        conn->left_us = lk__now_us();
        call_owner(conn, conn->expects || !lk__list_empty(&conn->waiting) ? 0 : conn->left_us + ABSENT_US);
    }
    return next;
}

/* --- a reader that stands still ------------------------------------------------------------------------------------ */

static int64_t look_every(const struct lk__conn *conn)
{
    return conn->server->options.command_timeout_ms * 1000 / LOOKS;
}

/* Nobody handed out yet what the server sent. */
static bool is_unread(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    return conn->stream != NULL && (conn->dispatching || lk__stream_readable(conn->stream));
}

/*
 * Does the reader stand still? With a stream that could be read for two looks; a parser is given twice that, as its
 * stream ends with it. A look that comes late counts for nothing: where nobody looked in time, because the process
 * was stopped or has too many threads, the reader may not have run either. All who wait share their looks.
 */
static bool stands_still(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    int64_t now_us = lk__now_us(), every_us = look_every(conn), passed_us = now_us - conn->look.looked_us;
    if (passed_us < every_us / 2)
        return false;
    bool late = passed_us > 2 * every_us;
    bool idle = conn->look.since_us != 0 && !late && conn->look.moves == conn->moves && is_unread(conn);
    conn->look.looked_us = now_us;
    if (idle)
        return now_us - conn->look.since_us >= (conn->dispatching ? 4 : 2) * every_us;
    conn->look.moves = conn->moves;
    conn->look.since_us = now_us;
    return false;
}

/* If it does, the role is free. What it may be in the middle of, the parser, goes with its stream. */
static void look_after_reader(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader == NULL || !stands_still(conn))
        return;
    bool dispatching = conn->dispatching;
    conn->term++;
    conn->reader = NULL;
    conn->dispatching = false;
    if (dispatching)
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the thread that read the server's answers stands still");
}

/* --- a poll of the stream ------------------------------------------------------------------------------------------ */

/* A poll of the stream and others, in which conn->mu is not held. */
struct polling {
    struct pollfd *polled; /* the first one is for the stream */
    int count;
    struct lk__stream *stream; /* NULL: it was down */
    uint64_t term;
};

/* Without any lock. True: a signal handler ran. */
static bool poll_until(struct pollfd *polled, int count, int64_t until_us)
{
    int64_t now_us = lk__now_us(), left_us = until_us > now_us ? until_us - now_us : 0;
    struct timespec left = { (time_t)(left_us / 1000000), (long)(left_us % 1000000) * 1000 };
    if (ppoll(polled, (nfds_t)count, until_us == LK__NEVER ? NULL : &left, NULL) >= 0)
        return false;
    bool interrupted = errno == EINTR;
    if (!interrupted) /* no memory for it: do not spin until there is */
        nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    if (!interrupted || ppoll(polled, (nfds_t)count, &(struct timespec){ 0, 0 }, NULL) < 0) /* what came meanwhile */
        for (int i = 0; i < count; i++)
            polled[i].revents = 0;
    return interrupted;
}

/* It ends by the connection's own deadlines, too: returns when, at once if there is what no poll would tell of. */
static int64_t begin_poll(struct lk__conn *conn, struct polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream = conn->stream;
    polling->term = conn->term;
    polling->polled[0] = (struct pollfd){ -1, 0, 0 };
    if (stream != NULL) {
        atomic_fetch_add(&stream->refs, 1);
        /* what gathers is not given to the socket before that has brought an answer */
        short wants = lk__conn_holdsback(conn) ? stream->socket.read_on : lk__stream_wants(stream);
        polling->polled[0] = (struct pollfd){ stream->socket.fd, wants, 0 };
        if (lk__stream_more(stream))
            return 0;
    }
    return lk__conn_deadat(conn);
}

/* Under conn->mu, left and taken again: read what is there and hand it out, then write what came meanwhile. */
static void receive(struct lk__conn *conn, struct lk__stream *stream)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream != stream)
        return; /* it ended meanwhile, and nobody waits for what it brought */
    uint64_t term = conn->term;
    unsigned long long connects = atomic_load(&conn->connects);
    conn->dispatching = true;
    lk__mu_unlock(&conn->mu);
    int rc = lk__stream_take(stream);
    if (rc == 0)
        rc = lk__conn_dispatch(conn, stream, connects);
    lk__mu_lock(&conn->mu);
    if (conn->term != term)
        return;
    conn->dispatching = conn->expects = false;
    if (lk__stream_waiting(stream) > 0)
        conn->flushed_us = lk__now_us();
    if (rc == EIO)
        lk__conn_replacestream(conn, stream, LK__CUT, lk__stream_why(stream, NULL));
    else if (rc == ENOMEM)
        lk__conn_replacestream(conn, stream, LK__CUT, "out of memory for the server's answer");
    else if (rc == EPROTO)
        lk__conn_replacestream(conn, stream, LK__GARBLED,
                               "an answer of the server could not be read, or was out of its place");
    lk__conn_flush(conn);
}

/* Under conn->mu, left and taken again: read the stream if something came, end it if it is dead. */
static void end_poll(struct lk__conn *conn, struct polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream;
    struct pollfd *polled = polling->polled;
    bool reads = conn->term == polling->term;
    if (!reads) /* somebody else does now, and hears what is for the reader */
        for (int i = 0; i < polling->count; i++)
            polled[i].revents = 0;
    else
        conn->moves++;
    if (stream == NULL)
        return;
    if (reads && (lk__stream_more(stream) || polled[0].revents & (stream->socket.read_on | POLLERR | POLLHUP)))
        receive(conn, stream);
    else if (reads && polled[0].revents & stream->socket.write_on)
        lk__conn_flush(conn);
    lk__conn_tellofroom(conn);
    if (conn->stream == stream)
        lk__conn_endifdead(conn, lk__now_us());
    lk__stream_unref(stream);
}

/* --- a thread that waits ------------------------------------------------------------------------------------------- */

/* Where it polls or sleeps, without conn->mu. */
struct turn {
    struct lk__conn *conn;
    struct lk__waiting *me;
    struct polling polling;
    bool polls;
};

/* The thread was cancelled there, or a signal handler ended it. */
static void end_turn(void *arg)
{
    struct turn *turn = arg;
    if (turn->polls)
        lk__parker_pollwith(turn->me->parker, -1);
    lk__mu_lock(&turn->conn->mu);
    lk__list_remove(&turn->me->link);
    if (turn->polls)
        end_poll(turn->conn, &turn->polling);
    sem_t *next = leave(turn->conn, turn->me);
    lk__mu_unlock(&turn->conn->mu);
    lk__parker_wake(next);
}

/* The signals that came in its sleep. */
static unsigned poll_or_sleep(struct turn *turn, int64_t until_us)
{
    struct lk__waiting *me = turn->me;
    if (!turn->polls && me->open)
        return lk__parker_parkopen(me->parker, until_us, me->cancel_state);
    if (!turn->polls)
        return lk__parker_park(me->parker, until_us);
    if (poll_until(turn->polling.polled, turn->polling.count, until_us))
        lk__parker_interrupted(me->parker);
    return 0;
}

static unsigned take_turn(struct turn *turn, int64_t until_us)
{
    unsigned signals;
    pthread_cleanup_push(end_turn, turn);
    signals = poll_or_sleep(turn, until_us);
    pthread_cleanup_pop(0);
    return signals;
}

/* Under conn->mu, left and taken again: read for all, once. The signals that came. */
static unsigned read_once(struct lk__conn *conn, struct lk__waiting *me, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    struct pollfd polled[2] = { { -1, 0, 0 }, { conn->wake_fd, POLLIN, 0 } };
    struct turn turn = { conn, me, { .polled = polled, .count = 2 }, true };
    unsigned signals = lk__parker_pollwith(me->parker, conn->wake_fd);
    if (signals & LK__WOKEN)
        return signals | lk__parker_pollwith(me->parker, -1);
    until_us = lk__lesser(lk__lesser(until_us, lk__now_us() + SLICE_US), begin_poll(conn, &turn.polling));
    lk__mu_unlock(&conn->mu);
    take_turn(&turn, until_us);
    signals |= lk__parker_pollwith(me->parker, -1); /* what it reads for itself needs no waking */
    lk__mu_lock(&conn->mu);
    end_poll(conn, &turn.polling);
    if (polled[1].revents != 0) /* and it is still the reader: else that is for the next one */
        lk__eventfd_clear(conn->wake_fd);
    return signals;
}

/* Under conn->mu, left and taken again: sleep in line. The signals that came, that it is the reader now among them. */
static unsigned sleep_once(struct lk__conn *conn, struct lk__waiting *me, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    struct turn turn = { .conn = conn, .me = me };
    int64_t now_us = lk__now_us();
    if (conn->reader == me)
        conn->reader = NULL; /* there is nothing to read any more */
    if (has_owner(conn))
        call_owner(conn, conn->reader != NULL ? now_us + SELDOM * look_every(conn) : 0);
    else if (conn->stream != NULL)
        until_us = lk__lesser(until_us, now_us + look_every(conn));
    lk__list_append(&conn->waiting, &me->link);
    lk__mu_unlock(&conn->mu);
    unsigned signals = take_turn(&turn, until_us);
    lk__mu_lock(&conn->mu);
    lk__list_remove(&me->link);
    return signals;
}

/* Under conn->mu, left and taken again: read or sleep, until something happens. The signals that came. */
static unsigned wait_once(struct lk__conn *conn, struct lk__waiting *me, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader != NULL && conn->reader != me && !has_owner(conn))
        look_after_reader(conn);
    if (take_role(conn, me) || (conn->reader == me && conn->stream != NULL))
        return read_once(conn, me, until_us);
    return sleep_once(conn, me, until_us);
}

/* --- ... for an answer --------------------------------------------------------------------------------------------- */

bool lk__request_awaitbriefly(struct lk__request *request, int64_t until_us)
{
    struct lk__conn *conn = request->conn;
    unsigned signals = 0;
    lk__mu_lock(&conn->mu);
    while (!(signals & LK__WOKEN) && atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us)
        signals |= wait_once(conn, &request->waiting, until_us);
    sem_t *next = leave(conn, &request->waiting);
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
    return (signals & LK__WOKEN) != 0;
}

/* Its answer may lie there. */
static bool may_be_there(const struct lk__request *request)
{
    struct lk__conn *conn = request->conn;
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return false;
    lk__mu_lock(&conn->mu);
    bool unread = is_unread(conn);
    lk__mu_unlock(&conn->mu);
    return unread;
}

/*
 * A thread that the time wakes may be faster than the reader, where the process stood still. What lies there is waited for
 * half a command timeout more: after a whole one the caller would take it for such a process again.
 */
bool lk__request_await(struct lk__request *request, int64_t until_us)
{
    bool woken = lk__request_awaitbriefly(request, until_us);
    if (woken || atomic_load(&request->state) != LK__INFLIGHT)
        return woken;
    int64_t now_us = lk__now_us(), last_us = now_us + request->conn->server->options.command_timeout_ms * 500;
    for (; !woken && now_us < last_us && may_be_there(request); now_us = lk__now_us())
        woken = lk__request_awaitbriefly(request, now_us + look_every(request->conn));
    return woken;
}

void lk__request_look(struct lk__request *request)
{
    struct lk__conn *conn = request->conn;
    struct pollfd polled;
    struct polling polling = { .polled = &polled, .count = 1 };
    sem_t *next = NULL;
    lk__mu_lock(&conn->mu);
    if (atomic_load(&request->state) == LK__INFLIGHT && take_role(conn, &request->waiting)) {
        begin_poll(conn, &polling);
        lk__mu_unlock(&conn->mu);
        poll_until(&polled, 1, 0);
        lk__mu_lock(&conn->mu);
        end_poll(conn, &polling);
        next = leave(conn, &request->waiting);
    }
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
}

/* --- ... for a message --------------------------------------------------------------------------------------------- */

unsigned lk__conn_listen(struct lk__conn *conn, struct lk__parker *parker, int64_t until_us, int cancel_state)
{
    struct lk__waiting me = { .parker = parker, .open = true, .cancel_state = cancel_state, .until_us = until_us };
    unsigned signals = 0;
    lk__mu_lock(&conn->mu);
    while (!(signals & LK__WOKEN) && lk__now_us() < until_us && !lk__parker_wasinterrupted(parker))
        signals |= wait_once(conn, &me, until_us);
    sem_t *next = leave(conn, &me);
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
    return signals;
}

/* --- ... for a connection that is up and has room ------------------------------------------------------------------ */

/* Why there is no connection. Want of memory is the connector's, not the caller's. */
static int down_reason(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    return conn->last_error == ENOMEM ? ENOTCONN : conn->last_error;
}

/* It waits no more, whether it is admitted or not. */
static void expect_no_more(struct lk__expecting *me)
{
    assert(lk__mu_held(&me->conn->mu));
    lk__list_remove(&me->link);
    if (me->admitted) {
        me->conn->admitted--;
        me->conn->admitted_bytes -= me->request->size;
    }
    me->admitted = false;
}

/* Cancelled while it waited: conn->mu is not held. The room that was kept for it is somebody else's. */
static void cancelled(void *arg)
{
    struct lk__expecting *me = arg;
    lk__mu_lock(&me->conn->mu);
    expect_no_more(me);
    lk__conn_tellofroom(me->conn);
    lk__mu_unlock(&me->conn->mu);
}

/* Under conn->mu, left and taken again. The signals that came. */
static unsigned expect_once(struct lk__expecting *me, int64_t until_us)
{
    struct lk__conn *conn = me->conn;
    unsigned signals;
    assert(lk__mu_held(&conn->mu));
    if (conn->stream != NULL) {
        lk__conn_tellofroom(conn); /* it came up just now, or those who were told of some left without a request */
        if (me->admitted)
            return 0;
    } else {
        if (me->admitted) { /* the connection ended first: the next one is to tell this thread, before the others */
            expect_no_more(me);
            lk__list_append(conn->expecting.next, &me->link);
        }
        lk__conn_wantlocked(conn);
    }
    pthread_cleanup_push(cancelled, me);
    signals = wait_once(conn, &me->request->waiting, until_us);
    pthread_cleanup_pop(0);
    return signals;
}

/* EAGAIN: wait on. */
static int outcome_of(const struct lk__expecting *me, unsigned failures, unsigned signals, int64_t until_us)
{
    const struct lk__conn *conn = me->conn;
    assert(lk__mu_held(&conn->mu));
    if (conn->closed)
        return ECANCELED;
    if (conn->stream != NULL && (me->admitted || !conn->full))
        return 0;
    if (conn->stream == NULL && conn->failures != failures && conn->last_error != 0)
        return down_reason(conn);
    if (signals & LK__WOKEN || lk__parker_wasinterrupted(me->request->waiting.parker))
        return EINTR;
    if (lk__now_us() >= until_us)
        return conn->last_error != 0 ? down_reason(conn) : ETIMEDOUT;
    return EAGAIN;
}

int lk__conn_awaitopen(struct lk__conn *conn, struct lk__request *request, unsigned failures, int64_t until_us,
                       int cancel_state)
{
    struct lk__expecting me = { .request = request, .conn = conn };
    unsigned signals = 0;
    int rc;
    request->waiting.open = true;
    request->waiting.cancel_state = cancel_state;
    lk__mu_lock(&conn->mu);
    lk__list_append(request->admitted ? conn->expecting.next : &conn->expecting, &me.link); /* whose turn it was is first */
    while ((rc = outcome_of(&me, failures, signals, until_us)) == EAGAIN)
        signals = expect_once(&me, until_us);
    expect_no_more(&me);
    request->admitted = rc == 0;
    if (rc != 0)
        lk__conn_tellofroom(conn);
    sem_t *next = leave(conn, &request->waiting);
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
    request->waiting.open = false;
    if (signals & LK__WOKEN && rc != EINTR)
        lk__parker_signal(request->waiting.parker, LK__WOKEN); /* not ours to swallow */
    return rc;
}

int lk__conn_awaitup(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us)
{
    struct lk__request none = { .waiting.parker = parker };
    return lk__conn_awaitopen(conn, &none, failures, until_us, PTHREAD_CANCEL_DISABLE);
}

/* --- the owner ----------------------------------------------------------------------------------------------------- */

/*
 * Until when the owner leaves the stream to somebody else, or unread; 0: it reads. A reader by itself is not looked after,
 * and is left alone until it is due to leave.
 */
static int64_t absent_until(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    bool awaited = conn->expects || !lk__list_empty(&conn->waiting);
    if (conn->reader == NULL)
        return conn->stream == NULL || awaited || conn->left_us == 0 ? 0 : conn->left_us + ABSENT_US;
    int64_t look_us = lk__now_us() + (is_unread(conn) ? 1 : SELDOM) * look_every(conn);
    int64_t left_us = lk__later(conn->reader->until_us, ABSENT_US);
    return awaited || left_us < look_us ? look_us : left_us;
}

/* Returns until when to poll. */
static int64_t begin_one(struct lk__conn *conn, struct polling *polling, struct pollfd *polled, int64_t until_us)
{
    sem_t *next = NULL;
    *polled = (struct pollfd){ -1, 0, 0 };
    *polling = (struct polling){ .polled = polled, .count = 1 };
    lk__mu_lock(&conn->mu);
    look_after_reader(conn);
    if (conn->reader == NULL)
        next = promote(conn);
    int64_t absent_us = absent_until(conn);
    conn->owner_polls = conn->reader == NULL && absent_us <= lk__now_us();
    if (conn->owner_polls)
        until_us = lk__lesser(until_us, begin_poll(conn, polling));
    else
        until_us = lk__lesser(until_us, absent_us);
    conn->owner_until_us = conn->owner_polls ? 0 : until_us;
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
    return until_us;
}

static void end_one(struct lk__conn *conn, struct polling *polling)
{
    lk__mu_lock(&conn->mu);
    if (conn->owner_polls)
        end_poll(conn, polling);
    conn->owner_polls = false;
    lk__mu_unlock(&conn->mu);
}

enum { SERVED_MAX = 256, EXTRA_MAX = 3 };

void lk__conn_serve(struct lk__conn *const conns[], int count, struct pollfd *extra, int extra_count, int64_t until_us)
{
    struct pollfd polled[EXTRA_MAX + SERVED_MAX];
    struct polling polling[SERVED_MAX];
    assert(extra_count <= EXTRA_MAX && count <= SERVED_MAX);
    memcpy(polled, extra, (size_t)extra_count * sizeof *extra);
    for (int i = 0; i < count; i++)
        until_us = begin_one(conns[i], &polling[i], &polled[extra_count + i], until_us);
    poll_until(polled, extra_count + count, until_us);
    for (int i = 0; i < count; i++)
        end_one(conns[i], &polling[i]);
    memcpy(extra, polled, (size_t)extra_count * sizeof *extra);
}
