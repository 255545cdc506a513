/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming a holder of a read-write lock: which commands, with which arguments */
#include "rwlock/rwlock.h"

#include <string.h>

/* The mode is part of the id, so that it tells a queued waiter's as well. */
static void set_commands(struct lk__acquire *acquire)
{
    struct lk__object *object = acquire->op->object;
    struct lk__rwlockblock *block = lk__rwlock_block(object);
    struct lk__rwlock_acquire_args *args = acquire->arg;
    struct lk__lease *lease = acquire->hold->lease;
    assert(strlen(lease->id) + 2 < LK__OWNER_ID_SHORT);
    strcat(lease->id, acquire->tokenless ? ":r" : ":w");

    *args =
        (struct lk__rwlock_acquire_args){ .lease_ms = acquire->waiter.machine.lease_ms,
                                          .liveness_2048ths = lk__object_terms(object)->liveness_2048ths,
                                          .claim_ms = block->release.claim_ms,
                                          .flags = block->release.flags | (acquire->try_only ? LK__RWLOCK_TRY : 0) };
    acquire->waiter.ask = (struct lk__command){ .script = &lk__lua_rwlock_acquire, .keys = &block->keys, .args = args };
    acquire->waiter.read = lk__rwlock_acquire_read;
    lease->release.command =
        (struct lk__command){ .script = &lk__lua_rwlock_release, .keys = &block->keys, .args = &block->release };
    lease->renewal = &lk__lua_rwlock_renew;
}

int lk__rwlock_acquire(const struct lk__op *op, bool write, int64_t limit_us)
{
    const lk_rwlockattr_t *attr = lk__rwlock_attr(op);
    struct lk__rwlock_acquire_args args;
    struct lk__acquire acquire = {
        .op = op,
        .owner = op->self->owner,
        .lease_ms = attr->lease_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .tokenless = !write,
        .set_commands = set_commands,
        .arg = &args,
    };
    int rc = lk__acquire_run(&acquire, limit_us);
    if (acquire.hold == NULL)
        return rc;
    acquire.hold->holds = write;
    acquire.hold->reads = !write;
    op->self->holds++;
    return rc;
}
