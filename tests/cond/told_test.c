/* SPDX-License-Identifier: MIT */
/*
 * told_test.c - a wait that finds the mutex lost says so, and so does the listener, once; as an unlock does
 *
 * labels: threads
 */
#include "world.h"

#include <string.h>

static int lost; /* of atomic builtins */

static void hear(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST && strcmp(event->name, "jobs") == 0)
        __atomic_add_fetch(&lost, 1, __ATOMIC_SEQ_CST);
}

static void the_listener_is_told_of_a_loss_that_a_wait_finds(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=60s"); /* no renewal finds it before */
    lk_mutex_t *jobs = world_mutex(w, client, "jobs", NULL);
    lk_cond_t *some = world_cond(w, client, "jobs", NULL);
    assert_lk(0, lk_client_addlistener(client, hear, NULL, NULL));
    lost = 0;
    for (int i = 1; i <= 3; i++) {
        assert_lk(0, lk_mutex_lock(jobs));
        world_redis(w, "DEL jobs");
        assert_lk(ESTALE, i < 3 ? lk_cond_waitfor(some, jobs, 5000) : lk_mutex_unlock(jobs));
        assert_lk(EPERM, lk_mutex_unlock(jobs));
        eventually(__atomic_load_n(&lost, __ATOMIC_SEQ_CST) == i, 10000);
    }
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(ETIMEDOUT, lk_cond_waitfor(some, jobs, 50));
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_int_equal(3, __atomic_load_n(&lost, __ATOMIC_SEQ_CST));
}

int main(void)
{
    return world_run(the_listener_is_told_of_a_loss_that_a_wait_finds);
}
