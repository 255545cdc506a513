/* SPDX-License-Identifier: MIT */
/*
 * receive.c - one thread of those that wait reads for all, and gives the answers to their requests
 *
 * The leader is the request whose thread reads. Whoever leaves the role gives it to the oldest request with a
 * waiting thread, under conn->mu, so it is never lost.
 *
 * Replies belong to requests by their order. An error could be anybody's; so it is kept back, and with it all
 * later replies, until an ECHO that was sent after it is answered in its place. Until then these requests stay in
 * flight, though they have taken their answers.
 *
 * The parser is touched without conn->mu, by the leader alone; each reply is handed out under that lock. The parsed
 * bytes stay in the stream, so the next leader goes on in the middle of a reply.
 */
#include "redis/connection_inside.h"

#include <stdio.h>
#include <string.h>

enum { PAUSE_NS = 1000000 };

/* --- replies are given out ---------------------------------------------------------------------------------------- */

/* Append a text, or as much of it as fits into `room` bytes with its NUL. */
static struct lk__value copied(struct lk__reply *copy, const struct lk__value *from, const char *text, size_t room)
{
    struct lk__value value = *from;
    value.at = copy->text_used;
    if (value.length >= room)
        value.length = (unsigned)room - 1;
    memcpy(copy->text + value.at, text, value.length);
    copy->text[value.at + value.length] = '\0';
    copy->text_used += value.length + 1;
    return value;
}

/*
 * Make `copy`, whose text has a room, the same as `reply`. A text that does not go in is shortened: what our scripts
 * answer does, and errors are told apart by how they begin.
 */
static void copy_reply(struct lk__reply *copy, const struct lk__reply *reply)
{
    copy->type = reply->type;
    copy->count = reply->count;
    copy->came_us = reply->came_us;
    copy->text_used = 0;
    assert(copy->text_capacity >= LK__REPLY_MAX); /* so that each text has its share */
    for (unsigned i = 0; i < reply->count; i++) {
        const struct lk__value *from = &reply->values[i];
        size_t share = (copy->text_capacity - copy->text_used) / (reply->count - i);
        copy->values[i] = lk__value_istext(from) ? copied(copy, from, reply->text + from->at, share) : *from;
    }
}

/* Have the server say a number behind the error that just came; one serves all before it. */
static void ask_for_proof(struct lk__conn *conn, struct lk__stream *stream)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->echoing)
        return;
    conn->echoing = true;
    lk__stream_echo(stream, ++conn->echo_number);
    *lk__conn_addpending(conn) = (struct lk__pending){ .echo = true, .sent_us = lk__now_us(), .end = stream->queued };
}

/* What answers our ECHO tells whether the answers before it were in their places. 0 or EPROTO. */
static int take_proof(struct lk__conn *conn, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    uint64_t echo = conn->unanswered;
    if (!lk__echo_proves(reply, conn->echo_number, conn->doubted))
        return EPROTO;
    while (conn->oldest <= echo)
        lk__conn_complete(conn, LK__ANSWERED);
    return 0;
}

/* Whole and in order, `reply` answers the first one that is unanswered. */
static void take_answer(struct lk__conn *conn, struct lk__stream *stream, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__request *request = lk__conn_pendingat(conn, conn->unanswered)->request;
    atomic_fetch_add(&conn->round_trips, 1);
    if (request != NULL && request->take != NULL)
        request->take(request, reply);
    else if (request != NULL)
        copy_reply(request->reply, reply);
    if (reply->type == LK__ERROR && !stream->no_echo)
        ask_for_proof(conn, stream);
    if (!conn->echoing) {
        lk__conn_complete(conn, LK__ANSWERED);
        return;
    }
    conn->unanswered++;
    snprintf(conn->doubted, sizeof conn->doubted, "%s", reply->type == LK__ERROR ? lk__reply_text(reply, 0) : "");
}

/*
 * Can `reply`, which is no error, be what is awaited? A script says the request's number, so that no answer is
 * taken for another one, and its time, which is kept.
 */
static bool is_answer(struct lk__conn *conn, const struct lk__pending *pending, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    if (!lk__reply_integers(reply, LK__ANSWER_LEAST) || reply->values[2].number != pending->number)
        return false;
    lk__conn_setclock(conn, pending->sent_us, reply->came_us, reply->values[1].number);
    return true;
}

/* A reply came. 0, or EPROTO: it is in no place where it could belong. */
static int take_reply(struct lk__conn *conn, struct lk__stream *stream)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__reply *reply = stream->filling;
    if (conn->stream != stream || conn->unanswered == conn->end)
        return EPROTO; /* an answer that nobody asked for */
    const struct lk__pending *pending = lk__conn_pendingat(conn, conn->unanswered);
    if (pending->end > stream->sent)
        return EPROTO; /* the server does not know the question yet */
    if (pending->echo)
        return take_proof(conn, reply);
    lk__reply_spread(reply);
    if (reply->type != LK__ERROR && !is_answer(conn, pending, reply))
        return EPROTO; /* it cannot answer this */
    take_answer(conn, stream, reply);
    return 0;
}

/*
 * The leader's: hand out what the parser has of the `connects`-th connection. EAGAIN: all of it; else the stream is
 * over: EPROTO, ENOMEM.
 */
static int dispatch(struct lk__conn *conn, struct lk__stream *stream, unsigned long long connects)
{
    int rc;
    while ((rc = lk__stream_next(stream)) == 0) {
        if (conn->message != NULL) {
            conn->message(conn->arg, connects, stream->filling);
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
        rc = dispatch(conn, stream, connects);
    lk__mu_lock(&conn->mu);
    if (conn->term != term)
        return;
    conn->dispatching = false;
    if (rc == EIO)
        lk__conn_replacestream(conn, stream, LK__CUT, "the server closed the connection");
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

int64_t lk__conn_beginpoll(struct lk__conn *conn, struct lk__polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream = conn->stream;
    polling->term = conn->term;
    polling->polled[0].fd = -1;
    if (stream != NULL) {
        atomic_fetch_add(&stream->refs, 1);
        polling->polled[0] = (struct pollfd){ stream->fd, POLLIN, 0 };
        if (lk__stream_pending(stream))
            polling->polled[0].events |= POLLOUT;
    }
    return lk__conn_deadat(conn);
}

void lk__conn_endpoll(struct lk__conn *conn, struct lk__polling *polling)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = polling->stream;
    struct pollfd *polled = polling->polled;
    if (conn->term != polling->term) /* somebody else reads now, and hears what is for the leader */
        for (int i = 0; i < polling->count; i++)
            polled[i].revents = 0;
    else
        conn->moves++;
    if (stream == NULL)
        return;
    if (polled[0].revents & (POLLIN | POLLERR | POLLHUP))
        receive(conn, stream);
    else if (polled[0].revents & POLLOUT)
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

/* Give the role to the oldest request whose thread waits, or to one that waits for room. */
void lk__conn_promote(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    conn->leader = first_waiting(conn);
    conn->leading = false;
    if (conn->leader != NULL)
        lk__parker_signal(conn->leader->parker, LK__NUDGED);
    else if (conn->full)
        lk__conn_tellexpecting(conn);
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

/* Read for all until the own reply, a wake-up or the limit. True: woken. */
static bool lead(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    unsigned signals = 0;
    uint64_t term = ++conn->term;
    conn->leader = request;
    conn->leading = true;
    while (conn->term == term && atomic_load(&request->state) == LK__INFLIGHT && !(signals & LK__WOKEN) &&
           lk__now_us() < until_us)
        signals |= lk__conn_leadonce(conn, request, until_us);
    if (conn->term == term)
        lk__conn_promote(conn);
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
    if (conn->leader == request && (woken || lk__now_us() >= until_us))
        lk__conn_promote(conn);
    return woken;
}

bool lk__conn_await(struct lk__conn *conn, struct lk__request *request, int64_t until_us)
{
    struct lk__leaderlook look = { 0 };
    bool woken = false;
    lk__mu_lock(&conn->mu);
    while (!woken && atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us) {
        if (conn->leader == NULL || conn->leader == request)
            woken = lead(conn, request, until_us);
        else if (lk__conn_standsstill(conn, &look))
            lk__conn_replaceleader(conn);
        else
            woken = follow(conn, request, until_us);
    }
    if (conn->leader == request)
        lk__conn_promote(conn);
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
        lk__conn_pollonce(conn, &polled, 1, 0);
        if (conn->term == term) /* else somebody else leads now */
            lk__conn_promote(conn);
    }
    lk__mu_unlock(&conn->mu);
}
