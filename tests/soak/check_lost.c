/* SPDX-License-Identifier: MIT */
/*
 * check_lost.c - I13: a lost hold stays lost, and its client is told once
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

static bool asks(const struct record *record)
{
    return record->op == OP_CHECK || record->op == OP_GIVE || record->op == OP_UNNEST || record->op == OP_NEST ||
           record->op == OP_DOWNGRADE || record->op == OP_ASK || record->op == OP_EXTEND ||
           (record->op == OP_SLEEP && record->code != ECANCELED);
}

/* Of a permit with a number that is lost the server is asked, which may have forgotten it, or be away. */
static bool stays_lost(const struct record *record)
{
    return record->code == ESTALE || (kind_of(record->object) == BYID && record->code != 0);
}

/* After ESTALE each call of that hold says so, the give included. */
static void check_finality(struct report *report)
{
    const struct history *history = report->history;
    const struct record *lost = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record))
            lost = NULL;
        else if (lost != NULL && same_tape(lost, record) && lost->hold == record->hold && asks(record) &&
                 record->return_ns != 0 && !stays_lost(record))
            violation(report, I13, record, lost, "%s after a hold was lost",
                      record->code == 0 ? "success" : "no ESTALE");
        else if (lost == NULL && asks(record) && record->return_ns != 0 && record->code == ESTALE)
            lost = record;
        if (record->op == OP_SLEEP) /* what comes after it is of another hold, or of none */
            lost = NULL;
    }
}

/* What one client lost of one object: `told` by its listener, `seen` by its threads. */
struct losses {
    const struct record *first;
    int64_t told, seen, unseen; /* unseen: holds whose end is not known, which may have been lost */
};

static int by_client(const void *left, const void *right)
{
    const struct losses *a = left, *b = right;
    int64_t order = (int64_t)a->first->object - b->first->object;
    if (order == 0)
        order = a->first->process - b->first->process;
    if (order == 0)
        order = a->first->incarnation - b->first->incarnation;
    return (order > 0) - (order < 0);
}

static bool was_closed(const struct history *history, const struct record *of)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_CLOSE && record->process == of->process && record->incarnation == of->incarnation)
            return record->return_ns != 0;
    }
    return false;
}

/* Only of clients that lived to the end: the others may not have come to tell. */
static void check_client(struct report *report, const struct losses *losses)
{
    if (!was_closed(report->history, losses->first))
        return;
    if (losses->told < losses->seen || losses->told > losses->seen + losses->unseen)
        violation(report, I13, losses->first, NULL, "%lld holds were lost, %lld were reported (%lld unsure)",
                  (long long)losses->seen, (long long)losses->told, (long long)losses->unseen);
}

/* Was it given back, as far as is known? */
static bool was_given(const struct hold *hold)
{
    return hold->give != NULL && hold->give->return_ns != 0 && (hold->give->code == 0 || is_slept(hold->give));
}

static size_t collect(const struct history *history, struct losses *all)
{
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_LOST)
            all[count++] = (struct losses){ .first = &history->records[i], .told = 1 };
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct hold *hold = &history->holds[i];
        if (is_counting(hold->take->object))
            continue;
        bool over =
            kind_of(hold->take->object) == ANONYMOUS; /* ESTALE may be said of the semaphore, and not of the hold */
        bool lost = (hold->lost && !over) || hold->exit != NULL;
        bool unsure = !lost && (hold->lost || !was_given(hold));
        if (lost || unsure)
            all[count++] = (struct losses){ .first = hold->take, .seen = lost, .unseen = unsure };
    }
    return count;
}

/* A queue of events hears what a listener hears, to the last word of the close. */
static void check_heard(struct report *report)
{
    for (size_t i = 0; i < report->history->count; i++) {
        const struct record *record = &report->history->records[i];
        if (record->op == OP_HEARD && (int64_t)record->token != record->limit_ms)
            violation(report, I13, record, NULL, "a listener heard of %d losses, a queue of events of %lld",
                      record->limit_ms, (long long)record->token);
    }
}

void check_lost(struct report *report)
{
    const struct history *history = report->history;
    struct losses *all = calloc(history->count + history->hold_count + 1, sizeof *all);
    if (all == NULL)
        abort();
    size_t count = collect(history, all);
    qsort(all, count, sizeof *all, by_client);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && by_client(&all[i], &all[end]) == 0; end++) {
            all[i].told += all[end].told;
            all[i].seen += all[end].seen;
            all[i].unseen += all[end].unseen;
        }
        check_client(report, &all[i]);
    }
    free(all);
    check_finality(report);
    check_heard(report);
}
