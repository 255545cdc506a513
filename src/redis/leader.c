/* SPDX-License-Identifier: MIT */
/*
 * leader.c - one thread of those that wait reads for all
 *
 * The leader is the request whose thread reads. Whoever leaves the role gives it to the oldest request with a
 * waiting thread, under conn->mu, so it is never lost.
 *
 * A leader is a thread of the program, and may stand still: in a signal handler, under a debugger. A follower that
 * sees bytes lie there and nobody read takes the role. A leader that was in poll() finds on its return that its
 * term is over, and follows; one that was in the parser loses the stream, as nobody else can go on with it.
 */
#include "redis/connection_inside.h"

#include <string.h>

enum {
    PAUSE_NS = 1000000,
    LOOKS = 8 /* at its leader, that a follower takes within a command timeout */
};

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
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    uint64_t term = conn->term;
    int64_t dead_us = lk__conn_deadat(conn);
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
        lk__conn_receive(conn, stream);
    else if (polled[0].revents & POLLOUT)
        lk__conn_flush(conn);
    lk__conn_tellofroom(conn);
    if (conn->stream == stream)
        lk__conn_endifdead(conn, lk__now_us());
    lk__stream_unref(stream);
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
        poll_once(conn, polled, 2, until_us);
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

int64_t lk__conn_lookevery(const struct lk__conn *conn)
{
    return conn->server->options.command_timeout_ms * 1000 / LOOKS;
}

/*
 * Does the leader stand still? With a stream that could be read for two looks; a parser is given twice that, as its
 * stream ends with it.
 */
bool lk__conn_standsstill(const struct lk__conn *conn, struct lk__leaderlook *look)
{
    assert(lk__mu_held(&conn->mu));
    int64_t now_us = lk__now_us(), patience_us = (conn->dispatching ? 4 : 2) * lk__conn_lookevery(conn);
    bool idle = look->since_us != 0 && look->moves == conn->moves && conn->stream != NULL &&
                (conn->dispatching || lk__stream_readable(conn->stream));
    if (idle)
        return now_us - look->since_us >= patience_us;
    *look = (struct lk__leaderlook){ conn->moves, now_us };
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
        poll_once(conn, &polled, 1, 0);
        if (conn->term == term) /* else somebody else leads now */
            lk__conn_promote(conn);
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
        lk__conn_wantlocked(conn);
    poll_once(conn, polled, extra_count + 1, until_us);
    lk__mu_unlock(&conn->mu);
    memcpy(extra, polled + 1, (size_t)extra_count * sizeof *extra);
}
