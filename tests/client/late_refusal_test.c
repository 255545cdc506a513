/* SPDX-License-Identifier: MIT */
/*
 * late_refusal_test.c - a thread sees late that the server it asked is no master any more
 *
 * Its connection is of no use, and another thread has had it made anew by then: that one is left alone, or what others
 * have asked on it would be cut, and its outcome unknown.
 *
 * labels: threads
 * simulated: except tsan
 * seconds: 3
 */
#include "proxy.h"
#include "still.h"
#include "subject.h"

#include <stdlib.h>
#include <string.h>

#define OPTIONS "lease=90s&command_timeout=20s"

static int set_count(void *latch)
{
    return lk_latch_trysetcount(latch, 1);
}

static int reconnects(lk_client_t *client)
{
    static const char field[] = "\"reconnects\":";
    char *text = NULL;
    assert_lk(0, lk_client_stats(client, &text));
    const char *at = strstr(text, field);
    assert_non_null(at);
    int count = atoi(at + strlen(field));
    lk_free(text);
    return count;
}

/* It has asked, but nothing gets to the server. */
static void ask(struct proxy *p, struct worker *worker, int (*work)(void *arg), void *arg)
{
    int64_t before = proxy_bytes(p, PROXY_UP);
    worker_start(worker, work, arg);
    eventually(proxy_bytes(p, PROXY_UP) > before, PATIENT_MS);
}

/* Both are told READONLY by one connection; `work` sees it when the next connection serves the other one. */
static void told_late(struct world *w, int (*work)(void *arg), void *(*object)(struct world *, lk_client_t *))
{
    struct worker prompt, late;
    struct proxy *p = proxy_begin(w);
    lk_client_t *client = proxy_client(p, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    void *asked = object(w, client);
    assert_lk(0, lock_and_unlock(orders));
    eventually(library_clients(world_str(w, "CLIENT LIST")) == 2, PATIENT_MS); /* that for renewals says no more */
    proxy_stall(p, PROXY_UP);
    ask(p, &prompt, lock_and_unlock, orders);
    ask(p, &late, work, asked);
    still_begin(&late);
    world_redis(w, "REPLICAOF 127.0.0.1 1");
    int64_t connections = proxy_connections(p);
    proxy_resume(p);
    eventually(proxy_connections(p) > connections, PATIENT_MS);
    world_redis(w, "REPLICAOF NO ONE");
    assert_lk(0, worker_join(&prompt));
    assert_int_equal(1, reconnects(client));

    still_end();
    assert_lk(0, worker_join(&late));
    assert_int_equal(1, reconnects(client));
}

static void *a_latch(struct world *w, lk_client_t *client)
{
    world_allow(w, "gate");
    return world_latch(w, client, "gate");
}

static void *a_mutex(struct world *w, lk_client_t *client)
{
    return world_mutex(w, client, "bills", NULL);
}

static void by_a_command(struct world *w)
{
    told_late(w, set_count, a_latch);
}

static void by_an_ask(struct world *w)
{
    told_late(w, lock_and_unlock, a_mutex);
}

int main(void)
{
    return world_run(by_a_command, by_an_ask);
}
