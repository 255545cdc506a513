/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection that many threads share, without a thread of its own: its life
 *
 * Guards: conn->mu everything marked so in connection.h, and all functions of connection_inside.h need it. Order:
 * conn->mu before the connector's mu (never both for long) and before a parker's.
 *
 * Beside this file: answers.c gives answers to their requests, send.c appends commands, read.c has threads wait, and read.
 * Each uses only those named before it, and this one.
 *
 * The hard case: a stream that ends while its reader polls it. lk__conn_reset() takes it out of the
 * connection and shuts the socket down, which ends the poll; the reader's own reference keeps the
 * descriptor from being closed, and so from being reused, under the poll.
 */
#include "redis/connection_inside.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int lk__conn_init(struct lk__conn *conn, struct lk__connector *connector, struct lk__server *server, const char *what,
                  unsigned capacity)
{
    *conn = (struct lk__conn){
        .connector = connector, .server = server, .what = what, .capacity = capacity, .owner_wake_fd = -1
    };
    if (capacity > 0 && (conn->pending = lk__alloc(capacity * sizeof *conn->pending)) == NULL)
        return lk__fail(ENOMEM, "out of memory for a connection");
    conn->wake_fd = lk__eventfd_open();
    if (conn->wake_fd < 0) {
        lk__free(conn->pending);
        return lk__fail(ENOMEM, "no descriptor left for a connection");
    }
    lk__mu_init(&conn->mu, LK__MU_CONNECTION);
    lk__list_init(&conn->waiting);
    lk__list_init(&conn->expecting);
    return 0;
}

void lk__conn_own(struct lk__conn *conn, int wake_fd, lk__message_t *message, void *arg)
{
    lk__mu_lock(&conn->mu);
    conn->owner_wake_fd = wake_fd;
    conn->message = message;
    conn->arg = arg;
    lk__mu_unlock(&conn->mu);
}

void lk__conn_destroy(struct lk__conn *conn)
{
    assert(conn->stream == NULL && conn->oldest == conn->end);
    lk__mu_destroy(&conn->mu);
    lk__fd_close(conn->wake_fd);
    lk__free(conn->pending);
}

/* Tell those who wait for the connection, and the thread that owns it, to look again. */
void lk__conn_tellexpecting(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    for (struct lk__link *l = lk__list_first(&conn->expecting); l != NULL; l = lk__list_next(&conn->expecting, l))
        lk__parker_signal(LK__CONTAINER(l, struct lk__expecting, link)->request->waiting.parker, LK__NUDGED);
    if (conn->owner_wake_fd >= 0)
        lk__eventfd_set(conn->owner_wake_fd);
}

/* Nothing will be answered any more; who was not sent whole was not carried out. */
static void cut_all(struct lk__conn *conn, enum lk__request_state cut)
{
    assert(lk__mu_held(&conn->mu));
    while (conn->oldest < conn->end) {
        bool sent = lk__conn_pendingat(conn, conn->oldest)->end <= conn->stream->sent;
        lk__parker_wake(lk__conn_complete(conn, sent ? cut : LK__UNSENT)); /* under conn->mu: this is rare */
    }
}

/* `cut` is what becomes of requests that were sent. */
static void end_stream(struct lk__conn *conn, enum lk__request_state cut)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    if (stream == NULL)
        return;
    cut_all(conn, cut);
    conn->gathered = conn->settled = conn->end;
    conn->gathers = false;
    conn->stream = NULL;
    conn->full = false;
    conn->ended_us = lk__now_us();
    shutdown(stream->socket.fd, SHUT_RDWR);
    lk__stream_unref(stream);
    lk__conn_tellexpecting(conn);
}

void lk__conn_wantlocked(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__connector *connector = conn->connector;
    lk__mu_lock(&connector->mu);
    if (!conn->wanted && !connector->stopping) {
        conn->wanted = true;
        lk__list_append(&connector->wanted, &conn->link);
        lk__connector_wake(connector);
    }
    lk__mu_unlock(&connector->mu);
}

void lk__conn_want(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    if (conn->stream == NULL && !conn->closed)
        lk__conn_wantlocked(conn);
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
    lk__conn_tellexpecting(conn);
    unwant(conn);
    lk__mu_unlock(&conn->mu);
}

/* The stream is of no use any more; have another one made. */
void lk__conn_replacestream(struct lk__conn *conn, struct lk__stream *stream, enum lk__request_state cut,
                            const char *why)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream != stream || stream == NULL)
        return;
    snprintf(conn->errmsg, sizeof conn->errmsg, "%s", why);
    end_stream(conn, cut);
    if (conn->server->doubt != NULL)
        conn->server->doubt(conn->server);
    if (!conn->closed)
        lk__conn_wantlocked(conn);
}

void lk__conn_reset(struct lk__conn *conn, unsigned long long connects, const char *why)
{
    lk__mu_lock(&conn->mu);
    if (atomic_load(&conn->connects) == connects)
        lk__conn_replacestream(conn, conn->stream, LK__CUT, why);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_leave(struct lk__conn *conn, unsigned epoch, const char *why)
{
    lk__mu_lock(&conn->mu);
    if (conn->epoch != epoch)
        lk__conn_replacestream(conn, conn->stream, LK__CUT, why);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_rest(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    if (conn->oldest == conn->end)
        end_stream(conn, LK__CUT);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_endifclosed(struct lk__conn *conn)
{
    lk__mu_lock(&conn->mu);
    if (conn->stream != NULL && conn->oldest == conn->end && lk__stream_readable(conn->stream)) /* nobody asked for that */
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the server closed the connection");
    lk__mu_unlock(&conn->mu);
}

void lk__conn_retire(struct lk__conn *conn, const char *why)
{
    lk__conn_rest(conn);
    if (!lk__conn_isup(conn))
        lk__conn_failed(conn, ENOTCONN, why);
}

void lk__conn_up(struct lk__conn *conn, struct lk__stream *stream, const struct lk__serverinfo *info)
{
    lk__mu_lock(&conn->mu);
    lk__conn_setclock(conn, info->before_us, lk__now_us(), info->server_us);
    unwant(conn);
    if (conn->closed) {
        lk__stream_unref(stream);
    } else {
        assert(conn->stream == NULL);
        conn->stream = stream;
        conn->failures = 0;
        conn->last_error = 0;
        conn->epoch = stream->epoch = info->epoch;
        conn->born_us = info->born_us;
        memcpy(conn->run_id, info->run_id, sizeof conn->run_id);
        atomic_store(&conn->serves, false);
        memcpy(conn->missing, info->missing, sizeof conn->missing);
        atomic_fetch_add(&conn->connects, 1);
        conn->full = !lk__list_empty(&conn->expecting); /* until all who wait are admitted, by the first of them */
    }
    struct lk__link *first = lk__list_first(&conn->expecting);
    if (first != NULL)
        lk__parker_signal(LK__CONTAINER(first, struct lk__expecting, link)->request->waiting.parker, LK__NUDGED);
    if (conn->owner_wake_fd >= 0)
        lk__eventfd_set(conn->owner_wake_fd);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_failed(struct lk__conn *conn, int code, const char *errmsg)
{
    lk__mu_lock(&conn->mu);
    unwant(conn);
    conn->failures++;
    conn->last_error = code;
    snprintf(conn->errmsg, sizeof conn->errmsg, "%s", errmsg);
    lk__conn_tellexpecting(conn);
    lk__mu_unlock(&conn->mu);
}

void lk__conn_peer(struct lk__conn *conn, struct lk__peerinfo *peer)
{
    lk__mu_lock(&conn->mu);
    peer->epoch = conn->epoch;
    peer->born_us = conn->born_us;
    memcpy(peer->run_id, conn->run_id, sizeof peer->run_id);
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

/* Why it is full. A server that answers is not to blame. */
static const char *full_reason(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    int64_t half_us = conn->server->options.command_timeout_ms * 500;
    if (conn->unanswered < conn->end && lk__now_us() - lk__conn_pendingat(conn, conn->unanswered)->sent_us > half_us)
        return "the server does not read what it is sent";
    return "this process sends more than the connection takes";
}

int lk__conn_lasterror(struct lk__conn *conn, char *errmsg, size_t size)
{
    lk__mu_lock(&conn->mu);
    int last_error = conn->last_error;
    snprintf(errmsg, size, "%s", conn->full ? full_reason(conn) : conn->errmsg);
    lk__mu_unlock(&conn->mu);
    return last_error;
}
