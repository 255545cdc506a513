/* SPDX-License-Identifier: MIT */
/*
 * check_failures.c - I12: after any code but 0 the caller holds nothing. What is left on the server is seen by
 * check_end.c and check_account.c.
 */
#include "check.h"

#include <errno.h>

/* Of a hold for writing of what is not reentrant. */
static bool may_not_nest(const struct record *record, const struct record *take)
{
    return take != NULL && same_tape(take, record) && take->op == OP_TAKE && is_nonreentrant(record->object);
}

/* Nobody else is in the way of who holds it already. Who may not lock it again is told so, without waiting. */
static void check_nested(struct report *report, const struct record *record, const struct record *take)
{
    bool waited = record->code == ETIMEDOUT || (record->code == EBUSY && record->limit_ms != 0);
    bool told = record->code == EDEADLK || record->code == EBUSY;
    if (waited || (told && !may_not_nest(record, take)))
        violation(report, I12, record, take, "a thread waits for itself");
    else if (record->code == 0 && may_not_nest(record, take))
        violation(report, I12, record, take, "locked again by who may not");
}

/* owner.h, api.h: what was in the way has a lease that is no longer than any is here. */
static void check_left(struct report *report, const struct record *record)
{
    bool told = record->code == EBUSY || record->code == ETIMEDOUT || record->code == EAGAIN;
    int64_t left_ms = (int64_t)record->token - 1;
    if (left_ms > report->history->lease_ms)
        violation(report, I12, record, NULL, "a lease in its way that lasts for %lld ms", (long long)left_ms);
    else if (left_ms >= 0 && (!told || is_counting(record->object)))
        violation(report, I12, record, NULL, "a lease in its way where none is");
}

void check_failures(struct report *report)
{
    const struct history *history = report->history;
    const struct record *failed = NULL, *take = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_NEST && record->return_ns != 0)
            check_nested(report, record, take);
        if (is_take(record)) {
            take = record;
            if (record->return_ns != 0 && !is_granted(record))
                check_left(report, record);
            failed = record->return_ns != 0 && !is_granted(record) ? record : NULL;
            continue;
        }
        if (record->op == OP_SLEEP)
            failed = record->return_ns != 0 && !is_slept(record) ? record : NULL;
        if (failed == NULL || record->op != OP_CHECK || !same_tape(failed, record) || failed->hold != record->hold)
            continue;
        if (record->return_ns != 0 && record->code != EPERM && !is_answer(record))
            violation(report, I12, record, failed, "something is held after a failure");
    }
}
