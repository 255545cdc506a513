/* SPDX-License-Identifier: MIT */
/* lock.c - lock in all its forms, unlock */
#include "lock/mutex.h"

#include <limits.h>

/* The name stays taken for as long after the grant as any handle says by which it was locked. */
static void keep(const struct lk__op *op, struct lk__hold *hold)
{
    int64_t now_us = lk__now_us(), lasts_us = hold->began_us + lk__mutex_attr(op)->min_hold_ms * 1000 - now_us;
    if (lk__mutex_attr(op)->min_hold_ms == 0 || lasts_us <= 0)
        return;
    struct lk__node *at = lk__node_for(lk__object_node(op->object), &hold->lease.release.command, false);
    struct lk__until until = lk__conn_until(&at->lanes[LK__LANE_COMMANDS], now_us, lasts_us);
    if (until.date.epoch == 0) /* no server was met there yet: the moment is said anew, by the clock of whoever is told */
        until.date.epoch = UINT_MAX;
    lk__lease_keep(&hold->lease, &until);
}

/* One level more of a hold that the owner has. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, const struct lk__how *how)
{
    int rc = lk__op_checkagain(op, hold, how, lk__mutex_attr(op)->type == LK_MUTEX_ERRORCHECK);
    if (rc == 0 && !lk__mutex_attr(op)->nested_local)
        rc = lk__mutex_nest(op, hold, hold->holds + 1);
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
    lk__op_beginwait(op);
    lk__mutex_plan(&acquire, &args, op, how);
    return lk__acquire_run(&acquire);
}

int lk__mutex_lockas(struct lk__handle handle, const struct lk__how *how)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enterlock(&op, handle, &lk__mutex_kind, how, &hold);
    if (rc != 0)
        return rc;
    bool again = hold != NULL && lk__mutex_attr(&op)->type != LK_MUTEX_NORMAL;
    return lk__op_leavelock(&op, how, again ? lock_again(&op, hold, how) : lk__mutex_acquire(&op, how));
}

static int lock(lk_mutex_t *m, const struct lk__how *how)
{
    return lk__mutex_lockas(LK__HANDLE(m), how);
}

LK__LOCK_CALLS(mutex, lock, lock)
LK__UNLOCK_CALLS(mutex)
