/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming the holder of a mutex: which commands, with which arguments */
#include "lock/mutex.h"

static void set_commands(struct lk__acquire *acquire)
{
    struct lk__mutex *mutex = lk__mutex_of(acquire->op);
    struct lk__mutexblock *block = lk__mutex_block(mutex);
    struct lk__lock_acquire_args *args = acquire->arg;
    struct lk__lease *lease = acquire->hold->lease;
    unsigned flags = (acquire->try_only ? LK__LOCK_TRY : 0) | (mutex->object.traits.order != 0 ? LK__LOCK_FAIR : 0);

    *args = (struct lk__lock_acquire_args){ .lease_ms = acquire->waiter.machine.lease_ms,
                                            .liveness_2048ths = lk__object_terms(&mutex->object)->liveness_2048ths,
                                            .claim_ms = block->release.claim_ms,
                                            .flags = block->release.flags | flags };
    acquire->waiter.ask = (struct lk__command){ .script = &lk__lua_lock_acquire, .keys = &block->keys, .args = args };
    acquire->waiter.read = lk__lock_acquire_read;
    lease->release.command =
        (struct lk__command){ .script = &lk__lua_lock_release, .keys = &block->keys, .args = &block->release };
    lease->renewal = &lk__lua_lock_renew;
    lease->renewal_args = &block->renew;
}

int lk__mutex_acquire(const struct lk__op *op, int64_t limit_us)
{
    const lk_mutexattr_t *attr = lk__mutex_attr(op);
    struct lk__lock_acquire_args args;
    struct lk__acquire acquire = {
        .op = op,
        .owner = op->self->owner,
        .lease_ms = attr->lease_ms,
        .min_hold_ms = attr->min_hold_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .queue_locally = op->object->traits.order == 0,
        .set_commands = set_commands,
        .arg = &args,
        .redisson = lk__mutex_of(op)->redisson,
    };
    int rc = lk__acquire_run(&acquire, limit_us);
    if (acquire.hold != NULL)
        op->self->holds++;
    return rc;
}
