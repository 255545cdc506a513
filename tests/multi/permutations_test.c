/* SPDX-License-Identifier: MIT */
/*
 * permutations_test.c - eight processes take four locks, added in every order, some of them by themselves, and some are
 * killed: nobody waits in a circle, and nobody meets anybody
 *
 * processors: 4
 * labels: threads noise
 */
#include "world.h"

#include <sched.h>

enum { LOCKS = 4, ORDERS = 24, PROCESSES = 8, THREADS = 2, ROUNDS = SANITIZED || NOISY ? 1 : 2 };

/* Only its lock guards each counter: nothing here is atomic. */
struct guarded {
    int counter[LOCKS];
    int inside[LOCKS];
    struct gate start;
};

struct process {
    struct guarded *guarded;
    lk_mutex_t *a, *b;
    lk_rwlock_t *c, *d;
    lk_multi_t sets[ORDERS];
};

static int add_one(const struct process *process, lk_multi_t *s, int which)
{
    switch (which) {
    case 0:
        return lk_multi_addmutex(s, process->a);
    case 1:
        return lk_multi_addmutex(s, process->b);
    case 2:
        return lk_multi_addwrite(s, process->c);
    default:
        return lk_multi_addwrite(s, process->d);
    }
}

static void add_in_order(const struct process *process, lk_multi_t *s, int order)
{
    int left[LOCKS] = { 0, 1, 2, 3 };
    assert_lk(0, lk_multi_init(s));
    for (int n = LOCKS; n > 0; n--) {
        int at = order % n;
        order /= n;
        assert_lk(0, add_one(process, s, left[at]));
        for (int i = at; i + 1 < n; i++)
            left[i] = left[i + 1];
    }
}

static void open_process(struct world *w, struct process *process, const char *options)
{
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    lk_client_t *client = world_client(w, options);
    process->a = world_mutex(w, client, "a", NULL);
    process->b = world_mutex(w, client, "b", &fair);
    process->c = world_rwlock(w, client, "c", NULL);
    process->d = world_rwlock(w, client, "d", NULL);
    for (int i = 0; i < ORDERS; i++)
        add_in_order(process, &process->sets[i], i);
}

static void close_process(struct process *process)
{
    for (int i = 0; i < ORDERS; i++)
        assert_lk(0, lk_multi_destroy(&process->sets[i]));
}

/* 0, or what was wrong. */
static int be_inside(struct guarded *guarded, int first, int end)
{
    int wrong = 0, counter[LOCKS];
    for (int i = first; i < end; i++) {
        wrong |= guarded->inside[i] != 0 ? 3 : 0;
        guarded->inside[i] = 1;
        counter[i] = guarded->counter[i];
    }
    sched_yield();
    for (int i = first; i < end; i++) {
        wrong |= guarded->inside[i] != 1 || guarded->counter[i] != counter[i] ? 4 : 0;
        guarded->counter[i] = counter[i] + 1;
        guarded->inside[i] = 0;
    }
    return wrong;
}

static int visit_all(struct process *process, lk_multi_t *s, bool is_try)
{
    int rc = is_try ? lk_multi_trylock(s) : EBUSY;
    if (rc == EBUSY)
        rc = lk_multi_lockfor(s, 50000);
    if (rc != 0)
        return 1;
    int wrong = be_inside(process->guarded, 0, LOCKS);
    return lk_multi_unlock(s) != 0 ? 2 : wrong;
}

/* Who wants one lock alone is kept out, too. */
static int visit_one(struct process *process)
{
    if (lk_mutex_lockfor(process->b, 50000) != 0)
        return 5;
    int wrong = be_inside(process->guarded, 1, 2);
    return lk_mutex_unlock(process->b) != 0 ? 6 : wrong;
}

static int visits(int index, void *arg)
{
    struct process *process = arg;
    int wrong = 0;
    for (int i = 0; i < ROUNDS * ORDERS && wrong == 0; i++) {
        wrong = visit_all(process, &process->sets[(i * 7 + index * 11) % ORDERS], i % 3 == 0);
        if (wrong == 0 && i % 4 == 0)
            wrong = visit_one(process);
    }
    return wrong;
}

static int process_main(struct world *w, void *arg)
{
    static struct process process;
    process.guarded = arg;
    open_process(w, &process, "lease=10s");
    world_ready(w);
    gate_pass(&process.guarded->start);
    int wrong = run_threads(THREADS, visits, &process);
    close_process(&process);
    return wrong;
}

static void in_every_order_nobody_meets_and_nobody_starves(struct world *w)
{
    struct guarded *guarded = world_shared(w, sizeof *guarded);
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = world_fork(w, process_main, guarded);
    gate_open(&guarded->start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(PROCESSES * THREADS * ROUNDS * (i == 1 ? ORDERS + ORDERS / 4 : ORDERS), guarded->counter[i]);
}

/* --- killed ------------------------------------------------------------------------------------------------------------ */

/* Holds some of them, and waits for the rest. */
static int wait_until_killed(struct world *w, void *arg)
{
    static struct process process;
    struct gate *never = arg;
    open_process(w, &process, "lease=1s");
    world_ready(w);
    while (!gate_is_open(never))
        if (lk_multi_lock(&process.sets[5]) != 0 || lk_multi_unlock(&process.sets[5]) != 0)
            return 1;
    return 0;
}

/* Whoever dies in the middle of it leaves nothing for longer than its lease. */
static void the_killed_hold_nobody_up(struct world *w)
{
    enum { VICTIMS = 4 };
    static struct process process;
    struct gate *never = world_shared(w, sizeof *never);
    pid_t victims[VICTIMS];
    world_allow(w, "latchkey:queue:*"); /* a waiter that was killed stands there for a while */
    world_allow(w, "latchkey:alive:*");
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = world_fork(w, wait_until_killed, never);
    open_process(w, &process, "lease=10s&connect_timeout=10s"); /* who lives loses nothing */
    for (int i = 0; i < VICTIMS; i++) {
        assert_lk(0, lk_multi_lockfor(&process.sets[i * 5], 30000));
        assert_lk(0, lk_multi_unlock(&process.sets[i * 5]));
        world_kill(w, victims[i]);
    }
    assert_lk(0, lk_multi_lockfor(&process.sets[0], 30000));
    assert_lk(0, lk_multi_check(&process.sets[23]));
    assert_lk(0, lk_multi_unlock(&process.sets[0]));
    close_process(&process);
}

int main(void)
{
    return world_run(in_every_order_nobody_meets_and_nobody_starves, the_killed_hold_nobody_up);
}
