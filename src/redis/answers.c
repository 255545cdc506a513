/* SPDX-License-Identifier: MIT */
/*
 * answers.c - what the server says is given to the requests that it answers
 *
 * Replies belong to requests by their order. An error could be anybody's; so it is kept back, and with it all
 * later replies, until an ECHO that was sent after it is answered in its place. Until then these requests stay in
 * flight, though they have taken their answers.
 *
 * A connection may count an answer only when replicas have what was written: WAIT stands behind it. The server reads
 * nothing that follows a WAIT before that is over. So one is under way at a time, what is appended meanwhile gathers, and
 * all of it goes out with one WAIT behind when the last one is answered. Answers stay with the connection until their
 * WAIT has its own.
 *
 * A WAIT lasts for half of the command timeout, or less for what gathered for long, so that its callers know within one
 * timeout, and can give back what nobody acknowledged. It is never so short that a slow replica has no chance.
 */
#include "redis/connection_inside.h"

#include <stdio.h>
#include <string.h>

/* --- replicas acknowledge ------------------------------------------------------------------------------------------ */

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

/* A WAIT was answered with that. 0 or EPROTO. */
static int acknowledge(struct lk__conn *conn, const struct lk__reply *reply)
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

/* Answers that are believed, and acknowledged where that is asked for, are their requests' now. */
static void believe(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    uint64_t end = conn->replicas > 0 ? conn->settled : conn->unanswered;
    while (conn->oldest < end && !conn->echoing)
        lk__parker_wake(lk__conn_complete(conn, LK__ANSWERED)); /* under conn->mu: none of them needs it next */
}

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
 * Make `copy`, whose values and text have a room, the same as `reply`. A text that does not go in is shortened: what our
 * scripts answer does, and errors are told apart by how they begin. Values that do not go in are left out, as no script has them.
 */
static void copy_reply(struct lk__reply *copy, const struct lk__reply *reply)
{
    copy->type = reply->type;
    copy->count = reply->count < copy->most ? reply->count : copy->most;
    copy->came_us = reply->came_us;
    copy->text_used = 0;
    assert(copy->text_capacity >= copy->most); /* so that each text has its share */
    for (unsigned i = 0; i < copy->count; i++) {
        const struct lk__value *from = &reply->values[i];
        size_t share = (copy->text_capacity - copy->text_used) / (copy->count - i);
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

/* The answer to our ECHO tells whether the answers before it were in their places. 0 or EPROTO. */
static int take_proof(struct lk__conn *conn, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    if (!lk__echo_proves(reply, conn->echo_number, conn->doubted))
        return EPROTO;
    lk__conn_pendingat(conn, conn->unanswered++)->echo = false;
    conn->echoing = false;
    believe(conn);
    return 0;
}

/* The last answer so far that is not believed at once. */
static void doubt(struct lk__conn *conn, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    snprintf(conn->doubted, sizeof conn->doubted, "%s", reply->type == LK__ERROR ? lk__reply_text(reply, 0) : "");
}

/* Whole and in order, `reply` answers the first one that is unanswered. Who has to be woken, or NULL. */
static sem_t *take_answer(struct lk__conn *conn, struct lk__stream *stream, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__request *request = lk__conn_pendingat(conn, conn->unanswered)->request;
    atomic_fetch_add(&conn->round_trips, 1);
    if (request != NULL && request->reply != NULL)
        copy_reply(request->reply, reply);
    if (request != NULL)
        request->take(request, reply);
    if (reply->type == LK__ERROR && !stream->no_echo)
        ask_for_proof(conn, stream);
    if (!conn->echoing && conn->replicas == 0)
        return lk__conn_complete(conn, LK__ANSWERED);
    conn->unanswered++;
    doubt(conn, reply);
    return NULL;
}

/* Whole and in order, `reply` answers a WAIT. 0 or EPROTO. */
static int take_wait(struct lk__conn *conn, struct lk__stream *stream, const struct lk__reply *reply)
{
    assert(lk__mu_held(&conn->mu));
    if (acknowledge(conn, reply) != 0)
        return EPROTO;
    if (reply->type == LK__ERROR && !stream->no_echo)
        ask_for_proof(conn, stream);
    doubt(conn, reply);
    believe(conn);
    return 0;
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

/* A reply came, and maybe somebody has to be woken. 0, or EPROTO: it is in no place where it could belong. */
static int take_reply(struct lk__conn *conn, struct lk__stream *stream, sem_t **tick)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__reply *reply = stream->filling;
    conn->moves++;
    if (conn->stream != stream || conn->unanswered == conn->end)
        return EPROTO; /* an answer that nobody asked for */
    const struct lk__pending *pending = lk__conn_pendingat(conn, conn->unanswered);
    if (pending->end > stream->sent)
        return EPROTO; /* the server does not know the question yet */
    if (pending->echo)
        return take_proof(conn, reply);
    if (pending->wait)
        return take_wait(conn, stream, reply);
    if (pending->asking) {
        take_answer(conn, stream, reply);
        return 0;
    }
    lk__reply_spread(reply);
    if (reply->type != LK__ERROR && !is_answer(conn, pending, reply))
        return EPROTO; /* it cannot answer this */
    *tick = take_answer(conn, stream, reply);
    return 0;
}

int lk__conn_dispatch(struct lk__conn *conn, struct lk__stream *stream, unsigned long long connects)
{
    int rc;
    while ((rc = lk__stream_next(stream)) == 0) {
        if (conn->message != NULL) {
            conn->message(conn->arg, connects, stream->epoch, stream->filling);
            continue;
        }
        sem_t *tick = NULL;
        lk__mu_lock(&conn->mu);
        rc = take_reply(conn, stream, &tick);
        lk__mu_unlock(&conn->mu);
        lk__parker_wake(tick);
        if (rc != 0)
            break;
    }
    return rc;
}
