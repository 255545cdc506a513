/* SPDX-License-Identifier: MIT */
/*
 * semaphore.h - counting semaphores, and those whose permits have leases
 *
 * wait.c     wait, trywait, acquire: until when        give.c     post, release
 * counted.c  permits that are a plain number           total.c    set, add, drain
 * leased.c   permits with leases                       inspect.c  getvalue, info
 * permit.c   permits with an id of their own           object.c   keys and handles
 * attr.c     attributes
 */
#ifndef LK__SEMAPHORE_H
#define LK__SEMAPHORE_H

#include "object/holder.h"
#include "object/idempotent.h"
#include "object/keys.h"
#include "semaphore/scripts.h"

#include <latchkey/semaphore.h>

/* Keys and arguments of a semaphore's commands, as far as they are the same in all of them. */
struct lk__semblock {
    struct lk__block block;
    struct lk__semaphore_keys keys; /* those of a leased semaphore, or of a counting one */
    union {
        struct lk__semaphore_permit_release_args release; /* of a leased one: gives back all permits of a hold */
        struct {
            const char *channel; /* Redisson's, of a counting one */
            const char *beside;  /* with Redisson: the channel of ours beside it */
        };
    };
};

/* How many permits there are, as the scripts tell it. */
struct lk__semcount {
    enum lk__verdict verdict;
    int64_t server_us;
    int64_t free, held, waiters;
    int64_t total; /* of a leased semaphore */
};

struct lk__sem {
    struct lk__object object;
    struct lk__redissonwake *redisson; /* NULL, or with Redisson: wakes one waiter, whose script serves all */
    struct lk__slots slots;
};

static inline bool lk__sem_isleased(const struct lk__sem *sem)
{
    return !sem->object.kind->counted;
}

static inline struct lk__semblock *lk__sem_block(const struct lk__sem *sem)
{
    return LK__CONTAINER(sem->object.block, struct lk__semblock, block);
}

/* What its scripts say of claims. */
static inline const struct lk__handover *lk__sem_terms(const struct lk__sem *sem)
{
    return lk__object_terms(&sem->object);
}

/* For the scripts of a counting one. */
static inline unsigned lk__sem_flags(const struct lk__sem *sem)
{
    return sem->object.client->options->redisson ? LK__SEMAPHORE_SHARED : 0;
}

/* One public call on a semaphore. */
struct lk__semcall {
    struct lk__op op;
    struct lk__sem *sem;
    const char *what;
    const lk_semattr_t *attr;
    int64_t value; /* permits that the first request sets, if it is the first; 0: none */
};

int lk__sem_enter(lk_sem_t *s, struct lk__semcall *call); /* then lk__sem_leave() */
int lk__sem_enterby(lk_sem_t *s, int64_t limit_us, struct lk__semcall *call);
int lk__sem_leave(const struct lk__semcall *call, int code);
/* Is it leased, and of a client of another process? Then permits taken there are not this process' to give back. */
bool lk__sem_isinherited(lk_sem_t *s);
/* Ask `once`, whose command lacks only the keys. */
int lk__sem_idempotent(const struct lk__semcall *call, struct lk__idempotent *once, enum lk__verdict *verdict);
int lk__semattr_check(void *attr, const void *given);
int lk__sem_valuecheck(const lk_semattr_t *attr, uintptr_t value);

/* --- counted.c, leased.c, permit.c -------------------------------------------------------------------------- */

int lk__counted_take(const struct lk__semcall *call, unsigned n, int64_t limit_us);
int lk__counted_give(const struct lk__semcall *call, long n);

/* `id`: 32 hex digits of a permit with an id of its own; NULL: the permit is the thread's. */
int lk__leased_take(const struct lk__semcall *call, unsigned n, int64_t limit_us, const char *id);
int lk__leased_give(const struct lk__semcall *call, unsigned n);
/* Give all of `hold` back, and forget it. */
int lk__leased_end(const struct lk__semcall *call, struct lk__hold *hold);

#endif
