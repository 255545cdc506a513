/* SPDX-License-Identifier: MIT */
/*
 * exclusion_test.c - at most one thread of all processes is inside each stripe, found by a key or just free
 *
 * processors: 4
 *
 * labels: threads memory noise
 */
#include "world.h"

#include <sched.h>
#include <stdio.h>

enum { PROCESSES = 6, THREADS = 4, ROUNDS = SANITIZED ? 10 : 30, STRIPES = 8, KEYS = 40 };

/* Only its stripe guards each of these: nothing here is atomic. */
struct guarded {
    int inside[STRIPES];
    int counter[STRIPES];
    int of_key[KEYS];
};

struct process {
    struct guarded *guarded;
    struct gate *start;
    lk_stripes_t stripes;
};

/* 0, or what was wrong. The caller holds the stripe. */
static int be_inside(struct guarded *guarded, unsigned index, int *more)
{
    int wrong = guarded->inside[index] != 0 ? 3 : 0;
    int counter = guarded->counter[index], count = more != NULL ? *more : 0;
    guarded->inside[index] = 1;
    sched_yield();
    if (guarded->inside[index] != 1 || guarded->counter[index] != counter)
        wrong = 4;
    guarded->counter[index] = counter + 1;
    if (more != NULL)
        *more = count + 1;
    guarded->inside[index] = 0;
    return wrong;
}

static int visit_any(struct process *process, unsigned *index)
{
    int rc = lk_stripes_trylockany(&process->stripes, *index, index);
    if (rc == EBUSY) {
        *index = *index < STRIPES ? *index : 0;
        rc = lk_mutex_lock(lk_stripes_at(&process->stripes, *index));
    }
    if (rc != 0)
        return 2;
    int wrong = be_inside(process->guarded, *index, NULL);
    return lk_mutex_unlock(lk_stripes_at(&process->stripes, *index)) != 0 ? 5 : wrong;
}

static int visit_key(struct process *process, int number)
{
    char key[16];
    size_t length = (size_t)snprintf(key, sizeof key, "key %d", number);
    lk_mutex_t *m = lk_stripes_of(&process->stripes, key, length);
    if (lk_mutex_lock(m) != 0)
        return 6;
    int wrong = be_inside(process->guarded, lk_stripes_index(&process->stripes, key, length),
                          &process->guarded->of_key[number]);
    return lk_mutex_unlock(m) != 0 ? 7 : wrong;
}

static int visits(int index, void *arg)
{
    unsigned at = LK_STRIPES_ANY;
    int wrong = 0;
    for (int i = 0; i < ROUNDS && wrong == 0; i++)
        wrong = i % 2 == 0 ? visit_any(arg, &at) : visit_key(arg, (index * 7 + i) % KEYS);
    return wrong;
}

static int process_main(struct world *w, void *arg)
{
    struct process *process = arg;
    lk_client_t *client = world_client(w, "command_timeout=5s");
    assert_lk(0, lk_stripes_init(&process->stripes, client, "stock", STRIPES));
    world_ready(w);
    gate_pass(process->start);
    int wrong = run_threads(THREADS, visits, process);
    assert_lk(0, lk_stripes_destroy(&process->stripes));
    world_close(w, client);
    return wrong;
}

/* The counters lose nothing, and nobody meets anybody. */
static void nobody_meets_anybody(struct world *w)
{
    struct process process = { .guarded = world_shared(w, sizeof(struct guarded)),
                               .start = world_shared(w, sizeof(struct gate)) };
    pid_t pids[PROCESSES];
    int visited = 0, by_key = 0;
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, process_main, &process);
    gate_open(process.start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    for (int i = 0; i < STRIPES; i++)
        visited += process.guarded->counter[i];
    for (int i = 0; i < KEYS; i++)
        by_key += process.guarded->of_key[i];
    assert_int_equal(PROCESSES * THREADS * ROUNDS, visited);
    assert_int_equal(PROCESSES * THREADS * ROUNDS / 2, by_key);
}

/* --- several keys at once -------------------------------------------------------------------------------------------- */

static unsigned index_of(struct process *process, int number)
{
    char key[16];
    int length = snprintf(key, sizeof key, "key %d", number);
    return lk_stripes_index(&process->stripes, key, (size_t)length);
}

static int transfers(int index, void *arg)
{
    struct process *process = arg;
    int rc = 0;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        unsigned first = index_of(process, index * 3 + i), second = index_of(process, i);
        if (second < first) {
            unsigned swap = first;
            first = second;
            second = swap;
        }
        rc = lk_mutex_lockfor(lk_stripes_at(&process->stripes, first), 20000);
        if (rc == 0)
            rc = lk_mutex_lockfor(lk_stripes_at(&process->stripes, second), 20000); /* may be the same one */
        if (rc == 0) {
            process->guarded->counter[first]++;
            process->guarded->counter[second]++;
            rc = lk_mutex_unlock(lk_stripes_at(&process->stripes, second));
        }
        if (rc == 0)
            rc = lk_mutex_unlock(lk_stripes_at(&process->stripes, first));
    }
    return rc;
}

/* Two keys in the order of their stripes: nobody waits in a circle, and one stripe for both is no harm. */
static void two_keys_in_the_order_of_their_stripes(struct world *w)
{
    struct guarded guarded = { .inside = { 0 } };
    struct process process = { .guarded = &guarded };
    int sum = 0;
    lk_client_t *client = world_client(w, "command_timeout=5s");
    assert_lk(0, lk_stripes_init(&process.stripes, client, "stock", STRIPES));
    assert_int_equal(0, run_threads(THREADS, transfers, &process));
    for (int i = 0; i < STRIPES; i++)
        sum += guarded.counter[i];
    assert_int_equal(2 * THREADS * ROUNDS, sum);
    assert_lk(0, lk_stripes_destroy(&process.stripes));
}

int main(void)
{
    return world_run(nobody_meets_anybody, two_keys_in_the_order_of_their_stripes);
}
