/* SPDX-License-Identifier: MIT */
/*
 * lock.c - rdlock, wrlock, and their try, timed, clock and relative forms
 *
 * These forms differ in the mode, and in the moment at which waiting ends.
 */
#include "rwlock/rwlock.h"

#include <limits.h>

/* The calling thread has a good hold: one level more needs no round trip. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, bool write, bool only_try)
{
    const char *what = op->object->what;
    if (write && !lk__rwlock_iswriter(hold))
        return only_try
                   ? lk__fail(EBUSY, "%s: held by this thread for reading", what)
                   : lk__fail(EDEADLK, "%s: held by this thread for reading; to write it would wait for itself", what);
    int *count = write ? &hold->holds : &hold->reads;
    if (*count == INT_MAX)
        return lk__fail(EAGAIN, "%s: held %d times", what, *count);
    ++*count;
    return 0;
}

static int lock_until(lk_rwlock_t *rw, bool write, int64_t limit_us, bool only_try)
{
    struct lk__op op;
    int rc = lk__op_enterby(&op, LK__HANDLE(rw), &lk__rwlock_kind, limit_us);
    if (rc != 0)
        return rc;
    struct lk__hold *hold = lk__object_hold(op.object, op.self->owner);
    if (hold == NULL)
        rc = lk__rwlock_acquire(&op, write, limit_us);
    else if ((rc = lk__op_hold(&op, &hold)) == 0)
        rc = lock_again(&op, hold, write, only_try);
    return lk__op_leave(&op, rc);
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
