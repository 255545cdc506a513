/* SPDX-License-Identifier: MIT */
/*
 * interrupted_test.c - a thread that waits is cancelled, its client closed, its process forked; a waiter keeps the object
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdlib.h>

static lk_client_t *client;
static lk_once_t *mine, *theirs;

static void open_both(struct world *w, const char *options)
{
    world_allow(w, "latchkey:done:*");
    world_allow(w, "redisson_lock_token:*");
    client = world_client(w, options);
    mine = world_once(w, client, "work", NULL);
    theirs = world_once(w, world_client(w, options), "work", NULL);
}

static int begin_patiently(void *once)
{
    return lk_once_begin(once, 20000);
}

static int begin_and_end(void *once)
{
    int rc = begin_patiently(once);
    return rc != 0 ? rc : lk_once_end(once, NULL);
}

static void *begin(void *once)
{
    return (void *)(intptr_t)lk_once_begin(once, LK_FOREVER);
}

/* At whatever moment it comes: the thread ends, and neither runs it nor waits for it. */
static void a_cancelled_wait_leaves_nothing(struct world *w)
{
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_once_begin(theirs, 0));
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        assert_int_equal(0, pthread_create(&thread, NULL, begin, mine));
        sleep_ms(i);
        assert_int_equal(0, pthread_cancel(thread));
        assert_int_equal(0, pthread_join(thread, &result));
        assert_ptr_equal(PTHREAD_CANCELED, result);
    }
    assert_lk(0, lk_once_fail(theirs));
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(0, lk_once_end(mine, "done"));
}

/* Somebody waits, as its subscription shows. */
static bool listens(struct world *w)
{
    return world_int(w, "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS', 'latchkey:ran:*')") == 1;
}

static void a_waiter_keeps_it_and_a_close_ends_its_wait(struct world *w)
{
    struct worker waiter;
    lk_once_t third;
    open_both(w, "lease=20s&poll=5s");
    lk_client_t *closing = world_open(w, "lease=20s&poll=5s");
    assert_lk(0, lk_once_init(&third, closing, "work", NULL));
    assert_lk(0, lk_once_begin(theirs, 0));
    worker_start(&waiter, begin_patiently, &third);
    eventually(listens(w), 5000);
    assert_lk(EBUSY, lk_once_destroy(&third));
    assert_lk(0, lk_client_close(closing));
    assert_int_equal(ECANCELED, worker_join(&waiter));
    assert_lk(0, lk_once_destroy(&third));
    assert_lk(0, lk_once_end(theirs, NULL));
}

/* A close gives up what is run, and the next one begins at once. */
static void a_close_gives_the_run_up(struct world *w)
{
    struct worker waiter;
    lk_once_t third;
    open_both(w, "lease=20s&poll=5s");
    lk_client_t *closing = world_open(w, "lease=20s&poll=5s");
    assert_lk(0, lk_once_init(&third, closing, "work", NULL));
    assert_lk(0, lk_once_begin(&third, 0));
    worker_start(&waiter, begin_and_end, theirs);
    eventually(listens(w), 5000);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_client_close(closing));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 2 * SLACK_MS);
    assert_lk(0, lk_once_destroy(&third));
}

static int child_of_a_runner(struct world *w, void *arg)
{
    uint64_t token;
    (void)arg;
    assert_lk(ECANCELED, lk_once_begin(mine, 0));
    assert_lk(EPERM, lk_once_end(mine, "by the child"));
    assert_lk(EPERM, lk_once_fail(mine));
    assert_that(lk_once_token(mine, &token) != 0);
    assert_lk(0, lk_once_destroy(mine));
    assert_lk(0, lk_client_close(client));
    world_ready(w);
    if (SANITIZED)
        return 0; /* the leak checker would take the parent's memory for lost */
    exit(0);
}

static void the_child_runs_nothing(struct world *w)
{
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    open_both(w, "lease=2s&command_timeout=600ms&poll=200ms");
    assert_lk(0, lk_once_begin(mine, 0));
    assert_int_equal(0, world_wait(w, world_fork(w, child_of_a_runner, NULL)));
    sleep_ms(2200); /* longer than the lease: the parent's renewals went on */
    assert_lk(0, lk_once_check(mine));
    assert_lk(ETIMEDOUT, lk_once_begin(theirs, 0));
    assert_lk(0, lk_once_end(mine, "by the parent"));
    assert_lk(EALREADY, lk_once_begin(theirs, 0));
}

struct shared {
    lk_once_t once;
    struct gate made, done;
};

static int child_that_makes_one(struct world *w, void *arg)
{
    struct shared *shared = arg;
    lk_client_t *own = world_client(w, "");
    assert_lk(0, lk_once_init(&shared->once, own, "work", NULL));
    gate_open(&shared->made);
    world_ready(w);
    gate_pass(&shared->done);
    assert_lk(0, lk_once_destroy(&shared->once));
    world_close(w, own);
    return 0;
}

/* One of another process in memory that both see gives an answer, and its name, which is elsewhere, is not followed. */
static void one_in_shared_memory_is_no_trap(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    lk_once_t *once = &shared->once;
    pid_t child = world_fork(w, child_that_makes_one, shared);
    gate_pass(&shared->made);
    assert_lk(ECANCELED, lk_once_begin(once, 0));
    assert_lk(EPERM, lk_once_end(once, NULL));
    assert_says("an object: run by another process");
    assert_lk(EPERM, lk_once_fail(once));
    assert_says("an object: run by another process");
    gate_open(&shared->done);
    assert_int_equal(0, world_wait(w, child));
}

int main(void)
{
    return world_run(a_cancelled_wait_leaves_nothing, a_waiter_keeps_it_and_a_close_ends_its_wait,
                     a_close_gives_the_run_up, the_child_runs_nothing, one_in_shared_memory_is_no_trap);
}
