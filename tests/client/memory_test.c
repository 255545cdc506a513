/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - what an object takes, what something held takes beyond that, and how often a pair asks for memory
 *
 * labels: memory
 * support: failing
 */
#include "failing/failing.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 1000, PAIRS = 100, PER_HOLD = SANITIZED ? 1 : 0 }; /* without one, the memory of an earlier hold serves */

static lk_client_t *client;
static struct subject objects[MANY];

/* How many bytes an object of a kind may take, and a hold of it beyond that. */
struct limits {
    const char *name;   /* of the kind of subject */
    const char *called; /* how the names of these begin */
    long object_bytes, hold_bytes;
    int allocations; /* of a pair */
};

static const struct limits limits[] = {
    { "mutex", "mutex", 700, 600, PER_HOLD },
    { "fair mutex", "fair", 700, 600, PER_HOLD },
    { "reader", "reader", 700, 600, PER_HOLD },
    { "writer", "writer", 700, 600, PER_HOLD },
    { "leased semaphore", "permit", 700, 650, PER_HOLD },
    { "semaphore", "semaphore", 700, 0, 2 * PER_HOLD },
};

static const struct subject_kind *kind;

static const struct limits *limits_of(const char *name)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(limits[i].name, name) == 0)
            return &limits[i];
    fail_msg("how large may a %s be?", name);
    return NULL;
}

static void make(int i)
{
    objects[i] = (struct subject){ .kind = kind };
    snprintf(objects[i].name, sizeof objects[i].name, "%s%d", limits_of(kind->name)->called, i);
    assert_lk(0, kind->init(&objects[i], client, 0));
}

static void take(int i)
{
    assert_lk(0, subject_take(&objects[i], 0));
}

static void give(int i)
{
    assert_lk(0, subject_give(&objects[i]));
}

static void drop(int i)
{
    assert_lk(0, subject_destroy(&objects[i]));
}

static void each(void (*what)(int i))
{
    for (int i = 0; i < MANY; i++)
        what(i);
}

static void at_most(const char *what, long limit, long found)
{
    print_message("%s: %s: %ld, at most %ld\n", kind->name, what, found, limit);
    assert_true(found <= limit);
}

/* What is made once has been made: tables that double have their final size. */
static void begin(struct world *w)
{
    if (client == NULL)
        client = world_client(w, "");
    each(make);
    each(take);
    each(give);
    each(drop);
}

static void objects_and_holds_are_small(struct world *w)
{
    client = NULL;
    world_allow(w, "semaphore*"); /* numbers of semaphores last */
    world_allow(w, "latchkey:once:{semaphore*");
    world_allow(w, "latchkey:total:{permit*");
    for (kind = subject_kinds; kind->name != NULL; kind++) {
        begin(w);
        long before = failing_bytes();
        each(make);
        each(take);
        each(give);
        long live = failing_bytes();
        each(take);
        long held = failing_bytes();
        each(give);
        at_most("bytes of a live object", limits_of(kind->name)->object_bytes, (live - before) / MANY);
        at_most("bytes of what is held beyond that", limits_of(kind->name)->hold_bytes, (held - live) / MANY);
        each(drop);
    }
}

static void a_free_lock_hardly_asks_for_memory(struct world *w)
{
    client = NULL;
    world_allow(w, "semaphore*"); /* numbers of semaphores last */
    world_allow(w, "latchkey:once:{semaphore*");
    world_allow(w, "latchkey:total:{permit*");
    for (kind = subject_kinds; kind->name != NULL; kind++) {
        begin(w);
        make(0);
        take(0);
        give(0);
        long before = failing_serial();
        for (int i = 0; i < PAIRS; i++) {
            take(0);
            give(0);
        }
        at_most("allocations of a hundred pairs", limits_of(kind->name)->allocations * PAIRS,
                failing_serial() - before);
        drop(0);
    }
}

int main(void)
{
    return world_run(objects_and_holds_are_small, a_free_lock_hardly_asks_for_memory);
}
