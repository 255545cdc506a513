/* SPDX-License-Identifier: MIT */
/* acquire.c - becoming a holder of a read-write lock: which commands, with which arguments */
#include "rwlock/rwlock.h"
#include "rwlock/scripts.h"

#include <stdio.h>
#include <string.h>

void lk__rwlock_letters(char letters[8], const struct lk__object *object, bool try_only)
{
    static const char *const prefer[] = { "", "R", "W" };
    snprintf(letters, 8, "%s%s%s%s-", try_only ? "t" : "", object->robust ? "r" : "",
             object->client->options->redisson ? "j" : "", prefer[object->fair]);
}

/* The mode is part of the id, so that it tells a queued waiter's as well. */
static int seal(struct lk__take *take)
{
    struct lk__rwlock *lock = lk__rwlock_of(take->frame);
    struct lk__hold *hold = take->hold;
    char letters[8];
    lk__rwlock_letters(letters, &lock->object, take->try_only);
    assert(strlen(hold->id) + 2 < sizeof hold->id);
    strcat(hold->id, take->tokenless ? ":r" : ":w");

    const char *id = hold->id, *claim = lock->terms.claim_text;
    const char *ask[] = { id, take->lease, lock->terms.liveness_text, claim, letters, NULL, NULL, NULL };
    const char *release[] = { id, claim, letters, NULL, NULL };
    const char *renew[] = { id, NULL, NULL };
    const char *down[] = { id, claim, letters, NULL, NULL, NULL };
    int rc = lk__command_seal(&take->waiter.ask, &lk__lua_rwlock_acquire, lock->keys, ask, 8);
    if (rc == 0)
        rc = lk__command_seal(&hold->release, &lk__lua_rwlock_release, lock->keys, release, 5);
    if (rc == 0)
        rc = lk__command_seal(&hold->renew, &lk__lua_rwlock_renew, lock->keys, renew, 3);
    if (rc == 0 && !take->tokenless)
        rc = lk__command_seal(&hold->nest, &lk__lua_rwlock_downgrade, lock->keys, down, 6);
    return rc;
}

int lk__rwlock_acquire(const struct lk__frame *frame, bool write, int64_t limit_us)
{
    const lk_rwlockattr_t *attr = lk__rwlock_attr(frame);
    struct lk__take take = {
        .frame = frame,
        .owner = frame->self->owner,
        .tied = true,
        .lease_ms = attr->lease_ms,
        .max_hold_ms = attr->max_hold_ms,
        .fixed = attr->fixed,
        .tokenless = !write,
        .seal = seal,
    };
    int rc = lk__take_run(&take, limit_us);
    if (take.hold == NULL)
        return rc;
    take.hold->holds = write;
    take.hold->reads = !write;
    frame->self->holds++;
    return rc;
}
