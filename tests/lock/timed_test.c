/* SPDX-License-Identifier: MIT */
/*
 * timed_test.c - locking with a limit ends at the limit and leaves nothing behind
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <time.h>

static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    orders = world_mutex(w, world_client(w, ""), "orders", NULL);
}

/* Somebody else has it for longer than any test takes. */
static void hold_elsewhere(struct world *w)
{
    world_redis(w, "HSET orders 0f8fad5b-d9cb-469f-a165-70867728950e:1 1");
    world_redis(w, "PEXPIRE orders 60000");
}

static struct timespec in_ms(clockid_t clock, int64_t ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    int64_t later_ns = t.tv_nsec + (ms % 1000 + 1000) * 1000000; /* not negative, also for a moment in the past */
    return (struct timespec){ t.tv_sec + ms / 1000 - 1 + later_ns / 1000000000, later_ns % 1000000000 };
}

static int lock_until_realtime(int64_t ms)
{
    struct timespec until = in_ms(CLOCK_REALTIME, ms);
    return lk_mutex_timedlock(orders, &until);
}

static int lock_until_monotonic(int64_t ms)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, ms);
    return lk_mutex_clocklock(orders, CLOCK_MONOTONIC, &until);
}

static int lock_until_boottime(int64_t ms)
{
    struct timespec until = in_ms(CLOCK_BOOTTIME, ms);
    return lk_mutex_clocklock(orders, CLOCK_BOOTTIME, &until);
}

static int lock_for(int64_t ms)
{
    return lk_mutex_lockfor(orders, ms);
}

static int (*const ways[])(int64_t ms) = { lock_until_realtime, lock_until_monotonic, lock_until_boottime, lock_for };
enum { WAYS = sizeof ways / sizeof ways[0] };

/* Callers plan with their limits, and a waiter that left must not be given the mutex later. */
static void a_limit_ends_the_wait_and_leaves_no_entry(struct world *w)
{
    open_orders(w);
    hold_elsewhere(w);
    for (int i = 0; i < WAYS; i++) {
        int64_t began_ms = now_ms();
        assert_lk(ETIMEDOUT, ways[i](200));
        assert_between(now_ms() - began_ms, 199, 200 + SLACK_MS);
        assert_false(world_exists(w, "latchkey:queue:mutex:{orders}"));
        assert_false(world_exists(w, "latchkey:alive:mutex:{orders}"));
    }
    assert_lk(EPERM, lk_mutex_unlock(orders));
    world_redis(w, "DEL orders");
}

/* As with pthreads: the limit is for the waiting, and there is none to do. */
static void a_past_limit_takes_a_free_mutex(struct world *w)
{
    struct timespec long_ago = { 1, 0 }, before_the_epoch = { -1, 0 };
    open_orders(w);
    for (int i = 0; i < WAYS - 1; i++) {
        assert_lk(0, ways[i](-1000));
        assert_lk(0, lk_mutex_unlock(orders));
    }
    assert_lk(0, lk_mutex_timedlock(orders, &long_ago));
    assert_lk(0, lk_mutex_timedlock(orders, &before_the_epoch));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* And tells at once that it is not free. */
static void a_past_limit_does_not_wait(struct world *w)
{
    int64_t began_ms = now_ms();
    open_orders(w);
    hold_elsewhere(w);
    for (int i = 0; i < WAYS - 1; i++)
        assert_lk(ETIMEDOUT, ways[i](-1000));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 0));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_between(now_ms() - began_ms, 0, SLACK_MS);
    assert_int_equal(0, world_queued(w, "orders"));
    world_redis(w, "DEL orders");
}

/* Mistakes in a time are told, whether the mutex is free or not. */
static void a_time_that_is_none_is_refused(struct world *w)
{
    const struct timespec too_few = { 1, -1 }, too_many = { 1, 1000000000 }, fine = { 1, 0 };
    open_orders(w);
    assert_lk(EINVAL, lk_mutex_timedlock(orders, &too_few));
    assert_lk(EINVAL, lk_mutex_timedlock(orders, &too_many));
    assert_lk(EINVAL, lk_mutex_timedlock(orders, NULL));
    assert_lk(EINVAL, lk_mutex_clocklock(orders, CLOCK_MONOTONIC, &too_many));
    assert_lk(EINVAL, lk_mutex_clocklock(orders, CLOCK_PROCESS_CPUTIME_ID, &fine));
    assert_lk(EINVAL, lk_mutex_lockfor(orders, -2));
    assert_lk(EINVAL, lk_mutex_lockfor(orders, INT64_MIN));
    assert_false(world_exists(w, "orders"));
}

/* The largest limits are limits like others, not overflows. */
static void a_limit_far_away_is_one(struct world *w)
{
    struct timespec far = { (time_t)INT64_MAX, 999999999 };
    open_orders(w);
    assert_lk(0, lk_mutex_timedlock(orders, &far));
    assert_lk(0, lk_mutex_clocklock(orders, CLOCK_MONOTONIC, &far));
    assert_lk(0, lk_mutex_lockfor(orders, INT64_MAX));
    assert_lk(0, lk_mutex_lockfor(orders, LK_FOREVER));
    for (int i = 0; i < 4; i++)
        assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(a_limit_ends_the_wait_and_leaves_no_entry, a_past_limit_takes_a_free_mutex,
                     a_past_limit_does_not_wait, a_time_that_is_none_is_refused, a_limit_far_away_is_one);
}
