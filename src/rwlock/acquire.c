/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming a holder of a read-write lock: which commands, with which arguments */
#include "rwlock/rwlock.h"

#include <string.h>

/* The mode is part of the id, so that it tells a queued waiter's as well. */
static void set_commands(struct lk__take *take)
{
    struct lk__rwlock *lock = lk__rwlock_of(take->frame);
    struct lk__rwlockblock *block = lock->block;
    struct lk__rwlock_acquire_args *args = take->arg;
    struct lk__hold *hold = take->hold;
    assert(strlen(hold->id) + 2 < LK__OWNER_ID_SHORT);
    strcat(hold->id, take->tokenless ? ":r" : ":w");

    *args = (struct lk__rwlock_acquire_args){ .lease_ms = take->waiter.machine.lease_ms,
                                              .liveness_2048ths = lock->liveness_2048ths,
                                              .claim_ms = block->release.claim_ms,
                                              .flags = block->release.flags | (take->try_only ? LK__RWLOCK_TRY : 0) };
    take->waiter.ask = (struct lk__command){ .script = &lk__lua_rwlock_acquire, .keys = &block->keys, .args = args };
    take->waiter.read = lk__rwlock_acquire_read;
    hold->release =
        (struct lk__command){ .script = &lk__lua_rwlock_release, .keys = &block->keys, .args = &block->release };
    hold->renew = (struct lk__command){ .script = &lk__lua_rwlock_renew, .keys = &block->keys };
}

int lk__rwlock_acquire(const struct lk__frame *frame, bool write, int64_t limit_us)
{
    const lk_rwlockattr_t *attr = lk__rwlock_attr(frame);
    struct lk__rwlock_acquire_args args;
    struct lk__take take = {
        .frame = frame,
        .owner = frame->self->owner,
        .tied = true,
        .lease_ms = attr->lease_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .tokenless = !write,
        .set_commands = set_commands,
        .arg = &args,
    };
    int rc = lk__take_run(&take, limit_us);
    if (take.hold == NULL)
        return rc;
    take.hold->holds = write;
    take.hold->reads = !write;
    frame->self->holds++;
    return rc;
}
