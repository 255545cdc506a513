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

/* Of all processes. */
static struct crowd {
    int inside, visits; /* reached with atomic builtins */
} *crowd;

static lk_sem_t *sem;
static lk_semattr_t attr = LK_SEMATTR_INIT;

static unsigned wish(int index, int round)
{
    return (index + round) % 4 == 0 ? 3 : (index + round) % 7 == 0 ? 5 : 1;
}

static int visit(int thread, int round)
{
    unsigned n = wish(thread, round);
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

static void open_pool(struct world *w, lk_client_t *client)
{
    sem = world_sem(w, client, "pool", PERMITS, &attr);
}

static void run_crowd(struct world *w, bool leased)
{
    attr.leased = leased;
    crowd = world_shared(w, sizeof *crowd);
    world_processes(w, &(struct processes){ PROCESSES, THREADS, ROUNDS, "command_timeout=5s", open_pool, visit });
    assert_int_equal(0, crowd->inside);
    assert_true(crowd->visits > PROCESSES * THREADS * ROUNDS / 2);
    assert_int_equal(0, world_int(w, "EXISTS latchkey:queue:sem:{pool} latchkey:queue:permits:{pool} "
                                     "latchkey:claims:{pool} latchkey:alive:sem:{pool} latchkey:alive:permits:{pool}"));
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
