/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a read-write lock back, one level or all, and going from writing to reading
 *
 * Whatever code it returns, an unlock leaves the caller one level less.
 */
#include "rwlock/rwlock.h"

#include <limits.h>

LK__UNLOCK_CALLS(rwlock)

static int downgrade(const struct lk__op *op, struct lk__hold *hold)
{
    struct lk__object *object = op->object;
    const struct lk__rwlockblock *block = lk__rwlock_block(object);
    const struct lk__rwlock_downgrade_args args = { .flags = block->release.flags };
    const struct lk__command command = lk__object_command(object, &lk__lua_rwlock_downgrade, &args);
    enum lk__verdict verdict;
    int rc = lk__update(object, hold, &command, &verdict);
    if (rc == ENOTCONN || rc == ENOSPC || rc == ENOMEM)
        return rc;
    if (rc == 0 && verdict == LK__GONE)
        return lk__gone(object);
    /* Also when the outcome is unknown: others may be reading, so nobody may go on writing. */
    hold->reads += hold->holds;
    hold->holds = 0;
    if (rc == 0)
        hold->owner_died = false; /* the mark on the server has it from now on */
    if (rc == 0 && !lk__lease_isgood(&hold->lease, NULL))
        return lk__gone(object);
    return rc;
}

int lk_rwlock_downgradeby(lk_rwlock_t *rw, lk_owner_t *owner)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enterholder(&op, LK__HANDLE(rw), &lk__rwlock_kind, owner);
    if (rc != 0)
        return rc;
    rc = lk__op_hold(&op, &hold);
    if (rc == 0 && !lk__rwlock_iswriter(hold))
        rc = lk__fail(EPERM, "%s: not held by %s for writing", op.object->what, lk__op_holder(&op));
    if (rc == 0 && hold->reads > INT_MAX - hold->holds)
        rc = lk__fail(EAGAIN, "%s: held too many times", op.object->what);
    if (rc == 0)
        rc = downgrade(&op, hold);
    return lk__op_leave(&op, rc);
}

int lk_rwlock_downgrade(lk_rwlock_t *rw)
{
    return lk_rwlock_downgradeby(rw, NULL);
}
