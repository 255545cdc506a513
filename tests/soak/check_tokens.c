/* SPDX-License-Identifier: MIT */
/*
 * check_tokens.c - I2, I3: tokens rise from grant to grant, and what compares them refuses nobody valid
 */
#include "check.h"

#include <errno.h>

static bool has_token(const struct hold *hold)
{
    return hold->take->op == OP_TAKE && hold->take->token != 0;
}

/* Holds that were both valid when they were returned, and exclude each other, were granted in that order. */
static bool certainly_in_order(const struct history *history, const struct hold *first, const struct hold *second)
{
    if (first->from_ns <= second->take->invoke_ns)
        return true;
    if (is_semaphore(first->take->object) || first->until_ns <= first->from_ns || second->until_ns <= second->from_ns)
        return false;
    int64_t begin_ns =
        first->take->invoke_ns < second->take->invoke_ns ? first->take->invoke_ns : second->take->invoke_ns;
    return !lost_within(history, first->take->object, begin_ns - history->lease_ms * NS_PER_MS,
                        second->from_ns); /* as in I1 */
}

static void check_group(struct report *report, size_t first, size_t end)
{
    const struct hold *largest = NULL;
    for (size_t i = first; i < end; i++) {
        const struct hold *hold = &report->history->holds[i];
        if (!has_token(hold))
            continue;
        report->tokens++;
        if (largest != NULL && hold->take->token == largest->take->token)
            violation(report, I2, hold->take, largest->take, "the same token twice");
        else if (largest != NULL && hold->take->token < largest->take->token &&
                 certainly_in_order(report->history, largest, hold))
            violation(report, I2, hold->take, largest->take, "a token below an earlier one");
        if (largest == NULL || hold->take->token > largest->take->token)
            largest = hold;
    }
}

/*
 * A larger token was used while this hold was valid, so another one was granted meanwhile. A loss of data
 * allows that until the hold's validity ends, as for I1, and so does an operator.
 */
static void check_writes(struct report *report)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_WRITE && record->code == EBUSY &&
            !lost_within(history, record->object, record->invoke_ns - history->lease_ms * NS_PER_MS, record->return_ns))
            violation(report, I3, record, NULL, "the resource has seen a larger token than that of a valid hold");
    }
}

void check_tokens(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        check_group(report, first, end);
    }
    check_writes(report);
}
