/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming the holder of a mutex: which commands, with which arguments */
#include "lock/lock.h"
#include "lock/scripts.h"

#include <stdio.h>

void lk__mutex_letters(char letters[8], const struct lk__object *object, bool try_only)
{
    snprintf(letters, 8, "%s%s%s%s-", try_only ? "t" : "", object->fair ? "f" : "", object->robust ? "r" : "",
             object->client->options->redisson ? "j" : "");
}

static int seal(struct lk__take *take)
{
    struct lk__mutex *mutex = lk__mutex_of(take->frame);
    struct lk__hold *hold = take->hold;
    const char *id = hold->id;
    char letters[8];
    lk__mutex_letters(letters, &mutex->object, take->try_only);

    const char *ask[] = { id, take->lease, mutex->terms.liveness_ms, mutex->terms.claim_ms, letters, NULL, NULL, NULL };
    const char *release[] = { id, mutex->terms.claim_ms, letters, mutex->channel, NULL, NULL };
    const char *renew[] = { id, NULL, NULL, mutex->channel };
    const char *nest[] = { id, NULL, NULL, NULL };
    int rc = lk__command_seal(&take->waiter.ask, &lk__lua_lock_acquire, mutex->keys, ask, 8);
    if (rc == 0)
        rc = lk__command_seal(&hold->release, &lk__lua_lock_release, mutex->keys, release, 6);
    if (rc == 0)
        rc = lk__command_seal(&hold->renew, &lk__lua_lock_renew, mutex->keys, renew, 4);
    if (rc == 0)
        rc = lk__command_seal(&hold->nest, &lk__lua_lock_nest, mutex->keys, nest, 4);
    return rc;
}

int lk__mutex_acquire(const struct lk__frame *frame, int64_t limit_us)
{
    const lk_mutexattr_t *attr = lk__mutex_attr(frame);
    struct lk__take take = {
        .frame = frame,
        .owner = frame->self->owner,
        .tied = true,
        .lease_ms = attr->lease_ms,
        .min_hold_ms = attr->min_hold_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .in_line = !frame->object->fair,
        .seal = seal,
        .foreign = &lk__mutex_of(frame)->foreign,
    };
    int rc = lk__take_run(&take, limit_us);
    if (take.hold != NULL)
        frame->self->holds++;
    return rc;
}
