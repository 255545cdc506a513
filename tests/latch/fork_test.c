/* SPDX-License-Identifier: MIT */
/*
 * fork_test.c - after a fork a latch of the default client simply works, one of an opened client says ECANCELED
 *
 * labels: threads memory
 */
#include "world.h"

static lk_latch_t shared = LK_LATCH_INITIALIZER("gate");

static int child_of_a_waiter(struct world *w, void *arg)
{
    lk_latch_t *opened = arg;
    unsigned count;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    assert_lk(ECANCELED, lk_latch_wait(opened));
    assert_lk(ECANCELED, lk_latch_countdown(opened));
    assert_lk(ECANCELED, lk_latch_trysetcount(opened, 1));
    assert_lk(ECANCELED, lk_latch_getcount(opened, &count));
    assert_lk(ECANCELED, lk_latch_info(opened, &info));
    assert_lk(ECANCELED, lk_latch_delete(opened));
    assert_lk(0, lk_latch_destroy(opened));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(&shared, 50));
    assert_lk(0, lk_latch_countdown(&shared));
    world_ready(w);
    assert_lk(0, lk_latch_waitfor(&shared, 10000));
    assert_lk(0, lk_latch_destroy(&shared));
    close_default();
    return 0;
}

/* The fork comes while a thread of the parent waits for both. */
static void parent_and_child_share_the_latch_not_the_client(struct world *w)
{
    struct worker waiters[2];
    lk_latch_t opened;
    if (THREAD_SANITIZED)
        skip(); /* it cannot follow a fork out of a process with threads */
    use_default(world_url(w, ""));
    lk_client_t *client = world_client(w, "");
    assert_lk(0, lk_latch_init(&opened, client, "gate", NULL));
    assert_lk(0, lk_latch_trysetcount(&shared, 2));
    worker_start(&waiters[0], await_latch, &shared);
    worker_start(&waiters[1], await_latch, &opened);
    sleep_ms(100);
    pid_t child = world_fork(w, child_of_a_waiter, &opened);
    assert_int_equal(1, world_int(w, "GET gate"));
    assert_lk(0, lk_latch_countdown(&opened));
    assert_int_equal(0, worker_join(&waiters[0]));
    assert_int_equal(0, worker_join(&waiters[1]));
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lk_latch_destroy(&opened));
    assert_lk(0, lk_latch_destroy(&shared));
    world_close(w, client);
    close_default();
}

int main(void)
{
    return world_run(parent_and_child_share_the_latch_not_the_client);
}
