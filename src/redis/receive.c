/* SPDX-License-Identifier: MIT */
/*
 * receive.c - one thread of those that wait reads for all
 *
 * The leader is the request whose thread reads. Whoever leaves the role gives it to the oldest request with a
 * waiting thread, under conn->mu, so it is never lost.
 *
 * The parser is touched without conn->mu, by the leader alone; each reply is handed out under that lock. The parsed
 * bytes stay in the stream, so the next leader goes on in the middle of a reply.
 *
 * A thread that gets an answer, or the role, is woken after conn->mu was left: on a processor that both share it runs at
 * once, comes back with its next command, and would sleep again where the leader still has the lock. All else is done
 * before, under the lock: a request that has its answer is in no place of the connection any more, and its state says
 * so. Whoever looks, because its time is up or somebody closes the connection, finds it answered, takes the answer and may
 * free the request; the leader has only its parker left, see parker.c. A leader that stands still just then delays that
 * one thread: it finds its answer when it next looks at its leader, and waits for the leader where it ends its parker. In
 * the role's case the new leader finds the role likewise.
 *
 * The leader hands out one answer after the other, and sends what those threads ask meanwhile in one write, when it has
 * handed out all.
 */
#include "redis/connection_inside.h"

enum { PAUSE_NS = 1000000 };

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
    conn->dispatching = false;
    if (lk__stream_pending(stream))
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

/* --- the leader --------------------------------------------------------------------------------------------------- */

bool lk__poll(struct pollfd *polled, int count, int64_t until_us)
{
    int64_t now_us = lk__now_us(), left_us = until_us > now_us ? until_us - now_us : 0;
    struct timespec left = { (time_t)(left_us / 1000000), (long)(left_us % 1000000) * 1000 };
    if (ppoll(polled, (nfds_t)count, until_us == LK__NEVER ? NULL : &left, NULL) >= 0)
        return false;
    bool interrupted = errno == EINTR;
    if (!interrupted) /* no memory for it: do not spin until there is */
        nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    for (int i = 0; i < count; i++)
        polled[i].revents = 0;
    return interrupted;
}

/* Has the leader, who polled, something to read? */
static bool is_readable(const struct lk__stream *stream, short revents)
{
    return lk__stream_more(stream) || revents & (stream->socket.read_on | POLLERR | POLLHUP);
}

/* What to poll its stream for. What gathers is not given to the socket before that has brought an answer. */
static short wants(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    return lk__conn_holdsback(conn) ? conn->stream->socket.read_on : lk__stream_wants(conn->stream);
}

int64_t lk__conn_beginpoll(struct lk__conn *conn, struct lk__polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream = conn->stream;
    polling->term = conn->term;
    polling->polled[0].fd = -1;
    if (stream != NULL) {
        atomic_fetch_add(&stream->refs, 1);
        polling->polled[0] = (struct pollfd){ stream->socket.fd, wants(conn), 0 };
        if (lk__stream_more(stream))
            return 0;
    }
    return lk__conn_deadat(conn);
}

void lk__conn_endpoll(struct lk__conn *conn, struct lk__polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream;
    struct pollfd *polled = polling->polled;
    bool leads = conn->term == polling->term;
    if (!leads) /* somebody else reads now, and hears what is for the leader */
        for (int i = 0; i < polling->count; i++)
            polled[i].revents = 0;
    else
        conn->moves++;
    if (stream == NULL)
        return;
    if (leads && is_readable(stream, polled[0].revents))
        receive(conn, stream);
    else if (leads && polled[0].revents & stream->socket.write_on)
        lk__conn_flush(conn);
    lk__conn_tellofroom(conn);
    if (conn->stream == stream)
        lk__conn_endifdead(conn, lk__now_us());
    lk__stream_unref(stream);
}

/*
 * Under conn->mu, left and taken again: poll the stream with others, read it if something came, end it
 * if it is dead. True: a signal handler ran.
 */
bool lk__conn_pollonce(struct lk__conn *conn, struct pollfd *polled, int count, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__polling polling = { .polled = polled, .count = count };
    int64_t dead_us = lk__conn_beginpoll(conn, &polling);
    lk__mu_unlock(&conn->mu);
    bool interrupted = lk__poll(polled, count, dead_us < until_us ? dead_us : until_us);
    lk__mu_lock(&conn->mu);
    lk__conn_endpoll(conn, &polling);
    return interrupted;
}

/* The oldest whose thread waits, or NULL. */
static struct lk__request *first_waiting(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    for (uint64_t i = conn->oldest; i < conn->end; i++) {
        struct lk__request *request = lk__conn_pendingat(conn, i)->request;
        if (request != NULL && request->waiting)
            return request;
    }
    return NULL;
}

/*
 * Give the role to the oldest request whose thread waits, or have the first that waits for room take it. What that has to
 * be woken by when conn->mu was left, or NULL.
 */
sem_t *lk__conn_promote(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    conn->leader = first_waiting(conn);
    conn->leading = false;
    conn->look.since_us = 0;
    if (conn->leader != NULL)
        return lk__parker_note(conn->leader->parker, LK__NUDGED);
    return lk__conn_tellfirst(conn);
}

/* Under conn->mu, left and taken again: read once, as the leader that `request` is. The signals that came. */
unsigned lk__conn_leadonce(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    unsigned signals = lk__parker_pollwith(request->parker, conn->wake_fd);
    if (!(signals & LK__WOKEN)) {
        struct pollfd polled[2] = { { -1, 0, 0 }, { conn->wake_fd, POLLIN, 0 } };
        if (lk__conn_pollonce(conn, polled, 2, until_us))
            lk__parker_interrupted(request->parker);
        if (polled[1].revents != 0)
            lk__eventfd_clear(conn->wake_fd);
    }
    return signals | lk__parker_pollwith(request->parker, -1);
}

uint64_t lk__conn_beginterm(struct lk__conn *conn, struct lk__request *request)
{
    assert(lk__mu_held(&conn->mu));
    conn->leader = request;
    conn->leading = true;
    conn->look.since_us = 0;
    return ++conn->term;
}

/* Read for all until the own reply, a wake-up or the limit, and keep the role if it is not taken. True: woken. */
static bool lead(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    unsigned signals = 0;
    uint64_t term = lk__conn_beginterm(conn, request);
    while (conn->term == term && atomic_load(&request->state) == LK__INFLIGHT && !(signals & LK__WOKEN) &&
           lk__now_us() < until_us)
        signals |= lk__conn_leadonce(conn, request, until_us);
    return (signals & LK__WOKEN) != 0;
}

/* Under conn->mu, left and taken again: sleep until handed the reply, the role, or a wake-up. True: woken. */
static bool follow(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    int64_t look_us = lk__now_us() + lk__conn_lookevery(conn);
    request->waiting = true;
    lk__mu_unlock(&conn->mu);
    bool woken = (lk__parker_park(request->parker, look_us < until_us ? look_us : until_us) & LK__WOKEN) != 0;
    lk__mu_lock(&conn->mu);
    request->waiting = false;
    return woken;
}

static bool await(struct lk__conn *conn, struct lk__request *request, struct lk__leaderlook *look, int64_t until_us)
{
    sem_t *next = NULL;
    bool woken = false;
    lk__mu_lock(&conn->mu);
    while (!woken && atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us) {
        if (conn->leader == NULL || conn->leader == request)
            woken = lead(conn, request, until_us);
        else if (lk__conn_standsstill(conn, look))
            lk__conn_replaceleader(conn);
        else
            woken = follow(conn, request, until_us);
    }
    if (conn->leader == request)
        next = lk__conn_promote(conn);
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
    return woken;
}

/* Nobody handed out yet what the server sent, and the answer may be in it. */
static bool is_unread(struct lk__conn *conn, const struct lk__request *request)
{
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return false;
    lk__mu_lock(&conn->mu);
    bool unread = conn->stream != NULL && (conn->dispatching || lk__stream_readable(conn->stream));
    lk__mu_unlock(&conn->mu);
    return unread;
}

/*
 * A thread that the time wakes may be faster than the leader, where the process stood still. What lies there is waited for
 * half a command timeout more: after a whole one the caller would take it for such a process again.
 */
bool lk__conn_await(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    struct lk__leaderlook look = { 0 };
    bool woken = await(conn, request, &look, until_us);
    if (woken || atomic_load(&request->state) != LK__INFLIGHT)
        return woken;
    int64_t now_us = lk__now_us(), last_us = now_us + conn->server->options.command_timeout_ms * 500;
    for (; !woken && now_us < last_us && is_unread(conn, request); now_us = lk__now_us())
        woken = await(conn, request, &look, now_us + lk__conn_lookevery(conn));
    return woken;
}

bool lk__conn_awaitbriefly(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    return await(conn, request, &conn->look, until_us);
}

void lk__conn_look(struct lk__conn *conn, struct lk__request *request)
{
    struct pollfd polled;
    sem_t *next = NULL;
    lk__mu_lock(&conn->mu);
    if (conn->leader == NULL && conn->stream != NULL && atomic_load(&request->state) == LK__INFLIGHT) {
        uint64_t term = lk__conn_beginterm(conn, request);
        lk__conn_pollonce(conn, &polled, 1, 0);
        if (conn->term == term) /* else somebody else leads now */
            next = lk__conn_promote(conn);
    }
    lk__mu_unlock(&conn->mu);
    lk__parker_wake(next);
}

/* --- a leader that stands still loses its role -------------------------------------------------------------------- */

/*
 * A leader is a thread of the program, and may stand still: in a signal handler, under a debugger. A follower that
 * sees bytes lie there and nobody read takes the role. A leader that was in poll() finds on its return that its
 * term is over, and follows; one that was in the parser loses the stream, as nobody else can go on with it.
 */

enum { LOOKS = 8 }; /* at its leader, that a follower takes within a command timeout */

int64_t lk__conn_lookevery(const struct lk__conn *conn)
{
    return conn->server->options.command_timeout_ms * 1000 / LOOKS;
}

/*
 * Does the leader stand still? With a stream that could be read for two looks; a parser is given twice that, as its
 * stream ends with it. A look that comes late counts for nothing: where this thread did not run in time, because the process
 * was stopped or has too many threads, the leader may not have run either.
 */
bool lk__conn_standsstill(const struct lk__conn *conn, struct lk__leaderlook *look)
{
    assert(lk__mu_held(&conn->mu));
    int64_t now_us = lk__now_us(), every_us = lk__conn_lookevery(conn);
    bool late = now_us - look->looked_us > 2 * every_us;
    bool idle = look->since_us != 0 && !late && look->moves == conn->moves && conn->stream != NULL &&
                (conn->dispatching || lk__stream_readable(conn->stream));
    look->looked_us = now_us;
    if (idle)
        return now_us - look->since_us >= (conn->dispatching ? 4 : 2) * every_us;
    look->moves = conn->moves;
    look->since_us = now_us;
    return false;
}

/* The role is free. What the leader may be in the middle of, the parser, goes with its stream. */
void lk__conn_replaceleader(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    bool dispatching = conn->dispatching;
    conn->term++;
    conn->leader = NULL;
    conn->leading = conn->dispatching = false;
    if (dispatching)
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the thread that read the server's answers stands still");
}
