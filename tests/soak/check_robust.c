/* SPDX-License-Identifier: MIT */
/*
 * check_robust.c - I4: who gets a robust mutex after a dead holder is told so, and nobody else; given back
 * unrepaired nobody gets it until an operator has it in order again
 *
 * Tokens tell which grant followed which. Grants that nobody saw may lie between two of them, so only those
 * pairs are looked at between which nothing is unknown.
 */
#include "check.h"

#include <stdlib.h>

static int by_token(const void *left, const void *right)
{
    const struct hold *a = *(const struct hold *const *)left, *b = *(const struct hold *const *)right;
    return (a->take->token > b->take->token) - (a->take->token < b->take->token);
}

/* It may have been granted and died, or have been given back, without anybody's knowledge. */
static bool is_unsure(const struct record *record)
{
    return is_take(record) && (record->return_ns == 0 || record->code == EIO || record->code == ECANCELED);
}

static bool anything_unknown(const struct history *history, const struct hold *first, const struct hold *second)
{
    int64_t from_ns = first->take->invoke_ns - 2 * history->lease_ms * NS_PER_MS;
    int64_t ended_ns = first->give != NULL ? first->give->invoke_ns : first->until_ns;
    if (lost_within(history, first->take->object, from_ns, second->from_ns) ||
        anybody_disturbed(history, ended_ns - history->command_ms * NS_PER_MS, second->from_ns))
        return true;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (same_instance(record, first->take) && is_unsure(record) && record->invoke_ns < second->from_ns &&
            (record->return_ns == 0 || record->return_ns > from_ns))
            return true;
    }
    return false;
}

static bool was_given_back(const struct hold *hold)
{
    return hold->give != NULL && hold->give->return_ns != 0 && hold->give->code == 0 && !hold->lost;
}

static bool was_left_broken(const struct hold *hold)
{
    return hold->take->code == EOWNERDEAD && !hold->repaired;
}

static void check_pair(struct report *report, const struct hold *first, const struct hold *second)
{
    bool told = second->take->code == EOWNERDEAD, given = was_given_back(first), died = first->exit != NULL;
    if ((!given && !died) || anything_unknown(report->history, first, second))
        return;
    report->heirs++;
    if (given && was_left_broken(first))
        violation(report, I4, second->take, first->take, "granted after it was given back unrepaired");
    else if (given && told)
        violation(report, I4, second->take, first->take, "told of a dead holder after one that gave it back");
    else if (died && !told)
        violation(report, I4, second->take, first->take, "not told that the holder before has died");
}

static void check_group(struct report *report, size_t first, size_t end)
{
    const struct history *history = report->history;
    const struct hold **holds = calloc(end - first, sizeof *holds);
    size_t count = 0;
    if (holds == NULL)
        abort();
    for (size_t i = first; i < end; i++)
        if (history->holds[i].take->token != 0)
            holds[count++] = &history->holds[i];
    qsort(holds, count, sizeof *holds, by_token);
    for (size_t i = 1; i < count; i++)
        check_pair(report, holds[i - 1], holds[i]);
    free(holds);
}

/* Somebody must have given it back unrepaired before. */
static bool may_be_broken(const struct history *history, const struct record *told)
{
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct hold *hold = &history->holds[i];
        if (same_instance(hold->take, told) && was_left_broken(hold) &&
            (hold->give == NULL || hold->give->invoke_ns < told->return_ns))
            return true;
    }
    return false;
}

void check_robust(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        if (kind_of(history->holds[first].take->object) == ROBUST)
            check_group(report, first, end);
    }
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record) && record->return_ns != 0 && record->code == ENOTRECOVERABLE &&
            !may_be_broken(history, record))
            violation(report, I4, record, NULL, "not recoverable, though nobody left it unrepaired");
    }
}
