/* SPDX-License-Identifier: MIT */
/*
 * runner_death_test.c - a runner that dies, hangs or is robbed loses the run with its lease; at most one completes
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const lk_onceattr_t brief = { .size = sizeof brief, .lease_ms = 300 };

static const lk_onceattr_t longer = { .size = sizeof longer, .lease_ms = 3000 };

enum { LEASE_MS = 3000, PROCESSES = 8 };

static int run_forever(struct world *w, void *arg)
{
    lk_once_t *once = world_once(w, world_client(w, ""), "migrated", &longer);
    assert_lk(0, lk_once_begin(once, 0));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* It is killed without warning; who waits is let in when the lease ends, not before. */
static void the_next_one_runs_it_when_the_lease_ends(struct world *w)
{
    world_allow(w, "latchkey:done:*");
    pid_t runner = world_fork(w, run_forever, world_shared(w, sizeof(struct gate)));
    lk_once_t *once = world_once(w, world_client(w, "poll=20s&lease=40s"), "migrated", NULL);
    world_kill(w, runner);
    int64_t began_ms = now_ms(), left_ms = world_pttl(w, "latchkey:run:{migrated}");
    assert_between(left_ms, 1, LEASE_MS);
    assert_lk(0, lk_once_begin(once, 20000));
    assert_between(now_ms() - began_ms, left_ms - 2, left_ms + 2 * SLACK_MS);
    assert_lk(0, lk_once_end(once, "by the second"));
}

struct findings {
    struct gate resumed;
    int end, again;
};

static int run_and_hang(struct world *w, void *arg)
{
    struct findings *found = arg;
    world_allow(w, "latchkey:done:*");
    lk_once_t *once = world_once(w, world_client(w, ""), "migrated", &brief);
    assert_lk(0, lk_once_begin(once, 0));
    world_ready(w);
    gate_pass(&found->resumed);
    found->end = lk_once_end(once, "by the first");
    found->again = lk_once_begin(once, 0);
    return 0;
}

/* A runner that went on too late completes nothing, and finds that it is done. */
static void one_that_lost_its_lease_completes_nothing(struct world *w)
{
    char *text;
    world_allow(w, "latchkey:done:*");
    struct findings *found = world_shared(w, sizeof *found);
    pid_t runner = world_fork(w, run_and_hang, found);
    lk_once_t *once = world_once(w, world_client(w, ""), "migrated", NULL);
    world_stop(runner);
    assert_lk(0, lk_once_begin(once, 20000));
    assert_lk(0, lk_once_end(once, "by the second"));
    gate_open(&found->resumed);
    world_cont(runner);
    assert_int_equal(0, world_wait(w, runner));
    assert_lk(ESTALE, found->end);
    assert_lk(EALREADY, found->again);
    assert_lk(0, lk_once_result(once, &text));
    assert_string_equal("by the second", text);
    lk_free(text);
}

/* The server is asked, as it may have forgotten the run: who does not know that yet completes nothing. */
static void a_robbed_runner_completes_nothing(struct world *w)
{
    char *text;
    world_allow(w, "latchkey:done:*");
    lk_once_t *mine = world_once(w, world_client(w, "lease=30s"), "migrated", NULL);
    lk_once_t *theirs = world_once(w, world_client(w, "lease=30s"), "migrated", NULL);
    assert_lk(0, lk_once_begin(mine, 0));
    world_redis(w, "DEL latchkey:run:{migrated}");
    assert_lk(0, lk_once_begin(theirs, 0));
    assert_lk(ESTALE, lk_once_end(mine, "stolen"));
    assert_lk(0, lk_once_end(theirs, "bought"));
    assert_lk(0, lk_once_result(mine, &text));
    assert_string_equal("bought", text);
    lk_free(text);
    assert_lk(0, lk_once_reset(mine));
    assert_lk(0, lk_once_begin(mine, 0));
    world_redis(w, "DEL latchkey:run:{migrated}");
    assert_lk(ESTALE, lk_once_fail(mine));
}

struct race {
    int running, completed, broken; /* reached with atomic builtins */
    struct gate go;
};

/* One in three who run it dies while it does, but by the clock nobody else runs it then. */
static int race(struct world *w, void *arg)
{
    struct race *r = arg;
    world_allow(w, "latchkey:done:*");
    lk_once_t *once = world_once(w, world_client(w, "poll=100ms"), "migrated", &brief);
    world_ready(w);
    gate_pass(&r->go);
    int rc = lk_once_begin(once, 60000);
    if (rc == EALREADY)
        return __atomic_load_n(&r->completed, __ATOMIC_SEQ_CST) == 1 ? 0 : 1;
    if (rc != 0)
        return rc;
    if (__atomic_add_fetch(&r->running, 1, __ATOMIC_SEQ_CST) <= 3)
        abort();
    __atomic_add_fetch(&r->completed, 1, __ATOMIC_SEQ_CST);
    return lk_once_end(once, "the fourth");
}

static void many_processes_complete_it_once(struct world *w)
{
    struct race *r = world_shared(w, sizeof *r);
    pid_t processes[PROCESSES];
    int died = 0;
    world_allow(w, "latchkey:done:*");
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = world_fork(w, race, r);
    gate_open(&r->go);
    for (int i = 0; i < PROCESSES; i++) {
        int status = world_wait(w, processes[i]);
        assert_true(status == 0 || status == 128 + SIGABRT);
        died += status != 0;
    }
    assert_int_equal(3, died);
    assert_int_equal(1, r->completed);
}

static void *begin_and_end(void *once)
{
    return (void *)(intptr_t)lk_once_begin(once, 0);
}

/* A thread that ends is no runner any more. */
static void with_its_thread_it_ends(struct world *w)
{
    pthread_t thread;
    void *result;
    lk_once_t *once = world_once(w, world_client(w, ""), "migrated", &brief);
    assert_int_equal(0, pthread_create(&thread, NULL, begin_and_end, once));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_null(result);
    assert_lk(0, lk_once_begin(once, 5000));
    assert_lk(0, lk_once_fail(once));
}

int main(void)
{
    return world_run(many_processes_complete_it_once, the_next_one_runs_it_when_the_lease_ends,
                     one_that_lost_its_lease_completes_nothing, a_robbed_runner_completes_nothing,
                     with_its_thread_it_ends);
}
