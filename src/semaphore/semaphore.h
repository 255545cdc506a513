/* SPDX-License-Identifier: MIT */
/*
 * semaphore.h - counting semaphores, and those whose permits have leases
 *
 * wait.c     wait, trywait, acquire: until when        give.c     post, release
 * counted.c  permits that are a plain number           total.c    set, add, drain
 * leased.c   permits with leases                       inspect.c  getvalue, info, queue
 * permit.c   permits with an id of their own           object.c   keys and handles
 * by_id.c    what is asked of them by their ids        attr.c     attributes
 * exist.c    open, delete
 */
#ifndef LK__SEMAPHORE_H
#define LK__SEMAPHORE_H

#include "object/anonymous.h"
#include "object/calls.h"
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
            const char *channel;               /* Redisson's, of a counting one */
            const char *beside;                /* with Redisson: the channel of ours beside it */
            struct lk__redissonwake *redisson; /* NULL, or with Redisson: wakes one waiter, whose script serves all */
        };
    };
};

/* How many permits there are, as the scripts tell it. */
struct lk__semcount {
    enum lk__verdict verdict;
    int64_t server_us;
    int64_t free, held, waiters;
    int64_t total;
    int64_t exists; /* 0: the numbers are those that the first request would make */
};

struct lk__sem {
    struct lk__object object;
    struct lk__slots slots;
    struct lk__presence presence; /* of an anonymous one */
};

static inline bool lk__sem_isleased(const struct lk__sem *sem)
{
    return !sem->object.kind->counted;
}

static inline struct lk__semblock *lk__sem_block(const struct lk__sem *sem)
{
    return LK__CONTAINER(sem->object.block, struct lk__semblock, block);
}

static inline struct lk__redissonwake *lk__sem_redisson(const struct lk__sem *sem)
{
    return lk__sem_isleased(sem) ? NULL : lk__sem_block(sem)->redisson;
}

/* For its scripts, as far as they are the same for all. */
static inline unsigned lk__sem_flags(const struct lk__sem *sem)
{
    bool shared = sem->object.client->options->redisson && !lk__sem_isleased(sem);
    return (shared ? LK__SEMAPHORE_SHARED : 0U) | (sem->object.traits.anonymous ? LK__SEMAPHORE_ANONYMOUS : 0U);
}

extern const struct lk__kind lk__sem_kind; /* of a counting one; the table of a leased one is its variant */

/* One public call on a semaphore. */
struct lk__semcall {
    struct lk__op op;
    struct lk__sem *sem;
    const char *what;
    const lk_semattr_t *attr;
    bool over;     /* it is anonymous, and this client's lease of it was lost */
    bool absent;   /* a wait was told that there is no semaphore any more */
    int64_t value; /* permits that the first request sets, if it is the first; 0: none */
};

/* Begin a public call, to be ended with lk__op_leave(). `limit_us`: as lk__op_enterby() has it. */
int lk__sem_enter(lk_sem_t *s, int64_t limit_us, struct lk__semcall *call);
/*
 * Of a call that gives back what `owner` holds, NULL: the calling thread. It begins for an anonymous leased one also when
 * that is over, so that no permit of it is renewed for ever. ENOTSUP for an owner and a counting semaphore.
 */
int lk__sem_entergiver(lk_sem_t *s, lk_owner_t *owner, struct lk__semcall *call);
/* End that: what was given back of one that is over had been lost. */
int lk__sem_gave(struct lk__semcall *call, int code);
/* What a wait ended with: who waited for an anonymous one, and was cut off for a lease, is told that. */
int lk__sem_waited(const struct lk__semcall *call, int code);
/* Is it leased, and of a client of another process? Then permits taken there are not this process' to give back. */
bool lk__sem_isinherited(lk_sem_t *s);
/* The total is `total`: say once if it is not the value that was given. */
void lk__sem_compare(const struct lk__semcall *call, int64_t total);
/* The flag for a script to tell the total, until that was compared. */
static inline unsigned lk__sem_telltotal(const struct lk__semcall *call)
{
    return call->value != 0 && !atomic_load(&call->sem->object.compared) ? LK__SEMAPHORE_TELL_TOTAL : 0;
}
/* Ask `once`, whose command lacks only the keys. */
int lk__sem_idempotent(const struct lk__semcall *call, struct lk__idempotent *once, enum lk__verdict *verdict);
int lk__semattr_check(void *attr, const void *given);
unsigned lk__semattr_most(const lk_semattr_t *attr); /* permits that there may be */
int lk__sem_valuecheck(const lk_semattr_t *attr, uintptr_t value);

void lk__sem_setvalue(lk_sem_t *s, unsigned value); /* to begin with */

/* Make the semaphore, with n permits. EEXIST: there is one, of `found` permits. */
int lk__sem_make(const struct lk__semcall *call, unsigned n, int64_t *found);
int lk__sem_count(const struct lk__semcall *call, struct lk__semcount *counted);

/* --- counted.c, leased.c, permit.c -------------------------------------------------------------------------- */

int lk__counted_take(struct lk__semcall *call, unsigned n, const struct lk__how *how);
int lk__counted_give(const struct lk__semcall *call, long n);

/* 0, or EINVAL: no id of a permit; with an error text. */
int lk__sem_idcheck(const char *function, const char *id);
/* ESTALE: that permit had ended; EPERM: there is none; with an error text. */
int lk__sem_nopermit(const struct lk__semcall *call, const char *id, bool ended);

/* `id`: 32 hex digits of a permit with an id of its own; NULL: the permit is the caller's. */
int lk__leased_take(struct lk__semcall *call, unsigned n, const struct lk__how *how, const char *id);
int lk__leased_give(const struct lk__semcall *call, unsigned n);

#endif
