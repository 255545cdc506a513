/* SPDX-License-Identifier: MIT */
/*
 * rwlock.h - the read-write lock
 *
 * acquire.c  acquiring it               unlock.c   giving it back, and from writing to reading
 * lock.c     rdlock, wrlock, try, timed inspect.c  calls that need no hold
 * object.c   the table of the kind, calls of a holder
 *
 * An owner has at most one hold on a lock, and the server sees one, whatever was nested: hold->holds counts
 * how often it wrote, hold->reads how often it read. A hold with holds above 0 is a writer's.
 */
#ifndef LK__RWLOCK_H
#define LK__RWLOCK_H

#include "object/calls.h"
#include "object/keys.h"
#include "rwlock/scripts.h"

#include <latchkey/rwlock.h>

/* Keys and arguments of a read-write lock's commands, as far as they are the same in all of them. */
struct lk__rwlockblock {
    struct lk__block block;
    struct lk__rwlock_keys keys;
    struct lk__rwlock_release_args release;
};

static inline struct lk__rwlockblock *lk__rwlock_block(const struct lk__object *object)
{
    return LK__CONTAINER(object->block, struct lk__rwlockblock, block);
}

static inline const lk_rwlockattr_t *lk__rwlock_attr(const struct lk__op *op)
{
    return op->attr;
}

static inline bool lk__rwlock_iswriter(const struct lk__hold *hold)
{
    return hold->holds > 0;
}

extern const struct lk__kind lk__rwlock_kind;

int lk__rwlockattr_check(void *attr, const void *given);

/* Acquire the first level. */
int lk__rwlock_acquire(struct lk__op *op, bool write, const struct lk__how *how);

/* What that does, for a caller who runs it; `args` stay as long. */
void lk__rwlock_plan(struct lk__acquire *acquire, struct lk__rwlock_acquire_args *args, struct lk__op *op,
                     bool write, const struct lk__how *how);
/* A public call, whole: lock it as `how` says. */
int lk__rwlock_lockas(struct lk__handle handle, bool write, const struct lk__how *how);

/* Give back one level that is not the last. */
int lk__rwlock_unlockinner(const struct lk__op *op, struct lk__hold *hold);

#endif
