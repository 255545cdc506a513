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
static struct guarded {
    int counter[LOCKS];
    int inside[LOCKS];
} *guarded;

static lk_mutex_t *a, *b;
static lk_rwlock_t *c, *d;
static lk_multi_t *sets[ORDERS];

static int add_one(lk_multi_t *s, int which)
{
    switch (which) {
    case 0:
        return lk_multi_addmutex(s, a);
    case 1:
        return lk_multi_addmutex(s, b);
    case 2:
        return lk_multi_addwrite(s, c);
    default:
        return lk_multi_addwrite(s, d);
    }
}

static void add_in_order(lk_multi_t *s, int order)
{
    int left[LOCKS] = { 0, 1, 2, 3 };
    for (int n = LOCKS; n > 0; n--) {
        int at = order % n;
        order /= n;
        assert_lk(0, add_one(s, left[at]));
        for (int i = at; i + 1 < n; i++)
            left[i] = left[i + 1];
    }
}

static void open_all(struct world *w, lk_client_t *client)
{
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    a = world_mutex(w, client, "a", NULL);
    b = world_mutex(w, client, "b", &fair);
    c = world_rwlock(w, client, "c", NULL);
    d = world_rwlock(w, client, "d", NULL);
    for (int i = 0; i < ORDERS; i++)
        add_in_order(sets[i] = world_multi(w, client), i);
}

/* 0, or what was wrong. */
static int be_inside(int first, int end)
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

static int visit_all(lk_multi_t *s, bool is_try)
{
    int rc = is_try ? lk_multi_trylock(s) : EBUSY;
    if (rc == EBUSY)
        rc = lk_multi_lockfor(s, 50000);
    if (rc != 0)
        return 1;
    int wrong = be_inside(0, LOCKS);
    return lk_multi_unlock(s) != 0 ? 2 : wrong;
}

/* Who wants one lock alone is kept out, too. */
static int visit_one(void)
{
    if (lk_mutex_lockfor(b, 50000) != 0)
        return 5;
    int wrong = be_inside(1, 2);
    return lk_mutex_unlock(b) != 0 ? 6 : wrong;
}

static int visit(int thread, int round)
{
    int wrong = visit_all(sets[(round * 7 + thread * 11) % ORDERS], round % 3 == 0);
    return wrong == 0 && round % 4 == 0 ? visit_one() : wrong;
}

static void in_every_order_nobody_meets_and_nobody_starves(struct world *w)
{
    guarded = world_shared(w, sizeof *guarded);
    world_processes(w, &(struct processes){ PROCESSES, THREADS, ROUNDS * ORDERS, "lease=10s", open_all, visit });
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(PROCESSES * THREADS * ROUNDS * (i == 1 ? ORDERS + ORDERS / 4 : ORDERS), guarded->counter[i]);
}

/* --- killed ------------------------------------------------------------------------------------------------------------ */

/* Holds some of them, and waits for the rest. */
static int wait_until_killed(struct world *w, void *arg)
{
    struct gate *never = arg;
    open_all(w, world_client(w, "lease=1s"));
    world_ready(w);
    while (!gate_is_open(never))
        if (lk_multi_lock(sets[5]) != 0 || lk_multi_unlock(sets[5]) != 0)
            return 1;
    return 0;
}

/* Whoever dies in the middle of it leaves nothing for longer than its lease. */
static void the_killed_hold_nobody_up(struct world *w)
{
    enum { VICTIMS = 4 };
    struct gate *never = world_shared(w, sizeof *never);
    pid_t victims[VICTIMS];
    world_allow(w, "latchkey:queue:*"); /* a waiter that was killed stands there for a while */
    world_allow(w, "latchkey:alive:*");
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = world_fork(w, wait_until_killed, never);
    open_all(w, world_client(w, "lease=10s&connect_timeout=10s")); /* who lives loses nothing */
    for (int i = 0; i < VICTIMS; i++) {
        assert_lk(0, lk_multi_lockfor(sets[i * 5], 30000));
        assert_lk(0, lk_multi_unlock(sets[i * 5]));
        world_kill(w, victims[i]);
    }
    assert_lk(0, lk_multi_lockfor(sets[0], 30000));
    assert_lk(0, lk_multi_check(sets[23]));
    assert_lk(0, lk_multi_unlock(sets[0]));
}

int main(void)
{
    return world_run(in_every_order_nobody_meets_and_nobody_starves, the_killed_hold_nobody_up);
}
