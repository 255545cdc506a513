/* SPDX-License-Identifier: MIT */
/*
 * lock.c - lock, trylock, timedlock, clocklock, lockfor, unlock
 *
 * The first five differ only in the moment at which waiting ends.
 */
#include "lock/mutex.h"

#include <limits.h>

/* The calling thread holds the mutex already: the type decides. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, bool only_try)
{
    const char *what = op->object->what;
    if (lk__mutex_attr(op)->type == LK_MUTEX_ERRORCHECK)
        return only_try ? lk__fail(EBUSY, "%s: held by this thread", what)
                        : lk__fail(EDEADLK, "%s: held by this thread, which would wait for itself", what);
    if (hold->holds == INT_MAX)
        return lk__fail(EAGAIN, "%s: held %d times", what, hold->holds);
    int rc = lk__mutex_attr(op)->nested_local ? 0 : lk__mutex_nest(op, hold, hold->holds + 1);
    if (rc == 0)
        hold->holds++;
    return rc;
}

/* Become the holder for the first time, within the limit. */
static int acquire(const struct lk__op *op, int64_t limit_us)
{
    struct lk__mutex *mutex = lk__mutex_of(op);
    const struct lk__mutexblock *block = lk__mutex_block(mutex);
    const lk_mutexattr_t *attr = lk__mutex_attr(op);
    bool fair = op->object->traits.order != 0;
    struct lk__acquire acquire = {
        .op = op,
        .limit_us = limit_us,
        .owner = op->self->owner,
        .lease_ms = attr->lease_ms,
        .min_hold_ms = attr->min_hold_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .queue_locally = !fair,
        .redisson = mutex->redisson,
        .read = lk__lock_acquire_read,
        .give_back = lk__object_command(op->object, &lk__lua_lock_release, &block->release),
        .renewal = &lk__lua_lock_renew,
        .renewal_args = &block->renew,
    };
    lk__acquire_plan(&acquire);
    unsigned flags = (acquire.try_only ? LK__LOCK_TRY : 0) | (fair ? LK__LOCK_FAIR : 0);
    const struct lk__lock_acquire_args args = { .lease_ms = acquire.asked_ms,
                                                .liveness_2048ths = lk__object_terms(op->object)->liveness_2048ths,
                                                .claim_ms = block->release.claim_ms,
                                                .flags = block->release.flags | flags };
    acquire.ask = lk__object_command(op->object, &lk__lua_lock_acquire, &args);
    int rc = lk__acquire_run(&acquire);
    if (acquire.hold != NULL)
        op->self->holds++;
    return rc;
}

static int lock_until(lk_mutex_t *m, int64_t limit_us, bool only_try)
{
    struct lk__op op;
    int rc = lk__op_enterby(&op, LK__HANDLE(m), &lk__mutex_kind, limit_us);
    if (rc != 0)
        return rc;
    struct lk__hold *hold = lk__object_hold(op.object, op.self->owner);
    if (hold != NULL)
        rc = lk__op_hold(&op, &hold);
    if (rc == 0 && hold != NULL && lk__mutex_attr(&op)->type != LK_MUTEX_NORMAL)
        rc = lock_again(&op, hold, only_try);
    else if (rc == 0)
        rc = acquire(&op, limit_us);
    return lk__op_leave(&op, rc);
}

/* For a call with a limit, EBUSY of a try is ETIMEDOUT. */
static int lock_within(lk_mutex_t *m, int64_t limit_us)
{
    int rc = lock_until(m, limit_us, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

int lk_mutex_lock(lk_mutex_t *m)
{
    return lock_until(m, LK__NEVER, false);
}

int lk_mutex_trylock(lk_mutex_t *m)
{
    return lock_until(m, 0, true);
}

int lk_mutex_timedlock(lk_mutex_t *m, const struct timespec *abstime)
{
    return lk_mutex_clocklock(m, CLOCK_REALTIME, abstime);
}

int lk_mutex_clocklock(lk_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : lock_within(m, limit_us);
}

int lk_mutex_lockfor(lk_mutex_t *m, int64_t timeout_ms)
{
    int64_t limit_us;
    int rc = lk__deadline_in(timeout_ms, &limit_us);
    return rc != 0 ? rc : lock_within(m, limit_us);
}

int lk_mutex_unlock(lk_mutex_t *m)
{
    return lk__op_unlock(LK__HANDLE(m), &lk__mutex_kind);
}
