/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming a holder of a read-write lock, and giving back one level of several */
#include "rwlock/rwlock.h"

/* The mode is part of the id, so that it tells a queued waiter's as well. */
void lk__rwlock_plan(struct lk__acquire *acquire, struct lk__rwlock_acquire_args *args, struct lk__op *op,
                     bool write, const struct lk__how *how)
{
    const struct lk__rwlockblock *block = lk__rwlock_block(op->object);
    const lk_rwlockattr_t *attr = lk__rwlock_attr(op);
    *acquire = (struct lk__acquire){
        .op = op,
        .how = how,
        .holds = write,
        .reads = !write,
        .lease_ms = attr->lease_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .unwind = lk__acquire_leaveop,
        .read = lk__rwlock_acquire_read,
        .give_back = lk__object_command(op->object, &lk__lua_rwlock_release, &block->release),
        .renewal = &lk__lua_rwlock_renew,
        .suffix = write ? ":w" : ":r",
    };
    lk__acquire_plan(acquire);
    unsigned flags = acquire->try_only ? LK__RWLOCK_TRY : 0;
    *args = (struct lk__rwlock_acquire_args){ .lease_ms = acquire->asked_ms, .flags = block->release.flags | flags };
    acquire->ask = lk__object_command(op->object, &lk__lua_rwlock_acquire, args);
}

int lk__rwlock_acquire(struct lk__op *op, bool write, const struct lk__how *how)
{
    struct lk__acquire acquire;
    struct lk__rwlock_acquire_args args;
    lk__op_beginwait(op);
    lk__rwlock_plan(&acquire, &args, op, write, how);
    return lk__acquire_run(&acquire);
}

int lk__rwlock_unlockinner(const struct lk__op *op, struct lk__hold *hold)
{
    int rc = lk__op_hold(op, &hold);
    --*(hold->reads > 0 ? &hold->reads : &hold->holds);
    return rc;
}
