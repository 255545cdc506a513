/* SPDX-License-Identifier: MIT */
/*
 * receive.c - the leader reads what came and gives the answers to their requests
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
    if (!lk__echo_proves(reply, conn->echo_number, conn->expect_duplicates))
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
    if (request != NULL)
        request->take(request, reply);
    if (reply->type == LK__ERROR && !stream->no_echo)
        ask_for_proof(conn, stream);
    if (!conn->echoing) {
        lk__conn_complete(conn, LK__ANSWERED);
        return;
    }
    conn->unanswered++;
    snprintf(conn->expect_duplicates, sizeof conn->expect_duplicates, "%s",
             reply->type == LK__ERROR ? lk__reply_text(reply, 0) : "");
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
    const struct lk__reply *reply = stream->filling;
    if (conn->stream != stream || conn->unanswered == conn->end)
        return EPROTO; /* an answer that nobody asked for */
    const struct lk__pending *pending = lk__conn_pendingat(conn, conn->unanswered);
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
void lk__conn_receive(struct lk__conn *conn, struct lk__stream *stream)
{
    assert(lk__mu_held(&conn->mu));
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
        lk__conn_replacestream(conn, stream, LK__CUT, "the server closed the connection");
    else if (rc == ENOMEM)
        lk__conn_replacestream(conn, stream, LK__CUT, "out of memory for the server's answer");
    else if (rc == EPROTO)
        lk__conn_replacestream(conn, stream, LK__GARBLED,
                               "an answer of the server could not be read, or was out of its place");
    lk__conn_flush(conn);
}
