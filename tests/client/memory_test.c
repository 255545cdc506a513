/* SPDX-License-Identifier: MIT */
/*
 * memory_test.c - what an object takes, what something held takes beyond that, and how often a pair asks for memory
 *
 * labels: memory
 * support: failing
 */
#include "failing/failing.h"

#include <stdio.h>

enum { MANY = 1000, PAIRS = 100, PER_HOLD = SANITIZED ? 1 : 0 }; /* without one, the memory of an earlier hold serves */

static lk_client_t *client;

static union object {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
} objects[MANY];

/* Each holds an object and gives it back; how many bytes an object and a hold may take. */
struct kind {
    const char *what;
    int (*init)(union object *object, const char *name);
    int (*take)(union object *object), (*give)(union object *object), (*destroy)(union object *object);
    long object_bytes, hold_bytes;
    int allocations; /* of a pair */
};

static const struct kind *kind;

static int init_mutex(union object *object, const char *name)
{
    return lk_mutex_init(&object->mutex, client, name, NULL);
}

static int lock(union object *object)
{
    return lk_mutex_lock(&object->mutex);
}

static int unlock(union object *object)
{
    return lk_mutex_unlock(&object->mutex);
}

static int destroy_mutex(union object *object)
{
    return lk_mutex_destroy(&object->mutex);
}

static int init_rwlock(union object *object, const char *name)
{
    return lk_rwlock_init(&object->rwlock, client, name, NULL);
}

static int read_lock(union object *object)
{
    return lk_rwlock_rdlock(&object->rwlock);
}

static int write_lock(union object *object)
{
    return lk_rwlock_wrlock(&object->rwlock);
}

static int unlock_rwlock(union object *object)
{
    return lk_rwlock_unlock(&object->rwlock);
}

static int destroy_rwlock(union object *object)
{
    return lk_rwlock_destroy(&object->rwlock);
}

static int init_sem(union object *object, const char *name)
{
    return lk_sem_init(&object->sem, client, name, 1, NULL);
}

static int init_permits(union object *object, const char *name)
{
    lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    return lk_sem_init(&object->sem, client, name, 1, &attr);
}

static int sem_wait_one(union object *object)
{
    return lk_sem_wait(&object->sem);
}

static int sem_post_one(union object *object)
{
    return lk_sem_post(&object->sem);
}

static int destroy_sem(union object *object)
{
    return lk_sem_destroy(&object->sem);
}

static const struct kind kinds[] = {
    { "mutex", init_mutex, lock, unlock, destroy_mutex, 700, 600, PER_HOLD },
    { "reader", init_rwlock, read_lock, unlock_rwlock, destroy_rwlock, 700, 600, PER_HOLD },
    { "writer", init_rwlock, write_lock, unlock_rwlock, destroy_rwlock, 700, 600, PER_HOLD },
    { "permit", init_permits, sem_wait_one, sem_post_one, destroy_sem, 700, 650, PER_HOLD },
    { "semaphore", init_sem, sem_wait_one, sem_post_one, destroy_sem, 700, 0, 2 * PER_HOLD },
};

static void make(int i)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind->what, i);
    assert_lk(0, kind->init(&objects[i], name));
}

static void take(int i)
{
    assert_lk(0, kind->take(&objects[i]));
}

static void give(int i)
{
    assert_lk(0, kind->give(&objects[i]));
}

static void drop(int i)
{
    assert_lk(0, kind->destroy(&objects[i]));
}

static void each(void (*what)(int i))
{
    for (int i = 0; i < MANY; i++)
        what(i);
}

static void at_most(const char *what, long limit, long found)
{
    print_message("%s: %s: %ld, at most %ld\n", kind->what, what, found, limit);
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
    world_allow(w, "semaphore*");
    world_allow(w, "latchkey:once:{semaphore*");
    world_allow(w, "latchkey:total:{permit*");
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        begin(w);
        long before = failing_bytes();
        each(make);
        each(take);
        each(give);
        long live = failing_bytes();
        each(take);
        long held = failing_bytes();
        each(give);
        at_most("bytes of a live object", kind->object_bytes, (live - before) / MANY);
        at_most("bytes of what is held beyond that", kind->hold_bytes, (held - live) / MANY);
        each(drop);
    }
}

static void a_free_lock_hardly_asks_for_memory(struct world *w)
{
    client = NULL;
    world_allow(w, "semaphore*");
    world_allow(w, "latchkey:once:{semaphore*");
    world_allow(w, "latchkey:total:{permit*");
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        begin(w);
        make(0);
        take(0);
        give(0);
        long before = failing_serial();
        for (int i = 0; i < PAIRS; i++) {
            take(0);
            give(0);
        }
        at_most("allocations of a hundred pairs", kind->allocations * PAIRS, failing_serial() - before);
        drop(0);
    }
}

int main(void)
{
    return world_run(objects_and_holds_are_small, a_free_lock_hardly_asks_for_memory);
}
