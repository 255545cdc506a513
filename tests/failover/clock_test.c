/* SPDX-License-Identifier: MIT */
/*
 * clock_test.c - F31, F35: the clock of the next master is ahead of the last one's, or behind
 *
 * Leases end by the server's clock, and dates of two clocks are never compared. Up to clock_skew a difference is covered;
 * of more than that the log warns when a client is opened, and strict=yes refuses.
 *
 * simulated: yes
 * seconds: 16
 */
#include "failover.h"
#include "log.h"
#include "news.h"
#include "subject.h"

#ifdef SERVER_CLOCK

#include <stdio.h>
#include <string.h>

enum { SKEW_MS = 2000 };

/* The difference that these clocks have is covered. */
#define COVERED "lease=10s&clock_skew=2500ms&command_timeout=500ms&poll=500ms"

static int lock_and_unlock_patiently(void *mutex)
{
    int rc = lk_mutex_lockfor(mutex, PATIENT_MS);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

/* What the server has it for, and it is good here, in milliseconds from now on. */
static void expect_margin(struct failover *f, int master, lk_mutex_t *orders)
{
    int64_t left_ms = 0;
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_true(left_ms <= failover_int(f, master, "PTTL orders"));
}

/* A hold, a wait and tokens over a failover to a clock that differs: one holder at a time, and in order. */
static void over_to_a_clock_that_is(struct world *w, int64_t ahead_ms)
{
    struct failover *f = failover_begin(w, SERVER_CLOCK);
    struct worker waiter;
    uint64_t token, next_token;
    for (int node = 1; node < FAILOVER_NODES; node++)
        failover_setclock(f, node, ahead_ms);
    lk_client_t *client = failover_client(f, COVERED), *other = failover_client(f, COVERED);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *wanted = world_mutex(w, other, "orders", NULL);
    struct news *n = news_of(w, client, "orders");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    worker_start(&waiter, lock_and_unlock_patiently, wanted);
    eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
    failover_sync(f, 0);
    expect_margin(f, 1, orders); /* also as the next master will see it */

    failover_kill(f, 0);
    int master = failover_await(f, 0, NULL);
    for (int i = 0; i < 40; i++) { /* over a renewal or more */
        int64_t left_ms;
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
        assert_int_equal(1, failover_int(f, master, "HLEN orders"));
        sleep_ms(100);
    }
    expect_margin(f, master, orders);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_int_equal(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_mutex_lock(wanted));
    assert_lk(0, lk_mutex_token(wanted, &next_token));
    assert_true(next_token > token);
    assert_lk(0, lk_mutex_unlock(wanted));
}

static void the_next_clock_is_ahead(struct world *w)
{
    over_to_a_clock_that_is(w, SKEW_MS);
}

static void the_next_clock_is_behind(struct world *w)
{
    over_to_a_clock_that_is(w, -SKEW_MS);
}

/*
 * Opened with Sentinels, or with a list: the clocks of all are compared. A replica that only the master names is not sent the
 * password in clear: its clock counts if it tells the time to anybody.
 */
static void clocks_that_differ_are_told(struct world *w)
{
    struct failover *f = failover_begin(w, SERVER_CLOCK);
    lk_client_t *client;
    failover_setclock(f, 1, SKEW_MS);
    world_close(w, failover_client(f, "strict=yes"));
    failover_str(f, 1, "ACL SETUSER default on nopass -@all +time");
    assert_lk(ENOTSUP, lk_client_open(&client, failover_url(f, "strict=yes")));
    assert_non_null(strstr(lk_errortext(), "ms ahead of the master's, more than clock_skew=500ms"));
    failover_setclock(f, 1, -SKEW_MS);
    assert_lk(ENOTSUP, lk_client_open(&client, failover_listurl(f, "strict=yes")));
    assert_non_null(strstr(lk_errortext(), "ms behind the master's, more than clock_skew=500ms"));
    world_close(w, world_client_at(w, f, failover_url(f, "strict=yes&clock_skew=2200ms")));
    world_close(w, world_client_at(w, f, failover_listurl(f, "strict=yes&clock_skew=2200ms")));
    world_close(w, failover_client(f, "")); /* a warning */
}

int main(void)
{
    return world_run(the_next_clock_is_ahead, the_next_clock_is_behind, clocks_that_differ_are_told);
}

#else

int main(void)
{
    return 77;
}

#endif
