/* SPDX-License-Identifier: MIT */
/* mixed_test.c - clients that say redisson=yes, and clients that do not, wait for one condition, and wake each other */
#include "world.h"

enum { SIDES = 2 };

static lk_mutex_t *jobs[SIDES];
static lk_cond_t *some[SIDES];

static int wait_once(void *arg)
{
    int side = *(int *)arg;
    int rc = lk_mutex_lock(jobs[side]);
    if (rc == 0)
        rc = lk_cond_waitfor(some[side], jobs[side], 20000);
    return rc != 0 ? rc : lk_mutex_unlock(jobs[side]);
}

static void redisson_or_not_is_no_other_mutex(struct world *w)
{
    static int sides[SIDES] = { 0, 1 };
    struct worker workers[SIDES];
    world_allow(w, "redisson_lock_token:*");
    for (int side = 0; side < SIDES; side++) {
        lk_client_t *client = world_client(w, side == 0 ? "" : "redisson=yes");
        jobs[side] = world_mutex(w, client, "jobs", NULL);
        some[side] = world_cond(w, client, "jobs", NULL);
    }
    for (int waker = 0; waker < SIDES; waker++) {
        for (int side = 0; side < SIDES; side++) {
            worker_start(&workers[side], wait_once, &sides[side]);
            eventually(world_condqueued(w, "jobs") == side + 1, 5000);
        }
        assert_lk(0, lk_cond_signal(some[waker]));
        assert_lk(0, lk_cond_signal(some[waker]));
        for (int side = 0; side < SIDES; side++)
            assert_lk(0, worker_join(&workers[side]));
    }
}

int main(void)
{
    return world_run(redisson_or_not_is_no_other_mutex);
}
