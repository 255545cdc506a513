/* SPDX-License-Identifier: MIT */
/*
 * check_tokens.c - I2, I3: tokens rise from grant to grant, and what compares them refuses nobody valid
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

static bool has_token(const struct hold *hold)
{
    return (hold->take->op == OP_TAKE || hold->take->op == OP_SLEEP) && hold->take->token != 0;
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

static int by_object(const struct record *a, const struct record *b)
{
    return (a->object > b->object) - (a->object < b->object);
}

static int by_invocation(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left, *b = *(const struct record *const *)right;
    return by_object(a, b) != 0 ? by_object(a, b) : (a->invoke_ns > b->invoke_ns) - (a->invoke_ns < b->invoke_ns);
}

static int by_return(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left, *b = *(const struct record *const *)right;
    return by_object(a, b) != 0 ? by_object(a, b) : (a->return_ns > b->return_ns) - (a->return_ns < b->return_ns);
}

/* Both have the same writes: no write may be accepted after one with a larger token was. */
static void check_order(struct report *report, const struct record **invoked, const struct record **returned,
                        size_t count)
{
    const struct record *largest = NULL;
    for (size_t i = 0, over = 0; i < count; i++) {
        const struct record *write = invoked[i];
        if (largest != NULL && largest->object != write->object)
            largest = NULL;
        for (; over < count && by_object(returned[over], write) <= 0 &&
               (returned[over]->object != write->object || returned[over]->return_ns <= write->invoke_ns);
             over++)
            if (returned[over]->object == write->object && (largest == NULL || returned[over]->token > largest->token))
                largest = returned[over];
        if (largest != NULL && write->token < largest->token)
            violation(report, I3, write, largest, "a stale write was accepted");
    }
    report->writes += (int64_t)count;
}

/* No exception: not even where servers lost what they knew, or two of them granted. */
static void check_accepted(struct report *report)
{
    const struct history *history = report->history;
    const struct record **writes = calloc(2 * history->count + 1, sizeof(*writes));
    size_t count = 0;
    if (writes == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_WRITE && history->records[i].return_ns != 0 && history->records[i].code == 0)
            writes[count++] = &history->records[i];
    for (size_t i = 0; i < count; i++)
        writes[count + i] = writes[i];
    qsort(writes, count, sizeof(*writes), by_invocation);
    qsort(writes + count, count, sizeof(*writes), by_return);
    check_order(report, writes, writes + count, count);
    free(writes);
}

void check_tokens(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        check_group(report, first, end);
    }
    check_writes(report);
    check_accepted(report);
}
