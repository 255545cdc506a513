/* SPDX-License-Identifier: MIT */
/*
 * condition_test.c - F70, F71: a fault in each phase of a wait for a condition: in the queue of the condition, moved to that
 * of the mutex, and while somebody signals. One signal wakes one waiter that is alive, and nobody waits on for ever
 *
 * labels: threads
 * simulated: yes
 * seconds: 30
 */
#include "world.h"

#include <unistd.h>

enum { WITHIN_MS = 20000 }; /* Lw, a question and a claim; with room for a busy machine */

static lk_client_t *client;
static lk_mutex_t *jobs;
static lk_cond_t *some;

static void open_jobs(struct world *w, const char *options)
{
    client = world_client(w, options);
    jobs = world_mutex(w, client, "jobs", NULL);
    some = world_cond(w, client, "jobs", NULL);
}

static int wait_once(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_wait(some, jobs);
    return rc != 0 ? rc : lk_mutex_unlock(jobs);
}

static int wait_in_child(struct world *w, void *arg)
{
    (void)arg;
    open_jobs(w, "");
    world_ready(w);
    return wait_once(NULL);
}

static void await_waiters(struct world *w, int waiting, int moved)
{
    eventually(world_condqueued(w, "jobs") == waiting && world_queued(w, "jobs") == moved, 10000);
}

/* A process in front and a thread of this process behind it wait. Returns the process. */
static pid_t begin(struct world *w, struct worker *behind)
{
    pid_t front = world_fork(w, wait_in_child, NULL);
    await_waiters(w, 1, 0);
    open_jobs(w, "");
    worker_start(behind, wait_once, NULL);
    await_waiters(w, 2, 0);
    return front;
}

static void signal_holding(struct world *w)
{
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    await_waiters(w, 1, 1);
}

static void join_in_time(struct worker *behind)
{
    int64_t began_ms = now_ms();
    assert_lk(0, worker_join(behind));
    assert_between(now_ms() - began_ms, 0, WITHIN_MS);
}

/* --- in the queue of the condition --------------------------------------------------------------------------------- */

static void waiting_it_is_killed(struct world *w)
{
    struct worker behind;
    world_kill(w, begin(w, &behind));
    world_allow(w, "latchkey:*:cond:{jobs}"); /* passed over, its place is there until it ends */
    world_allow(w, "latchkey:cond:{jobs}");
    assert_lk(0, lk_cond_signal(some));
    join_in_time(&behind);
}

static void waiting_it_stands_still(struct world *w)
{
    struct worker behind;
    pid_t front = begin(w, &behind);
    world_stop(front);
    sleep_ms(3000); /* silent for more than half of its time: not picked */
    assert_lk(0, lk_cond_signal(some));
    int64_t began_ms = now_ms();
    assert_lk(0, worker_join(&behind));
    assert_between(now_ms() - began_ms, 0, 4000);
    world_cont(front);
    assert_lk(0, lk_cond_signal(some)); /* if it was evicted meanwhile, it wakes by itself */
    assert_int_equal(0, world_wait(w, front));
}

/* --- moved to the queue of the mutex --------------------------------------------------------------------------------- */

static void moved_it_is_killed(struct world *w)
{
    struct worker behind;
    pid_t front = begin(w, &behind);
    signal_holding(w);
    world_kill(w, front);
    assert_lk(0, lk_mutex_unlock(jobs));
    join_in_time(&behind);
}

static void moved_it_stands_still(struct world *w)
{
    struct worker behind;
    pid_t front = begin(w, &behind);
    signal_holding(w);
    world_stop(front);
    assert_lk(0, lk_mutex_unlock(jobs));
    join_in_time(&behind);
    world_cont(front);
    assert_int_equal(0, world_wait(w, front)); /* wakes as well, which is legal */
}

enum { THREADS = 3 };

static int wait_index(int index, void *arg)
{
    (void)index;
    return wait_once(arg);
}

static int threads_wait_in_child(struct world *w, void *arg)
{
    (void)arg;
    open_jobs(w, "lease=3s");
    world_ready(w);
    return run_threads(THREADS, wait_index, NULL);
}

/* Each of its threads stands in the queue of the mutex, in front: together they cost no more than one that is silent. */
static void moved_several_stand_still(struct world *w)
{
    enum { SILENT_MS = 2500, CLAIM_MS = 3000, ASKS_MS = 2000 };
    struct worker behind;
    pid_t front = world_fork(w, threads_wait_in_child, NULL);
    await_waiters(w, THREADS, 0);
    open_jobs(w, "");
    worker_start(&behind, wait_once, NULL);
    await_waiters(w, THREADS + 1, 0);
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_broadcast(some));
    await_waiters(w, 0, THREADS + 1);
    world_stop(front);
    assert_lk(0, lk_mutex_unlock(jobs));
    int64_t began_ms = now_ms();
    assert_lk(0, worker_join(&behind));
    assert_between(now_ms() - began_ms, 0, SILENT_MS + CLAIM_MS + ASKS_MS + 4 * SLACK_MS);
    world_cont(front);
    assert_int_equal(0, world_wait(w, front));
}

static void moved_its_connections_end(struct world *w)
{
    struct worker behind;
    pid_t front = begin(w, &behind);
    signal_holding(w);
    world_killsubscriptions(w);
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_int_equal(0, world_wait(w, front));
    assert_lk(0, lk_cond_signal(some));
    join_in_time(&behind);
}

/* Nobody knows of them any more, so both wake. */
static void moved_the_server_loses_its_data(struct world *w)
{
    struct worker behind;
    pid_t front = begin(w, &behind);
    signal_holding(w);
    world_kill_server(w);
    world_restart_server(w);
    assert_lk(ESTALE, lk_mutex_unlock(jobs));
    join_in_time(&behind);
    assert_int_equal(0, world_wait(w, front));
}

/* --- signalling ------------------------------------------------------------------------------------------------------ */

static int signal_and_hold(struct world *w, void *arg)
{
    open_jobs(w, "lease=2s");
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* It signalled, and never gives the mutex back: its lease ends. */
static void signalling_it_is_killed(struct world *w)
{
    struct worker waiter;
    struct gate *never = world_shared(w, sizeof *never);
    open_jobs(w, "");
    worker_start(&waiter, wait_once, NULL);
    await_waiters(w, 1, 0);
    pid_t signaller = world_fork(w, signal_and_hold, never);
    await_waiters(w, 0, 1);
    world_kill(w, signaller);
    join_in_time(&waiter);
}

int main(void)
{
    return world_run(waiting_it_is_killed, waiting_it_stands_still, moved_it_is_killed, moved_it_stands_still,
                     moved_several_stand_still, moved_its_connections_end, moved_the_server_loses_its_data,
                     signalling_it_is_killed);
}
