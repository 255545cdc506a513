/* SPDX-License-Identifier: MIT */
/* walks.c - see walks.h */
#include "walks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void called(struct walker *walker, const char *what, int rc, int expected)
{
    if (rc == expected)
        return;
    if (walker->failed++ == 0)
        snprintf(walker->first, sizeof walker->first, "%s: %s is %d, %s", walker->name, what, rc, lk_errortext());
}

#define ENDS(expected, call)                                                                                           \
    do {                                                                                                               \
        if (walker->before != NULL)                                                                                    \
            walker->before(walker);                                                                                    \
        called(walker, #call, (call), (expected));                                                                     \
    } while (0)
#define CALL(call) ENDS(0, call)
#define EXPIRES(call) called(walker, #call, (call), ETIMEDOUT) /* what is cut at its limit may be unknown */

/* --- a function for each kind: all its calls that ask the server --------------------------------------------------- */

enum { LIMIT_MS = 25000, LEASE_MS = 60000 };

static void walk_mutex(struct walker *walker, const lk_mutexattr_t *attr)
{
    lk_mutex_t m;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    CALL(lk_mutex_init(&m, walker->client, walker->name, attr));
    CALL(lk_mutex_lock(&m));
    CALL(lk_mutex_lockfor(&m, LIMIT_MS)); /* a level more */
    CALL(lk_mutex_unlock(&m));
    CALL(lk_mutex_check(&m));
    CALL(lk_mutex_extend(&m, LEASE_MS));
    CALL(lk_mutex_info(&m, &info));
    CALL(lk_mutex_queue(&m, &waiter, sizeof waiter, 1, &count));
    CALL(lk_mutex_unlock(&m));
    CALL(lk_mutex_trylock(&m));
    CALL(lk_mutex_forceunlock(&m));
    ENDS(ESTALE, lk_mutex_check(&m));
    ENDS(ESTALE, lk_mutex_unlock(&m));
    CALL(lk_mutex_destroy(&m));
}

static void walk_plain(struct walker *walker)
{
    walk_mutex(walker, NULL);
}

static void walk_fair(struct walker *walker)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    fair.fair = 1;
    walk_mutex(walker, &fair);
}

static void walk_rwlock(struct walker *walker)
{
    lk_rwlock_t rw;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    CALL(lk_rwlock_init(&rw, walker->client, walker->name, NULL));
    CALL(lk_rwlock_rdlock(&rw));
    CALL(lk_rwlock_check(&rw));
    CALL(lk_rwlock_extend(&rw, LEASE_MS));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_tryrdlock(&rw));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_wrlock(&rw));
    CALL(lk_rwlock_extend(&rw, LEASE_MS));
    CALL(lk_rwlock_info(&rw, &info));
    CALL(lk_rwlock_queue(&rw, &waiter, sizeof waiter, 1, &count));
    CALL(lk_rwlock_downgrade(&rw));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_trywrlock(&rw));
    CALL(lk_rwlock_forceunlock(&rw));
    ENDS(ESTALE, lk_rwlock_check(&rw));
    ENDS(ESTALE, lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_destroy(&rw));
}

static void walk_counting(struct walker *walker)
{
    lk_sem_t s;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    int value;
    CALL(lk_sem_open(&s, walker->client, walker->name, O_CREAT, 4, NULL));
    CALL(lk_sem_wait(&s));
    CALL(lk_sem_post(&s));
    CALL(lk_sem_trywait(&s));
    CALL(lk_sem_acquire(&s, 2, LIMIT_MS));
    CALL(lk_sem_release(&s, 3));
    CALL(lk_sem_getvalue(&s, &value));
    CALL(lk_sem_addpermits(&s, 2));
    CALL(lk_sem_drain(&s, &count));
    called(walker, "the number of permits", (int)count, 6);
    CALL(lk_sem_setpermits(&s, &(unsigned){ 6 }, 3));
    CALL(lk_sem_info(&s, &info));
    CALL(lk_sem_queue(&s, &waiter, sizeof waiter, 1, &count));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_trysetpermits(&s, 3));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_leased(struct walker *walker)
{
    lk_sem_t s;
    const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    lk_seminfo_t info = LK_SEMINFO_INIT;
    int value;
    CALL(lk_sem_init(&s, walker->client, walker->name, 4, &attr));
    CALL(lk_sem_wait(&s));
    CALL(lk_sem_acquire(&s, 2, LIMIT_MS));
    CALL(lk_sem_check(&s));
    CALL(lk_sem_extend(&s, LEASE_MS));
    CALL(lk_sem_post(&s));
    CALL(lk_sem_getvalue(&s, &value));
    CALL(lk_sem_release(&s, 2));
    CALL(lk_sem_info(&s, &info));
    CALL(lk_sem_addpermits(&s, 1));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_ids(struct walker *walker)
{
    lk_sem_t s;
    const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    char id[LK_PERMIT_ID] = "";
    int64_t ms;
    CALL(lk_sem_init(&s, walker->client, walker->name, 2, &attr));
    CALL(lk_sem_acquireid(&s, LIMIT_MS, id));
    CALL(lk_sem_checkid(&s, id));
    CALL(lk_sem_remainingid(&s, id, &ms));
    CALL(lk_sem_extendid(&s, id, LEASE_MS));
    CALL(lk_sem_releaseid(&s, id));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_latch(struct walker *walker)
{
    lk_latch_t l;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    unsigned count;
    CALL(lk_latch_init(&l, walker->client, walker->name, NULL));
    CALL(lk_latch_trysetcount(&l, 6));
    CALL(lk_latch_countdown(&l));
    CALL(lk_latch_countdownby(&l, 2));
    CALL(lk_latch_getcount(&l, &count));
    called(walker, "the count", (int)count, 3);
    CALL(lk_latch_info(&l, &info));
    EXPIRES(lk_latch_waitfor(&l, 10));
    CALL(lk_latch_setcount(&l, 1));
    CALL(lk_latch_countdown(&l));
    CALL(lk_latch_wait(&l));
    CALL(lk_latch_trysetcount(&l, 1));
    CALL(lk_latch_delete(&l));
    CALL(lk_latch_destroy(&l));
}

static void walk_barrier(struct walker *walker)
{
    lk_barrier_t b;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    CALL(lk_barrier_init(&b, walker->client, walker->name, 1, NULL));
    ENDS(LK_BARRIER_SERIAL, lk_barrier_wait(&b));
    CALL(lk_barrier_info(&b, &info));
    ENDS(LK_BARRIER_SERIAL, lk_barrier_waitfor(&b, LIMIT_MS));
    CALL(lk_barrier_reset(&b));
    CALL(lk_barrier_destroy(&b));
}

static void walk_cond(struct walker *walker)
{
    lk_cond_t c;
    lk_mutex_t m;
    lk_condinfo_t info = LK_CONDINFO_INIT;
    CALL(lk_mutex_init(&m, walker->client, walker->name, NULL));
    CALL(lk_cond_init(&c, walker->client, walker->name, NULL));
    CALL(lk_cond_signal(&c));
    CALL(lk_cond_broadcast(&c));
    CALL(lk_mutex_lock(&m));
    EXPIRES(lk_cond_waitfor(&c, &m, 10));
    CALL(lk_cond_info(&c, &info));
    CALL(lk_mutex_unlock(&m));
    CALL(lk_cond_destroy(&c));
    CALL(lk_mutex_destroy(&m));
}

static void walk_once(struct walker *walker)
{
    lk_once_t o;
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    char *result = NULL;
    CALL(lk_once_init(&o, walker->client, walker->name, NULL));
    CALL(lk_once_begin(&o, LIMIT_MS));
    CALL(lk_once_check(&o));
    CALL(lk_once_fail(&o));
    CALL(lk_once_begin(&o, LIMIT_MS));
    CALL(lk_once_end(&o, "done"));
    CALL(lk_once_result(&o, &result));
    lk_free(result);
    CALL(lk_once_info(&o, &info));
    CALL(lk_once_reset(&o));
    CALL(lk_once_destroy(&o));
}

static void walk_stripes(struct walker *walker)
{
    lk_stripes_t s;
    unsigned index = 0;
    CALL(lk_stripes_init(&s, walker->client, walker->name, 2));
    CALL(lk_stripes_trylockany(&s, 1, &index));
    CALL(lk_mutex_unlock(lk_stripes_at(&s, index)));
    CALL(lk_stripes_destroy(&s));
}

static void walk_multi(struct walker *walker)
{
    lk_multi_t s;
    lk_mutex_t m;
    lk_rwlock_t rw;
    lk_multiinfo_t info = LK_MULTIINFO_INIT;
    char name[48];
    snprintf(name, sizeof name, "%s-rw", walker->name);
    CALL(lk_mutex_init(&m, walker->client, walker->name, NULL));
    CALL(lk_rwlock_init(&rw, walker->client, name, NULL));
    CALL(lk_multi_init(&s));
    CALL(lk_multi_addmutex(&s, &m));
    CALL(lk_multi_addwrite(&s, &rw));
    CALL(lk_multi_lock(&s));
    CALL(lk_multi_check(&s));
    CALL(lk_multi_info(&s, &info));
    CALL(lk_multi_unlock(&s));
    CALL(lk_multi_trylock(&s));
    CALL(lk_multi_unlock(&s));
    CALL(lk_multi_destroy(&s));
    CALL(lk_rwlock_destroy(&rw));
    CALL(lk_mutex_destroy(&m));
}

static const struct row {
    const char *name;
    void (*walk)(struct walker *walker);
} rows[] = { { "mutex", walk_plain },       { "fair", walk_fair },       { "rwlock", walk_rwlock },
             { "counting", walk_counting }, { "leased", walk_leased },   { "ids", walk_ids },
             { "latch", walk_latch },       { "barrier", walk_barrier }, { "cond", walk_cond },
             { "once", walk_once },         { "stripes", walk_stripes }, { "multi", walk_multi } };
_Static_assert(sizeof rows / sizeof rows[0] == WALKS, "all are counted");

void walk_row(struct walker *walker, int row, int number)
{
    snprintf(walker->name, sizeof walker->name, "%s-%d", rows[row].name, number);
    rows[row].walk(walker);
}
