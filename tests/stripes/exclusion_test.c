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

static struct guarded *guarded;
static lk_stripes_t *stock;

/* 0, or what was wrong. The caller holds the stripe. */
static int be_inside(unsigned index, int *more)
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

static int visit_any(unsigned *index)
{
    int rc = lk_stripes_trylockany(stock, *index, index);
    if (rc == EBUSY) {
        *index = *index < STRIPES ? *index : 0;
        rc = lk_mutex_lock(lk_stripes_at(stock, *index));
    }
    if (rc != 0)
        return 2;
    int wrong = be_inside(*index, NULL);
    return lk_mutex_unlock(lk_stripes_at(stock, *index)) != 0 ? 5 : wrong;
}

static int visit_key(int number)
{
    char key[16];
    size_t length = (size_t)snprintf(key, sizeof key, "key %d", number);
    lk_mutex_t *m = lk_stripes_of(stock, key, length);
    if (lk_mutex_lock(m) != 0)
        return 6;
    int wrong = be_inside(lk_stripes_index(stock, key, length), &guarded->of_key[number]);
    return lk_mutex_unlock(m) != 0 ? 7 : wrong;
}

static int visit(int thread, int round)
{
    static __thread unsigned at = LK_STRIPES_ANY;
    return round % 2 == 0 ? visit_any(&at) : visit_key((thread * 7 + round) % KEYS);
}

static void open_stock(struct world *w, lk_client_t *client)
{
    stock = world_stripes(w, client, "stock", STRIPES, NULL);
}

/* The counters lose nothing, and nobody meets anybody. */
static void nobody_meets_anybody(struct world *w)
{
    int visited = 0, by_key = 0;
    guarded = world_shared(w, sizeof *guarded);
    world_processes(w, &(struct processes){ PROCESSES, THREADS, ROUNDS, "command_timeout=5s", open_stock, visit });
    for (int i = 0; i < STRIPES; i++)
        visited += guarded->counter[i];
    for (int i = 0; i < KEYS; i++)
        by_key += guarded->of_key[i];
    assert_int_equal(PROCESSES * THREADS * ROUNDS, visited);
    assert_int_equal(PROCESSES * THREADS * ROUNDS / 2, by_key);
}

/* --- several keys at once -------------------------------------------------------------------------------------------- */

static unsigned index_of(int number)
{
    char key[16];
    int length = snprintf(key, sizeof key, "key %d", number);
    return lk_stripes_index(stock, key, (size_t)length);
}

static int transfers(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        unsigned first = index_of(index * 3 + i), second = index_of(i);
        if (second < first) {
            unsigned swap = first;
            first = second;
            second = swap;
        }
        rc = lk_mutex_lockfor(lk_stripes_at(stock, first), 20000);
        if (rc == 0)
            rc = lk_mutex_lockfor(lk_stripes_at(stock, second), 20000); /* may be the same one */
        if (rc == 0) {
            guarded->counter[first]++;
            guarded->counter[second]++;
            rc = lk_mutex_unlock(lk_stripes_at(stock, second));
        }
        if (rc == 0)
            rc = lk_mutex_unlock(lk_stripes_at(stock, first));
    }
    return rc;
}

/* Two keys in the order of their stripes: nobody waits in a circle, and one stripe for both is no harm. */
static void two_keys_in_the_order_of_their_stripes(struct world *w)
{
    int sum = 0;
    guarded = world_shared(w, sizeof *guarded);
    open_stock(w, world_client(w, "command_timeout=5s"));
    assert_int_equal(0, run_threads(THREADS, transfers, NULL));
    for (int i = 0; i < STRIPES; i++)
        sum += guarded->counter[i];
    assert_int_equal(2 * THREADS * ROUNDS, sum);
}

int main(void)
{
    return world_run(nobody_meets_anybody, two_keys_in_the_order_of_their_stripes);
}
