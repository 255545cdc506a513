/* SPDX-License-Identifier: MIT */
/*
 * no_server_test.c - without a server that serves there is an answer soon, and words for it
 *
 * labels: threads memory
 * simulated: yes
 */
#include "fake_server.h"
#include "log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void expect(int code, const char *url, int64_t within_ms, const char *words)
{
    lk_client_t *client = (lk_client_t *)&client;
    int64_t began_ms = now_ms();
    assert_lk(code, lk_client_open(&client, url));
    assert_between(now_ms() - began_ms, 0, within_ms + SLACK_MS);
    assert_ptr_equal((lk_client_t *)&client, client); /* written on success only */
    assert_says(words);
}

/* Nobody there. */
static void a_server_that_is_not_there(struct world *w)
{
    world_kill_server(w);
    expect(ENOTCONN, world_url(w, "connect_timeout=300ms"), 300, w->socket);
    expect(ENOTCONN, "unix:///nowhere/at/all.sock", 2000, "/nowhere/at/all.sock");
    expect(ENOTCONN, "redis://127.0.0.1:1?connect_timeout=300ms", 300, "127.0.0.1:1");
}

/* Somebody there who says nothing: the kernel accepts for a process that hangs. */
static void a_server_that_says_nothing(struct world *w)
{
    world_stop_server(w);
    expect(ENOTCONN, world_url(w, "connect_timeout=300ms"), 300, w->socket);
    world_cont_server(w);
}

/* What answers is no Redis. One that is too old, or a replica: security/server_test.c. */
static void a_server_of_another_kind(struct world *w)
{
    struct fake *f = fake_begin(w);
    fake_answer(f, "*", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "ROLE", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "TIME", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "PING", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "INFO", "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect(EPROTO, fake_url(f, ""), 2000, "");
}

/* strict=yes: rather none than one that throws live locks away. */
static atomic_int warnings;

static void count_warning(void *arg, int level, const char *line)
{
    (void)arg;
    if (level == LK_LOG_WARNING && strstr(line, "maxmemory-policy") != NULL)
        atomic_fetch_add(&warnings, 1);
}

static void a_server_that_evicts_is_refused_if_asked(struct world *w)
{
    world_redis(w, "CONFIG SET maxmemory-policy allkeys-lru");
    world_redis(w, "CONFIG SET maxmemory 100mb");
    expect(ENOTSUP, world_url(w, "strict=yes"), 1000, "allkeys-lru");
    assert_lk(0, log_to(count_warning, LK_LOG_WARNING, NULL));
    lk_client_t *client = world_client(w, "");
    assert_int_equal(1, atomic_load(&warnings));
    world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* connected anew */
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(1, atomic_load(&warnings)); /* it warns once, not at each reconnect */
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
}

int main(void)
{
    return world_run(a_server_that_is_not_there, a_server_that_says_nothing, a_server_of_another_kind,
                     a_server_that_evicts_is_refused_if_asked);
}
