/* SPDX-License-Identifier: MIT */
/*
 * skew_test.c - clock_skew is taken off every validity, and no lease is so short that little is left of it
 *
 * One server by itself is enough for that: whoever gives clock_skew means it.
 *
 * labels: memory
 * simulated: yes
 */
#include "subject.h"

#define OPTIONS "lease=8s&poll=300ms&command_timeout=400ms&clock_skew=1s"

enum { LEASE_MS = 8000, SKEW_MS = 1000, GUARD_MS = LEASE_MS / 100 + 2, SPREAD_MS = LEASE_MS / 30 /* of renewals */ };

static void every_validity_is_shorter(struct world *w)
{
    int64_t left_ms;
    lk_client_t *client = world_client(w, OPTIONS), *other = world_client(w, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *wanted = world_mutex(w, other, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(left_ms, LEASE_MS - SKEW_MS - GUARD_MS - SLACK_MS, LEASE_MS - SKEW_MS - GUARD_MS);
    sleep_ms(LEASE_MS / 3 + 400); /* it was renewed */
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(left_ms, LEASE_MS - SKEW_MS - GUARD_MS - 400 - SPREAD_MS - SLACK_MS, LEASE_MS - SKEW_MS - GUARD_MS);
    assert_lk(0, lk_mutex_extend(orders, 2 * LEASE_MS));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(left_ms, LEASE_MS, 2 * LEASE_MS - SKEW_MS - 2 * GUARD_MS + 2);

    struct worker waiter;
    worker_start(&waiter, lock_and_unlock, wanted);
    eventually(world_queued(w, "orders") == 1, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(orders)); /* a claim, of which the same is taken off */
    assert_int_equal(0, worker_join(&waiter));
}

static void a_lease_is_four_times_as_long(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT, capped = LK_MUTEXATTR_INIT;
    lk_client_t *client = world_client(w, OPTIONS);
    attr.lease_ms = 4 * SKEW_MS - 1;
    capped.max_hold_ms = 4 * SKEW_MS - 1;
    assert_lk(EINVAL, lk_mutex_lock(world_mutex(w, client, "short", &attr)));
    assert_lk(EINVAL, lk_mutex_lock(world_mutex(w, client, "capped", &capped)));
    attr.lease_ms = 4 * SKEW_MS;
    lk_mutex_t *orders = world_mutex(w, client, "orders", &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EINVAL, lk_mutex_extend(orders, 4 * SKEW_MS - 1));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(EINVAL, lk_client_open(&client, world_url(w, "lease=3s&clock_skew=1s")));
}

int main(void)
{
    return world_run(every_validity_is_shorter, a_lease_is_four_times_as_long);
}
