/* SPDX-License-Identifier: MIT */
/* ask.c - what may be asked of several locks: remaining, check, info */
#include "multi/multi.h"

#include <stdio.h>
#include <string.h>

/* --- of a holder -------------------------------------------------------------------------------------------------------- */

static int remaining(const struct lk__multi *multi, lk_owner_t *owner, int64_t *ms)
{
    int64_t least_ms = INT64_MAX, its_ms;
    for (unsigned i = 0; i < multi->count; i++) {
        const struct lk__part *part = multi->parts[i];
        int rc = lk__holder_remaining("lk_multi_remaining", part->handle, part->kind, owner, &its_ms);
        if (rc != 0)
            return rc;
        least_ms = its_ms < least_ms ? its_ms : least_ms;
    }
    *ms = least_ms;
    return 0;
}

static int check(const struct lk__multi *multi, lk_owner_t *owner)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < multi->count; i++)
        rc = lk__holder_check(multi->parts[i]->handle, multi->parts[i]->kind, owner);
    return rc;
}

int lk_multi_remaining(lk_multi_t *s, int64_t *ms)
{
    return lk_multi_remainingby(s, NULL, ms);
}

int lk_multi_remainingby(lk_multi_t *s, lk_owner_t *owner, int64_t *ms)
{
    struct lk__multicall call;
    if (ms == NULL)
        return lk__fail(EINVAL, "lk_multi_remaining: nowhere to put the time");
    int rc = lk__multi_enter(&call, "lk_multi_remaining", s, 1);
    return rc != 0 ? rc : lk__multi_leave(&call, remaining(call.multi, owner, ms));
}

int lk_multi_check(lk_multi_t *s)
{
    return lk_multi_checkby(s, NULL);
}

int lk_multi_checkby(lk_multi_t *s, lk_owner_t *owner)
{
    struct lk__multicall call;
    int rc = lk__multi_enter(&call, "lk_multi_check", s, 1);
    return rc != 0 ? rc : lk__multi_leave(&call, check(call.multi, owner));
}

/* --- of anybody --------------------------------------------------------------------------------------------------------- */

/* What is seen of one part. */
struct seen {
    bool taken, recoverable;
    unsigned waiters;
    int64_t remaining_ms;
    char holder[sizeof((lk_multiinfo_t *)NULL)->holder];
};

static int look_at_mutex(const struct lk__part *part, struct seen *seen)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    int rc = lk_mutex_info(part->lock, &info);
    if (rc != 0)
        return rc;
    *seen = (struct seen){ .taken = info.held != 0,
                           .recoverable = info.recoverable != 0,
                           .waiters = info.waiters,
                           .remaining_ms = info.remaining_ms };
    memcpy(seen->holder, info.holder, sizeof seen->holder);
    return 0;
}

static int look_at_rwlock(const struct lk__part *part, struct seen *seen)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    int rc = lk_rwlock_info(part->lock, &info);
    if (rc != 0)
        return rc;
    *seen = (struct seen){ .taken = part->write ? info.mode != LK_RWLOCK_FREE : info.mode == LK_RWLOCK_WRITING,
                           .recoverable = info.recoverable != 0,
                           .waiters = info.waiters,
                           .remaining_ms = info.remaining_ms };
    memcpy(seen->holder, info.writer, sizeof seen->holder);
    return 0;
}

static void note_taken(lk_multiinfo_t *info, const struct lk__part *part, const struct seen *seen)
{
    bool first = info->taken++ == 0;
    bool endless = info->remaining_ms == -1 || seen->remaining_ms == -1;
    if (endless || seen->remaining_ms > info->remaining_ms)
        info->remaining_ms = endless ? -1 : seen->remaining_ms;
    if (!first)
        return;
    snprintf(info->name, sizeof info->name, "%s", lk__handle_name(part->handle));
    memcpy(info->holder, seen->holder, sizeof info->holder);
}

static int look(const struct lk__multi *multi, lk_multiinfo_t *info)
{
    lk_multiinfo_t found = { .members = multi->count, .recoverable = 1 };
    for (unsigned i = 0; i < multi->count; i++) {
        const struct lk__part *part = multi->parts[i];
        struct seen seen = { .taken = false };
        int rc = part->kind == &lk__mutex_kind ? look_at_mutex(part, &seen) : look_at_rwlock(part, &seen);
        if (rc != 0)
            return rc;
        found.waiters += seen.waiters;
        found.recoverable &= seen.recoverable;
        if (seen.taken)
            note_taken(&found, part, &seen);
    }
    lk__sized_write(info, &found, sizeof found);
    return 0;
}

int lk_multi_info(lk_multi_t *s, lk_multiinfo_t *info)
{
    struct lk__multicall call;
    int rc = lk__sized_check(info, LK__THROUGH(lk_multiinfo_t, holder), "lk_multiinfo_t");
    if (rc == 0)
        rc = lk__multi_enter(&call, __func__, s, 0);
    return rc != 0 ? rc : lk__multi_leave(&call, look(call.multi, info));
}
