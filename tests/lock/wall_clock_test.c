/* SPDX-License-Identifier: MIT */
/*
 * wall_clock_test.c - the wall clock may be set: neither leases nor limits depend on it
 *
 * This program's clock_gettime() takes the place of the C library's, so the wall clock is what a test says.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60, LEASE_MS = 2400 };

static int64_t ahead_s; /* reached with atomic builtins */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    if (rc == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += __atomic_load_n(&ahead_s, __ATOMIC_RELAXED);
    return rc;
}

static void set_ahead(int64_t seconds)
{
    __atomic_store_n(&ahead_s, seconds, __ATOMIC_RELAXED);
}

static const int64_t jumps_s[] = { DAY_S, -DAY_S };
enum { JUMPS = sizeof jumps_s / sizeof jumps_s[0] };

/* A hold is neither lost by a jump forward nor believed in for longer by a jump back. */
static void a_hold_does_not_notice(struct world *w)
{
    int64_t left_ms;
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=2400ms&command_timeout=780ms"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < JUMPS; i++) {
        set_ahead(jumps_s[i]);
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
        assert_between(left_ms, 1, LEASE_MS);
        sleep_ms(LEASE_MS + LEASE_MS / 3); /* renewals go on */
        assert_lk(0, lk_mutex_check(orders));
        assert_between(world_pttl(w, "orders"), 1, LEASE_MS);
    }
    set_ahead(0);
    assert_lk(0, lk_mutex_unlock(orders));
}

static int jump_soon(void *seconds)
{
    sleep_ms(100);
    set_ahead(*(const int64_t *)seconds);
    return 0;
}

/* A wait takes as long as it was told to, whatever the clock on the wall shows meanwhile. */
static void a_limit_does_not_notice(struct world *w)
{
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=5s"), "orders", NULL);
    world_redis(w, "HSET orders somebody:1 1");
    for (int i = 0; i < JUMPS; i++) {
        struct worker jumper;
        int64_t jump_s = jumps_s[i], began_ms = now_ms();
        worker_start(&jumper, jump_soon, &jump_s);
        assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 400));
        assert_between(now_ms() - began_ms, 400, 400 + SLACK_MS);
        assert_int_equal(0, worker_join(&jumper));
    }
    set_ahead(0);
    world_redis(w, "DEL orders");
}

int main(void)
{
    return world_run(a_hold_does_not_notice, a_limit_does_not_notice);
}
