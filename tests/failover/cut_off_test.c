/* SPDX-License-Identifier: MIT */
/*
 * cut_off_test.c - F32: the old master goes on, or goes on again, when there is a new one
 *
 * Nothing ends the connections to it: it stands still, or only the others do not reach it any more.
 *
 * labels: threads
 * simulated: yes
 * seconds: 14
 */
#include "failover.h"
#include "news.h"
#include "subject.h"

#include <string.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

enum { NEXT_LOCK_MS = 1000, WAKES_MS = 2000 };

/* All connections leave a master that serves them still, soon after the Sentinels named another one. */
static void a_master_that_is_cut_off_is_left(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker waiter;
    int64_t announced_ms;
    lk_client_t *client = failover_client(f, OPTIONS), *other = failover_client(f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *wanted = world_mutex(w, other, "orders", NULL);
    lk_mutex_t *bills = world_mutex(w, client, "bills", NULL);
    struct news *n = news_of(w, client, "bills");
    struct failover_visit waits = { .mutex = wanted };
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, failover_visit, &waits);
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    failover_sync(f, 0);
    failover_cutoff(f, 0);
    assert_lk(0, lk_mutex_lock(bills)); /* the others never hear of it */

    int master = failover_await(f, 0, &announced_ms);
    eventually(failover_connections(f, 0) == 0, NEXT_LOCK_MS + 2 * SLACK_MS);
    eventually(failover_connections(f, master) == 5,
               NEXT_LOCK_MS + 2 * SLACK_MS); /* all but the subscription of who does not wait */
    print_message("they moved within %lld ms of the announcement\n", (long long)(now_ms() - announced_ms));
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(ESTALE, lk_mutex_check(bills));
    eventually(news(n, LK_EVENT_LOST) == 1, PATIENT_MS);
    assert_lk(ESTALE, lk_mutex_unlock(bills));
    eventually(failover_int(f, master, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(waits.held_ms - began_ms, 0, WAKES_MS + 2 * SLACK_MS);
    failover_heal(f, 0);
    eventually(strstr(failover_str(f, 0, "INFO replication"), "role:slave") != NULL, FAILOVER_WITHIN_MS);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A connection to it is not ended, and answers nothing. When it goes on, nobody is there any more. */
static void a_master_that_stands_still_is_left(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker next;
    int64_t announced_ms;
    lk_client_t *client = failover_client(f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *bills = world_mutex(w, client, "bills", NULL);
    struct failover_visit comes = { .mutex = bills };
    assert_lk(0, lk_mutex_lock(orders));
    failover_sync(f, 0);
    failover_stop(f, 0);
    worker_start(&next, failover_visit, &comes);
    int master = failover_await(f, 0, &announced_ms);
    assert_int_equal(0, worker_join(&next));
    print_message("the next lock came %lld ms after the announcement\n", (long long)(comes.held_ms - announced_ms));
    assert_between(comes.held_ms - announced_ms, -FAILOVER_WITHIN_MS, NEXT_LOCK_MS + 2 * SLACK_MS);
    failover_cont(f, 0);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, failover_int(f, master, "EXISTS orders"));
    eventually(failover_connections(f, 0) == 0, NEXT_LOCK_MS + 2 * SLACK_MS);
}

int main(void)
{
    return world_run(a_master_that_is_cut_off_is_left, a_master_that_stands_still_is_left);
}
