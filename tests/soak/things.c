/* SPDX-License-Identifier: MIT */
/*
 * things.c - the objects of a client process: see actor.h
 */
#include "actor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct things {
    lk_client_t *client;
    pthread_mutex_t making;
    struct thing *newest[KINDS][INDEX_MAX]; /* atomic builtins; changed under `making` */
    lk_stripes_t stripes;
};

static int cond_init(struct things *things, struct thing *thing, const char *name)
{
    char near[80]; /* in the slot of its mutex */
    snprintf(near, sizeof near, "{%s}cond", name);
    return lk_cond_init(&thing->cond, things->client, near, NULL);
}

static int init(struct things *things, struct thing *thing, uint32_t object)
{
    char name[64];
    enum kind kind = kind_of(object);
    lk_mutexattr_t mutex = LK_MUTEXATTR_INIT;
    lk_rwlockattr_t rwlock = LK_RWLOCKATTR_INIT;
    lk_semattr_t sem = LK_SEMATTR_INIT;
    lk_latchattr_t latch = LK_LATCHATTR_INIT;
    object_name(name, sizeof name, object, thing->instance);
    switch (kind) {
    case RWLOCK:
        rwlock.prefer = index_of(object) % 2 != 0 ? LK_RWLOCK_PREFER_PHASE_FAIR : LK_RWLOCK_PREFER_FAIR;
        return lk_rwlock_init(&thing->rwlock, things->client, name, &rwlock);
    case ONCE:
        return lk_once_init(&thing->once, things->client, name, NULL);
    case LEASED:
    case COUNTING:
        sem.leased = kind == LEASED;
        return lk_sem_init(&thing->sem, things->client, name, permits_of(object), &sem);
    case LATCH:
        latch.appear = is_appearing(object);
        return lk_latch_init(&thing->latch, things->client, name, &latch);
    case BARRIER:
        return lk_barrier_init(&thing->barrier, things->client, name, parties_of(object), NULL);
    default:
        mutex.fair = kind == FAIR;
        mutex.robust = kind == ROBUST;
        mutex.fixed = kind == FIXED;
        if (kind == GUARD && cond_init(things, thing, name) != 0)
            return ENOMEM;
        return lk_mutex_init(&thing->mutex, things->client, name, &mutex);
    }
}

static int end(struct thing *thing, enum kind kind)
{
    switch (kind) {
    case RWLOCK:
        return lk_rwlock_destroy(&thing->rwlock);
    case ONCE:
        return lk_once_destroy(&thing->once);
    case LEASED:
    case COUNTING:
        return lk_sem_destroy(&thing->sem);
    case LATCH:
        return lk_latch_destroy(&thing->latch);
    case BARRIER:
        return lk_barrier_destroy(&thing->barrier);
    default:
        if (kind == GUARD && lk_cond_destroy(&thing->cond) != 0)
            return EBUSY;
        return lk_mutex_destroy(&thing->mutex);
    }
}

struct things *things_begin(lk_client_t *client)
{
    struct things *things = calloc(1, sizeof *things);
    if (things == NULL || lk_stripes_init(&things->stripes, client, "soak:striped", STRIPES) != 0)
        abort();
    things->client = client;
    pthread_mutex_init(&things->making, NULL);
    return things;
}

int things_end(struct things *things)
{
    int rc = lk_stripes_destroy(&things->stripes);
    for (unsigned i = 0; i < KINDS * INDEX_MAX; i++)
        for (struct thing *thing = things->newest[i / INDEX_MAX][i % INDEX_MAX], *next; thing != NULL; thing = next) {
            int code = end(thing, (enum kind)(i / INDEX_MAX));
            rc = code != 0 ? code : rc;
            next = thing->next;
            free(thing);
        }
    pthread_mutex_destroy(&things->making);
    free(things);
    return rc;
}

static struct thing *find(struct thing *thing, uint32_t instance)
{
    while (thing != NULL && thing->instance != instance)
        thing = thing->next;
    return thing;
}

struct thing *thing_of(struct things *things, uint32_t object, uint32_t instance)
{
    struct thing **newest = &things->newest[kind_of(object)][index_of(object)];
    struct thing *thing = find(__atomic_load_n(newest, __ATOMIC_ACQUIRE), instance);
    if (thing != NULL)
        return thing;
    pthread_mutex_lock(&things->making);
    thing = find(*newest, instance);
    if (thing == NULL) {
        thing = calloc(1, sizeof *thing);
        if (thing == NULL)
            abort();
        thing->instance = instance;
        thing->next = *newest;
        if (init(things, thing, object) != 0)
            abort();
        __atomic_store_n(newest, thing, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&things->making);
    return thing;
}

static struct thing *thing_in(const struct grip *grip)
{
    return thing_of(grip->things, grip->object, grip->instance);
}

static lk_mutex_t *mutex_in(const struct grip *grip)
{
    if (kind_of(grip->object) == STRIPED)
        return lk_stripes_at(&grip->things->stripes, index_of(grip->object));
    return &thing_in(grip)->mutex;
}

int grip_take(const struct grip *grip, bool share, int limit_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = limit_ms, .owner = grip->owner };
    if (is_mutex(grip->object))
        return lk_mutex_lockwith(mutex_in(grip), &how);
    struct thing *thing = thing_in(grip);
    if (is_semaphore(grip->object))
        return lk_sem_acquirewith(&thing->sem, grip->permits, &how);
    if (kind_of(grip->object) == ONCE)
        return lk_once_beginwith(&thing->once, &how);
    return share ? lk_rwlock_rdlockwith(&thing->rwlock, &how) : lk_rwlock_wrlockwith(&thing->rwlock, &how);
}

int grip_give(const struct grip *grip, bool complete)
{
    if (is_mutex(grip->object))
        return lk_mutex_unlockby(mutex_in(grip), grip->owner);
    struct thing *thing = thing_in(grip);
    if (is_semaphore(grip->object))
        return lk_sem_releaseby(&thing->sem, grip->owner, grip->permits);
    if (kind_of(grip->object) == RWLOCK)
        return lk_rwlock_unlockby(&thing->rwlock, grip->owner);
    return complete ? lk_once_endby(&thing->once, grip->owner, "done") : lk_once_failby(&thing->once, grip->owner);
}

int grip_repair(const struct grip *grip)
{
    return lk_mutex_consistentby(mutex_in(grip), grip->owner);
}

int grip_force(const struct grip *grip)
{
    return lk_mutex_forceunlock(mutex_in(grip));
}

/* Of what has a lease all kinds answer the same questions. */
#define ASK(grip, question, answer)                                                                                    \
    switch (kind_of((grip)->object)) {                                                                                 \
    case RWLOCK:                                                                                                       \
        return lk_rwlock_##question(&thing_in(grip)->rwlock, (grip)->owner, answer);                                   \
    case ONCE:                                                                                                         \
        return lk_once_##question(&thing_in(grip)->once, (grip)->owner, answer);                                       \
    case LEASED:                                                                                                       \
        return lk_sem_##question(&thing_in(grip)->sem, (grip)->owner, answer);                                         \
    case COUNTING:                                                                                                     \
        return ENOTSUP;                                                                                                \
    default:                                                                                                           \
        return lk_mutex_##question(mutex_in(grip), (grip)->owner, answer);                                             \
    }

int grip_remaining(const struct grip *grip, int64_t *ms)
{
    ASK(grip, remainingby, ms)
}

int grip_token(const struct grip *grip, uint64_t *token)
{
    ASK(grip, tokenby, token)
}

int grip_sleep(const struct grip *grip, int limit_ms)
{
    return lk_cond_waitfor(&thing_in(grip)->cond, mutex_in(grip), limit_ms);
}

int grip_signal(const struct grip *grip, bool all)
{
    lk_cond_t *cond = &thing_in(grip)->cond;
    return all ? lk_cond_broadcast(cond) : lk_cond_signal(cond);
}
