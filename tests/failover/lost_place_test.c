/* SPDX-License-Identifier: MIT */
/*
 * lost_place_test.c - the next master knows a wait, and not that it ended
 *
 * labels: threads
 * simulated: yes
 * seconds: 14
 */
#include "failover.h"

#define OPTIONS "lease=10s&command_timeout=500ms&poll=5s&clock_skew=100ms"

enum { HOLD_MS = 700, NEXT_LOCK_MS = 1000, PATIENT_MS = 20000, SUBSCRIBED_MS = 200, BRIEF_MS = 2000 };

static lk_mutex_t *fair_mutex(struct world *w, lk_client_t *client)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = 1;
    return world_mutex(w, client, "orders", &attr);
}

/* Its client hears messages as long as it waits. */
static int visit(void *arg)
{
    assert_lk(0, lk_mutex_lock(arg));
    assert_lk(0, lk_mutex_unlock(arg));
    return 0;
}

/* Once somebody waits the replicas know that, and nothing that comes later. Clients reach the master still. */
static int cut_off(void *arg)
{
    struct failover *f = arg;
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    failover_sync(f, 0);
    failover_cutoff(f, 0);
    return 0;
}

/* A place that nobody stands at would be handed the mutex first, and keep it for a claim. */
static void a_grant_that_is_lost_leaves_no_place(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker cutter, listener;
    lk_how_t how = LK_HOW_INIT;
    lk_client_t *one = failover_client(f, OPTIONS), *two = failover_client(f, OPTIONS);
    lk_mutex_t *first = fair_mutex(w, one), *second = fair_mutex(w, two), *bills = world_mutex(w, one, "bills", NULL);
    lk_mutex_t *third = fair_mutex(w, failover_client(f, OPTIONS));
    how.fixed = 1;
    how.lease_ms = HOLD_MS;
    assert_lk(0, lk_mutex_lock(bills));
    worker_start(&listener, visit, world_mutex(w, two, "bills", NULL));
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{bills}") == 1, PATIENT_MS);
    sleep_ms(SUBSCRIBED_MS);
    assert_lk(0, lk_mutex_lockwith(first, &how));
    worker_start(&cutter, cut_off, f);
    assert_lk(0, lk_mutex_lock(second));
    assert_int_equal(0, worker_join(&cutter));

    int64_t announced_ms;
    failover_await(f, 0, &announced_ms);
    int64_t left_ms;
    eventually(lk_mutex_remaining(second, &left_ms) == ESTALE, PATIENT_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_lock(third));
    print_message("taken after %lld ms\n", (long long)(now_ms() - began_ms));
    assert_between(now_ms() - began_ms, 0, NEXT_LOCK_MS + 2 * SLACK_MS);
    assert_lk(0, lk_mutex_unlock(third));
    assert_lk(ESTALE, lk_mutex_unlock(second));
    assert_lk(0, lk_mutex_unlock(bills));
    assert_int_equal(0, worker_join(&listener));
}

static int wait_briefly(void *mutex)
{
    return lk_mutex_lockfor(mutex, BRIEF_MS);
}

static int wait_patiently(void *mutex)
{
    int rc = lk_mutex_lockfor(mutex, PATIENT_MS);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

/* Its client waits on for somebody else. So the place would be handed the mutex first, and keep it for a claim. */
static void a_place_that_was_given_up_is_given_up_again(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker brief, patient;
    lk_client_t *client = failover_client(f, OPTIONS);
    lk_mutex_t *held = fair_mutex(w, failover_client(f, OPTIONS)), *mutex = fair_mutex(w, client);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&brief, wait_briefly, mutex);
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, BRIEF_MS);
    worker_start(&patient, wait_patiently, mutex);
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 2, BRIEF_MS);
    failover_sync(f, 0);
    failover_cutoff(f, 0);
    assert_int_equal(ETIMEDOUT, worker_join(&brief));
    assert_int_equal(1, failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}"));

    int64_t announced_ms;
    int master = failover_await(f, 0, &announced_ms);
    eventually(failover_int(f, master, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    sleep_ms(SUBSCRIBED_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(0, worker_join(&patient));
    print_message("taken after %lld ms\n", (long long)(now_ms() - began_ms));
    assert_between(now_ms() - began_ms, 0, NEXT_LOCK_MS + SLACK_MS);
}

int main(void)
{
    return world_run(a_grant_that_is_lost_leaves_no_place, a_place_that_was_given_up_is_given_up_again);
}
