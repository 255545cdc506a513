/* SPDX-License-Identifier: MIT */
/*
 * stream.c - one socket and the parser of what comes out of it
 *
 * The socket is the library's: non-blocking, closed on exec, and a write to a closed peer raises no signal. hiredis
 * parses and calls back for each element; an element that is too large is refused before memory is asked for.
 * Bytes come and go by the socket's transport.
 */
#include "redis/stream.h"

#include <hiredis/hiredis.h>
#include <hiredis/sds.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { IN_SIZE = 16 * 1024, LEFT_SIZE = 2 * 1024 /* what hiredis keeps of earlier bytes */ };

/* --- from the parser into a flat reply ---------------------------------------------------------------- */

/* The value of this task, unless it is an element of an array within the array, or one too many. */
static void *put(const redisReadTask *task, struct lk__value value)
{
    struct lk__reply *reply = task->privdata;
    if (task->parent == NULL) {
        reply->type = value.type;
        reply->count = 1;
        reply->values[0] = value;
    } else if (task->parent->parent == NULL && task->idx < (int)reply->most) {
        reply->values[task->idx] = value;
    }
    return reply;
}

static void *on_text(const redisReadTask *task, char *text, size_t length)
{
    struct lk__reply *reply = task->privdata;
    bool known = task->type == REDIS_REPLY_STRING || task->type == REDIS_REPLY_STATUS || task->type == REDIS_REPLY_ERROR;
    if (!known || length > LK__REPLY_BYTES_MAX - reply->text_used - 1)
        return NULL;
    if (reply->text_used + length + 1 > reply->text_capacity) {
        size_t room = 2 * (reply->text_used + length + 1);
        char *grown = lk__realloc(reply->text, room);
        reply->cut_short = grown == NULL;
        if (grown == NULL)
            return NULL;
        reply->text = grown;
        reply->text_capacity = room;
    }
    struct lk__value value = { task->type == REDIS_REPLY_ERROR ? LK__ERROR : LK__TEXT,
                               (unsigned)length,
                               { .at = reply->text_used } };
    memcpy(reply->text + reply->text_used, text, length);
    reply->text[reply->text_used + length] = '\0';
    reply->text_used += length + 1;
    return put(task, value);
}

static void *on_elements(const redisReadTask *task, size_t elements)
{
    struct lk__reply *reply = task->privdata;
    if (task->type != REDIS_REPLY_ARRAY || elements > reply->most)
        return NULL;
    put(task, (struct lk__value){ .type = LK__ARRAY });
    if (task->parent == NULL)
        reply->count = (unsigned)elements;
    return reply;
}

/* The number of elements is an int up to hiredis 0.14 and a size_t from 1.0 on. */
#if HIREDIS_MAJOR < 1
static void *on_array(const redisReadTask *task, int elements)
{
    return elements < 0 ? NULL : on_elements(task, (size_t)elements);
}
#else
static void *on_array(const redisReadTask *task, size_t elements)
{
    return on_elements(task, elements);
}

/* Of RESP3, which nobody asked for: a protocol error, as all of it is to hiredis 0.14. */
static void *on_double(const redisReadTask *task, double number, char *text, size_t length)
{
    (void)task, (void)number, (void)text, (void)length;
    return NULL;
}

static void *on_bool(const redisReadTask *task, int number)
{
    (void)task, (void)number;
    return NULL;
}
#endif

static void *on_integer(const redisReadTask *task, long long number)
{
    return put(task, (struct lk__value){ .type = LK__INTEGER, .number = number });
}

static void *on_nil(const redisReadTask *task)
{
    return put(task, (struct lk__value){ .type = LK__NIL });
}

static void on_free(void *reply)
{
    (void)reply; /* the reply belongs to the stream */
}

static redisReplyObjectFunctions functions = {
    .createString = on_text,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

static void begin_reply(struct lk__reply *reply)
{
    reply->type = LK__NONE;
    memset(reply->values, 0, reply->count * sizeof *reply->values);
    reply->count = 0;
    reply->text_used = 0;
    reply->cut_short = false;
}

/*
 * hiredis waits for the whole of an announced text, however long. Until then its cursor stands after the text's
 * type byte.
 */
static bool promises_too_much(const redisReader *reader)
{
    if (reader->len - reader->pos > LK__REPLY_BYTES_MAX)
        return true;
    return reader->pos > 0 && reader->pos < reader->len && reader->buf[reader->pos - 1] == '$' &&
           strtoll(reader->buf + reader->pos, NULL, 10) > LK__REPLY_BYTES_MAX;
}

int lk__stream_next(struct lk__stream *stream)
{
    redisReader *reader = stream->reader;
    void *found = NULL;
    if (reader->ridx == -1) { /* between two replies */
        begin_reply(stream->filling);
        reader->privdata = stream->filling;
    }
    if (redisReaderGetReply(reader, &found) != REDIS_OK)
        return stream->filling->cut_short ? ENOMEM : EPROTO;
    if (found != NULL) {
        stream->filling->came_us = lk__now_us();
        return 0;
    }
    return promises_too_much(reader) ? EPROTO : EAGAIN;
}

/* --- bytes -------------------------------------------------------------------------------------------- */

bool lk__stream_readable(const struct lk__stream *stream)
{
    struct pollfd polled = { stream->socket.fd, POLLIN, 0 };
    return lk__stream_more(stream) || poll(&polled, 1, 0) > 0;
}

/* After all that is appended there stays room for one ECHO. */
char *lk__stream_reserve(struct lk__stream *stream, size_t length)
{
    length += LK__ECHO_LENGTH;
    if (stream->out_begin == stream->out_end)
        stream->out_begin = stream->out_end = 0;
    if (LK__OUT_BYTES - lk__stream_waiting(stream) < length)
        return NULL;
    if (LK__OUT_BYTES - stream->out_end < length) {
        memmove(stream->out, stream->out + stream->out_begin, lk__stream_waiting(stream));
        stream->out_end -= stream->out_begin;
        stream->out_begin = 0;
    }
    return stream->out + stream->out_end;
}

void lk__stream_commit(struct lk__stream *stream, size_t length)
{
    stream->out_end += length;
    stream->queued += length;
}

int lk__stream_append(struct lk__stream *stream, const char *bytes, size_t length)
{
    char *room = lk__stream_reserve(stream, length);
    if (room == NULL)
        return ENOBUFS;
    memcpy(room, bytes, length);
    lk__stream_commit(stream, length);
    return 0;
}

void lk__stream_echo(struct lk__stream *stream, uint64_t number)
{
    char bytes[LK__ECHO_LENGTH + 1];
    char *room = lk__stream_reserve(stream, 0);
    assert(room != NULL);
    lk__echo_print(bytes, number);
    memcpy(room, bytes, LK__ECHO_LENGTH);
    lk__stream_commit(stream, LK__ECHO_LENGTH);
}

int lk__stream_give(struct lk__stream *stream)
{
    struct lk__socket *socket = &stream->socket;
    while (lk__stream_waiting(stream) > 0) {
        ssize_t taken = socket->transport->write(socket, stream->out + stream->out_begin, lk__stream_waiting(stream));
        if (taken < 0)
            return taken == -EAGAIN ? 0 : EIO;
        stream->out_begin += (size_t)taken;
        stream->sent += (size_t)taken;
    }
    return 0;
}

int lk__stream_take(struct lk__stream *stream)
{
    ssize_t got = stream->socket.transport->read(&stream->socket, stream->in, IN_SIZE);
    if (got < 0)
        return (int)-got;
    return redisReaderFeed(stream->reader, stream->in, (size_t)got) == REDIS_OK ? 0 : ENOMEM;
}

const char *lk__stream_why(const struct lk__stream *stream, int *code)
{
    const char *why = stream->socket.transport->why(&stream->socket, code);
    return why != NULL ? why : "the server closed the connection";
}

/* --- life ------------------------------------------------------------------------------------------------ */

static void destroy(struct lk__stream *stream)
{
    lk__socket_close(&stream->socket);
    if (stream->reader != NULL)
        redisReaderFree(stream->reader);
    lk__reply_free(stream->filling);
    lk__free(stream->out);
    lk__free(stream->in);
    lk__free(stream);
}

void lk__stream_unref(struct lk__stream *stream)
{
    if (stream != NULL && atomic_fetch_sub(&stream->refs, 1) == 1)
        destroy(stream);
}

/*
 * A parser that needs no memory for the answers of our scripts. hiredis would free a large buffer between two
 * replies, and end the process when it then gets no small one: so it is told to keep its buffer.
 */
static redisReader *create_reader(void)
{
    redisReader *reader = redisReaderCreateWithFunctions(&functions);
    sds buffer = reader != NULL ? sdsMakeRoomFor(reader->buf, IN_SIZE + LEFT_SIZE) : NULL;
    if (buffer == NULL) {
        if (reader != NULL)
            redisReaderFree(reader);
        return NULL;
    }
    reader->buf = buffer;
    reader->maxbuf = 0;
    return reader;
}

static struct lk__stream *create(const struct lk__transport *transport)
{
    struct lk__stream *stream = lk__alloc(sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->socket.transport = transport;
    stream->socket.fd = -1;
    stream->refs = 1;
    stream->reader = create_reader();
    stream->filling = lk__reply_new();
    stream->out = lk__alloc(LK__OUT_BYTES);
    stream->in = lk__alloc(IN_SIZE);
    if (stream->reader == NULL || stream->filling == NULL || stream->out == NULL || stream->in == NULL) {
        destroy(stream);
        return NULL;
    }
    return stream;
}

int lk__stream_connect(struct lk__stream **stream, const struct lk__options *options, const struct addrinfo *address,
                       int64_t until_us, int cancel_fd)
{
    struct lk__stream *fresh = create(options->tls.on ? &lk__secured : &lk__plain);
    if (fresh == NULL)
        return ENOMEM;
    int rc = lk__socket_connect(&fresh->socket, options, address, until_us, cancel_fd);
    if (rc != 0) {
        destroy(fresh);
        return rc;
    }
    *stream = fresh;
    return 0;
}

int lk__stream_secure(struct lk__stream *stream, const struct lk__options *options, int64_t until_us, int cancel_fd,
                      char *errmsg, size_t size)
{
    return stream->socket.transport->connect(&stream->socket, options, until_us, cancel_fd, errmsg, size);
}

/* --- is an answer in its place? ----------------------------------------------------------------------------------- */

/*
 * Answers belong to requests by their order. A line that another program wrote into the connection brings an error
 * that looks like any other, and all later answers then come one place too late. Answers of our scripts say the number
 * of their request, but an error carries nothing of its request. So a number is sent after it, by ECHO: when the server
 * says the number back in its place, the error was in its place.
 */

enum { DIGITS = 20 };

/* Not by printf(), which needs 2 KiB of stack: this runs where answers are read. */
static void print_digits(char *to, uint64_t number)
{
    for (int i = DIGITS - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
}

void lk__echo_print(char bytes[LK__ECHO_LENGTH + 1], uint64_t number)
{
    static const char form[] = "*2\r\n$4\r\nECHO\r\n$20\r\n00000000000000000000\r\n";
    _Static_assert(sizeof form == LK__ECHO_LENGTH + 1, "its length");
    memcpy(bytes, form, sizeof form);
    print_digits(bytes + LK__ECHO_LENGTH - 2 - DIGITS, number);
}

/* Is this a refusal of ECHO, by access rules that were changed? Each version's text names the command. */
static bool is_denied(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "NOPERM") && strstr(lk__reply_text(reply, 0), "echo") != NULL;
}

/* Is this an error that every command gets, ECHO included: BUSY with a script, or NOAUTH? */
static bool is_for_all(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "BUSY") || lk__reply_is(reply, "NOAUTH");
}

bool lk__echo_proves(const struct lk__reply *reply, uint64_t number, const char *error)
{
    const char *says = lk__reply_text(reply, 0);
    char expected[DIGITS + 1] = "";
    if (reply->type == LK__ERROR) /* two stray lines bring the same error twice, so equal texts prove nothing */
        return is_denied(reply) || (is_for_all(reply) && strcmp(says, error) == 0);
    print_digits(expected, number);
    return reply->type == LK__TEXT && strcmp(says, expected) == 0;
}
