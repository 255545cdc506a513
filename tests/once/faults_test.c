/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - connections end, the server comes back, wake-ups are forged, signals come, a client closes in vain
 *
 * What every outage and every robbery does to a run: tests/support/outage.c, robbery.c.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "process.h"
#include "world.h"

#include <signal.h>

static lk_once_t *mine, *theirs;

static void open_both(struct world *w, const char *options)
{
    world_allow(w, "latchkey:done:*");
    mine = world_once(w, world_client(w, options), "work", NULL);
    theirs = world_once(w, world_client(w, options), "work", NULL);
}

static int begin_patiently(void *once)
{
    return lk_once_begin(once, 20000);
}

/* It waits, and hears messages. */
static void let_wait(struct world *w, struct worker *waiter)
{
    worker_start(waiter, begin_patiently, theirs);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, 5000);
}

/* Connections of either kind end, scripts are forgotten, in each phase. */
static void connections_end_all_the_time(struct world *w)
{
    struct worker waiter;
    open_both(w, "lease=20s&poll=200ms");
    for (int i = 0; i < 20; i++) {
        world_blow(w, i % WORLD_BLOWS);
        assert_lk(0, begin_patiently(mine));
        let_wait(w, &waiter);
        world_blow(w, (i + 1) % WORLD_BLOWS);
        assert_lk(0, lk_once_check(mine));
        world_blow(w, (i + 2) % WORLD_BLOWS);
        assert_lk(0, lk_once_end(mine, NULL));
        assert_int_equal(EALREADY, worker_join(&waiter));
        assert_lk(0, lk_once_reset(theirs));
    }
}

/* Who waits goes on waiting, and begins nothing. */
static void forged_wakeups_change_nothing(struct world *w)
{
    struct worker waiter;
    open_both(w, "lease=20s&poll=10s");
    assert_lk(0, lk_once_begin(mine, 0));
    let_wait(w, &waiter);
    for (int i = 0; i < 300; i++) {
        world_redis(w, "PUBLISH latchkey:ran:{work} %s", i % 3 == 0 ? "0" : i % 3 == 1 ? "1" : "nonsense");
        sleep_ms(1);
    }
    assert_lk(0, lk_once_check(mine));
    assert_lk(0, lk_once_end(mine, NULL));
    assert_int_equal(EALREADY, worker_join(&waiter));
}

/* The server is killed, and has its data when it is back before the lease is over: the run is the same one. */
static void a_run_outlives_the_server(void)
{
    struct world *w = world_begin("--appendonly yes --appendfsync always");
    struct worker waiter;
    uint64_t before, after;
    open_both(w, "lease=6s&command_timeout=1200ms&poll=200ms&retry_max=50ms");
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(0, lk_once_token(mine, &before));
    let_wait(w, &waiter);
    world_kill_server(w);
    sleep_ms(300);
    world_restart_server(w);
    eventually(lk_once_check(mine) == 0, 5000);
    assert_lk(0, lk_once_token(mine, &after));
    assert_true(before == after);
    assert_lk(0, lk_once_end(mine, "in the end"));
    assert_int_equal(EALREADY, worker_join(&waiter));
    world_kill_server(w);
    world_restart_server(w); /* and it stays done */
    eventually(lk_once_begin(theirs, 0) == EALREADY, 5000);
    world_end(w);
}

/* The close says that the run was not given up: the next one begins when the lease is over. */
static void a_client_is_closed_without_a_server(struct world *w)
{
    lk_once_t third;
    open_both(w, "lease=20s&poll=200ms");
    lk_client_t *closing = world_open(w, "lease=2s&command_timeout=600ms&poll=200ms");
    assert_lk(0, lk_once_init(&third, closing, "work", NULL));
    assert_lk(0, lk_once_begin(&third, 0));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_lk(EIO, lk_client_close(closing));
    assert_between(now_ms() - began_ms, 0, 2 * 600 + 2 * SLACK_MS);
    world_cont_server(w);
    assert_lk(0, begin_patiently(mine));
    assert_lk(ECANCELED, lk_once_end(&third, "by the closed"));
    assert_lk(0, lk_once_end(mine, NULL));
    assert_lk(0, lk_once_destroy(&third));
}

static int round_of_both(struct world *w)
{
    struct worker waiter;
    int rc = lk_once_begin(mine, 5000);
    if (rc != 0)
        return rc;
    worker_start(&waiter, begin_patiently, theirs);
    while (world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") != 1)
        sleep_ms(1);
    rc = lk_once_end(mine, NULL);
    int woken = worker_join(&waiter);
    if (rc == 0)
        rc = lk_once_reset(theirs);
    return rc == 0 && woken != EALREADY ? ERANGE : rc;
}

/* No signal ends a call, or a wait. */
static void signals_come_in_storms(struct world *w)
{
    static const int flags[] = { 0, SA_RESTART };
    open_both(w, "lease=20s&poll=200ms");
    for (int i = 0; i < 2; i++) {
        int rc = 0;
        alarm_each_ms(1, flags[i]);
        for (int n = 0; n < 20 && rc == 0; n++)
            rc = round_of_both(w);
        alarm_each_ms(0, 0);
        assert_int_equal(0, rc);
    }
}

int main(void)
{
    int failed = plain_run(a_run_outlives_the_server);
    return failed + world_run(connections_end_all_the_time, forged_wakeups_change_nothing,
                              a_client_is_closed_without_a_server, signals_come_in_storms);
}
