/* SPDX-License-Identifier: MIT */
/*
 * check_failures.c - I12: after any code but 0 the caller holds nothing. What is left on the server is seen by
 * check_end.c and check_account.c.
 */
#include "check.h"

#include <errno.h>

/* Nobody else is in the way of who holds it already. */
static bool waits_for_itself(const struct record *record)
{
    return record->op == OP_NEST && record->return_ns != 0 &&
           (record->code == EBUSY || record->code == ETIMEDOUT || record->code == EDEADLK);
}

void check_failures(struct report *report)
{
    const struct history *history = report->history;
    const struct record *failed = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (waits_for_itself(record))
            violation(report, I12, record, NULL, "a thread waits for itself");
        if (is_take(record)) {
            failed = record->return_ns != 0 && !is_granted(record) ? record : NULL;
            continue;
        }
        if (failed == NULL || record->op != OP_CHECK || !same_tape(failed, record) || failed->hold != record->hold)
            continue;
        if (record->return_ns != 0 && record->code != EPERM)
            violation(report, I12, record, failed, "something is held after a failure");
    }
}
