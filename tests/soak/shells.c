/* SPDX-License-Identifier: MIT */
/*
 * shells.c - see shells.h
 */
#include "shells.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

union shell {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
    lk_latch_t latch;
    lk_barrier_t barrier;
    lk_once_t once;
};

struct slot {
    union shell *shell; /* NULL: not made yet. Atomic builtins; made under `making` */
    uint32_t instance;  /* of an anonymous one */
};

enum { COUNTED, GROWING, LASTING }; /* numbers that last */

struct shells {
    lk_client_t *client;
    int64_t lease_ms;
    pthread_mutex_t making;
    struct slot fixed[KINDS][INDEX_MAX]; /* mutexes, rwlocks, leased semaphores */
    struct slot counting[LASTING][INDEX_MAX][EPOCHS_MAX];
    struct slot latches[HOT][GENERATIONS_MAX];
    struct slot runs[HOT][GENERATIONS_MAX];
    lk_cond_t conds[HOT][2]; /* of buffers: for room, for items */
    struct slot passing[THREADS_MAX][INDEX_MAX];   /* each of one thread */
    struct slot anonymous[THREADS_MAX][INDEX_MAX]; /* likewise */
    struct slot made[THREADS_MAX][INDEX_MAX];      /* likewise, by shell_make() */
    lk_stripes_t stripes;
    lk_mutex_t *striped[STRIPES];
};

static _Thread_local unsigned own_thread;

static struct slot *slot_of(struct shells *shells, uint32_t object, uint32_t instance)
{
    switch (kind_of(object)) {
    case COUNTING:
    case GROWN:
        return &shells->counting[kind_of(object) == GROWN ? GROWING : COUNTED][index_of(object)][instance % EPOCHS_MAX];
    case PASSING:
        return &shells->passing[own_thread][index_of(object)];
    case LATCH:
        return &shells->latches[index_of(object) % HOT][instance % GENERATIONS_MAX];
    case ONCE:
        return &shells->runs[index_of(object) % HOT][instance % GENERATIONS_MAX];
    case ANONYMOUS:
        return &shells->anonymous[own_thread][index_of(object)];
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
    lk_rwlockattr_t rwlock = LK_RWLOCKATTR_INIT;
    lk_latchattr_t latch = LK_LATCHATTR_INIT;
    object_name(name, sizeof name, object, instance);
    switch (kind_of(object)) {
    case RWLOCK:
        rwlock.nonreentrant = is_nonreentrant(object);
        rwlock.prefer = is_phase_fair(object) ? LK_RWLOCK_PREFER_PHASE_FAIR : LK_RWLOCK_PREFER_FAIR;
        return lk_rwlock_init(&shell->rwlock, shells->client, name, &rwlock);
    case LEASED:
    case BYID:
    case RESIZED:
    case REMOVED:
    case ANONYMOUS:
        leased.leased = 1;
        leased.anonymous = kind_of(object) == ANONYMOUS;
        return lk_sem_init(&shell->sem, shells->client, name, permits_of(object), &leased);
    case COUNTING:
    case GROWN:
        return lk_sem_init(&shell->sem, shells->client, name, permits_of(object), NULL);
    case PASSING:
        leased.anonymous = 1;
        return lk_sem_init(&shell->sem, shells->client, name, permits_of(object), &leased);
    case LATCH:
        latch.appear = is_appearing(object);
        latch.ttl_ms = has_ttl(object, instance) ? LATCH_TTL_MS : 0;
        return lk_latch_init(&shell->latch, shells->client, name, &latch);
    case BARRIER:
        return lk_barrier_init(&shell->barrier, shells->client, name, parties_of(object), NULL);
    case ONCE:
        return lk_once_init(&shell->once, shells->client, name, NULL);
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
        slot->instance = instance;
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

static lk_mutex_t *mutex_of(struct shells *shells, uint32_t object)
{
    if (kind_of(object) == STRIPED)
        return shells->striped[index_of(object)];
    return &shell_of(shells, object, 0)->mutex;
}

uint32_t shells_instance(struct shells *shells, uint32_t object, uint32_t instance)
{
    const struct slot *slot = slot_of(shells, object, instance);
    return is_anonymous(object) && slot->shell != NULL ? slot->instance : instance;
}

static _Thread_local lk_owner_t *acts_for;
static _Thread_local int64_t own_lease_ms;
static _Thread_local int own_fixed;

lk_owner_t *shells_owner(struct shells *shells)
{
    lk_owner_t *owner;
    if (lk_owner_new(shells->client, &owner) != 0)
        abort();
    return owner;
}

void shells_actfor(lk_owner_t *owner, int64_t lease_ms, int fixed)
{
    acts_for = owner;
    own_lease_ms = lease_ms;
    own_fixed = fixed;
}

static void conds_begin(struct shells *shells)
{
    char mutex[64], name[80];
    for (unsigned i = 0; i < HOT * 2; i++) {
        object_name(mutex, sizeof mutex, object_of(BUFFER, i / 2), 0);
        snprintf(name, sizeof name, "{%s}%s", mutex, i % 2 != 0 ? "items" : "room");
        if (lk_cond_init(&shells->conds[i / 2][i % 2], shells->client, name, NULL) != 0)
            abort();
    }
}

struct shells *shells_begin(lk_client_t *client, int64_t lease_ms)
{
    struct shells *shells = calloc(1, sizeof *shells);
    if (shells == NULL)
        abort();
    shells->client = client;
    shells->lease_ms = lease_ms;
    pthread_mutex_init(&shells->making, NULL);
    if (lk_stripes_init(&shells->stripes, client, "soak:striped", STRIPES) != 0)
        abort();
    for (unsigned i = 0; i < STRIPES; i++)
        shells->striped[i] = lk_stripes_at(&shells->stripes, i);
    conds_begin(shells);
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
    case GROWN:
    case PASSING:
    case LEASED:
    case BYID:
    case RESIZED:
    case REMOVED:
    case ANONYMOUS:
        rc = lk_sem_destroy(&slot->shell->sem);
        break;
    case LATCH:
        rc = lk_latch_destroy(&slot->shell->latch);
        break;
    case BARRIER:
        rc = lk_barrier_destroy(&slot->shell->barrier);
        break;
    case ONCE:
        rc = lk_once_destroy(&slot->shell->once);
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
    for (unsigned i = 0; i < THREADS_MAX * INDEX_MAX; i++) {
        if ((last = end_slot(&shells->passing[i / INDEX_MAX][i % INDEX_MAX], PASSING)) != 0)
            rc = last;
        if ((last = end_slot(&shells->anonymous[i / INDEX_MAX][i % INDEX_MAX], ANONYMOUS)) != 0)
            rc = last;
        if ((last = end_slot(&shells->made[i / INDEX_MAX][i % INDEX_MAX], REMOVED)) != 0)
            rc = last;
    }
    for (unsigned i = 0; i < LASTING * INDEX_MAX * EPOCHS_MAX; i++)
        if ((last = end_slot((struct slot *)shells->counting + i, COUNTING)) != 0)
            rc = last;
    for (unsigned i = 0; i < HOT * GENERATIONS_MAX; i++)
        if ((last = end_slot(&shells->latches[i / GENERATIONS_MAX][i % GENERATIONS_MAX], LATCH)) != 0 ||
            (last = end_slot(&shells->runs[i / GENERATIONS_MAX][i % GENERATIONS_MAX], ONCE)) != 0)
            rc = last;
    for (unsigned i = 0; i < HOT * 2; i++)
        if ((last = lk_cond_destroy(&shells->conds[i / 2][i % 2])) != 0)
            rc = last;
    if ((last = lk_stripes_destroy(&shells->stripes)) != 0)
        rc = last;
    pthread_mutex_destroy(&shells->making);
    free(shells);
    return rc;
}

void shells_iam(unsigned thread)
{
    own_thread = thread;
}

/* False: a thread of this process holds permits of it. */
static bool leave(struct slot *slot)
{
    if (slot->shell == NULL)
        return true;
    if (lk_sem_destroy(&slot->shell->sem) != 0)
        return false;
    free(slot->shell);
    slot->shell = NULL;
    return true;
}

void shells_leave(struct shells *shells)
{
    for (unsigned index = 0; index < INDEX_MAX; index++) {
        leave(&shells->anonymous[own_thread][index]);
        leave(&shells->passing[own_thread][index]);
    }
}

static int lock(struct shells *shells, uint32_t object, int limit_ms)
{
    lk_mutex_t *mutex = mutex_of(shells, object);
    const lk_how_t how = {
        .size = sizeof how, .timeout_ms = limit_ms, .lease_ms = own_lease_ms, .fixed = own_fixed, .owner = acts_for
    };
    if (acts_for != NULL || own_lease_ms != 0 || own_fixed != 0)
        return lk_mutex_lockwith(mutex, &how);
    return limit_ms == 0 ? lk_mutex_trylock(mutex) : lk_mutex_lockfor(mutex, limit_ms);
}

static int take_with(union shell *shell, enum kind kind, bool share, unsigned permits, int limit_ms)
{
    const lk_how_t how = {
        .size = sizeof how, .timeout_ms = limit_ms, .lease_ms = own_lease_ms, .fixed = own_fixed, .owner = acts_for
    };
    switch (kind) {
    case RWLOCK:
        return share ? lk_rwlock_rdlockwith(&shell->rwlock, &how) : lk_rwlock_wrlockwith(&shell->rwlock, &how);
    default:
        return lk_sem_acquirewith(&shell->sem, permits, &how);
    }
}

int shell_take(struct shells *shells, uint32_t object, uint32_t instance, bool share, unsigned permits, int limit_ms)
{
    if (is_mutex(object))
        return lock(shells, object, limit_ms);
    union shell *shell = shell_of(shells, object, instance);
    if (acts_for != NULL || own_lease_ms != 0 || own_fixed != 0)
        return take_with(shell, kind_of(object), share, permits, limit_ms);
    switch (kind_of(object)) {
    case ONCE:
        return lk_once_begin(&shell->once, limit_ms);
    case RWLOCK:
        if (share)
            return limit_ms == 0 ? lk_rwlock_tryrdlock(&shell->rwlock) : lk_rwlock_rdlockfor(&shell->rwlock, limit_ms);
        return limit_ms == 0 ? lk_rwlock_trywrlock(&shell->rwlock) : lk_rwlock_wrlockfor(&shell->rwlock, limit_ms);
    default:
        if (limit_ms == 0 && permits == 1)
            return lk_sem_trywait(&shell->sem);
        return lk_sem_acquire(&shell->sem, permits, limit_ms);
    }
}

int shell_takeany(struct shells *shells, uint32_t *object)
{
    unsigned index = index_of(*object);
    int rc = lk_stripes_trylockanyby(&shells->stripes, acts_for, index, &index);
    *object = object_of(STRIPED, index);
    return rc;
}

int shell_give(struct shells *shells, uint32_t object, uint32_t instance, unsigned permits)
{
    if (is_mutex(object))
        return lk_mutex_unlockby(mutex_of(shells, object), acts_for);
    union shell *shell = shell_of(shells, object, instance);
    if (kind_of(object) == ONCE)
        return lk_once_fail(&shell->once);
    return kind_of(object) == RWLOCK ? lk_rwlock_unlockby(&shell->rwlock, acts_for)
                                     : lk_sem_releaseby(&shell->sem, acts_for, permits);
}

int shell_takeid(struct shells *shells, uint32_t object, int limit_ms, char *id)
{
    return lk_sem_acquireid(&shell_of(shells, object, 0)->sem, limit_ms, id);
}

int shell_giveid(struct shells *shells, uint32_t object, const char *id)
{
    return lk_sem_releaseid(&shell_of(shells, object, 0)->sem, id);
}

int shell_remainingid(struct shells *shells, uint32_t object, const char *id, int64_t *ms)
{
    return lk_sem_remainingid(&shell_of(shells, object, 0)->sem, id, ms);
}

int shell_tokenid(struct shells *shells, uint32_t object, const char *id, uint64_t *token)
{
    return lk_sem_tokenid(&shell_of(shells, object, 0)->sem, id, token);
}

int shell_askid(struct shells *shells, uint32_t object, const char *id)
{
    return lk_sem_checkid(&shell_of(shells, object, 0)->sem, id);
}

int shell_extendid(struct shells *shells, uint32_t object, const char *id, int64_t lease_ms)
{
    return lk_sem_extendid(&shell_of(shells, object, 0)->sem, id, lease_ms);
}

int shell_repair(struct shells *shells, uint32_t object)
{
    return lk_mutex_consistentby(mutex_of(shells, object), acts_for);
}

int shell_resize(struct shells *shells, uint32_t object, uint32_t instance, unsigned *expected, unsigned total)
{
    return lk_sem_setpermits(&shell_of(shells, object, instance)->sem, expected, total);
}

int shell_add(struct shells *shells, uint32_t object, uint32_t instance, long n)
{
    return lk_sem_addpermits(&shell_of(shells, object, instance)->sem, n);
}

bool shells_unmake(struct shells *shells, uint32_t object)
{
    struct slot *slot = &shells->made[own_thread][index_of(object)];
    return leave(slot);
}

int shell_make(struct shells *shells, uint32_t object)
{
    char name[64];
    lk_semattr_t attr = LK_SEMATTR_INIT;
    union shell *shell = calloc(1, sizeof *shell);
    if (shell == NULL)
        abort();
    attr.leased = 1;
    object_name(name, sizeof name, object, 0);
    int rc = lk_sem_open(&shell->sem, shells->client, name, O_CREAT | O_EXCL, permits_of(object), &attr);
    if (rc == 0)
        shells->made[own_thread][index_of(object)].shell = shell;
    else
        free(shell);
    return rc;
}

int shells_latch(struct shells *shells, lk_latch_t *latch)
{
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    attr.anonymous = 1;
    return lk_latch_init(latch, shells->client, NULL, &attr);
}

int shell_force(struct shells *shells, uint32_t object)
{
    if (kind_of(object) == REMOVED)
        return lk_sem_delete(&shell_of(shells, object, 0)->sem);
    return lk_mutex_forceunlock(mutex_of(shells, object));
}

int shell_downgrade(struct shells *shells, uint32_t object)
{
    return lk_rwlock_downgradeby(&shell_of(shells, object, 0)->rwlock, acts_for);
}

int shell_remaining(struct shells *shells, uint32_t object, uint32_t instance, int64_t *ms)
{
    if (is_mutex(object))
        return lk_mutex_remainingby(mutex_of(shells, object), acts_for, ms);
    union shell *shell = shell_of(shells, object, instance);
    switch (kind_of(object)) {
    case ONCE:
        return lk_once_remaining(&shell->once, ms);
    case RWLOCK:
        return lk_rwlock_remainingby(&shell->rwlock, acts_for, ms);
    case LEASED:
    case RESIZED:
    case REMOVED:
    case ANONYMOUS:
        return lk_sem_remainingby(&shell->sem, acts_for, ms);
    default:
        return ENOTSUP;
    }
}

int shell_token(struct shells *shells, uint32_t object, uint32_t instance, uint64_t *token)
{
    if (is_mutex(object))
        return lk_mutex_tokenby(mutex_of(shells, object), acts_for, token);
    union shell *shell = shell_of(shells, object, instance);
    switch (kind_of(object)) {
    case ONCE:
        return lk_once_token(&shell->once, token);
    case RWLOCK:
        return lk_rwlock_tokenby(&shell->rwlock, acts_for, token);
    case LEASED:
    case RESIZED:
    case REMOVED:
    case ANONYMOUS:
        return lk_sem_tokenby(&shell->sem, acts_for, token);
    default:
        return ENOTSUP;
    }
}

int shell_ask(struct shells *shells, uint32_t object, uint32_t instance)
{
    if (is_mutex(object))
        return lk_mutex_checkby(mutex_of(shells, object), acts_for);
    union shell *shell = shell_of(shells, object, instance);
    if (kind_of(object) == ONCE)
        return lk_once_check(&shell->once);
    return kind_of(object) == RWLOCK ? lk_rwlock_checkby(&shell->rwlock, acts_for)
                                     : lk_sem_checkby(&shell->sem, acts_for);
}

int shell_extend(struct shells *shells, uint32_t object, int64_t lease_ms)
{
    if (is_mutex(object))
        return lk_mutex_extendby(mutex_of(shells, object), acts_for, lease_ms);
    union shell *shell = shell_of(shells, object, 0);
    return kind_of(object) == RWLOCK ? lk_rwlock_extendby(&shell->rwlock, acts_for, lease_ms)
                                     : lk_sem_extendby(&shell->sem, acts_for, lease_ms);
}

lk_latch_t *shell_latch(struct shells *shells, uint32_t object, uint32_t instance)
{
    return &shell_of(shells, object, instance)->latch;
}

int shell_sleep(struct shells *shells, uint32_t object, bool items, int limit_ms)
{
    return lk_cond_waitfor(&shells->conds[index_of(object)][items], mutex_of(shells, object), limit_ms);
}

int shell_signal(struct shells *shells, uint32_t object, bool items, bool all)
{
    lk_cond_t *cond = &shells->conds[index_of(object)][items];
    return all ? lk_cond_broadcast(cond) : lk_cond_signal(cond);
}

int shell_meet(struct shells *shells, uint32_t object, int limit_ms)
{
    return lk_barrier_waitfor(&shell_of(shells, object, 0)->barrier, limit_ms);
}

int shell_complete(struct shells *shells, uint32_t object, uint32_t instance, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return lk_once_end(&shell_of(shells, object, instance)->once, text);
}

int shell_result(struct shells *shells, uint32_t object, uint32_t instance, uint64_t *number)
{
    char *text;
    int rc = lk_once_result(&shell_of(shells, object, instance)->once, &text);
    if (rc != 0)
        return rc;
    *number = strtoull(text, NULL, 10);
    lk_free(text);
    return 0;
}

int shell_reset(struct shells *shells, uint32_t object, uint32_t instance)
{
    union shell *shell = shell_of(shells, object, instance);
    return kind_of(object) == ONCE ? lk_once_reset(&shell->once) : lk_barrier_reset(&shell->barrier);
}
