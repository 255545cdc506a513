/*
 * SPDX-License-Identifier: MIT
 *
 * claims_test.c - a permit granted to a waiter that died, stopped or gave up before it knew comes back
 *
 * labels: threads memory
 */
#include "world.h"

enum { CLAIM_MS = 3000 };

static lk_client_t *client;
static lk_sem_t pool;

static void open_pool(struct world *w)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, "command_timeout=500ms");
    assert_lk(0, lk_sem_init(&pool, client, "pool", 0, NULL));
}

static void close_pool(void)
{
    assert_lk(0, lk_sem_destroy(&pool));
    assert_lk(0, lk_client_close(client));
}

static int64_t queued(struct world *w)
{
    return world_int(w, "ZCARD latchkey:queue:sem:{pool}");
}

static int wait_for_one(struct world *w, void *arg)
{
    open_pool(w);
    world_ready(w);
    int rc = lk_sem_wait(&pool);
    if (rc == 0)
        gate_open(arg);
    close_pool();
    return rc;
}

/* Stopped, it is still connected and so "listens"; it is killed before it looks. */
static void a_dead_waiters_permit_comes_back(void **state)
{
    struct world *w = *state;
    struct gate *got = world_shared(w, sizeof *got);
    pid_t waiter = world_fork(w, wait_for_one, got);
    open_pool(w);
    eventually(queued(w) == 1 && world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    world_stop(waiter);
    assert_lk(0, lk_sem_post(&pool));
    assert_int_equal(0, world_int(w, "GET pool"));
    assert_int_equal(1, world_int(w, "ZCARD latchkey:claims:{pool}"));
    assert_true(world_pttl(w, "latchkey:claims:{pool}") > 0);
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(&pool, &info));
    assert_int_equal(1, info.held);
    world_kill(w, waiter);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_sem_waitfor(&pool, CLAIM_MS + 2 * SLACK_MS));
    assert_between(now_ms() - began_ms, CLAIM_MS - 500, CLAIM_MS + 2 * SLACK_MS);
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    assert_int_equal(0, world_int(w, "GET pool"));
    assert_lk(0, lk_sem_post(&pool));
    assert_lk(0, lk_sem_trywait(&pool));
    assert_lk(EAGAIN, lk_sem_trywait(&pool));
    close_pool();
}

/* The same for a waiter that wakes up later: its claim is gone, it waits again and takes the next one. */
static void a_stopped_waiter_waits_again(void **state)
{
    struct world *w = *state;
    struct gate *got = world_shared(w, sizeof *got);
    pid_t waiter = world_fork(w, wait_for_one, got);
    open_pool(w);
    eventually(queued(w) == 1 && world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    world_stop(waiter);
    assert_lk(0, lk_sem_post(&pool));
    assert_lk(0, lk_sem_waitfor(&pool, CLAIM_MS + 2 * SLACK_MS));
    world_cont(waiter);
    sleep_ms(100);
    assert_false(gate_is_open(got));
    assert_lk(0, lk_sem_post(&pool));
    gate_pass(got);
    assert_int_equal(0, world_wait(w, waiter));
    assert_int_equal(0, world_int(w, "GET pool"));
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    close_pool();
}

/* A waiter whose process died is skipped at once, and nothing has to be waited for. */
static void a_dead_waiter_delays_nobody(void **state)
{
    struct world *w = *state;
    struct gate *got = world_shared(w, sizeof *got);
    pid_t waiter = world_fork(w, wait_for_one, got);
    open_pool(w);
    eventually(queued(w) == 1 && world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    world_kill(w, waiter);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 0, 3000);
    assert_lk(0, lk_sem_post(&pool));
    assert_int_equal(1, world_int(w, "GET pool"));
    assert_lk(0, lk_sem_trywait(&pool));
    assert_lk(0, lk_sem_post(&pool));
    assert_lk(0, lk_sem_waitfor(&pool, 50));
    world_allow(w, "latchkey:*:sem:{pool}"); /* its entry lapses with a TTL */
    assert_true(world_pttl(w, "latchkey:queue:sem:{pool}") != -1);
    assert_true(world_pttl(w, "latchkey:seen:sem:{pool}") != -1);
    close_pool();
}

static int wait_briefly(int index, void *arg)
{
    int rc = 0;
    for (int i = 0; i < 40 && (rc == 0 || rc == ETIMEDOUT); i++) {
        rc = lk_sem_acquire(arg, 1 + (unsigned)index % 2, 1 + (index + i) % 4);
        if (rc == 0)
            rc = lk_sem_release(arg, 1 + (unsigned)index % 2);
    }
    return rc == ETIMEDOUT ? 0 : rc;
}

/* Grants that meet a waiter just giving up are given back, exactly. */
static void who_gives_up_in_that_moment_keeps_nothing(void **state)
{
    struct world *w = *state;
    open_pool(w);
    assert_lk(0, lk_sem_trysetpermits(&pool, 2));
    assert_int_equal(0, run_threads(8, wait_briefly, &pool));
    assert_int_equal(2, world_int(w, "GET pool"));
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    assert_int_equal(0, queued(w));
    close_pool();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_dead_waiters_permit_comes_back),
        world_test(a_stopped_waiter_waits_again),
        world_test(a_dead_waiter_delays_nobody),
        world_test(who_gives_up_in_that_moment_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
