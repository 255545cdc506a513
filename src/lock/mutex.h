/* SPDX-License-Identifier: MIT */
/*
 * mutex.h - the mutex
 *
 * lock.c    acquiring it, giving it back       nest.c     levels above the first
 * object.c  the table of the kind, init,       inspect.c  calls that need no hold
 *           calls of a holder                  attr.c     its attributes
 */
#ifndef LK__LOCK_H
#define LK__LOCK_H

#include "lock/scripts.h"
#include "object/calls.h"
#include "object/keys.h"

#include <latchkey/mutex.h>

/* Keys and arguments of a mutex' commands, as far as they are the same in all of them. */
struct lk__mutexblock {
    struct lk__block block;
    struct lk__lock_keys keys;
    struct lk__lock_release_args release;
    struct lk__lock_renew_args renew;
    const char *beside; /* the channel of ours beside Redisson's; NULL without Redisson */
};

struct lk__mutex {
    struct lk__object object;
    struct lk__localqueue queue;       /* threads that wait for their turn to wait in Redis, unless it is fair */
    struct lk__redissonwake *redisson; /* NULL, or with Redisson: its unlock wakes one waiter of this client */
};

static inline struct lk__mutexblock *lk__mutex_block(const struct lk__mutex *mutex)
{
    return LK__CONTAINER(mutex->object.block, struct lk__mutexblock, block);
}

static inline struct lk__mutex *lk__mutex_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__mutex, object);
}

static inline const lk_mutexattr_t *lk__mutex_attr(const struct lk__op *op)
{
    return op->attr;
}

extern const struct lk__kind lk__mutex_kind;

/* Become the holder for the first time. 0 or EOWNERDEAD: held. Otherwise not, with an error text. */
int lk__mutex_acquire(struct lk__op *op, const struct lk__how *how);

/* What that does, for a caller who runs it; `args` stay as long. */
void lk__mutex_plan(struct lk__acquire *acquire, struct lk__lock_acquire_args *args, struct lk__op *op,
                    const struct lk__how *how);
/* A public call, whole: lock it as `how` says. */
int lk__mutex_lockas(struct lk__handle handle, const struct lk__how *how);

int lk__mutexattr_check(void *attr, const void *given);

/* Tell the server that this hold now counts `holds`. 0, ESTALE, or why not. */
int lk__mutex_nest(const struct lk__op *op, struct lk__hold *hold, int holds);

/* Give back one level that is not the last. */
int lk__mutex_unlockinner(const struct lk__op *op, struct lk__hold *hold);

#endif
