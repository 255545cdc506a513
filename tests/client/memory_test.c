/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - what an object takes, what something held takes beyond that, and how often a pair asks for memory
 *
 * labels: memory
 * simulated: yes
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
    { "mutex", "mutex", 700, 620, PER_HOLD },
    { "fair mutex", "fair", 700, 620, PER_HOLD },
    { "reader", "reader", 700, 620, PER_HOLD },
    { "writer", "writer", 700, 620, PER_HOLD },
    { "leased semaphore", "permit", 700, 670, PER_HOLD },
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

static void at_most(const char *name, const char *what, long limit, long found)
{
    print_message("%s: %s: %ld, at most %ld\n", name, what, found, limit);
    assert_true(found <= limit);
}

/* What is made once has been made: tables that double have their final size. */
static void begin(struct world *w)
{
    if (client == NULL)
        client = world_client(w, "command_timeout=5s");
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
        at_most(kind->name, "bytes of a live object", limits_of(kind->name)->object_bytes, (live - before) / MANY);
        at_most(kind->name, "bytes of what is held beyond that", limits_of(kind->name)->hold_bytes,
                (held - live) / MANY);
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
        at_most(kind->name, "allocations of a hundred pairs", limits_of(kind->name)->allocations * PAIRS,
                failing_serial() - before);
        drop(0);
    }
}

/* --- what nobody holds as those are held -------------------------------------------------------------------------- */

static lk_once_t works[MANY];
static lk_barrier_t stages[MANY];
static lk_cond_t conds[MANY];

static void make_run(int i)
{
    char name[16];
    snprintf(name, sizeof name, "work%d", i);
    assert_lk(0, lk_once_init(&works[i], client, name, NULL));
}

static void begin_run(int i)
{
    assert_lk(0, lk_once_begin(&works[i], 0));
}

static void fail_run(int i)
{
    assert_lk(0, lk_once_fail(&works[i]));
}

static void drop_run(int i)
{
    assert_lk(0, lk_once_destroy(&works[i]));
}

static void make_barrier(int i)
{
    char name[16];
    snprintf(name, sizeof name, "stage%d", i);
    assert_lk(0, lk_barrier_init(&stages[i], client, name, 1, NULL));
}

static void meet_alone(int i)
{
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(&stages[i]));
}

static void drop_barrier(int i)
{
    assert_lk(0, lk_barrier_destroy(&stages[i]));
}

static void make_cond(int i)
{
    char name[16];
    snprintf(name, sizeof name, "some%d", i);
    assert_lk(0, lk_cond_init(&conds[i], client, name, NULL));
}

static void signal_it(int i)
{
    assert_lk(0, lk_cond_signal(&conds[i]));
}

static void drop_cond(int i)
{
    assert_lk(0, lk_cond_destroy(&conds[i]));
}

/* `end`: NULL, or gives back what is held since `use`. */
static const struct other {
    const char *name;
    void (*make)(int i), (*use)(int i), (*end)(int i), (*drop)(int i);
    long object_bytes, hold_bytes;
} others[] = {
    { "once", make_run, begin_run, fail_run, drop_run, 850, 620 },
    { "barrier", make_barrier, meet_alone, NULL, drop_barrier, 900, 0 },
    { "condition", make_cond, signal_it, NULL, drop_cond, 950, 0 },
};

static void the_others_are_small_too(struct world *w)
{
    client = world_client(w, "command_timeout=5s");
    world_allow(w, "latchkey:*");
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const struct other *other = &others[k];
        for (int round = 0; round < 2; round++) { /* what is made once has been made in the second */
            long before = failing_bytes();
            each(other->make);
            each(other->use);
            long used = failing_bytes();
            if (other->end != NULL)
                each(other->end);
            long live = failing_bytes();
            if (round == 1) {
                at_most(other->name, "bytes of a live object", other->object_bytes, (live - before) / MANY);
                at_most(other->name, "bytes of what is held beyond that", other->hold_bytes, (used - live) / MANY);
            }
            each(other->drop);
        }
    }
}

int main(void)
{
    return world_run(the_others_are_small_too, objects_and_holds_are_small, a_free_lock_hardly_asks_for_memory);
}
