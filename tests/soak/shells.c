/* SPDX-License-Identifier: MIT */
/*
 * shells.c - see shells.h
 */
#include "shells.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

union shell {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
    lk_latch_t latch;
};

struct slot {
    union shell *shell; /* NULL: not made yet. Atomic builtins; made under `making` */
};

struct shells {
    lk_client_t *client;
    int64_t lease_ms;
    pthread_mutex_t making;
    struct slot fixed[KINDS][INDEX_MAX]; /* mutexes, rwlocks, leased semaphores */
    struct slot counting[INDEX_MAX][EPOCHS_MAX];
    struct slot latches[HOT][GENERATIONS_MAX];
};

static struct slot *slot_of(struct shells *shells, uint32_t object, uint32_t instance)
{
    switch (kind_of(object)) {
    case COUNTING:
        return &shells->counting[index_of(object)][instance % EPOCHS_MAX];
    case LATCH:
        return &shells->latches[index_of(object) % HOT][instance % GENERATIONS_MAX];
    default:
        return &shells->fixed[kind_of(object)][index_of(object)];
    }
}

static int mutex_init(struct shells *shells, union shell *shell, const char *name, enum kind kind)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = kind == FAIR;
    attr.robust = kind == ROBUST;
    attr.fixed = kind == FIXED;
    if (kind == CAPPED) {
        attr.min_hold_ms = MIN_HOLD_MS;
        attr.max_hold_ms = capped_ms(shells->lease_ms);
    }
    return lk_mutex_init(&shell->mutex, shells->client, name, &attr);
}

static int shell_init(struct shells *shells, union shell *shell, uint32_t object, uint32_t instance)
{
    char name[64];
    lk_semattr_t leased = LK_SEMATTR_INIT;
    object_name(name, sizeof name, object, instance);
    switch (kind_of(object)) {
    case RWLOCK:
        return lk_rwlock_init(&shell->rwlock, shells->client, name, NULL);
    case LEASED:
    case BYID:
        leased.leased = 1;
        return lk_sem_init(&shell->sem, shells->client, name, permits_of(object), &leased);
    case COUNTING:
        return lk_sem_init(&shell->sem, shells->client, name, permits_of(object), NULL);
    case LATCH:
        return lk_latch_init(&shell->latch, shells->client, name, NULL);
    default:
        return mutex_init(shells, shell, name, kind_of(object));
    }
}

static union shell *make(struct shells *shells, struct slot *slot, uint32_t object, uint32_t instance)
{
    pthread_mutex_lock(&shells->making);
    union shell *shell = slot->shell;
    if (shell == NULL) {
        shell = calloc(1, sizeof *shell);
        if (shell == NULL || shell_init(shells, shell, object, instance) != 0)
            abort();
        __atomic_store_n(&slot->shell, shell, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&shells->making);
    return shell;
}

static union shell *shell_of(struct shells *shells, uint32_t object, uint32_t instance)
{
    struct slot *slot = slot_of(shells, object, instance);
    union shell *shell = __atomic_load_n(&slot->shell, __ATOMIC_ACQUIRE);
    return shell != NULL ? shell : make(shells, slot, object, instance);
}

struct shells *shells_begin(lk_client_t *client, int64_t lease_ms)
{
    struct shells *shells = calloc(1, sizeof *shells);
    if (shells == NULL)
        abort();
    shells->client = client;
    shells->lease_ms = lease_ms;
    pthread_mutex_init(&shells->making, NULL);
    return shells;
}

static int end_slot(struct slot *slot, enum kind kind)
{
    int rc = 0;
    if (slot->shell == NULL)
        return 0;
    switch (kind) {
    case RWLOCK:
        rc = lk_rwlock_destroy(&slot->shell->rwlock);
        break;
    case COUNTING:
    case LEASED:
    case BYID:
        rc = lk_sem_destroy(&slot->shell->sem);
        break;
    case LATCH:
        rc = lk_latch_destroy(&slot->shell->latch);
        break;
    default:
        rc = lk_mutex_destroy(&slot->shell->mutex);
    }
    free(slot->shell);
    return rc;
}

int shells_end(struct shells *shells)
{
    int rc = 0, last = 0;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned index = 0; index < INDEX_MAX; index++)
            if ((last = end_slot(&shells->fixed[kind][index], (enum kind)kind)) != 0)
                rc = last;
    for (unsigned i = 0; i < INDEX_MAX * EPOCHS_MAX; i++)
        if ((last = end_slot(&shells->counting[i / EPOCHS_MAX][i % EPOCHS_MAX], COUNTING)) != 0)
            rc = last;
    for (unsigned i = 0; i < HOT * GENERATIONS_MAX; i++)
        if ((last = end_slot(&shells->latches[i / GENERATIONS_MAX][i % GENERATIONS_MAX], LATCH)) != 0)
            rc = last;
    pthread_mutex_destroy(&shells->making);
    free(shells);
    return rc;
}

int shell_take(struct shells *shells, uint32_t object, uint32_t instance, bool share, unsigned permits, int limit_ms)
{
    union shell *shell = shell_of(shells, object, instance);
    switch (kind_of(object)) {
    case RWLOCK:
        if (share)
            return limit_ms == 0 ? lk_rwlock_tryrdlock(&shell->rwlock) : lk_rwlock_rdlockfor(&shell->rwlock, limit_ms);
        return limit_ms == 0 ? lk_rwlock_trywrlock(&shell->rwlock) : lk_rwlock_wrlockfor(&shell->rwlock, limit_ms);
    case COUNTING:
    case LEASED:
        if (limit_ms == 0 && permits == 1)
            return lk_sem_trywait(&shell->sem);
        return lk_sem_acquire(&shell->sem, permits, limit_ms);
    default:
        return limit_ms == 0 ? lk_mutex_trylock(&shell->mutex) : lk_mutex_lockfor(&shell->mutex, limit_ms);
    }
}

int shell_give(struct shells *shells, uint32_t object, uint32_t instance, unsigned permits)
{
    union shell *shell = shell_of(shells, object, instance);
    switch (kind_of(object)) {
    case RWLOCK:
        return lk_rwlock_unlock(&shell->rwlock);
    case COUNTING:
    case LEASED:
        return lk_sem_release(&shell->sem, permits);
    default:
        return lk_mutex_unlock(&shell->mutex);
    }
}

int shell_takeid(struct shells *shells, uint32_t object, int limit_ms, char *id)
{
    return lk_sem_acquireid(&shell_of(shells, object, 0)->sem, limit_ms, id);
}

int shell_giveid(struct shells *shells, uint32_t object, const char *id)
{
    return lk_sem_releaseid(&shell_of(shells, object, 0)->sem, id);
}

int shell_repair(struct shells *shells, uint32_t object)
{
    return lk_mutex_consistent(&shell_of(shells, object, 0)->mutex);
}

int shell_force(struct shells *shells, uint32_t object)
{
    return lk_mutex_forceunlock(&shell_of(shells, object, 0)->mutex);
}

int shell_downgrade(struct shells *shells, uint32_t object)
{
    return lk_rwlock_downgrade(&shell_of(shells, object, 0)->rwlock);
}

int shell_remaining(struct shells *shells, uint32_t object, int64_t *ms)
{
    union shell *shell = shell_of(shells, object, 0);
    if (is_mutex(object))
        return lk_mutex_remaining(&shell->mutex, ms);
    switch (kind_of(object)) {
    case RWLOCK:
        return lk_rwlock_remaining(&shell->rwlock, ms);
    case LEASED:
        return lk_sem_remaining(&shell->sem, ms);
    default:
        return ENOTSUP;
    }
}

int shell_token(struct shells *shells, uint32_t object, uint64_t *token)
{
    union shell *shell = shell_of(shells, object, 0);
    if (is_mutex(object))
        return lk_mutex_token(&shell->mutex, token);
    switch (kind_of(object)) {
    case RWLOCK:
        return lk_rwlock_token(&shell->rwlock, token);
    default:
        return ENOTSUP;
    }
}

lk_latch_t *shell_latch(struct shells *shells, uint32_t object, uint32_t instance)
{
    return &shell_of(shells, object, instance)->latch;
}
