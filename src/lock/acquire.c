/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming the holder of a mutex: which commands, with which arguments */
#include "lock/lock.h"

static void set_commands(struct lk__take *take)
{
    struct lk__mutex *mutex = lk__mutex_of(take->frame);
    struct lk__mutexblock *block = lk__mutex_block(mutex);
    struct lk__lock_acquire_args *args = take->arg;
    struct lk__hold *hold = take->hold;
    unsigned flags = (take->try_only ? LK__LOCK_TRY : 0) | (mutex->object.fair ? LK__LOCK_FAIR : 0);

    *args = (struct lk__lock_acquire_args){ .lease_ms = take->waiter.machine.lease_ms,
                                            .liveness_2048ths = mutex->liveness_2048ths,
                                            .claim_ms = block->release.claim_ms,
                                            .flags = block->release.flags | flags };
    take->waiter.ask = (struct lk__command){ .script = &lk__lua_lock_acquire, .keys = &block->keys, .args = args };
    take->waiter.read = lk__lock_acquire_read;
    hold->release =
        (struct lk__command){ .script = &lk__lua_lock_release, .keys = &block->keys, .args = &block->release };
    hold->renew = (struct lk__command){ .script = &lk__lua_lock_renew, .keys = &block->keys, .args = &block->renew };
}

int lk__mutex_acquire(const struct lk__frame *frame, int64_t limit_us)
{
    const lk_mutexattr_t *attr = lk__mutex_attr(frame);
    struct lk__lock_acquire_args args;
    struct lk__take take = {
        .frame = frame,
        .owner = frame->self->owner,
        .tied = true,
        .lease_ms = attr->lease_ms,
        .min_hold_ms = attr->min_hold_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .in_line = !frame->object->fair,
        .set_commands = set_commands,
        .arg = &args,
        .foreign = lk__mutex_of(frame)->foreign,
    };
    int rc = lk__take_run(&take, limit_us);
    if (take.hold != NULL)
        frame->self->holds++;
    return rc;
}
