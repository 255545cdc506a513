/* SPDX-License-Identifier: MIT */
/*
 * stream_test.c - whatever pieces bytes come in, replies come out whole; what is too large is refused early
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "redis/redis.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MIB = LK__REPLY_BYTES_MAX, LONG = MIB - 64 }; /* a text's length and ends take some bytes themselves */

/* --- a stream and the server's end of it ---------------------------------------------------------------- */

struct pair {
    struct lk__stream *stream;
    int peer;
};

/* A listening socket without a file: the kernel picks the name. */
static int listen_somewhere(struct sockaddr_un *address, socklen_t *size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    *size = sizeof *address;
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof address->sun_family), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static int connect_pair(void **state)
{
    static struct pair pair;
    struct lk__options options = { 0 };
    struct sockaddr_un name;
    struct addrinfo address = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&name };
    int listener = listen_somewhere(&name, &address.ai_addrlen);
    assert_int_equal(lk__stream_connect(&pair.stream, &options, &address, lk__now_us() + 1000000, -1), 0);
    pair.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(pair.peer >= 0);
    close(listener);
    *state = &pair;
    return 0;
}

static int end_pair(void **state)
{
    struct pair *pair = *state;
    lk__stream_unref(pair->stream);
    close(pair->peer);
    return 0;
}

static void come(struct pair *pair, const char *bytes, size_t length)
{
    assert_int_equal(send(pair->peer, bytes, length, MSG_NOSIGNAL), length);
    while (lk__stream_take(pair->stream) == 0)
        continue;
}

static void come_text(struct pair *pair, const char *bytes)
{
    come(pair, bytes, strlen(bytes));
}

/* The next reply must be whole. */
static const struct lk__reply *next(struct pair *pair)
{
    assert_int_equal(lk__stream_next(pair->stream), 0);
    return pair->stream->filling;
}

/* --- what replies become -------------------------------------------------------------------------------- */

/* "i:5 t:OK e:ERR n a" - what the reply's elements are; an array says only that it is one. */
static const char *drawn(const struct lk__reply *reply)
{
    static const char letters[] = { '-', 'n', 'i', 't', 'e', 'a' };
    static char text[512];
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < reply->count; i++) {
        const struct lk__value *value = &reply->values[i];
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%c", i > 0 ? " " : "", letters[value->type]);
        if (value->type == LK__INTEGER)
            length += (size_t)snprintf(text + length, sizeof text - length, ":%lld", (long long)value->number);
        if (value->type == LK__TEXT || value->type == LK__ERROR) {
            assert_int_equal(strlen(lk__reply_text(reply, i)), value->length);
            length += (size_t)snprintf(text + length, sizeof text - length, ":%s", lk__reply_text(reply, i));
        }
    }
    return text;
}

static const struct {
    const char *bytes;
    enum lk__type type;
    const char *elements;
} replies[] = {
    { "+OK\r\n", LK__TEXT, "t:OK" },
    { "+\r\n", LK__TEXT, "t:" },
    { "-NOSCRIPT No matching script.\r\n", LK__ERROR, "e:NOSCRIPT No matching script." },
    { ":0\r\n", LK__INTEGER, "i:0" },
    { ":-1\r\n", LK__INTEGER, "i:-1" },
    { ":1754000000123456\r\n", LK__INTEGER, "i:1754000000123456" },
    { ":9223372036854775807\r\n", LK__INTEGER, "i:9223372036854775807" },
    { ":-9223372036854775808\r\n", LK__INTEGER, "i:-9223372036854775808" },
    { "$5\r\nhello\r\n", LK__TEXT, "t:hello" },
    { "$0\r\n\r\n", LK__TEXT, "t:" },
    { "$4\r\na\r\nb\r\n", LK__TEXT, "t:a\r\nb" },
    { "$-1\r\n", LK__NIL, "n" },
    { "*-1\r\n", LK__NIL, "n" },
    { "*0\r\n", LK__ARRAY, "" },
    { "*5\r\n:1\r\n:17\r\n:900\r\n:1754000000123456\r\n:0\r\n", LK__ARRAY, "i:1 i:17 i:900 i:1754000000123456 i:0" },
    { "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\nG 1\r\n", LK__ARRAY, "t:message t:c t:G 1" },
    { "*3\r\n$-1\r\n-ERR no\r\n+OK\r\n", LK__ARRAY, "n e:ERR no t:OK" },
    /* what arrays within the array hold is nobody's business here */
    { "*3\r\n:1\r\n*2\r\n:2\r\n$1\r\nx\r\n:3\r\n", LK__ARRAY, "i:1 a i:3" },
    { "*2\r\n*1\r\n*1\r\n*0\r\n*-1\r\n", LK__ARRAY, "a n" },
};
enum { REPLIES = sizeof replies / sizeof *replies };

static void expect_reply(const struct lk__reply *reply, int i)
{
    assert_int_equal(reply->type, replies[i].type);
    assert_string_equal(drawn(reply), replies[i].elements);
}

static void each_kind_of_reply_is_read(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < REPLIES; i++) {
        int64_t before_us = lk__now_us();
        come_text(pair, replies[i].bytes);
        const struct lk__reply *reply = next(pair);
        expect_reply(reply, i);
        assert_between(reply->came_us, before_us, lk__now_us());
        assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
    }
}

/* A network may cut anywhere, and the one who reads may change in the middle of a reply. */
static void replies_may_come_byte_by_byte(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < REPLIES; i++) {
        size_t length = strlen(replies[i].bytes);
        for (size_t at = 0; at < length; at++) {
            assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
            come(pair, replies[i].bytes + at, 1);
        }
        expect_reply(next(pair), i);
    }
}

static void many_replies_may_come_at_once(void **state)
{
    struct pair *pair = *state;
    char bytes[8192] = "";
    for (int i = 0; i < 3 * REPLIES; i++)
        strcat(bytes, replies[i % REPLIES].bytes);
    strcat(bytes, "*2\r\n:1\r\n:"); /* and the first half of one more */
    come_text(pair, bytes);
    for (int i = 0; i < 3 * REPLIES; i++)
        expect_reply(next(pair), i % REPLIES);
    assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
    come_text(pair, "2\r\n");
    assert_string_equal(drawn(next(pair)), "i:1 i:2");
}

/* The reply that was read belongs to whoever takes it; the stream goes on with another. */
static void a_reply_may_be_taken_out_of_the_stream(void **state)
{
    struct pair *pair = *state;
    come_text(pair, "$5\r\nfirst\r\n$6\r\nsecond\r\n");
    next(pair);
    struct lk__reply *first = pair->stream->filling;
    pair->stream->filling = lk__reply_new();
    assert_string_equal(lk__reply_text(next(pair), 0), "second");
    assert_string_equal(lk__reply_text(first, 0), "first");
    lk__reply_free(first);
}

static void nothing_is_left_of_an_earlier_reply(void **state)
{
    struct pair *pair = *state;
    come_text(pair, "*3\r\n$4\r\nlong\r\n$6\r\nlonger\r\n:7\r\n*1\r\n$1\r\nx\r\n$-1\r\n");
    assert_string_equal(drawn(next(pair)), "t:long t:longer i:7");
    assert_string_equal(drawn(next(pair)), "t:x");
    const struct lk__reply *nil = next(pair);
    assert_string_equal(drawn(nil), "n");
    assert_string_equal(lk__reply_text(nil, 0), "");
    assert_string_equal(lk__reply_text(nil, 1), "");
    assert_false(lk__reply_integers(nil, 0));
}

/* Nor of one that stands where an element is still to come. */
static void an_element_that_did_not_come_is_nothing(void **state)
{
    struct pair *pair = *state;
    come_text(pair, "*2\r\n:1\r\n:2\r\n");
    assert_string_equal(drawn(next(pair)), "i:1 i:2");
    come_text(pair, "*2\r\n:3\r\n");
    assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
    assert_string_equal(drawn(pair->stream->filling), "i:3 -");
}

/* A script may answer with a text of integers, which the server makes in half of the time. All other texts stay. */
static void a_text_of_integers_is_spread(void **state)
{
    static const struct {
        const char *text, *elements;
    } texts[] = {
        { "1 1754000000123456 17 9223372036854775807", "i:1 i:1754000000123456 i:17 i:9223372036854775807" },
        { "-5 0 -1", "i:-5 i:0 i:-1" },
        { "7", "i:7" },
        { "007", "i:7" },
        { "", "t:" },
        { " 1", "t: 1" },
        { "1 ", "t:1 " },
        { "1  2", "t:1  2" },
        { "-", "t:-" },
        { "1 -", "t:1 -" },
        { "+1", "t:+1" },
        { "1.5", "t:1.5" },
        { "1.7638343540001e+15", "t:1.7638343540001e+15" },
        { "1 x", "t:1 x" },
        { "9223372036854775808", "t:9223372036854775808" },
        { "OK", "t:OK" },
    };
    struct pair *pair = *state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char bytes[128];
        snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(texts[i].text), texts[i].text);
        come_text(pair, bytes);
        assert_int_equal(lk__stream_next(pair->stream), 0);
        lk__reply_spread(pair->stream->filling);
        assert_string_equal(drawn(pair->stream->filling), texts[i].elements);
        bool spread = texts[i].elements[0] == 'i';
        assert_int_equal(pair->stream->filling->type, spread ? LK__ARRAY : LK__TEXT);
    }
}

/* As many as an array may have, and no more. */
static void sixty_four_integers_are_spread(void **state)
{
    struct pair *pair = *state;
    for (int count = LK__REPLY_MAX; count <= LK__REPLY_MAX + 1; count++) {
        char text[512] = "", bytes[600];
        for (int i = 0; i < count; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? " " : "", i);
        snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
        come_text(pair, bytes);
        assert_int_equal(lk__stream_next(pair->stream), 0);
        lk__reply_spread(pair->stream->filling);
        assert_int_equal(lk__reply_integers(pair->stream->filling, LK__REPLY_MAX), count == LK__REPLY_MAX);
    }
}

/* --- what is refused ------------------------------------------------------------------------------------ */

static void bytes_that_are_no_reply_are_refused(void **state)
{
    static const char *const bytes[] = {
        "HTTP/1.1 400 Bad Request\r\n",
        "hello\r\n",
        "\r\n",
        ":12x\r\n",
        ":\r\n",
        ":99999999999999999999\r\n",
        "$x\r\n",
        "$-2\r\n",
        "*-2\r\n",
        "*x\r\n",
        "*1\r\nhello\r\n",
        /* of RESP3, which nobody asked for; hiredis 1.0 and newer know it */
        ",1.5\r\n",
        "#t\r\n",
        "(12345678901234567890\r\n",
        "=6\r\ntxt:ab\r\n",
        "%1\r\n:1\r\n:2\r\n",
        "~1\r\n:1\r\n",
        "*2\r\n:1\r\n#t\r\n",
        "*2\r\n:1\r\n,1.5\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        void *fresh;
        connect_pair(&fresh);
        struct pair *pair = fresh;
        come_text(pair, bytes[i]);
        if (lk__stream_next(pair->stream) != EPROTO)
            fail_msg("taken for a reply: %s", bytes[i]);
        assert_int_equal(lk__stream_next(pair->stream), EPROTO); /* and stays so */
        end_pair(&fresh);
    }
}

static char *array_of(int elements, const char *within)
{
    static char bytes[4096];
    int length = snprintf(bytes, sizeof bytes, "%s*%d\r\n", within, elements);
    for (int i = 0; i < elements; i++)
        length += snprintf(bytes + length, sizeof bytes - (size_t)length, ":%d\r\n", i);
    return bytes;
}

static void sixty_four_elements_are_taken(void **state)
{
    struct pair *pair = *state;
    come_text(pair, array_of(LK__REPLY_MAX, ""));
    const struct lk__reply *reply = next(pair);
    assert_int_equal(reply->count, LK__REPLY_MAX);
    assert_true(lk__reply_integers(reply, LK__REPLY_MAX));
    for (int i = 0; i < LK__REPLY_MAX; i++)
        assert_int_equal(reply->values[i].number, i);
    come_text(pair, array_of(LK__REPLY_MAX, "*1\r\n"));
    assert_string_equal(drawn(next(pair)), "a");
}

/* Memory for the elements is asked for when the number is read: a hostile one must not get so far. */
static void more_elements_are_refused_by_their_number_alone(void **state)
{
    static const char *const bytes[] = { "*65\r\n",
                                         "*1000000\r\n",
                                         "*2147483647\r\n",
                                         "*1\r\n*65\r\n",
                                         "*2\r\n:1\r\n*2147483647\r\n",
                                         "*4294967296\r\n",
                                         "*9223372036854775807\r\n" };
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        void *fresh;
        connect_pair(&fresh);
        struct pair *pair = fresh;
        come_text(pair, bytes[i]);
        if (lk__stream_next(pair->stream) != EPROTO)
            fail_msg("not refused: %s", bytes[i]);
        end_pair(&fresh);
    }
}

/* Each level costs the parser memory or a place; ours are two levels deep at most. */
static void arrays_nested_too_deep_are_refused(void **state)
{
    struct pair *pair = *state;
    char bytes[8 * 64 + 8] = "";
    for (int i = 0; i < 64; i++)
        strcat(bytes, "*1\r\n");
    strcat(bytes, ":1\r\n");
    come_text(pair, bytes);
    assert_int_equal(lk__stream_next(pair->stream), EPROTO);
}

/* Send `length` bytes of text in pieces, until all are read or refused; how many came before that? */
static size_t come_in_pieces(struct pair *pair, size_t length, int *rc)
{
    static char piece[4096];
    size_t come_so_far = 0;
    memset(piece, 'x', sizeof piece);
    *rc = EAGAIN;
    while (come_so_far < length && *rc == EAGAIN) {
        size_t more = length - come_so_far < sizeof piece ? length - come_so_far : sizeof piece;
        come(pair, piece, more);
        come_so_far += more;
        *rc = lk__stream_next(pair->stream);
    }
    return come_so_far;
}

static void a_text_of_nearly_a_mebibyte_is_taken(void **state)
{
    struct pair *pair = *state;
    char head[32];
    int rc;
    snprintf(head, sizeof head, "$%d\r\n", LONG);
    come_text(pair, head);
    come_in_pieces(pair, LONG, &rc);
    assert_int_equal(rc, EAGAIN);
    come_text(pair, "\r\n:5\r\n");
    const struct lk__reply *reply = next(pair);
    assert_int_equal(reply->values[0].length, LONG);
    assert_int_equal(strspn(lk__reply_text(reply, 0), "x"), LONG);
    assert_string_equal(drawn(next(pair)), "i:5");
}

static void a_longer_text_is_refused_by_its_length_alone(void **state)
{
    static const char *const bytes[] = { "$1048577\r\n", "$2147483647\r\n", "$536870912\r\n", "*1\r\n$1048577\r\n",
                                         "*2\r\n:1\r\n$9999999\r\n" };
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        void *fresh;
        connect_pair(&fresh);
        struct pair *pair = fresh;
        come_text(pair, bytes[i]);
        if (lk__stream_next(pair->stream) != EPROTO)
            fail_msg("not refused: %s", bytes[i]);
        end_pair(&fresh);
    }
}

/* However it is said: no more than a mebibyte, and what one read brings, is ever kept of an unfinished reply. */
static void a_reply_that_does_not_end_is_refused(void **state)
{
    static const char *const heads[] = { "+", "-ERR ", "$1048576\r\n", "*3\r\n:1\r\n+" };
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        void *fresh;
        int rc;
        connect_pair(&fresh);
        struct pair *pair = fresh;
        come_text(pair, heads[i]);
        assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
        size_t come_so_far = come_in_pieces(pair, 3 * MIB, &rc);
        assert_int_equal(rc, EPROTO);
        assert_between(come_so_far, 1, MIB + 64 * 1024);
        end_pair(&fresh);
    }
}

/* The parser drops what it has read now and then; that must not make it forget to look at lengths. */
static void a_long_text_behind_others_is_refused(void **state)
{
    struct pair *pair = *state;
    char bytes[8192] = "*3\r\n$4000\r\n";
    int rc;
    memset(bytes + strlen(bytes), 'y', 4000);
    strcat(bytes, "\r\n");
    come_text(pair, bytes);
    assert_int_equal(lk__stream_next(pair->stream), EAGAIN);
    come_text(pair, "$3000000\r\n");
    rc = lk__stream_next(pair->stream);
    if (rc == EAGAIN)
        assert_between(come_in_pieces(pair, 3 * MIB, &rc), 1, MIB + 64 * 1024);
    assert_int_equal(rc, EPROTO);
}

static void texts_of_one_reply_are_counted_together(void **state)
{
    struct pair *pair = *state;
    int rc;
    come_text(pair, "*2\r\n$600000\r\n");
    come_in_pieces(pair, 600000, &rc);
    assert_int_equal(rc, EAGAIN);
    come_text(pair, "\r\n$600000\r\n");
    come_in_pieces(pair, 600000, &rc);
    if (rc == EAGAIN) {
        come_text(pair, "\r\n");
        rc = lk__stream_next(pair->stream);
    }
    assert_int_equal(rc, EPROTO);
}

/* --- bytes ---------------------------------------------------------------------------------------------- */

static void an_end_of_the_server_is_noticed(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(lk__stream_take(pair->stream), EAGAIN);
    come_text(pair, "+last words\r\n");
    shutdown(pair->peer, SHUT_RDWR);
    assert_int_equal(lk__stream_take(pair->stream), EIO);
    assert_string_equal(drawn(next(pair)), "t:last words"); /* what came before it counts */
    lk__stream_append(pair->stream, "x", 1);
    assert_int_equal(lk__stream_give(pair->stream), EIO); /* and no signal ends the program */
}

/* A server that reads slowly keeps bytes waiting here, none of them lost, doubled or out of order. */
static void what_the_socket_does_not_take_is_given_later(void **state)
{
    enum { TOTAL = 3000000, READ_SIZE = 7000 };
    struct pair *pair = *state;
    struct lk__stream *stream = pair->stream;
    static unsigned char read_here[READ_SIZE];
    size_t appended = 0, received = 0;
    bool pended = false;
    fcntl(pair->peer, F_SETFL, O_NONBLOCK);
    while (received < TOTAL) {
        char piece[997];
        size_t length = TOTAL - appended < sizeof piece ? TOTAL - appended : sizeof piece;
        for (size_t i = 0; i < length; i++)
            piece[i] = (char)((appended + i) % 251);
        if (length > 0)
            assert_int_equal(lk__stream_append(stream, piece, length), 0);
        appended += length;
        assert_int_equal(stream->queued, appended);
        assert_int_equal(lk__stream_give(stream), 0);
        assert_int_equal(lk__stream_waiting(stream) > 0, stream->sent < stream->queued);
        pended |= lk__stream_waiting(stream) > 0;
        if (appended < TOTAL && received + 500000 > appended)
            continue; /* let it fill up */
        ssize_t got = read(pair->peer, read_here, sizeof read_here);
        for (ssize_t i = 0; i < got; i++)
            if (read_here[i] != (received + (size_t)i) % 251)
                fail_msg("byte %zu is wrong", received + (size_t)i);
        received += got > 0 ? (size_t)got : 0;
    }
    assert_true(pended);
    assert_false(lk__stream_waiting(stream) > 0);
    assert_int_equal(stream->sent, TOTAL);
}

/* --- connecting ----------------------------------------------------------------------------------------- */

static void the_socket_is_closed_by_its_last_user_and_by_exec(void **state)
{
    struct pair *pair = *state;
    int fd = pair->stream->socket.fd;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    atomic_fetch_add(&pair->stream->refs, 1);
    lk__stream_unref(pair->stream);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    lk__stream_unref(pair->stream);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    pair->stream = NULL; /* which end_pair() may drop */
}

static void an_address_without_a_server_says_why(void **state)
{
    struct lk__options options = { 0 };
    struct sockaddr_un nobody = { .sun_family = AF_UNIX, .sun_path = "/nowhere/redis.sock" }, name;
    struct addrinfo nowhere = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&nobody, .ai_addrlen = sizeof nobody };
    struct addrinfo there = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&name };
    struct lk__stream *stream = NULL;
    int listener = listen_somewhere(&name, &there.ai_addrlen);
    (void)state;
    assert_int_equal(lk__stream_connect(&stream, &options, &there, lk__now_us() + 1000000, -1), 0);
    lk__stream_unref(stream);
    stream = NULL;
    close(listener);
    assert_int_equal(lk__stream_connect(&stream, &options, &there, lk__now_us() + 1000000, -1), ECONNREFUSED);
    assert_int_equal(lk__stream_connect(&stream, &options, &nowhere, lk__now_us() + 1000000, -1), ENOENT);
    assert_null(stream);
}

static int accept_late(void *arg)
{
    sleep_ms(300);
    return accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
}

/* More come at once than the server's backlog takes: they wait, as TCP has them do. */
static void a_full_backlog_is_waited_for(void **state)
{
    struct lk__options options = { 0 };
    struct sockaddr_un name;
    struct addrinfo address = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&name };
    struct lk__stream *streams[3] = { NULL };
    struct worker server;
    int listener = listen_somewhere(&name, &address.ai_addrlen), count = 0;
    (void)state;
    while (count < 2) /* a backlog of 1 takes as many */
        assert_int_equal(lk__stream_connect(&streams[count++], &options, &address, lk__now_us() + 1000000, -1), 0);
    int64_t began_ms = now_ms();
    assert_int_equal(lk__stream_connect(&streams[2], &options, &address, lk__now_us() + 200000, -1), ETIMEDOUT);
    assert_between(now_ms() - began_ms, 199, 200 + SLACK_MS);
    worker_start(&server, accept_late, &listener);
    assert_int_equal(lk__stream_connect(&streams[2], &options, &address, lk__now_us() + 5000000, -1), 0);
    close(worker_join(&server));
    while (count >= 0)
        lk__stream_unref(streams[count--]);
    close(listener);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, connect_pair, end_pair)
    const struct CMUnitTest tests[] = {
        TEST(each_kind_of_reply_is_read),
        TEST(replies_may_come_byte_by_byte),
        TEST(many_replies_may_come_at_once),
        TEST(a_reply_may_be_taken_out_of_the_stream),
        TEST(nothing_is_left_of_an_earlier_reply),
        TEST(an_element_that_did_not_come_is_nothing),
        cmocka_unit_test(a_full_backlog_is_waited_for),
        TEST(a_text_of_integers_is_spread),
        TEST(sixty_four_integers_are_spread),
        cmocka_unit_test(bytes_that_are_no_reply_are_refused),
        TEST(sixty_four_elements_are_taken),
        cmocka_unit_test(more_elements_are_refused_by_their_number_alone),
        TEST(arrays_nested_too_deep_are_refused),
        TEST(a_text_of_nearly_a_mebibyte_is_taken),
        cmocka_unit_test(a_longer_text_is_refused_by_its_length_alone),
        cmocka_unit_test(a_reply_that_does_not_end_is_refused),
        TEST(a_long_text_behind_others_is_refused),
        TEST(texts_of_one_reply_are_counted_together),
        TEST(an_end_of_the_server_is_noticed),
        TEST(what_the_socket_does_not_take_is_given_later),
        TEST(the_socket_is_closed_by_its_last_user_and_by_exec),
        cmocka_unit_test(an_address_without_a_server_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
