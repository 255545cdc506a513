/* SPDX-License-Identifier: MIT */
/*
 * send.c - commands go into a connection's buffer, and from there to the server
 *
 * What was sent is remembered in places that were made with the connection, and waits for the socket in a buffer of
 * fixed size: sending needs no memory. A caller that finds either full waits until the server took something, as if
 * the connection were down; a quarter of both is the renewals' alone.
 */
#include "redis/connection_inside.h"

/* When the oldest request has been unanswered for too long. */
int64_t lk__conn_deadat(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->unanswered == conn->end)
        return LK__NEVER;
    return lk__conn_pendingat(conn, conn->unanswered)->sent_us + conn->server->options.command_timeout_ms * 1000;
}

/*
 * End the stream if it is dead: silent while the oldest request waited for longer than the command timeout. Nobody
 * may have read for a while: what lies there is not unanswered.
 */
void lk__conn_endifdead(struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream != NULL && now_us >= lk__conn_deadat(conn) && !lk__stream_readable(conn->stream))
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the server did not answer within the command timeout");
}

/* What was appended goes out now, or with what the leader writes when it has read. */
void lk__conn_flush(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    if (stream == NULL || conn->dispatching)
        return;
    if (lk__stream_give(stream) != 0)
        lk__conn_replacestream(conn, stream, LK__CUT, "the server closed the connection");
    else if (lk__stream_pending(stream) && conn->leader != NULL && conn->leader->parker != NULL)
        lk__parker_signal(conn->leader->parker, LK__NUDGED); /* let it wait for room, too */
}

/* With a stream: is there room for a command of `size` bytes? */
static bool has_room(const struct lk__conn *conn, size_t size, bool urgent)
{
    assert(lk__mu_held(&conn->mu));
    size_t bytes = LK__OUT_BYTES - LK__ECHO_LENGTH, places = conn->places - 1; /* an ECHO always goes */
    if (!urgent) {
        bytes -= LK__OUT_BYTES / 4;
        places -= conn->places / 4;
    }
    return conn->end - conn->oldest < places && lk__stream_waiting(conn->stream) + size <= bytes;
}

/* Tell those who found none, if there is some. */
void lk__conn_tellofroom(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (!conn->full || conn->stream == NULL || !has_room(conn, LK__COMMAND_MAX, false))
        return;
    conn->full = false;
    lk__conn_tellexpecting(conn);
}

/* `request` goes; there is room. */
static void append_request(struct lk__conn *conn, struct lk__request *request, const struct lk__wire *wire,
                           int64_t number)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    lk__wire_write(wire, lk__stream_reserve(stream, wire->size));
    lk__stream_commit(stream, wire->size);
    request->epoch = conn->epoch;
    request->place = conn->end;
    *lk__conn_addpending(conn) = (struct lk__pending){
        .request = request, .number = number, .sent_us = request->sent_us, .end = stream->queued
    };
    atomic_store(&request->state, LK__INFLIGHT);
}

/* `epoch`: of the dates in it; 0: it has none. */
static int send_request(struct lk__conn *conn, struct lk__request *request, const struct lk__wire *wire, int64_t number,
                        unsigned epoch)
{
    assert(wire->size <= LK__COMMAND_MAX);
    lk__mu_lock(&conn->mu);
    int rc = 0;
    request->sent_us = lk__now_us();
    lk__conn_endifdead(conn, request->sent_us); /* what is asked now must not get a late answer of somebody else's */
    if (conn->closed) {
        rc = ECANCELED;
    } else if (conn->stream == NULL) {
        lk__conn_wantlocked(conn);
        rc = ENOTCONN;
    } else if (epoch != 0 && epoch != conn->epoch) {
        rc = ESTALE;
    } else if (!has_room(conn, wire->size, request->urgent)) {
        conn->full = true;
        rc = ENOTCONN;
    } else {
        append_request(conn, request, wire, number);
        lk__conn_flush(conn);
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
        lk__conn_flush(conn);
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
    return send_request(conn, request, &wire, number, sent->epoch);
}

void lk__conn_abandon(struct lk__conn *conn, struct lk__request *request)
{
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return;
    lk__mu_lock(&conn->mu);
    if (atomic_load(&request->state) == LK__INFLIGHT) {
        lk__conn_pendingat(conn, request->place)->request = NULL;
        atomic_store(&request->state, LK__IDLE);
    }
    lk__mu_unlock(&conn->mu);
}
