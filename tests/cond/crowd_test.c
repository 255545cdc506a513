/* SPDX-License-Identifier: MIT */
/*
 * crowd_test.c - many wait for a condition for long: each signal wakes one, also past one that stands still
 *
 * labels: threads
 * simulated: yes
 * seconds: 35
 */
#include "line.h"

enum { CROWD = 6, SILENT_MS = 6000, GOES_ON_MS = 10000 };

static lk_mutex_t *jobs[2];
static lk_cond_t *some[2];
static int woken;

static int wait_once(void *arg)
{
    int k = *(int *)arg;
    int rc = lk_mutex_lock(jobs[k]);
    if (rc == 0)
        rc = lk_cond_wait(some[k], jobs[k]);
    if (rc == 0)
        rc = lk_mutex_unlock(jobs[k]);
    __atomic_add_fetch(&woken, rc == 0, __ATOMIC_RELAXED);
    return rc;
}

static void await_woken(int count)
{
    eventually(__atomic_load_n(&woken, __ATOMIC_RELAXED) == count, SLACK_MS);
}

/* Moved, it waits for the mutex, for longer than one that is not heard of keeps its place there. */
static void one_that_is_moved_asks(struct world *w)
{
    static const char alive[] =
        "local now, first = redis.call('TIME')[1] * 1000, redis.call('ZRANGE', KEYS[1], 0, 0)[1] "
        "return first and tonumber(string.match(redis.call('HGET', KEYS[2], string.sub(first, 1, 32)), '^%d+')) > now and 1 or 0";
    assert_lk(0, lk_mutex_lock(jobs[0]));
    assert_lk(0, lk_cond_signal(some[0]));
    sleep_ms(SILENT_MS);
    assert_int_equal(1, world_int(w, "EVAL %s 2 latchkey:queue:mutex:{jobs} latchkey:alive:mutex:{jobs}", alive));
    assert_int_equal(1, world_queued(w, "jobs"));
    assert_lk(0, lk_mutex_unlock(jobs[0]));
}

/* Of two clients. */
static void each_signal_wakes_one(struct world *w)
{
    static int clients[2] = { 0, 1 };
    struct worker crowd[CROWD];
    for (int k = 0; k < 2; k++) {
        lk_client_t *client = world_client(w, "lease=60s");
        jobs[k] = world_mutex(w, client, "jobs", NULL);
        some[k] = world_cond(w, client, "jobs", NULL);
    }
    for (int i = 0; i < CROWD; i++)
        worker_start(&crowd[i], wait_once, &clients[i % 2]);
    eventually(world_condqueued(w, "jobs") == CROWD, 5000);
    sleep_ms(SILENT_MS);
    assert_lk(0, lk_cond_signal(some[0]));
    await_woken(1);
    assert_lk(0, lk_cond_signal(some[1]));
    await_woken(2);
    assert_int_equal(CROWD - 2, world_condqueued(w, "jobs"));
    one_that_is_moved_asks(w);
    await_woken(3);
    assert_int_equal(CROWD - 3, world_condqueued(w, "jobs"));
    assert_lk(0, lk_cond_broadcast(some[0]));
    await_woken(CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_lk(0, worker_join(&crowd[i]));
    assert_int_equal(0,
                     world_int(w, "EXISTS latchkey:alive:cond:{jobs} latchkey:cond:{jobs} latchkey:moved:cond:{jobs}"));
}

static int wait_as_well(struct world *w, void *arg)
{
    static int first = 0;
    lk_client_t *client = world_client(w, "lease=60s");
    (void)arg;
    jobs[0] = world_mutex(w, client, "jobs", NULL);
    some[0] = world_cond(w, client, "jobs", NULL);
    world_ready(w);
    return wait_once(&first);
}

/* The server still has its connection, so the signal does not pass it. The others see that it does not arrive. */
static void a_signal_goes_on_from_one_that_stands_still(struct world *w)
{
    static int clients[2] = { 0, 1 };
    struct worker others[2];
    pid_t still = world_fork(w, wait_as_well, NULL);
    eventually(world_condqueued(w, "jobs") == 1, 5000);
    woken = 0;
    for (int k = 0; k < 2; k++) {
        lk_client_t *client = world_client(w, "lease=60s");
        jobs[k] = world_mutex(w, client, "jobs", NULL);
        some[k] = world_cond(w, client, "jobs", NULL);
        worker_start(&others[k], wait_once, &clients[k]);
        eventually(world_condqueued(w, "jobs") == 2 + k, 5000);
    }
    world_stop(still);
    assert_lk(0, lk_cond_signal(some[0]));
    eventually(__atomic_load_n(&woken, __ATOMIC_RELAXED) == 1, GOES_ON_MS);
    assert_lk(0, lk_cond_broadcast(some[0]));
    for (int k = 0; k < 2; k++)
        assert_lk(0, worker_join(&others[k]));
    world_cont(still);
    assert_int_equal(0, world_wait(w, still)); /* and wakes as well, which is legal */
}

int main(void)
{
    return world_run(each_signal_wakes_one, a_signal_goes_on_from_one_that_stands_still);
}
