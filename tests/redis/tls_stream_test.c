/* SPDX-License-Identifier: MIT */
/*
 * tls_stream_test.c - encrypted bytes come and go in whatever pieces, and what counts as sent is what a server can know
 *
 * The server's end of TLS has no socket: a test carries as many bytes between it and the socket as it likes.
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "certificates.h"
#include "redis/redis.h"
#include "redis/tls.h"

#include <fcntl.h>
#include <ftw.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RAW_MAX = 1 << 16 };

static char folder[32], trusted[64];

struct pair {
    struct lk__stream *stream;
    SSL_CTX *context;
    SSL *server;
    int peer;
};

static struct pair pair;

/* --- the server ------------------------------------------------------------------------------------------ */

static const char *file(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_server(int version)
{
    pair.context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_set_max_proto_version(pair.context, version), 1);
    assert_int_equal(SSL_CTX_use_certificate_file(pair.context, file("server.pem"), SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(pair.context, file("server.key"), SSL_FILETYPE_PEM), 1);
    pair.server = SSL_new(pair.context);
    SSL_set_accept_state(pair.server);
    SSL_set_bio(pair.server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
}

/* Carry `most` bytes at most from the client to the server. How many there were. */
static size_t carry_up(size_t most)
{
    static char raw[RAW_MAX];
    ssize_t got = recv(pair.peer, raw, most < sizeof raw ? most : sizeof raw, MSG_DONTWAIT);
    if (got > 0)
        BIO_write(SSL_get_rbio(pair.server), raw, (int)got);
    return got > 0 ? (size_t)got : 0;
}

/* And the other way. */
static size_t carry_down(size_t most)
{
    static char raw[RAW_MAX];
    int got = BIO_read(SSL_get_wbio(pair.server), raw, (int)(most < sizeof raw ? most : sizeof raw));
    if (got > 0)
        assert_int_equal(send(pair.peer, raw, (size_t)got, MSG_NOSIGNAL), got);
    return got > 0 ? (size_t)got : 0;
}

static int shake_hands(void *arg)
{
    int64_t until_ms = now_ms() + 10000;
    (void)arg;
    while (now_ms() < until_ms) {
        int done = SSL_do_handshake(pair.server);
        while (carry_down(RAW_MAX) > 0)
            continue;
        if (done == 1)
            return 0;
        struct pollfd polled = { pair.peer, POLLIN, 0 };
        poll(&polled, 1, 100);
        carry_up(RAW_MAX);
    }
    return 1;
}

static void say(const char *bytes, size_t length)
{
    assert_int_equal(SSL_write(pair.server, bytes, (int)length), length);
}

/* --- a stream to it ------------------------------------------------------------------------------------------ */

static void begin_as(int version, const char *host, const char *sni)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct addrinfo address = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&name, .ai_addrlen = sizeof name };
    struct lk__options options = { .tls = { .on = true, .cacert = trusted, .sni = (char *)sni } };
    struct worker worker;
    char errmsg[LK__ERRMSG_MAX] = "";
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&pair, 0, sizeof pair);
    make_server(version);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof name.sun_family), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &address.ai_addrlen), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(lk__stream_connect(&pair.stream, &options, &address, lk__now_us() + 1000000, -1), 0);
    pair.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    pair.stream->socket.host = host;
    worker_start(&worker, shake_hands, NULL);
    int rc = lk__stream_secure(pair.stream, &options, lk__now_us() + 10000000, -1, errmsg, sizeof errmsg);
    assert_int_equal(worker_join(&worker), 0);
    if (rc != 0)
        fail_msg("%s", errmsg);
    assert_int_equal(lk__stream_take(pair.stream), EAGAIN); /* tickets, perhaps */
    assert_false(lk__stream_more(pair.stream));
}

static void begin(int version)
{
    begin_as(version, "localhost", NULL);
}

static void end(void)
{
    lk__stream_unref(pair.stream);
    SSL_free(pair.server);
    SSL_CTX_free(pair.context);
    close(pair.peer);
}

/* What can be read without poll(), as replies. */
static int replies(void)
{
    int count = 0, rc = 0;
    while (rc == 0) {
        rc = lk__stream_take(pair.stream);
        while (rc == 0 && lk__stream_next(pair.stream) == 0)
            count++;
    }
    assert_int_equal(rc, EAGAIN);
    assert_false(lk__stream_more(pair.stream));
    return count;
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

/* The bytes that the server can read by now; they come in order. */
static size_t received;

static void hear(void)
{
    unsigned char bytes[1000];
    for (int got; (got = SSL_read(pair.server, bytes, sizeof bytes)) > 0; received += (size_t)got)
        for (int i = 0; i < got; i++)
            if (bytes[i] != (received + (size_t)i) % 251)
                fail_msg("byte %zu is wrong", received + (size_t)i);
}

static void append_some(size_t length)
{
    static char piece[20000];
    assert_true(length <= sizeof piece);
    for (size_t i = 0; i < length; i++)
        piece[i] = (char)((pair.stream->queued + i) % 251);
    assert_int_equal(lk__stream_append(pair.stream, piece, length), 0);
}

/*
 * A record that the socket took in part is of no use to the server, and one that it took whole may have been carried
 * out: a request that is neither would be lost, or done twice.
 */
static void count_what_is_sent(int version)
{
    enum { TOTAL = 3000000 };
    bool partly = false;
    begin(version);
    received = 0;
    setsockopt(pair.stream->socket.fd, SOL_SOCKET, SO_SNDBUF, &(int){ 8192 }, sizeof(int)); /* half a record */
    for (unsigned step = 1; received < TOTAL; step++) {
        for (unsigned i = 0; i < step % 7 && pair.stream->queued < TOTAL; i++)
            if (lk__stream_waiting(pair.stream) < LK__OUT_BYTES - 40000)
                append_some(step * 7919 % 20000);
        assert_int_equal(lk__stream_give(pair.stream), 0);
        while (step % 5 == 0 && carry_up(RAW_MAX) > 0) /* all that is there */
            continue;
        carry_up(step * 104729 % 50000);
        hear();
        assert_true(received <= pair.stream->sent);
        if (step % 5 == 0) {
            assert_int_equal(received, pair.stream->sent);
            partly |= pair.stream->socket.tls->begun != 0;
        }
    }
    assert_int_equal(pair.stream->sent, pair.stream->queued);
    assert_true(partly);
    end();
}

static void what_is_sent_is_what_a_server_can_know(void)
{
    count_what_is_sent(TLS1_3_VERSION);
    count_what_is_sent(TLS1_2_VERSION);
}

/* Several records lie in the socket; one read of it brings more than one of them, of which poll() then knows nothing. */
static void what_is_there_is_read_without_poll(void)
{
    enum { RECORDS = 9, EACH = 1500 };
    char text[4 * EACH];
    begin(TLS1_3_VERSION);
    for (int i = 0; i < EACH; i++)
        memcpy(text + 4 * i, ":1\r\n", 4);
    for (int i = 0; i < RECORDS; i++)
        say(text, sizeof text);
    while (carry_down(RAW_MAX) > 0)
        continue;
    assert_int_equal(lk__stream_take(pair.stream), 0);
    assert_true(lk__stream_more(pair.stream));
    int first = 0;
    while (lk__stream_next(pair.stream) == 0)
        first++;
    assert_int_equal(first + replies(), RECORDS * EACH);
    struct pollfd polled = { pair.stream->socket.fd, POLLIN, 0 };
    assert_int_equal(poll(&polled, 1, 0), 0);
    end();
}

/* A record that is not whole yet is no reason to look again before something comes. */
static void a_record_comes_byte_by_byte(void)
{
    begin(TLS1_3_VERSION);
    say(":1\r\n:2\r\n", 8);
    size_t left = BIO_ctrl_pending(SSL_get_wbio(pair.server));
    while (--left > 0) {
        assert_int_equal(carry_down(1), 1);
        assert_int_equal(lk__stream_take(pair.stream), EAGAIN);
        assert_false(lk__stream_more(pair.stream));
        assert_int_equal(lk__stream_wants(pair.stream), POLLIN);
    }
    assert_int_equal(carry_down(1), 1);
    assert_int_equal(replies(), 2);
    end();
}

/* A server may ask for new keys at any time: reading then has to write, and there may be no room for that. */
static void keys_change_while_the_socket_is_full(void)
{
    begin(TLS1_3_VERSION);
    received = 0;
    while (lk__stream_waiting(pair.stream) == 0) {
        append_some(20000);
        assert_int_equal(lk__stream_give(pair.stream), 0);
    }
    assert_int_equal(SSL_key_update(pair.server, SSL_KEY_UPDATE_REQUESTED), 1);
    say(":1\r\n", 4);
    carry_down(RAW_MAX);
    int came = 0;
    for (int i = 0; i < 1000 && (came == 0 || lk__stream_waiting(pair.stream) > 0); i++) {
        struct pollfd polled = { pair.stream->socket.fd, lk__stream_wants(pair.stream), 0 };
        if (poll(&polled, 1, 0) > 0) {
            assert_int_equal(lk__stream_give(pair.stream), 0);
            came += replies();
        }
        carry_up(7000);
        hear();
    }
    while (carry_up(RAW_MAX) > 0)
        hear();
    assert_int_equal(came, 1);
    assert_int_equal(received, pair.stream->queued);
    assert_int_equal(SSL_get_key_update_type(pair.server), SSL_KEY_UPDATE_NONE);
    append_some(100); /* and it goes on, both ways, by new keys */
    assert_int_equal(lk__stream_give(pair.stream), 0);
    carry_up(RAW_MAX);
    hear();
    assert_int_equal(received, pair.stream->queued);
    say(":1\r\n", 4);
    carry_down(RAW_MAX);
    assert_int_equal(replies(), 1);
    end();
}

static void expect_end(const char *words)
{
    int code = 0, rc = 0;
    while (rc == 0)
        rc = lk__stream_take(pair.stream);
    assert_int_equal(rc, EIO);
    const char *why = lk__stream_why(pair.stream, &code);
    if (strstr(why, words) == NULL)
        fail_msg("not \"%s\", but \"%s\"", words, why);
    assert_int_equal(lk__stream_take(pair.stream), EIO); /* and stays so */
    assert_int_equal(ERR_peek_error(), 0);
}

static void every_way_to_end(void)
{
    begin(TLS1_3_VERSION); /* as it should be */
    say(":1\r\n", 4);
    SSL_shutdown(pair.server);
    carry_down(RAW_MAX);
    expect_end("the server closed the connection");
    end();
    begin(TLS1_3_VERSION); /* in the middle of a record */
    say(":1\r\n:2\r\n", 8);
    carry_down(12);
    shutdown(pair.peer, SHUT_WR);
    expect_end("the server closed the connection");
    end();
    begin(TLS1_3_VERSION); /* somebody else speaks */
    assert_int_equal(send(pair.peer, "+OK\r\n:1\r\n", 9, 0), 9);
    expect_end("TLS failed: ");
    end();
    begin(TLS1_3_VERSION); /* a byte is another one on the way */
    say(":1\r\n", 4);
    char record[64];
    int length = BIO_read(SSL_get_wbio(pair.server), record, sizeof record);
    record[length - 1] ^= 1;
    assert_int_equal(send(pair.peer, record, (size_t)length, 0), length);
    expect_end("TLS failed: ");
    end();
}

/* The program's own use of OpenSSL goes on beside ours: errors that it has not looked at yet stay. */
static void errors_of_the_program_stay(void)
{
    begin(TLS1_3_VERSION);
    ERR_raise(ERR_LIB_USER, 77);
    append_some(100);
    assert_int_equal(lk__stream_give(pair.stream), 0);
    say(":1\r\n", 4);
    carry_down(RAW_MAX);
    assert_int_equal(replies(), 1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), 77);
    ERR_clear_error();
    end();
}

/* A server of several names is asked for one of them; an address is none. */
static void the_server_is_asked_for_a_name(void)
{
    static const struct {
        const char *host, *sni, *name;
    } cases[] = {
        { "localhost", NULL, "localhost" },
        { "localhost.", NULL, "localhost" },
        { "127.0.0.1", NULL, NULL },
        { "127.0.0.1", "localhost", "localhost" },
        { "cache.invalid", "localhost", "localhost" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_as(TLS1_3_VERSION, cases[i].host, cases[i].sni);
        const char *name = SSL_get_servername(pair.server, TLSEXT_NAMETYPE_host_name);
        if (cases[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(cases[i].name, name);
        end();
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/lk-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    certificates_make(folder);
    snprintf(trusted, sizeof trusted, "%s/ca.pem", folder);
    int failed = plain_run(what_is_sent_is_what_a_server_can_know, what_is_there_is_read_without_poll,
                           a_record_comes_byte_by_byte, keys_change_while_the_socket_is_full, every_way_to_end,
                           errors_of_the_program_stay, the_server_is_asked_for_a_name);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
