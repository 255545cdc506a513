/* SPDX-License-Identifier: MIT */
/*
 * fork_test.c - a child has nothing of its parent's condition variables, and can signal those of that name
 *
 * labels: memory
 */
#include "world.h"

static lk_client_t *client;
static lk_mutex_t *jobs;
static lk_cond_t *some;

static int wait_once(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_wait(some, jobs);
    return rc != 0 ? rc : lk_mutex_unlock(jobs);
}

/* What it inherits is its parent's; a client of its own wakes the parent's waiter. */
static int signal_in_child(struct world *w, void *arg)
{
    (void)arg;
    if (lk_cond_signal(some) != ECANCELED || lk_mutex_lock(jobs) != ECANCELED)
        return 1;
    lk_client_t *own = world_open(w, "");
    lk_cond_t again;
    int rc = lk_cond_init(&again, own, "jobs", NULL);
    if (rc == 0)
        rc = lk_cond_signal(&again);
    if (rc == 0)
        rc = lk_cond_destroy(&again);
    if (rc == 0)
        rc = lk_client_close(own);
    world_ready(w);
    return rc;
}

static void a_child_uses_a_client_of_its_own(struct world *w)
{
    struct worker waiter;
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a child that has threads of its own */
    client = world_client(w, "");
    jobs = world_mutex(w, client, "jobs", NULL);
    some = world_cond(w, client, "jobs", NULL);
    worker_start(&waiter, wait_once, NULL);
    eventually(world_condqueued(w, "jobs") == 1, 5000);
    assert_int_equal(0, world_wait(w, world_fork(w, signal_in_child, NULL)));
    assert_lk(0, worker_join(&waiter));
}

int main(void)
{
    return world_run(a_child_uses_a_client_of_its_own);
}
