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

static struct guarded *guarded;
static lk_mutex_t *stock;

/* 0, or what was wrong with one visit. */
static int visit(int thread, int round)
{
    uint64_t token;
    int64_t left_ms;
    int counter, wrong = 0;
    (void)thread, (void)round;
    if (lk_mutex_lock(stock) != 0)
        return 2;
    if (guarded->inside != 0)
        wrong = 3;
    guarded->inside = 1;
    counter = guarded->counter;
    if (lk_mutex_token(stock, &token) != 0 || token <= guarded->token)
        wrong = 4;
    guarded->token = token;
    sched_yield();
    if (guarded->inside != 1 || guarded->counter != counter)
        wrong = 5;
    guarded->counter = counter + 1;
    guarded->inside = 0;
    if (lk_mutex_remaining(stock, &left_ms) != 0)
        wrong = 6;
    if (lk_mutex_unlock(stock) != 0)
        wrong = 7;
    return wrong;
}

static void open_stock(struct world *w, lk_client_t *client)
{
    stock = world_mutex(w, client, "stock", NULL);
}

/* The reason for all of this: the counter loses nothing, nobody meets anybody, tokens rise. */
static void nobody_meets_anybody(struct world *w)
{
    guarded = world_shared(w, sizeof *guarded);
    world_processes(w, &(struct processes){ PROCESSES, THREADS, ROUNDS, "command_timeout=1500ms", open_stock, visit });
    assert_int_equal(PROCESSES * THREADS * ROUNDS, guarded->counter);
    assert_int_equal(0, world_queued(w, "stock"));
}

int main(void)
{
    return world_run(nobody_meets_anybody);
}
