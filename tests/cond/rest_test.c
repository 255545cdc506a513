/* SPDX-License-Identifier: MIT */
/*
 * rest_test.c - who waits for a condition for long rests: it sends next to nothing, and comes when it is signalled
 *
 * labels: threads
 * seconds: 20
 */
#include "rest.h"

enum { CROWD = 6, SPAN_MS = 4000 };

static lk_mutex_t *jobs[2];
static lk_cond_t *some[2];
static int woken;

static int wait_once(void *arg)
{
    int k = *(int *)arg;
    int rc = lk_mutex_lock(jobs[k]);
    if (rc == 0)
        rc = lk_cond_wait(some[k], jobs[k]);
    if (rc != 0)
        return rc;
    __atomic_add_fetch(&woken, 1, __ATOMIC_RELAXED);
    return lk_mutex_unlock(jobs[k]);
}

static void await_woken(int count)
{
    eventually(__atomic_load_n(&woken, __ATOMIC_RELAXED) == count, SLACK_MS);
}

/* Of two clients, so that each signal finds another one to look whether it arrives. */
static void who_rests_is_woken_by_a_signal(struct world *w)
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
    eventually(resting(w) == CROWD, RESTS_BY_MS);
    int64_t asked = asks(w);
    sleep_ms(SPAN_MS);
    assert_between(asks(w) - asked, 0, 2);

    asked = asks(w);
    assert_lk(0, lk_cond_signal(some[0]));
    await_woken(1);
    assert_between(asks(w) - asked, 3,
                   3 + 4); /* signal, confirmation, unlock; the waiter was called, and two that look */
    assert_lk(0, lk_cond_signal(some[1]));
    await_woken(2);
    assert_int_equal(CROWD - 2, world_condqueued(w, "jobs"));
    assert_lk(0, lk_cond_broadcast(some[0]));
    await_woken(CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_lk(0, worker_join(&crowd[i]));
    assert_int_equal(0,
                     world_int(w, "EXISTS latchkey:seen:cond:{jobs} latchkey:cond:{jobs} latchkey:moved:cond:{jobs}"));
}

int main(void)
{
    return world_run(who_rests_is_woken_by_a_signal);
}
