/* SPDX-License-Identifier: MIT */
/*
 * addresses_test.c - a name has several addresses, of both kinds: the first that takes a connection is the server's, and
 * with TLS shows that it is
 *
 * This program has a getaddrinfo() of its own, which the library calls, too. It knows one name.
 *
 * labels: memory
 * simulated: yes
 * seconds: 20
 */
#include "certificates.h"
#include "world.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME "cache.invalid" /* RFC 6761: nobody's */

enum { CONNECT_MS = 900, FILLED = 8 };

static const char *const *addresses; /* of the name, in the order in which they are found; behind the last one NULL */

typedef int resolver(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    resolver *real;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(node, NAME) != 0)
        return real(node, service, hints, found);
    for (const char *const *address = addresses; *address != NULL; address++, found = &(*found)->ai_next) {
        int rc = real(*address, service, hints, found);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The server is at this address alone. Its port, or 0: there is no such address here. */
static int listen_at(struct world *w, const char *address)
{
    int port = free_port();
    world_redis(w, "CONFIG SET bind %s", address);
    redisReply *reply = redisCommand(w->redis, "CONFIG SET port %d", port);
    bool listens = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return listens ? port : 0;
}

static const char *url_of(int port)
{
    static char url[128];
    snprintf(url, sizeof url, "redis://" NAME ":%d?lease=20s&command_timeout=500ms&connect_timeout=%dms", port,
             CONNECT_MS);
    return url;
}

static void works_by(struct world *w, const char *url, int within_ms)
{
    int64_t began_ms = now_ms();
    lk_client_t *client = world_client_at(w, NULL, url);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_between(now_ms() - began_ms, 0, within_ms);
    world_killcommands(w); /* each connection finds it anew */
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, client);
}

static void works(struct world *w, int port, int within_ms)
{
    works_by(w, url_of(port), within_ms);
}

static void those_that_refuse_are_passed_over(struct world *w)
{
    static const char *const list[] = { "127.0.0.3", "::1", "127.0.0.1", "127.0.0.4", NULL };
    addresses = list;
    works(w, listen_at(w, "127.0.0.1"), SLACK_MS);
}

static void one_of_the_other_kind(struct world *w)
{
    static const char *const list[] = { "127.0.0.1", "::1", NULL };
    int port = listen_at(w, "::1");
    if (port == 0)
        skip();
    addresses = list;
    works(w, port, SLACK_MS);
}

/* Nobody answers there: those who connected are never accepted, and there is no room for more. */
static void fill(int fds[FILLED], const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    inet_pton(AF_INET, address, &to.sin_addr);
    for (int i = 0; i < FILLED; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(0, bind(fds[0], (struct sockaddr *)&to, sizeof to));
    assert_int_equal(0, listen(fds[0], 0));
    for (int i = 1; i < FILLED; i++)
        (void)connect(fds[i], (struct sockaddr *)&to, sizeof to);
}

/* It has its share of the time, and the next one the rest. */
static void one_that_is_silent_leaves_time_for_the_next(struct world *w)
{
    static const char *const list[] = { "127.0.0.2", "127.0.0.1", NULL }, *const silent[] = { "127.0.0.2", NULL };
    int fds[FILLED], port = listen_at(w, "127.0.0.1");
    lk_client_t *client;
    fill(fds, "127.0.0.2", port);
    addresses = list;
    works(w, port, CONNECT_MS / 2 + SLACK_MS);
    addresses = silent;
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_client_open(&client, url_of(port)));
    assert_between(now_ms() - began_ms, CONNECT_MS - 10, CONNECT_MS + SLACK_MS);
    for (int i = 0; i < FILLED; i++)
        close(fds[i]);
}

/* --- with TLS: the world's server is at 127.0.0.1, and its certificate is for the name ------------------------------- */

static const char *tls_url(struct world *w, const char *options)
{
    static char url[256];
    certificate_make(w->dir, &(struct certificate){ .name = "named", .signer = "ca", .names = "DNS:" NAME });
    world_redis(w, "CONFIG SET tls-cert-file %s/named.pem tls-key-file %s/named.key", w->dir, w->dir);
    snprintf(url, sizeof url, "rediss://" NAME ":%d?lease=20s&command_timeout=2s&cacert=%s/ca.pem&%s", w->tls_port,
             w->dir, options);
    return url;
}

/* An attempt that began late has not ended when the time is over, and says that alone: then once more. */
static void refused(const char *url, const char *words)
{
    lk_client_t *client;
    int attempts = 0;
    do
        assert_lk(ENOTCONN, lk_client_open(&client, url));
    while (strstr(lk_errortext(), "(connect_timeout)") != NULL && ++attempts < 8);
    assert_says(words);
}

/* Connections are taken there, and nothing is ever said. */
static int listen_silently(const char *address, int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &at.sin_addr);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(fd, 64));
    return fd;
}

static void one_that_does_not_begin_tls_leaves_time_for_the_next(struct world *w)
{
    static const char *const list[] = { "127.0.0.2", "127.0.0.1", NULL };
    int fd = listen_silently("127.0.0.2", w->tls_port);
    addresses = list;
    works_by(w, tls_url(w, "connect_timeout=2s"), 1000 + SLACK_MS);
    close(fd);
}

/* Whoever is there shows a certificate of another authority, or speaks without TLS: neither is told anything. */
static void those_that_are_not_the_server_are_passed_over(struct world *w)
{
    static const char *const list[] = { "127.0.0.2", "127.0.0.3", "127.0.0.1", NULL };
    const char *url = tls_url(w, "connect_timeout=6s");
    struct world *impostor = world_begin(NULL);
    world_redis(impostor, "CONFIG SET bind 127.0.0.2 tls-port %d", w->tls_port);
    struct world *plain = world_begin(NULL);
    world_redis(plain, "CONFIG SET bind 127.0.0.3 tls-port 0 port %d", w->tls_port);
    addresses = list;
    works_by(w, url, 6000);
    assert_int_equal(0, world_commands(plain, "time") + world_commands(plain, "evalsha"));
    assert_int_equal(0, world_commands(impostor, "time") + world_commands(impostor, "evalsha"));
    world_end(plain);
    world_end(impostor);
}

/* A certificate tells more than those who do not answer or take no connection, whichever comes last. */
static void a_certificate_that_is_refused_is_told(struct world *w)
{
    static const char *const lists[][4] = { { "127.0.0.2", NULL },
                                            { "127.0.0.2", "127.0.0.4", "127.0.0.3", NULL },
                                            { "127.0.0.3", "127.0.0.4", "127.0.0.2", NULL } };
    const char *url = tls_url(w, "connect_timeout=2s");
    struct world *impostor = world_begin(NULL);
    world_redis(impostor, "CONFIG SET bind 127.0.0.2 tls-port %d", w->tls_port);
    int fd = listen_silently("127.0.0.3", w->tls_port);
    for (int i = 0; i < 3; i++) {
        addresses = lists[i];
        refused(url, "certificate is for localhost, not for " NAME);
    }
    addresses = lists[1] + 1;
    refused(url, "does not begin TLS in time");
    close(fd);
    world_end(impostor);
}

int main(void)
{
    int failed = world_run(those_that_refuse_are_passed_over, one_of_the_other_kind,
                           one_that_is_silent_leaves_time_for_the_next);
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return failed + world_run(one_that_does_not_begin_tls_leaves_time_for_the_next,
                              those_that_are_not_the_server_are_passed_over, a_certificate_that_is_refused_is_told);
}
