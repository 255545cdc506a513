/* SPDX-License-Identifier: MIT */
/*
 * exclusion_test.c - at most one thread of all processes is inside
 *
 * processors: 4
 *
 * labels: threads memory noise
 */
#include "world.h"

#include <sched.h>

enum { PROCESSES = 8, THREADS = 4, ROUNDS = SANITIZED ? 8 : 20 };

/* Only the mutex guards it: nothing here is atomic. */
struct guarded {
    int inside;
    int counter;
    uint64_t token;
};

struct process {
    struct guarded *guarded;
    struct gate *start;
    lk_mutex_t mutex;
};

/* 0, or what was wrong with one visit. */
static int visit(struct process *process)
{
    struct guarded *guarded = process->guarded;
    uint64_t token;
    int64_t left_ms;
    int counter, wrong = 0;
    if (lk_mutex_lock(&process->mutex) != 0)
        return 2;
    if (guarded->inside != 0)
        wrong = 3;
    guarded->inside = 1;
    counter = guarded->counter;
    if (lk_mutex_token(&process->mutex, &token) != 0 || token <= guarded->token)
        wrong = 4;
    guarded->token = token;
    sched_yield();
    if (guarded->inside != 1 || guarded->counter != counter)
        wrong = 5;
    guarded->counter = counter + 1;
    guarded->inside = 0;
    if (lk_mutex_remaining(&process->mutex, &left_ms) != 0)
        wrong = 6;
    if (lk_mutex_unlock(&process->mutex) != 0)
        wrong = 7;
    return wrong;
}

static int visits(int index, void *arg)
{
    int wrong = 0;
    (void)index;
    for (int i = 0; i < ROUNDS && wrong == 0; i++)
        wrong = visit(arg);
    return wrong;
}

static int process_main(struct world *w, void *arg)
{
    struct process *process = arg;
    lk_client_t *client = world_client(w, "command_timeout=1500ms");
    assert_lk(0, lk_mutex_init(&process->mutex, client, "stock", NULL));
    world_ready(w);
    gate_pass(process->start);
    int wrong = run_threads(THREADS, visits, process);
    assert_lk(0, lk_mutex_destroy(&process->mutex));
    world_close(w, client);
    return wrong;
}

/* The reason for all of this: the counter loses nothing, nobody meets anybody, tokens rise. */
static void nobody_meets_anybody(struct world *w)
{
    struct process process = { .guarded = world_shared(w, sizeof(struct guarded)),
                               .start = world_shared(w, sizeof(struct gate)) };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, process_main, &process);
    gate_open(process.start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    assert_int_equal(PROCESSES * THREADS * ROUNDS, process.guarded->counter);
    assert_int_equal(0, world_queued(w, "stock"));
}

int main(void)
{
    return world_run(nobody_meets_anybody);
}
