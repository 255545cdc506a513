/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection that many threads share, without a thread of its own
 *
 * Guards: conn->mu everything marked so in the header. Order: conn->mu before the connector's mu (never
 * both for long) and before a parker's.
 *
 * The leader is the request whose thread reads. It alone touches the stream's parser, and it does so
 * without conn->mu; each reply is handed out under it. Whoever leaves the role gives it to the oldest
 * request with a waiting thread, under the same lock, so it is never lost. The parsed bytes stay in the
 * stream, so the next leader goes on in the middle of a reply.
 *
 * Replies belong to requests by their order. An error could be anybody's; so it is kept back, and with it all
 * later replies, until an ECHO that was sent after it is answered in its place. Until then these requests fly on,
 * though they have taken their answers.
 *
 * What was sent is remembered in places that were made with the connection, and waits for the socket in a buffer of
 * fixed size: sending needs no memory. Who finds either full waits until the server took something, as if the
 * connection were down; a quarter of both is the renewals' alone.
 *
 * A leader is a thread of the program, and may stand still: in a signal handler, under a debugger. A follower that
 * sees bytes lie there and nobody read takes the role. A leader that was in poll() finds on its return that its
 * reign is over, and follows; one that was in the parser loses the stream, as nobody else can go on with it.
 *
 * The hard case: a stream that ends while the leader polls it. lk__conn_reset() takes it out of the
 * connection and shuts the socket down, which ends the poll; the leader's own reference keeps the
 * descriptor from being closed, and so from being reused, under the poll.
 */
#include "redis/redis.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAUSE_NS = 1000000,
    LOOKS = 8 /* at its leader, that a follower takes within a command timeout */
};

struct expecting {
    struct lk__link link;
    struct lk__parker *parker;
    struct lk__conn *conn;
};

/* --- life -------------------------------------------------------------------------------------------------- */

int lk__conn_init(struct lk__conn *conn, struct lk__connector *connector, const char *what, unsigned places)
{
    *conn = (struct lk__conn){ .connector = connector, .what = what, .places = places, .owner_wake_fd = -1 };
    if (places > 0 && (conn->pending = lk__alloc(places * sizeof *conn->pending)) == NULL)
        return lk__fail(ENOMEM, "out of memory for a connection");
    conn->wake_fd = lk__eventfd_open();
    if (conn->wake_fd < 0) {
        lk__free(conn->pending);
        return lk__fail(ENOMEM, "no descriptor left for a connection");
    }
    lk__mu_init(&conn->mu, LK__MU_CONNECTION);
    lk__list_init(&conn->expecting);
    return 0;
}

void lk__conn_destroy(struct lk__conn *conn)
{
    assert(conn->stream == NULL && conn->oldest == conn->end);
    lk__mu_destroy(&conn->mu);
    lk__fd_close(conn->wake_fd);
    lk__free(conn->pending);
}

void lk__request_init(struct lk__request *request, struct lk__parker *parker, struct lk__reply *reply)
{
    *request = (struct lk__request){ .parker = parker, .reply = reply, .take = lk__request_copy };
    reply->type = LK__NONE;
    reply->count = 0;
}

void lk__request_copy(struct lk__request *request, const struct lk__reply *reply)
{
    lk__reply_copy(request->reply, reply);
}

void lk__conn_serves(struct lk__conn *conn)
{
    atomic_store_explicit(&conn->serves, true, memory_order_relaxed);
}

/* Under conn->mu. Of a number that is pending. */
static struct lk__pending *pending_at(const struct lk__conn *conn, uint64_t number)
{
    return &conn->pending[number & (conn->places - 1)];
}

/* Under conn->mu: a place behind all others; there is one. */
static struct lk__pending *new_pending(struct lk__conn *conn)
{
    assert(conn->end - conn->oldest < conn->places);
    return pending_at(conn, conn->end++);
}

/* Under conn->mu: the oldest of the pending is so no longer, nor the request that has its place. */
static void complete(struct lk__conn *conn, enum lk__request_state state)
{
    struct lk__pending *pending = pending_at(conn, conn->oldest++);
    struct lk__request *request = pending->request;
    if (conn->unanswered < conn->oldest)
        conn->unanswered = conn->oldest;
    conn->echoing &= !pending->echo;
    if (state == LK__ANSWERED)
        lk__conn_serves(conn);
    if (request == NULL)
        return;
    request->waiting = false;
    if (conn->leader == request && !conn->leading)
        conn->leader = NULL; /* was about to; its thread now leaves without a look at us */
    if (request->parker == NULL || (conn->leader == request && conn->dispatching))
        atomic_store(&request->state, state); /* nobody sleeps: the leader is at it itself */
    else                                      /* from then on its thread may free it */
        lk__parker_publish(request->parker, LK__NUDGED, &request->state, state);
}

/* Under conn->mu: tell those who wait for the connection, and the thread that owns it, to look again. */
static void tell_expecting(struct lk__conn *conn)
{
    for (struct lk__link *l = lk__list_first(&conn->expecting); l != NULL; l = lk__list_next(&conn->expecting, l))
        lk__parker_signal(LK__CONTAINER(l, struct expecting, link)->parker, LK__NUDGED);
    if (conn->owner_wake_fd >= 0)
        lk__eventfd_set(conn->owner_wake_fd);
}

/* Under conn->mu: nothing will be answered any more; who was not sent whole was not carried out. */
static void cut_all(struct lk__conn *conn, enum lk__request_state cut)
{
    while (conn->oldest < conn->end)
        complete(conn, pending_at(conn, conn->oldest)->end <= conn->stream->sent ? cut : LK__UNSENT);
}

/* Under conn->mu. `cut` is what becomes of requests that were sent. */
static void end_stream(struct lk__conn *conn, enum lk__request_state cut)
{
    struct lk__stream *stream = conn->stream;
    if (stream == NULL)
        return;
    cut_all(conn, cut);
    conn->stream = NULL;
    conn->full = false;
    conn->ended_us = lk__now_us();
    shutdown(stream->fd, SHUT_RDWR);
    lk__stream_unref(stream);
    tell_expecting(conn);
}

/* Under conn->mu. */
static void want(struct lk__conn *conn)
{
    struct lk__connector *connector = conn->connector;
    lk__mu_lock(&connector->mu);
    if (!conn->wanted && !connector->stopping) {
        conn->wanted = true;
        lk__list_append(&connector->wanted, &conn->link);
        pthread_cond_signal(&connector->work);
    }
    lk__mu_unlock(&connector->mu);
}

void lk__conn_want(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    if (conn->stream == NULL && !conn->closed)
        want(conn);
    lk__mu_unlock(&conn->mu);
}

static void unwant(struct lk__conn *conn)
{
    lk__mu_lock(&conn->connector->mu);
    lk__list_remove(&conn->link);
    conn->wanted = false;
    lk__mu_unlock(&conn->connector->mu);
}

void lk__conn_close(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    conn->closed = true;
    end_stream(conn, LK__CUT);
    tell_expecting(conn);
    unwant(conn);
    lk__mu_unlock(&conn->mu);
}

/* Under conn->mu: the stream is of no use any more; have another one made. */
static void replace_stream(struct lk__conn *conn, struct lk__stream *stream, enum lk__request_state cut,
                           const char *why)
{
    if (conn->stream != stream || stream == NULL)
        return;
    snprintf(conn->errmsg, sizeof conn->errmsg, "%s", why);
    end_stream(conn, cut);
    if (!conn->closed)
        want(conn);
}

void lk__conn_reset(struct lk__conn *conn, const char *why)
{
    lk__mu_lock(&conn->mu);
    replace_stream(conn, conn->stream, LK__CUT, why);
    lk__mu_unlock(&conn->mu);
}

/* Under conn->mu: the server's clock showed `server_us` between these two local moments. */
static void set_clock(struct lk__conn *conn, int64_t before_us, int64_t after_us, int64_t server_us)
{
    if (!lk__is_servertime(server_us))
        return;
    conn->clock_before_us = before_us;
    conn->clock_server_us = server_us;
    conn->clock_slack_us = after_us - before_us;
}

void lk__conn_up(struct lk__conn *conn, struct lk__stream *stream, const struct lk__serverinfo *info)
{
    lk__mu_lock(&conn->mu);
    set_clock(conn, info->before_us, lk__now_us(), info->server_us);
    unwant(conn);
    if (conn->closed) {
        lk__stream_unref(stream);
    } else {
        assert(conn->stream == NULL);
        conn->stream = stream;
        conn->failures = 0;
        conn->last_error = 0;
        atomic_store(&conn->serves, false);
        memcpy(conn->missing, info->missing, sizeof conn->missing);
        atomic_fetch_add(&conn->connects, 1);
    }
    tell_expecting(conn);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_failed(struct lk__conn *conn, int code, const char *errmsg)
{
    lk__mu_lock(&conn->mu);
    unwant(conn);
    conn->failures++;
    conn->last_error = code;
    snprintf(conn->errmsg, sizeof conn->errmsg, "%s", errmsg);
    tell_expecting(conn);
    lk__mu_unlock(&conn->mu);
}

bool lk__conn_isup(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    bool up = conn->stream != NULL;
    lk__mu_unlock(&conn->mu);
    return up;
}

unsigned lk__conn_failures(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    unsigned failures = conn->failures;
    lk__mu_unlock(&conn->mu);
    return failures;
}

int64_t lk__conn_ended(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    int64_t ended_us = conn->ended_us;
    lk__mu_unlock(&conn->mu);
    return ended_us;
}

int lk__conn_lasterror(struct lk__conn *conn, char *errmsg, size_t size)
{
    lk__mu_lock(&conn->mu);
    int last_error = conn->last_error;
    snprintf(errmsg, size, "%s", conn->full ? "the server does not read what it is sent" : conn->errmsg);
    lk__mu_unlock(&conn->mu);
    return last_error;
}

/* --- sending ------------------------------------------------------------------------------------------------ */

/* Under conn->mu: when the oldest request has been unanswered for too long. */
static int64_t dead_at(const struct lk__conn *conn)
{
    if (conn->unanswered == conn->end)
        return LK__NEVER;
    return pending_at(conn, conn->unanswered)->sent_us + conn->connector->options.command_timeout_ms * 1000;
}

static bool readable(const struct lk__stream *stream)
{
    struct pollfd polled = { stream->fd, POLLIN, 0 };
    return poll(&polled, 1, 0) > 0;
}

/*
 * Under conn->mu: end the stream if it is dead: silent while the oldest request waited for longer than the
 * command timeout. Nobody may have read for a while: what lies there is not unanswered.
 */
static void end_if_dead(struct lk__conn *conn, int64_t now_us)
{
    if (conn->stream != NULL && now_us >= dead_at(conn) && !readable(conn->stream))
        replace_stream(conn, conn->stream, LK__CUT, "the server did not answer within the command timeout");
}

/* Under conn->mu: what was appended goes out now, or with what the leader writes when it has read. */
static void flush(struct lk__conn *conn)
{
    struct lk__stream *stream = conn->stream;
    if (stream == NULL || conn->dispatching)
        return;
    if (lk__stream_give(stream) != 0)
        replace_stream(conn, stream, LK__CUT, "the server closed the connection");
    else if (lk__stream_pending(stream) && conn->leader != NULL && conn->leader->parker != NULL)
        lk__parker_signal(conn->leader->parker, LK__NUDGED); /* let it wait for room, too */
}

/* Under conn->mu, with a stream: is there room for a command of `size` bytes? */
static bool has_room(const struct lk__conn *conn, size_t size, bool urgent)
{
    size_t bytes = LK__OUT_BYTES - LK__ECHO_LENGTH, places = conn->places - 1; /* an ECHO always goes */
    if (!urgent) {
        bytes -= LK__OUT_BYTES / 4;
        places -= conn->places / 4;
    }
    return conn->end - conn->oldest < places && lk__stream_waiting(conn->stream) + size <= bytes;
}

/* Under conn->mu: tell those who found none, if there is some. */
static void tell_of_room(struct lk__conn *conn)
{
    if (!conn->full || conn->stream == NULL || !has_room(conn, LK__COMMAND_MAX, false))
        return;
    conn->full = false;
    tell_expecting(conn);
}

/* Under conn->mu: `request` goes; there is room. */
static void append_request(struct lk__conn *conn, struct lk__request *request, const struct lk__wire *wire,
                           int64_t number)
{
    struct lk__stream *stream = conn->stream;
    lk__wire_write(wire, lk__stream_reserve(stream, wire->size));
    lk__stream_commit(stream, wire->size);
    request->place = conn->end;
    *new_pending(conn) = (struct lk__pending){
        .request = request, .number = number, .sent_us = request->sent_us, .end = stream->queued
    };
    atomic_store(&request->state, LK__INFLIGHT);
}

static int send_request(struct lk__conn *conn, struct lk__request *request, const struct lk__wire *wire, int64_t number)
{
    assert(wire->size <= LK__COMMAND_MAX);
    lk__mu_lock(&conn->mu);
    int rc = 0;
    request->sent_us = lk__now_us();
    end_if_dead(conn, request->sent_us); /* what is asked now must not get a late answer of somebody else's */
    if (conn->closed) {
        rc = ECANCELED;
    } else if (conn->stream == NULL) {
        want(conn);
        rc = ENOTCONN;
    } else if (!has_room(conn, wire->size, request->urgent)) {
        conn->full = true;
        rc = ENOTCONN;
    } else {
        append_request(conn, request, wire, number);
        flush(conn);
    }
    lk__mu_unlock(&conn->mu);
    return rc;
}

int lk__conn_post(struct lk__conn *conn, unsigned long long connects, const char *bytes, size_t length)
{
    int rc = ENOTCONN;
    lk__mu_lock(&conn->mu);
    if (conn->stream != NULL && atomic_load(&conn->connects) == connects)
        rc = lk__stream_append(conn->stream, bytes, length);
    if (rc == 0)
        flush(conn);
    lk__mu_unlock(&conn->mu);
    return rc;
}

int lk__conn_send(struct lk__conn *conn, struct lk__request *request, const struct lk__command *command,
                  const struct lk__sent *sent, bool eval)
{
    struct lk__wire wire;
    assert(atomic_load(&request->state) != LK__INFLIGHT);
    atomic_store(&request->state, LK__IDLE);
    if (eval)
        atomic_fetch_add(&conn->reloads, 1);
    int64_t number = (int64_t)atomic_fetch_add(&conn->numbers, 1) + 1;
    lk__wire_make(&wire, command, sent, number, eval);
    return send_request(conn, request, &wire, number);
}

void lk__conn_abandon(struct lk__conn *conn, struct lk__request *request)
{
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return;
    lk__mu_lock(&conn->mu);
    if (atomic_load(&request->state) == LK__INFLIGHT) {
        pending_at(conn, request->place)->request = NULL;
        atomic_store(&request->state, LK__IDLE);
    }
    lk__mu_unlock(&conn->mu);
}

/* --- reading -------------------------------------------------------------------------------------------------- */

/* Under conn->mu: have the server say a number behind the error that just came; one serves all before it. */
static void ask_for_proof(struct lk__conn *conn, struct lk__stream *stream)
{
    if (conn->echoing)
        return;
    conn->echoing = true;
    lk__stream_echo(stream, ++conn->echo_number);
    *new_pending(conn) = (struct lk__pending){ .echo = true, .sent_us = lk__now_us(), .end = stream->queued };
}

/* Under conn->mu: what answers our ECHO tells whether the answers before it were in their places. 0 or EPROTO. */
static int take_proof(struct lk__conn *conn, const struct lk__reply *reply)
{
    uint64_t echo = conn->unanswered;
    if (!lk__echo_proves(reply, conn->echo_number, conn->expect_duplicates))
        return EPROTO;
    while (conn->oldest <= echo)
        complete(conn, LK__ANSWERED);
    return 0;
}

/* Under conn->mu: whole and in order, `reply` answers the first one that is unanswered. */
static void take_answer(struct lk__conn *conn, struct lk__stream *stream, const struct lk__reply *reply)
{
    struct lk__request *request = pending_at(conn, conn->unanswered)->request;
    atomic_fetch_add(&conn->round_trips, 1);
    if (request != NULL)
        request->take(request, reply);
    if (reply->type == LK__ERROR && !stream->no_echo)
        ask_for_proof(conn, stream);
    if (!conn->echoing) {
        complete(conn, LK__ANSWERED);
        return;
    }
    conn->unanswered++;
    snprintf(conn->expect_duplicates, sizeof conn->expect_duplicates, "%s",
             reply->type == LK__ERROR ? lk__reply_text(reply, 0) : "");
}

/*
 * Under conn->mu: can `reply`, which is no error, be what is awaited? A script says the request's number, so that
 * no answer is taken for another one, and its time, which is kept.
 */
static bool is_answer(struct lk__conn *conn, const struct lk__pending *pending, const struct lk__reply *reply)
{
    if (!lk__reply_integers(reply, LK__ANSWER_LEAST) || reply->values[2].number != pending->number)
        return false;
    set_clock(conn, pending->sent_us, reply->came_us, reply->values[1].number);
    return true;
}

/* Under conn->mu: a reply came. 0, or EPROTO: it is in no place where it could belong. */
static int take_reply(struct lk__conn *conn, struct lk__stream *stream)
{
    const struct lk__reply *reply = stream->filling;
    if (conn->stream != stream || conn->unanswered == conn->end)
        return EPROTO; /* an answer that nobody asked for */
    const struct lk__pending *pending = pending_at(conn, conn->unanswered);
    if (pending->end > stream->sent)
        return EPROTO; /* the server does not know the question yet */
    if (pending->echo)
        return take_proof(conn, reply);
    if (reply->type != LK__ERROR && !is_answer(conn, pending, reply))
        return EPROTO; /* it cannot answer this */
    take_answer(conn, stream, reply);
    return 0;
}

/* The leader's: hand out what the parser has. EAGAIN: all of it; else the stream is over: EPROTO, ENOMEM. */
static int dispatch(struct lk__conn *conn, struct lk__stream *stream)
{
    int rc;
    while ((rc = lk__stream_next(stream)) == 0) {
        if (conn->message != NULL) {
            conn->message(conn->arg, stream->filling);
            continue;
        }
        lk__mu_lock(&conn->mu);
        rc = take_reply(conn, stream);
        lk__mu_unlock(&conn->mu);
        if (rc != 0)
            break;
    }
    return rc;
}

/* Under conn->mu, left and taken again: read what is there and hand it out, then write what came meanwhile. */
static void read_and_dispatch(struct lk__conn *conn, struct lk__stream *stream)
{
    uint64_t term = conn->term;
    conn->dispatching = true;
    lk__mu_unlock(&conn->mu);
    int rc = lk__stream_take(stream);
    if (rc == 0)
        rc = dispatch(conn, stream);
    lk__mu_lock(&conn->mu);
    if (conn->term != term)
        return;
    conn->dispatching = false;
    if (rc == EIO)
        replace_stream(conn, stream, LK__CUT, "the server closed the connection");
    else if (rc == ENOMEM)
        replace_stream(conn, stream, LK__CUT, "out of memory for the server's answer");
    else if (rc == EPROTO)
        replace_stream(conn, stream, LK__GARBLED, "an answer of the server could not be read, or was out of its place");
    flush(conn);
}

static void wait_for(struct pollfd *polled, int count, int64_t until_us)
{
    int64_t now_us = lk__now_us(), left_us = until_us > now_us ? until_us - now_us : 0;
    struct timespec left = { (time_t)(left_us / 1000000), (long)(left_us % 1000000) * 1000 };
    if (ppoll(polled, (nfds_t)count, until_us == LK__NEVER ? NULL : &left, NULL) >= 0)
        return;
    if (errno != EINTR) /* no memory for it: do not spin until there is */
        nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    for (int i = 0; i < count; i++)
        polled[i].revents = 0;
}

/*
 * Under conn->mu, left and taken again: poll the stream with others, read it if something came, end it
 * if it is dead.
 */
static void poll_once(struct lk__conn *conn, struct pollfd *polled, int count, int64_t until_us)
{
    struct lk__stream *stream = conn->stream;
    uint64_t term = conn->term;
    int64_t dead_us = dead_at(conn);
    polled[0].fd = -1;
    if (stream != NULL) {
        atomic_fetch_add(&stream->refs, 1);
        polled[0] = (struct pollfd){ stream->fd, POLLIN, 0 };
        if (lk__stream_pending(stream))
            polled[0].events |= POLLOUT;
    }
    lk__mu_unlock(&conn->mu);
    wait_for(polled, count, dead_us < until_us ? dead_us : until_us);
    lk__mu_lock(&conn->mu);
    if (conn->term != term) /* somebody else reads now, and hears what is for the leader */
        for (int i = 0; i < count; i++)
            polled[i].revents = 0;
    else
        conn->moves++;
    if (stream == NULL)
        return;
    if (polled[0].revents & (POLLIN | POLLERR | POLLHUP))
        read_and_dispatch(conn, stream);
    else if (polled[0].revents & POLLOUT)
        flush(conn);
    tell_of_room(conn);
    if (conn->stream == stream)
        end_if_dead(conn, lk__now_us());
    lk__stream_unref(stream);
}

/* Under conn->mu: the oldest whose thread waits, or NULL. */
static struct lk__request *first_waiting(const struct lk__conn *conn)
{
    for (uint64_t i = conn->oldest; i < conn->end; i++) {
        struct lk__request *request = pending_at(conn, i)->request;
        if (request != NULL && request->waiting)
            return request;
    }
    return NULL;
}

/* Under conn->mu: give the role to the oldest request whose thread waits, or to one that waits for room. */
static void promote_leader(struct lk__conn *conn)
{
    conn->leader = first_waiting(conn);
    conn->leading = false;
    if (conn->leader != NULL)
        lk__parker_signal(conn->leader->parker, LK__NUDGED);
    else if (conn->full)
        tell_expecting(conn);
}

/* Under conn->mu, left and taken again: read once, as the leader that `request` is. The signals that came. */
static unsigned lead_once(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    unsigned signals = lk__parker_pollwith(request->parker, conn->wake_fd);
    if (!(signals & LK__WOKEN)) {
        struct pollfd polled[2] = { { -1, 0, 0 }, { conn->wake_fd, POLLIN, 0 } };
        poll_once(conn, polled, 2, until_us);
        if (polled[1].revents != 0)
            lk__eventfd_clear(conn->wake_fd);
    }
    return signals | lk__parker_pollwith(request->parker, -1);
}

/* Under conn->mu: read for all until the own reply, a wake-up or the limit. True: woken. */
static bool lead(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    unsigned signals = 0;
    uint64_t term = ++conn->term;
    conn->leader = request;
    conn->leading = true;
    while (conn->term == term && atomic_load(&request->state) == LK__INFLIGHT && !(signals & LK__WOKEN) &&
           lk__now_us() < until_us)
        signals |= lead_once(conn, request, until_us);
    if (conn->term == term)
        promote_leader(conn);
    return (signals & LK__WOKEN) != 0;
}

/* What a follower saw when it last looked at its leader. */
struct look {
    uint64_t moves;
    int64_t since_us; /* so long there was something to do, and it was not done; 0: never looked */
};

static int64_t look_every_us(const struct lk__conn *conn)
{
    return conn->connector->options.command_timeout_ms * 1000 / LOOKS;
}

/*
 * Under conn->mu: does the leader stand still? With a stream that could be read for two looks; a parser is given
 * twice that, as its stream ends with it.
 */
static bool stands_still(const struct lk__conn *conn, struct look *look)
{
    int64_t now_us = lk__now_us(), patience_us = (conn->dispatching ? 4 : 2) * look_every_us(conn);
    bool idle = look->since_us != 0 && look->moves == conn->moves && conn->stream != NULL &&
                (conn->dispatching || readable(conn->stream));
    if (idle)
        return now_us - look->since_us >= patience_us;
    *look = (struct look){ conn->moves, now_us };
    return false;
}

/* Under conn->mu: the role is free. What the leader may be in the middle of, the parser, goes with its stream. */
static void replace_leader(struct lk__conn *conn)
{
    bool dispatching = conn->dispatching;
    conn->term++;
    conn->leader = NULL;
    conn->leading = conn->dispatching = false;
    if (dispatching)
        replace_stream(conn, conn->stream, LK__CUT, "the thread that read the server's answers stands still");
}

/* Under conn->mu, left and taken again: sleep until handed the reply, the role, or a wake-up. True: woken. */
static bool follow(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    int64_t look_us = lk__now_us() + look_every_us(conn);
    request->waiting = true;
    lk__mu_unlock(&conn->mu);
    bool woken = (lk__parker_park(request->parker, look_us < until_us ? look_us : until_us) & LK__WOKEN) != 0;
    lk__mu_lock(&conn->mu);
    request->waiting = false;
    if (conn->leader == request && (woken || lk__now_us() >= until_us))
        promote_leader(conn);
    return woken;
}

bool lk__conn_await(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    struct look look = { 0 };
    bool woken = false;
    lk__mu_lock(&conn->mu);
    while (!woken && atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us) {
        if (conn->leader == NULL || conn->leader == request)
            woken = lead(conn, request, until_us);
        else if (stands_still(conn, &look))
            replace_leader(conn);
        else
            woken = follow(conn, request, until_us);
    }
    if (conn->leader == request)
        promote_leader(conn);
    lk__mu_unlock(&conn->mu);
    return woken;
}

void lk__conn_look(struct lk__conn *conn, struct lk__request *request)
{
    struct pollfd polled;
    lk__mu_lock(&conn->mu);
    if (conn->leader == NULL && conn->stream != NULL && atomic_load(&request->state) == LK__INFLIGHT) {
        uint64_t term = ++conn->term;
        conn->leader = request;
        conn->leading = true;
        poll_once(conn, &polled, 1, 0);
        if (conn->term == term) /* else somebody else leads now */
            promote_leader(conn);
    }
    lk__mu_unlock(&conn->mu);
}

void lk__conn_serve(struct lk__conn *conn, struct pollfd *extra, int extra_count, int64_t until_us)
{
    struct pollfd polled[4] = { { -1, 0, 0 } };
    assert(extra_count <= 3);
    memcpy(polled + 1, extra, (size_t)extra_count * sizeof *extra);
    lk__mu_lock(&conn->mu);
    if (conn->stream == NULL && !conn->closed)
        want(conn);
    poll_once(conn, polled, extra_count + 1, until_us);
    lk__mu_unlock(&conn->mu);
    memcpy(extra, polled + 1, (size_t)extra_count * sizeof *extra);
}

/* --- waiting for a connection that can be written to ---------------------------------------------------------- */

/* Under conn->mu: why there is no connection. Want of memory is the connector's, not the caller's. */
static int down_reason(const struct lk__conn *conn)
{
    return conn->last_error == ENOMEM ? ENOTCONN : conn->last_error;
}

/* Cancelled while it was parked: conn->mu is not held. */
static void expect_no_more(void *arg)
{
    struct expecting *me = arg;
    lk__mu_lock(&me->conn->mu);
    lk__list_remove(&me->link);
    lk__mu_unlock(&me->conn->mu);
}

/* Under conn->mu, which is given up meanwhile; the signals that came. */
static unsigned sleep_until(struct expecting *me, int64_t until_us, int cancel_state)
{
    unsigned signals;
    lk__mu_unlock(&me->conn->mu);
    pthread_cleanup_push(expect_no_more, me);
    signals = lk__parker_parkopen(me->parker, until_us, cancel_state);
    pthread_cleanup_pop(0);
    lk__mu_lock(&me->conn->mu);
    return signals;
}

/* Under conn->mu, given up meanwhile: see that the server's answers are read, and what waits is written. */
static unsigned make_room(struct expecting *me, int64_t until_us)
{
    struct lk__conn *conn = me->conn;
    struct lk__request leader = { .parker = me->parker };
    uint64_t term = ++conn->term;
    conn->leader = &leader;
    conn->leading = true;
    unsigned signals = lead_once(conn, &leader, until_us);
    if (conn->term == term)
        promote_leader(conn);
    return signals;
}

/* Likewise, until there is room or somebody has to lead. */
static unsigned await_room(struct expecting *me, struct look *look, int64_t until_us, int cancel_state)
{
    struct lk__conn *conn = me->conn;
    int64_t look_us = lk__now_us() + look_every_us(conn);
    if (conn->leader == NULL)
        return make_room(me, until_us);
    if (stands_still(conn, look)) {
        replace_leader(conn);
        return 0;
    }
    return sleep_until(me, look_us < until_us ? look_us : until_us, cancel_state);
}

int lk__conn_awaitopen(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us,
                       int cancel_state)
{
    struct expecting me = { .parker = parker, .conn = conn };
    struct look look = { 0 };
    unsigned signals = 0;
    int rc;
    lk__mu_lock(&conn->mu);
    lk__list_append(&conn->expecting, &me.link);
    for (;;) {
        if (conn->closed)
            rc = ECANCELED;
        else if (conn->stream != NULL && !conn->full)
            rc = 0;
        else if (conn->stream == NULL && conn->failures != failures && conn->last_error != 0)
            rc = down_reason(conn);
        else if (signals & LK__WOKEN)
            rc = EINTR;
        else if (lk__now_us() >= until_us)
            rc = conn->last_error != 0 ? down_reason(conn) : ETIMEDOUT;
        else if (conn->stream != NULL) {
            signals = await_room(&me, &look, until_us, cancel_state);
            continue;
        } else {
            want(conn);
            signals = sleep_until(&me, until_us, cancel_state);
            continue;
        }
        break;
    }
    lk__list_remove(&me.link);
    lk__mu_unlock(&conn->mu);
    if (signals & LK__WOKEN && rc != EINTR)
        lk__parker_signal(parker, LK__WOKEN); /* not ours to swallow */
    return rc;
}

int lk__conn_awaitup(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us)
{
    return lk__conn_awaitopen(conn, parker, failures, until_us, PTHREAD_CANCEL_DISABLE);
}

/* --- the server's clock ------------------------------------------------------------------------------------------ */

bool lk__is_servertime(int64_t server_us)
{
    return server_us > 0 && server_us < (int64_t)1 << 53; /* what a script can count; the year 2255 */
}

int64_t lk__conn_servertime(struct lk__conn *conn, int64_t now_us)
{
    lk__mu_lock(&conn->mu);
    int64_t server_us = conn->clock_server_us + (now_us - conn->clock_before_us);
    lk__mu_unlock(&conn->mu);
    return server_us;
}

int64_t lk__conn_passedby(struct lk__conn *conn, int64_t moment_us)
{
    int64_t now_us = lk__now_us(), ahead_us = moment_us > now_us ? moment_us - now_us : 0;
    lk__mu_lock(&conn->mu);
    int64_t passed_us = moment_us + conn->clock_slack_us + ahead_us / 100; /* clock rates may differ by as much */
    lk__mu_unlock(&conn->mu);
    return passed_us;
}
