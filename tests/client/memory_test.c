/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - what an object takes, what a held lock takes beyond that, and how often a lock asks for memory
 *
 * labels: memory
 * support: failing
 */
#include "failing/failing.h"

#include <stdio.h>

enum { MANY = 1000, PAIRS = 100, OBJECT_BYTES = 700, HOLD_BYTES = 600, ALLOCATIONS = SANITIZED ? 1 : 0 };

static lk_client_t *client;
static lk_mutex_t mutexes[MANY];

static void make(int i)
{
    char name[32];
    snprintf(name, sizeof name, "lock%d", i);
    assert_lk(0, lk_mutex_init(&mutexes[i], client, name, NULL));
}

static void take(int i)
{
    assert_lk(0, lk_mutex_lock(&mutexes[i]));
}

static void give(int i)
{
    assert_lk(0, lk_mutex_unlock(&mutexes[i]));
}

static void drop(int i)
{
    assert_lk(0, lk_mutex_destroy(&mutexes[i]));
}

static void each(void (*what)(int i))
{
    for (int i = 0; i < MANY; i++)
        what(i);
}

static void at_most(const char *what, long limit, long found)
{
    print_message("%s: %ld, at most %ld\n", what, found, limit);
    assert_true(found <= limit);
}

/* What is made once has been made: tables that double have their final size. */
static void begin(struct world *w)
{
    client = world_client(w, "");
    each(make);
    each(take);
    each(give);
    each(drop);
}

static void objects_and_holds_are_small(struct world *w)
{
    begin(w);
    long before = failing_bytes();
    each(make);
    each(take);
    each(give);
    long live = failing_bytes();
    each(take);
    long held = failing_bytes();
    each(give);
    at_most("bytes of a live object", OBJECT_BYTES, (live - before) / MANY);
    at_most("bytes of a held lock beyond that", HOLD_BYTES, (held - live) / MANY);
    each(drop);
}

static void a_free_lock_hardly_asks_for_memory(struct world *w)
{
    begin(w);
    make(0);
    take(0);
    give(0);
    long before = failing_serial();
    for (int i = 0; i < PAIRS; i++) {
        take(0);
        give(0);
    }
    at_most("allocations of a hundred locks and unlocks", ALLOCATIONS * PAIRS, failing_serial() - before);
    drop(0);
}

int main(void)
{
    return world_run(objects_and_holds_are_small, a_free_lock_hardly_asks_for_memory);
}
