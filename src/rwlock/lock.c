/* SPDX-License-Identifier: MIT */
/*
 * lock.c - rdlock, wrlock, and their try, timed, clock, relative and other forms
 *
 * These forms differ in the mode, and in the moment at which waiting ends.
 */
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

static int acquire_or_nest(struct lk__op *op, bool write, const struct lk__how *how, bool only_try)
{
    struct lk__hold *hold = lk__object_hold(op->object, lk__op_owner(op));
    if (hold == NULL) {
        lk__op_beginwait(op);
        return lk__rwlock_acquire(op, write, how);
    }
    int rc = lk__op_hold(op, &hold);
    return rc == 0 ? lock_again(op, hold, write, only_try) : rc;
}

int lk__rwlock_lockas(struct lk__handle handle, bool write, const struct lk__how *how, bool only_try)
{
    struct lk__op op;
    int rc = lk__op_enterby(&op, handle, &lk__rwlock_kind, how->limit_us);
    if (rc != 0)
        return rc;
    rc = lk__op_setowner(&op, how->by);
    if (rc == 0)
        rc = lk__op_beginlock(&op, how->limit_us);
    if (rc == 0)
        rc = acquire_or_nest(&op, write, how, only_try);
    return lk__op_leave(&op, rc);
}

static int lock_until(lk_rwlock_t *rw, bool write, int64_t limit_us, bool only_try)
{
    const struct lk__how how = { .limit_us = limit_us };
    return lk__rwlock_lockas(LK__HANDLE(rw), write, &how, only_try);
}

/* For a call with a limit, EBUSY of a try is ETIMEDOUT. */
static int lock_within(lk_rwlock_t *rw, bool write, int64_t limit_us)
{
    int rc = lock_until(rw, write, limit_us, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

static int lock_at(lk_rwlock_t *rw, bool write, clockid_t clock, const struct timespec *abstime)
{
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : lock_within(rw, write, limit_us);
}

static int lock_for(lk_rwlock_t *rw, bool write, int64_t timeout_ms)
{
    int64_t limit_us;
    int rc = lk__deadline_in(timeout_ms, &limit_us);
    return rc != 0 ? rc : lock_within(rw, write, limit_us);
}

static int lock_with(lk_rwlock_t *rw, bool write, const lk_how_t *how)
{
    struct lk__how taken;
    int rc = lk__how_take(&taken, how);
    if (rc == 0)
        rc = lk__rwlock_lockas(LK__HANDLE(rw), write, &taken, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

int lk_rwlock_rdlock(lk_rwlock_t *rw)
{
    return lock_until(rw, false, LK__NEVER, false);
}

int lk_rwlock_wrlock(lk_rwlock_t *rw)
{
    return lock_until(rw, true, LK__NEVER, false);
}

int lk_rwlock_tryrdlock(lk_rwlock_t *rw)
{
    return lock_until(rw, false, 0, true);
}

int lk_rwlock_trywrlock(lk_rwlock_t *rw)
{
    return lock_until(rw, true, 0, true);
}

int lk_rwlock_timedrdlock(lk_rwlock_t *rw, const struct timespec *abstime)
{
    return lock_at(rw, false, CLOCK_REALTIME, abstime);
}

int lk_rwlock_timedwrlock(lk_rwlock_t *rw, const struct timespec *abstime)
{
    return lock_at(rw, true, CLOCK_REALTIME, abstime);
}

int lk_rwlock_clockrdlock(lk_rwlock_t *rw, clockid_t clock, const struct timespec *abstime)
{
    return lock_at(rw, false, clock, abstime);
}

int lk_rwlock_clockwrlock(lk_rwlock_t *rw, clockid_t clock, const struct timespec *abstime)
{
    return lock_at(rw, true, clock, abstime);
}

int lk_rwlock_rdlockfor(lk_rwlock_t *rw, int64_t timeout_ms)
{
    return lock_for(rw, false, timeout_ms);
}

int lk_rwlock_wrlockfor(lk_rwlock_t *rw, int64_t timeout_ms)
{
    return lock_for(rw, true, timeout_ms);
}

int lk_rwlock_rdlockwith(lk_rwlock_t *rw, const lk_how_t *how)
{
    return lock_with(rw, false, how);
}

int lk_rwlock_wrlockwith(lk_rwlock_t *rw, const lk_how_t *how)
{
    return lock_with(rw, true, how);
}
