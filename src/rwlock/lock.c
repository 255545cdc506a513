/* SPDX-License-Identifier: MIT */
/* lock.c - rdlock and wrlock in all their forms */
#include "rwlock/rwlock.h"

#include <limits.h>

/* May the owner of the hold have one level more? Who reads never writes as well. */
static bool may_nest(const struct lk__op *op, const struct lk__hold *hold, bool write)
{
    bool writes = lk__rwlock_iswriter(hold);
    return lk__rwlock_attr(op)->nonreentrant ? !write && !writes : !write || writes;
}

static int would_deadlock(const struct lk__op *op, const struct lk__hold *hold, bool write, bool only_try)
{
    const char *how = lk__rwlock_iswriter(hold) ? " for writing" : " for reading";
    if (only_try)
        return lk__op_busy(op, hold, how);
    return lk__fail(EDEADLK, "%s: held by %s%s; to %s it would wait for itself", op->object->what, lk__op_holder(op),
                    how, write ? "write" : "read");
}

/* The owner has a good hold: one level more needs no round trip. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, bool write, bool only_try)
{
    const char *what = op->object->what;
    if (!may_nest(op, hold, write))
        return would_deadlock(op, hold, write, only_try);
    int *count = write ? &hold->holds : &hold->reads;
    if (*count == INT_MAX)
        return lk__fail(EAGAIN, "%s: held %d times", what, *count);
    ++*count;
    return 0;
}

int lk__rwlock_lockas(struct lk__handle handle, bool write, const struct lk__how *how)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enterlock(&op, handle, &lk__rwlock_kind, how, &hold);
    if (rc != 0)
        return rc;
    rc = hold != NULL ? lock_again(&op, hold, write, how->only_try) : lk__rwlock_acquire(&op, write, how);
    return lk__op_leavelock(&op, how, rc);
}

static int read_lock(lk_rwlock_t *rw, const struct lk__how *how)
{
    return lk__rwlock_lockas(LK__HANDLE(rw), false, how);
}

static int write_lock(lk_rwlock_t *rw, const struct lk__how *how)
{
    return lk__rwlock_lockas(LK__HANDLE(rw), true, how);
}

LK__LOCK_CALLS(rwlock, rdlock, read_lock)
LK__LOCK_CALLS(rwlock, wrlock, write_lock)
