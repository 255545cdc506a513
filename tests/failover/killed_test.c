/* SPDX-License-Identifier: MIT */
/*
 * killed_test.c - F31: the master dies, and the Sentinels make a replica the next one
 *
 * labels: threads
 * simulated: yes
 * seconds: 12
 */
#include "failover.h"
#include "news.h"
#include "subject.h"

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

enum { NEXT_LOCK_MS = 1000, WAKES_MS = 2000 };

/* What the new master knows is held on; the next lock comes soon, and so does the message of the next unlock. */
static void the_next_master_serves_soon(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker waiter, next;
    int64_t announced_ms, left_ms;
    lk_client_t *client = failover_client(f, OPTIONS), *other = failover_client(f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *wanted = world_mutex(w, other, "orders", NULL);
    lk_mutex_t *bills = world_mutex(w, other, "bills", NULL);
    struct news *n = news_of(w, client, "orders");
    struct failover_visit waits = { .mutex = wanted }, comes = { .mutex = bills };
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, failover_visit, &waits);
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    failover_sync(f, 0);

    failover_kill(f, 0);
    worker_start(&next, failover_visit, &comes);
    int master = failover_await(f, 0, &announced_ms);
    assert_int_equal(0, worker_join(&next));
    print_message("the next lock came %lld ms after the announcement\n", (long long)(comes.held_ms - announced_ms));
    assert_between(comes.held_ms - announced_ms, -FAILOVER_WITHIN_MS, NEXT_LOCK_MS + 2 * SLACK_MS);

    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_true(left_ms > 0);
    eventually(failover_int(f, master, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(waits.held_ms - began_ms, 0, WAKES_MS + 2 * SLACK_MS);
    assert_int_equal(0, news(n, LK_EVENT_LOST));
}

/* A hold that never got to the new master is told lost, and not made again there. */
static void a_hold_that_was_lost_is_told(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = failover_client(f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    struct news *n = news_of(w, client, "orders");
    failover_cutoff(f, 0); /* so the replicas see nothing of it */
    assert_lk(0, lk_mutex_lock(orders));
    failover_kill(f, 0);
    int master = failover_await(f, 0, NULL);
    eventually(news(n, LK_EVENT_LOST) == 1, 10000);
    assert_int_equal(0, failover_int(f, master, "EXISTS orders"));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_int_equal(0, failover_int(f, master, "EXISTS orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(the_next_master_serves_soon, a_hold_that_was_lost_is_told);
}
