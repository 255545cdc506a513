/* SPDX-License-Identifier: MIT */
/*
 * crowd_test.c - many processes and threads, never more inside than there are permits, and none is lost
 *
 * labels: threads memory noise
 * processors: 4
 */
#include "world.h"

#include <sched.h>

enum { PROCESSES = 8, THREADS = 4, ROUNDS = SANITIZED ? 8 : 25, PERMITS = 5 };

struct crowd {
    int inside, most, visits; /* reached with atomic builtins */
    struct gate start;
    bool leased;
    lk_sem_t sem;
};

static unsigned wish(int index, int round)
{
    return (index + round) % 4 == 0 ? 3 : (index + round) % 7 == 0 ? 5 : 1;
}

static int visit(struct crowd *crowd, lk_sem_t *sem, unsigned n, int round)
{
    int rc = round % 5 == 4 ? lk_sem_acquire(sem, n, 3) : lk_sem_acquire(sem, n, LK_FOREVER);
    if (rc == ETIMEDOUT && round % 5 == 4)
        return 0;
    if (rc != 0)
        return rc;
    int inside = __atomic_add_fetch(&crowd->inside, (int)n, __ATOMIC_SEQ_CST);
    if (inside > PERMITS)
        return 125;
    __atomic_add_fetch(&crowd->visits, 1, __ATOMIC_SEQ_CST);
    sched_yield();
    __atomic_sub_fetch(&crowd->inside, (int)n, __ATOMIC_SEQ_CST);
    return lk_sem_release(sem, n);
}

struct process {
    struct crowd *crowd;
    lk_sem_t sem;
};

static int visits(int index, void *arg)
{
    struct process *process = arg;
    int rc = 0;
    for (int round = 0; round < ROUNDS && rc == 0; round++)
        rc = visit(process->crowd, &process->sem, wish(index, round), round);
    return rc;
}

static int process_main(struct world *w, void *arg)
{
    struct process process = { .crowd = arg };
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = process.crowd->leased;
    lk_client_t *client = world_client(w, "command_timeout=5s"); /* many processes, on a busy machine */
    assert_lk(0, lk_sem_init(&process.sem, client, "pool", PERMITS, &attr));
    world_ready(w);
    gate_pass(&process.crowd->start);
    int wrong = run_threads(THREADS, visits, &process);
    assert_lk(0, lk_sem_destroy(&process.sem));
    world_close(w, client);
    return wrong;
}

static struct crowd *run_crowd(struct world *w, bool leased)
{
    struct crowd *crowd = world_shared(w, sizeof *crowd);
    pid_t pids[PROCESSES];
    crowd->leased = leased;
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, process_main, crowd);
    gate_open(&crowd->start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    assert_int_equal(0, crowd->inside);
    assert_true(crowd->visits > PROCESSES * THREADS * ROUNDS / 2);
    assert_int_equal(0, world_int(w, "EXISTS latchkey:queue:sem:{pool} latchkey:queue:permits:{pool} "
                                     "latchkey:claims:{pool} latchkey:alive:sem:{pool} latchkey:alive:permits:{pool}"));
    return crowd;
}

/* The reason for all of this: never more inside than permits, and at the end all of them are there. */
static void never_more_inside_than_permits(struct world *w)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    run_crowd(w, false);
    assert_int_equal(PERMITS, world_int(w, "GET pool"));
}

static void nor_with_leases(struct world *w)
{
    world_allow(w, "latchkey:total:{pool}");
    world_allow(w, "latchkey:permits:{pool}");
    run_crowd(w, true);
    assert_int_equal(PERMITS, world_int(w, "GET latchkey:total:{pool}"));
    assert_int_equal(0, world_int(w, "ZCOUNT latchkey:permits:{pool} 0 inf"));
}

int main(void)
{
    return world_run(never_more_inside_than_permits, nor_with_leases);
}
