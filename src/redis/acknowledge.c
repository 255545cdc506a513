/* SPDX-License-Identifier: MIT */
/*
 * acknowledge.c - a connection whose answers count when replicas have what was written: WAIT stands behind them
 *
 * The server reads nothing that follows a WAIT before that is over. So one is under way at a time, what is appended
 * meanwhile gathers, and all of it goes out with one WAIT behind when the last one is answered. Answers stay with the
 * connection until their WAIT has its own.
 *
 * A WAIT lasts for half of the command timeout, or less for what gathered for long, so that its callers know within one
 * timeout, and can give back what nobody acknowledged. It is never so short that a slow replica has no chance.
 */
#include "redis/connection_inside.h"

#include <stdio.h>

/* How long replicas have for what gathered, ms. */
static int64_t patience_ms(const struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    int64_t timeout_ms = conn->server->options.command_timeout_ms;
    int64_t left_ms = timeout_ms / 2 - (now_us - lk__conn_pendingat(conn, conn->gathered)->sent_us) / 1000;
    if (left_ms < timeout_ms / 4)
        left_ms = timeout_ms / 4;
    return left_ms > 0 ? left_ms : 1; /* 0 would be for ever */
}

/* All that gathered goes, and a WAIT with it; there is room. */
static void append_wait(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    char bytes[LK__WAIT_LENGTH], replicas[12], wait_ms[24];
    int64_t now_us = lk__now_us();
    int replicas_length = snprintf(replicas, sizeof replicas, "%d", conn->replicas);
    int ms_length = snprintf(wait_ms, sizeof wait_ms, "%lld", (long long)patience_ms(conn, now_us));
    int length = snprintf(bytes, sizeof bytes, "*3\r\n$4\r\nWAIT\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", replicas_length,
                          replicas, ms_length, wait_ms);
    if (lk__stream_append(conn->stream, bytes, (size_t)length) != 0)
        return; /* when the socket took some */
    for (uint64_t i = conn->gathered; i < conn->end; i++)
        lk__conn_pendingat(conn, i)->sent_us = now_us;
    conn->wait_end = conn->stream->queued;
    *lk__conn_addpending(conn) = (struct lk__pending){ .wait = true, .sent_us = now_us, .end = conn->wait_end };
    conn->gathered = conn->end;
    conn->gathers = true;
}

bool lk__conn_gather(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (!conn->gathers && conn->gathered < conn->end)
        append_wait(conn);
    return lk__conn_holdsback(conn);
}

int lk__conn_acknowledge(struct lk__conn *conn, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    bool enough = lk__reply_number(reply, 0) >= conn->replicas;
    if (reply->type != LK__INTEGER && reply->type != LK__ERROR)
        return EPROTO;
    for (uint64_t i = conn->settled; i < conn->unanswered; i++)
        if (lk__conn_pendingat(conn, i)->request != NULL)
            lk__conn_pendingat(conn, i)->request->acknowledged = enough;
    conn->settled = ++conn->unanswered;
    conn->gathers = false;
    return 0;
}

void lk__conn_believe(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    uint64_t end = conn->replicas > 0 ? conn->settled : conn->unanswered;
    while (conn->oldest < end && !conn->echoing)
        lk__parker_wake(lk__conn_complete(conn, LK__ANSWERED)); /* under conn->mu: none of them needs it next */
}
