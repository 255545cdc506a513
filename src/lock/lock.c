/* SPDX-License-Identifier: MIT */
/*
 * lock.c - lock, trylock, timedlock, clocklock, lockfor, lockwith, unlock
 *
 * The first five differ only in the moment at which waiting ends; lockwith has more to say.
 */
#include "lock/mutex.h"

#include <limits.h>

/* The name stays taken for as long after the grant as any handle says by which it was locked. */
static void keep(const struct lk__op *op, const struct lk__hold *hold)
{
    int64_t now_us = lk__now_us(), lasts_us = hold->began_us + lk__mutex_attr(op)->min_hold_ms * 1000 - now_us;
    if (lk__mutex_attr(op)->min_hold_ms == 0 || lasts_us <= 0)
        return;
    struct lk__node *at = lk__node_for(lk__object_node(op->object), &hold->lease->release.command, false);
    struct lk__until until = lk__node_until(at, LK__LANE_COMMANDS, now_us, lasts_us);
    if (until.date.epoch == 0) /* no server was met there yet: the moment is said anew, by the clock of whoever is told */
        until.date.epoch = UINT_MAX;
    lk__lease_keep(hold->lease, &until);
}

/* The owner holds the mutex already: the type decides. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, bool only_try)
{
    const char *what = op->object->what;
    if (lk__mutex_attr(op)->type == LK_MUTEX_ERRORCHECK)
        return only_try ? lk__op_busy(op, hold, "")
                        : lk__fail(EDEADLK, "%s: held by %s, which would wait for itself", what, lk__op_holder(op));
    if (hold->holds == INT_MAX)
        return lk__fail(EAGAIN, "%s: held %d times", what, hold->holds);
    int rc = lk__mutex_attr(op)->nested_local ? 0 : lk__mutex_nest(op, hold, hold->holds + 1);
    if (rc != 0)
        return rc;
    hold->holds++;
    keep(op, hold);
    return 0;
}

void lk__mutex_plan(struct lk__acquire *acquire, struct lk__lock_acquire_args *args, struct lk__op *op,
                    const struct lk__how *how)
{
    struct lk__mutex *mutex = lk__mutex_of(op);
    const struct lk__mutexblock *block = lk__mutex_block(mutex);
    const lk_mutexattr_t *attr = lk__mutex_attr(op);
    bool fair = op->object->traits.order != 0;
    *acquire = (struct lk__acquire){
        .op = op,
        .how = how,
        .holds = 1,
        .lease_ms = attr->lease_ms,
        .min_hold_ms = attr->min_hold_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .queue = fair ? NULL : &mutex->queue,
        .redisson = mutex->redisson,
        .unwind = lk__acquire_leaveop,
        .read = lk__lock_acquire_read,
        .give_back = lk__object_command(op->object, &lk__lua_lock_release, &block->release),
        .renewal = &lk__lua_lock_renew,
        .renewal_args = &block->renew,
    };
    lk__acquire_plan(acquire);
    *args = (struct lk__lock_acquire_args){ .lease_ms = acquire->asked_ms,
                                            .flags =
                                                block->release.flags | (acquire->try_only ? LK__LOCK_TRY : 0) };
    acquire->ask = lk__object_command(op->object, &lk__lua_lock_acquire, args);
}

int lk__mutex_acquire(struct lk__op *op, const struct lk__how *how)
{
    struct lk__acquire acquire;
    struct lk__lock_acquire_args args;
    lk__mutex_plan(&acquire, &args, op, how);
    return lk__acquire_run(&acquire);
}

static int acquire_or_nest(struct lk__op *op, const struct lk__how *how, bool only_try)
{
    struct lk__hold *hold = lk__object_hold(op->object, lk__op_owner(op));
    int rc = hold != NULL ? lk__op_hold(op, &hold) : 0;
    if (rc != 0)
        return rc;
    if (hold != NULL && lk__mutex_attr(op)->type != LK_MUTEX_NORMAL)
        return lock_again(op, hold, only_try);
    lk__op_beginwait(op);
    return lk__mutex_acquire(op, how);
}

int lk__mutex_lockas(struct lk__handle handle, const struct lk__how *how, bool only_try)
{
    struct lk__op op;
    int rc = lk__op_enterby(&op, handle, &lk__mutex_kind, how->limit_us);
    if (rc != 0)
        return rc;
    rc = lk__op_setowner(&op, how->by);
    if (rc == 0)
        rc = lk__op_beginlock(&op, how->limit_us);
    if (rc == 0)
        rc = acquire_or_nest(&op, how, only_try);
    return lk__op_leave(&op, rc);
}

static int lock_until(lk_mutex_t *m, int64_t limit_us, bool only_try)
{
    const struct lk__how how = { .limit_us = limit_us };
    return lk__mutex_lockas(LK__HANDLE(m), &how, only_try);
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

int lk_mutex_lockwith(lk_mutex_t *m, const lk_how_t *how)
{
    struct lk__how taken;
    int rc = lk__how_take(&taken, how);
    if (rc == 0)
        rc = lk__mutex_lockas(LK__HANDLE(m), &taken, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

LK__UNLOCK_CALLS(mutex)
