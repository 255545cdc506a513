/* SPDX-License-Identifier: MIT */
/*
 * connection_inside.h - what the files of a connection share; for nobody else
 *
 * All these are called under conn->mu. Those that leave it meanwhile say so.
 */
#ifndef LK__CONNECTION_INSIDE_H
#define LK__CONNECTION_INSIDE_H

#include "redis/connection.h"

/* A thread that waits for the connection. */
struct lk__expecting {
    struct lk__link link; /* under conn->mu: in conn->expecting, until it is admitted */
    struct lk__request *request;
    struct lk__conn *conn;
    bool admitted; /* under conn->mu: room is kept for its request */
};

/* --- requests that are pending: a ring ------------------------------------------------------------------- */

/* The one of a number that is pending. */
static inline struct lk__pending *lk__conn_pendingat(const struct lk__conn *conn, uint64_t number)
{
    assert(lk__mu_held(&conn->mu));
    return &conn->pending[number & (conn->capacity - 1)];
}

/* A place behind all others; there is one. */
static inline struct lk__pending *lk__conn_addpending(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    assert(conn->end - conn->oldest < conn->capacity);
    return lk__conn_pendingat(conn, conn->end++);
}

/*
 * The oldest of the pending is so no longer, nor the request that has its place. What its thread has to be woken by when
 * conn->mu was left, or NULL; only its parker is still there then, as lk__parker_destroy() waits for that.
 */
static inline sem_t *lk__conn_complete(struct lk__conn *conn, enum lk__request_state state)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__pending *pending = lk__conn_pendingat(conn, conn->oldest++);
    struct lk__request *request = pending->request;
    if (conn->unanswered < conn->oldest)
        conn->unanswered = conn->oldest;
    conn->echoing &= !pending->echo;
    if (state == LK__ANSWERED)
        atomic_store_explicit(&conn->serves, true, memory_order_relaxed);
    if (request == NULL)
        return NULL;
    lk__list_remove(&request->waiting.link);
    sem_t *tick = NULL;
    if (request->waiting.parker != NULL && !(conn->reader == &request->waiting && conn->dispatching)) /* else nobody sleeps */
        tick = lk__parker_note(request->waiting.parker, LK__NUDGED);
    atomic_store(&request->state, state); /* from then on its thread may free it */
    return tick;
}

/* The server's clock showed `server_us` between these two local moments. */
static inline void lk__conn_setclock(struct lk__conn *conn, int64_t before_us, int64_t after_us, int64_t server_us)
{
    assert(lk__mu_held(&conn->mu));
    if (!lk__is_servertime(server_us))
        return;
    conn->clock_before_us = before_us;
    conn->clock_server_us = server_us;
    conn->clock_slack_us = after_us - before_us;
}

/* --- connection.c --------------------------------------------------------------------------------------- */

/* Tell those who wait for the connection, and the thread that owns it, to look again. */
void lk__conn_tellexpecting(struct lk__conn *conn);
void lk__conn_wantlocked(struct lk__conn *conn); /* have the connector bring it up */
/* `stream` is of no use any more; have another one made. `cut` is what becomes of requests that were sent. */
void lk__conn_replacestream(struct lk__conn *conn, struct lk__stream *stream, enum lk__request_state cut,
                            const char *why);

/* --- answers.c -------------------------------------------------------------------------------------------- */

enum { LK__WAIT_LENGTH = 64 /* at most */ };
/* With a stream: all of a WAIT is out, and what was appended since then is not to be sent yet. */
static inline bool lk__conn_holdsback(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    return conn->gathers && conn->stream->sent >= conn->wait_end;
}
/* Have a WAIT follow what was appended, if it is time for that. True: what was appended is not to be sent yet. */
bool lk__conn_gather(struct lk__conn *conn);
/*
 * Without conn->mu, by who reads: hand out what the parser has of the `connects`-th connection. EAGAIN: all of it; else
 * the stream is over: EPROTO, ENOMEM.
 */
int lk__conn_dispatch(struct lk__conn *conn, struct lk__stream *stream, unsigned long long connects);

/* --- send.c ----------------------------------------------------------------------------------------------- */

int64_t lk__conn_deadat(const struct lk__conn *conn); /* when the oldest request has been unanswered for too long */
/*
 * End the stream if it is dead: silent while the oldest request waited for longer than the command timeout. Nobody
 * may have read for a while: what lies there is not unanswered, nor is what the reader is handing out.
 */
void lk__conn_endifdead(struct lk__conn *conn, int64_t now_us);
/* What was appended goes out now, or with what the reader writes when it has read. */
void lk__conn_flush(struct lk__conn *conn);
/*
 * The lock is left and taken again: of those who wait for room, as many are told as there is room for, in the order in
 * which they came.
 */
void lk__conn_tellofroom(struct lk__conn *conn);

#endif
