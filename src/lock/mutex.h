/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the mutex
 *
 * acquire.c  becoming the holder        unlock.c   giving back
 * lock.c     lock, trylock, timedlock   hold.c     what a holder may ask and say
 * object.c   keys and channels          inspect.c  what anybody may ask and do
 */
#ifndef LK__LOCK_H
#define LK__LOCK_H

#include "lock/scripts.h"
#include "object/acquire.h"
#include "object/keys.h"

#include <latchkey/mutex.h>

/* What commands of a mutex point into: its keys, and arguments that are the same in all of them. */
struct lk__mutexblock {
    struct lk__block block;
    struct lk__lock_keys keys;
    struct lk__lock_release_args release;
    struct lk__lock_renew_args renew;
    char strings[]; /* where the keys and channels lie */
};

struct lk__mutex {
    struct lk__object object;
    int64_t liveness_2048ths;
    struct lk__redissonwake *redisson; /* NULL, or with Redisson: its unlock wakes one of those who wait here */
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

int lk__mutex_enter(lk_mutex_t *m, struct lk__op *op); /* then lk__op_leave() */
int lk__mutex_enterby(lk_mutex_t *m, int64_t limit_us, struct lk__op *op);
struct lk__handle lk__mutex_handle(lk_mutex_t *m);
extern const struct lk__handletype lk__mutex_type;

int lk__mutexattr_check(void *attr, const void *given);
struct lk__object *lk__mutex_make(lk_client_t *client, const char *full, int fair, bool robust);

/* Become the holder for the first time, within the limit. */
int lk__mutex_acquire(const struct lk__op *op, int64_t limit_us);

/* Tell the server that this hold now counts `holds`. 0, ESTALE, or why not. */
int lk__mutex_nest(const struct lk__op *op, struct lk__hold *hold, int holds);

#endif
