/* SPDX-License-Identifier: MIT */
/*
 * check_calm.c - I9: when nothing happens to anybody, everybody gets what he waits for, and keeps it
 */
#include "check.h"

#include <errno.h>

#define LONG_ENOUGH_MS 5000 /* there is more than enough time for everybody's turn */

/* Whoever waits for what is deleted is told, or for what is done, and whoever uses what ended while its client was cut off. */
bool is_answer(const struct record *record)
{
    return (kind_of(record->object) == REMOVED && record->code == ECANCELED) ||
           (kind_of(record->object) == ONCE && record->code == EALREADY) ||
           (is_anonymous(record->object) && record->code == ESTALE);
}

static bool is_failure(const struct record *record)
{
    switch (record->op) {
    case OP_TAKE:
    case OP_SHARE: /* a try may find it taken, a wait ends with a grant */
        return !is_granted(record) && record->code != ENOTRECOVERABLE && !is_answer(record) &&
               !(record->limit_ms == 0 && (record->code == EBUSY || record->code == EAGAIN)) &&
               !(record->code == ETIMEDOUT && record->limit_ms < LONG_ENOUGH_MS);
    case OP_NEST: /* whether who may not lock again is told so, check_failures.c looks at */
        return record->code != 0 &&
               !(is_nonreentrant(record->object) && (record->code == EDEADLK || record->code == EBUSY));
    case OP_RESIZE:
    case OP_ADD:
    case OP_MAKE:
        return record->code != 0 && record->code != EEXIST;
    case OP_FORCE: /* ENOENT: somebody else has deleted it */
        return record->code != 0 && !(kind_of(record->object) == REMOVED && record->code == ENOENT);
    case OP_UNNEST:
    case OP_DOWNGRADE:
    case OP_GIVE:
    case OP_REPAIR:
    case OP_SET:
        return record->code != 0;
    case OP_ASK:
    case OP_EXTEND:
    case OP_SIGNAL:
        return record->code != 0;
    case OP_SLEEP:
        return !is_slept(record);
    case OP_MEET: /* not all may come, which breaks the round; what that does to others check_barrier.c looks at */
        return record->code != 0 && record->code != ETIMEDOUT && record->code != ECANCELED;
    case OP_RESULT:
    case OP_RESET: /* ENOENT: it is not done */
        return record->code != 0 && record->code != ENOENT;
    case OP_CHECK: /* EPERM: asked after a take that failed */
        return record->code != 0 && record->code != EPERM;
    case OP_COUNTDOWN: /* ENOENT: open already */
        return record->code != 0 && record->code != ENOENT;
    case OP_WAIT: /* nobody may be there to count down; how a count ends check_latches.c looks at */
        return record->code != 0 && record->code != ETIMEDOUT &&
               !(has_ttl(record->object, record->instance) && (record->code == ENOENT || record->code == ESTALE));
    default:
        return false;
    }
}

/* A fixed lease of the call's own, of two thirds of the object's at least: is what was told of it over? */
static bool is_over(const struct record *record, const struct record *take)
{
    return is_fixed(record) && record->return_ns >= take->valid_ns;
}

/* What is not renewed ends, and so does what an operator takes away. */
static bool may_be_lost(const struct history *history, const struct record *record, const struct record *take)
{
    if (record->code != ESTALE || take == NULL || !same_tape(take, record) || take->hold != record->hold)
        return false;
    int64_t lasts_ms = longest_hold_ms(history, record) * 98 / 100 - 2 - history->skew_ms;
    int64_t passed_ms = (record->return_ns - take->invoke_ns) / NS_PER_MS;
    return lost_within(history, record->object, take->invoke_ns, record->return_ns) || passed_ms >= lasts_ms ||
           (is_over(record, take) && passed_ms >= lasts_ms * 2 / 3);
}

void check_calm(struct report *report)
{
    const struct history *history = report->history;
    int64_t back_ns = (history->lease_ms + history->slack_ms) * NS_PER_MS;
    const struct record *take = NULL;
    for (size_t i = 0; history->calm_ns != 0 && i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record))
            take = record;
        if (record->invoke_ns < history->calm_ns || record->return_ns == 0 || !is_failure(record) ||
            may_be_lost(history, record, take))
            continue;
        /* What a slow machine does looks like faults: answers come later than a command timeout, leases run out. */
        int64_t from_ns = record->invoke_ns - back_ns;
        if (!disturbed(history, record->process, from_ns, record->return_ns) &&
            !machine_slow(history, from_ns, record->return_ns))
            violation(report, I9, record, NULL, "failed although nothing was done to anybody");
    }
}
