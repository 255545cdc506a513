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

/* Credentials are the caller's matter, at once; and no secret gets into the words. */
static void a_server_that_refuses_us(struct world *w)
{
    char url[256];
    world_redis(w, "ACL SETUSER worker on >secret ~* +@all");
    snprintf(url, sizeof url, "unix://worker:wrong-one@%s", w->socket);
    expect(EACCES, url, 1000, "");
    assert_null(strstr(lk_errortext(), "wrong-one"));
    snprintf(url, sizeof url, "unix://nobody:secret@%s", w->socket);
    expect(EACCES, url, 1000, "");
    world_redis(w, "ACL SETUSER worker -eval -evalsha");
    snprintf(url, sizeof url, "unix://worker:secret@%s", w->socket);
    expect(EACCES, url, 1000, "eval");
}

/* A replica cannot keep a lock: what it grants, its master does not know. */
static void a_replica_is_refused(struct world *w)
{
    world_redis(w, "REPLICAOF 127.0.0.1 1");
    expect(ENOTCONN, world_url(w, ""), 1000, "replica");
}

/* What answers is no Redis, or one that is too old. */
static void a_server_of_another_kind(struct world *w)
{
    struct fake *f = fake_begin(w);
    fake_answer(f, "*", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "ROLE", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "TIME", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "PING", "HTTP/1.1 400 Bad Request\r\n\r\n");
    fake_answer(f, "INFO", "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect(EPROTO, fake_url(f, ""), 2000, "");
    fake_end(f);
    f = fake_begin(w);
    fake_answer(f, "INFO", "$22\r\nredis_version:6.2.14\r\n\r\n");
    expect(ENOTSUP, fake_url(f, ""), 2000, "6.2");
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

/* URLs that cannot be read name what is wrong with them. */
static void a_url_that_cannot_be_read(struct world *w)
{
    expect(EINVAL, world_url(w, "leese=5s"), 0, "leese");
    expect(EINVAL, world_url(w, "lease=5"), 0, "lease");
    expect(EINVAL, world_url(w, "lease=99ms"), 0, "lease");
    expect(EINVAL, world_url(w, "lease=1s&poll=2s"), 0, "poll");
    expect(EINVAL, "redis-cluster://127.0.0.1/1", 0, "a cluster has database 0 alone");
    expect(ENOTCONN, "redis-cluster://127.0.0.1:1,127.0.0.1:2", 2000, "Connection refused");
}

int main(void)
{
    return world_run(a_server_that_is_not_there, a_server_that_says_nothing, a_server_that_refuses_us,
                     a_replica_is_refused, a_server_of_another_kind, a_server_that_evicts_is_refused_if_asked,
                     a_url_that_cannot_be_read);
}
