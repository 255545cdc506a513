/* SPDX-License-Identifier: MIT */
/*
 * check_latches.c - I8: each count is counted once, nobody is let through before the last one, and what is
 * open stays open
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

struct latch {
    const struct record **records;
    size_t count;
    int64_t size;      /* what it was set to */
    int64_t opened_ns; /* by then it was certainly open; INT64_MAX: never seen open */
    int64_t ends_ns;   /* its count ends then at the earliest if it does not open, ... */
    int64_t ended_ns;  /* ... and then at the latest; INT64_MAX: it does not end */
};

static int by_instance(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left, *b = *(const struct record *const *)right;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->instance != b->instance)
        return a->instance < b->instance ? -1 : 1;
    return (a->invoke_ns > b->invoke_ns) - (a->invoke_ns < b->invoke_ns);
}

static bool may_have_counted(const struct record *record)
{
    return record->op == OP_COUNTDOWN && (record->return_ns == 0 || record->code == 0 || record->code == EIO);
}

/* Countdowns, other than this record, that can have happened by the time it returned. */
static int64_t counts_before(const struct latch *latch, const struct record *record)
{
    int64_t counts = 0;
    for (size_t i = 0; i < latch->count; i++)
        if (latch->records[i] != record && may_have_counted(latch->records[i]) &&
            latch->records[i]->invoke_ns < record->return_ns)
            counts++;
    return counts;
}

/* When the count has ended, who counts is told ENOENT as well, and with redisson=yes who waits 0. */
static bool says_open(const struct latch *latch, const struct record *record)
{
    bool may_have_ended = record->return_ns >= latch->ends_ns;
    return record->return_ns != 0 &&
           ((record->op == OP_WAIT && record->code == 0 && !(may_have_ended && is_as_redisson(record->process))) ||
            (record->op == OP_COUNTDOWN && record->code == ENOENT && !may_have_ended));
}

static int64_t certain_counts(const struct latch *latch, int64_t by_ns)
{
    int64_t counts = 0;
    for (size_t i = 0; i < latch->count; i++)
        if (latch->records[i]->op == OP_COUNTDOWN && latch->records[i]->return_ns != 0 &&
            latch->records[i]->code == 0 && latch->records[i]->return_ns <= by_ns)
            counts++;
    return counts;
}

static void find_opening(struct latch *latch)
{
    latch->opened_ns = INT64_MAX;
    for (size_t i = 0; i < latch->count; i++) {
        const struct record *record = latch->records[i];
        bool last = record->op == OP_COUNTDOWN && record->return_ns != 0 && record->code == 0 &&
                    certain_counts(latch, record->return_ns) >= latch->size;
        if ((last || says_open(latch, record)) && record->return_ns < latch->opened_ns)
            latch->opened_ns = record->return_ns;
    }
}

/* An anonymous one ends when its client is cut off for a lease, and each call says ESTALE. */
static bool may_be_over(const struct report *report, const struct record *record)
{
    const struct history *history = report->history;
    int64_t since_ns = record->invoke_ns - (history->lease_ms + history->slack_ms) * NS_PER_MS;
    return kind_of(record->object) == ALONE && record->code == ESTALE &&
           disturbed(history, record->process, since_ns, record->return_ns);
}

static void check_record(struct report *report, const struct latch *latch, const struct record *record)
{
    if (says_open(latch, record) && counts_before(latch, record) < latch->size)
        violation(report, I8, record, NULL, "open after %lld of %lld counts", (long long)counts_before(latch, record),
                  (long long)latch->size);
    if (record->op == OP_WAIT && (record->code == ENOENT || record->code == ESTALE) &&
        record->return_ns < latch->ends_ns && !may_be_over(report, record))
        violation(report, I8, record, NULL, "a latch that was set is not known");
    if (record->op == OP_COUNTDOWN && record->code == 0 && record->invoke_ns > latch->ended_ns)
        violation(report, I8, record, NULL, "counted after its end");
    if (record->invoke_ns <= latch->opened_ns || record->return_ns == 0)
        return;
    if (record->op == OP_COUNTDOWN && record->code == 0)
        violation(report, I8, record, NULL, "counted after it had opened");
    if (record->op == OP_WAIT && record->code == ETIMEDOUT)
        violation(report, I8, record, NULL, "closed after it had opened");
}

/* No count was set, as far as is known: then no promise was made. */
static bool was_set(struct latch *latch, int64_t slack_ms)
{
    latch->ends_ns = latch->ended_ns = INT64_MAX;
    for (size_t i = 0; i < latch->count; i++) {
        const struct record *record = latch->records[i];
        if (record->op != OP_SET || record->return_ns == 0 || record->code != 0)
            continue;
        latch->size = record->permits;
        if (has_ttl(record->object, record->instance)) {
            latch->ends_ns = record->invoke_ns + LATCH_TTL_MS * NS_PER_MS;
            latch->ended_ns = record->return_ns + (LATCH_TTL_MS + slack_ms) * NS_PER_MS;
        }
    }
    return latch->size != 0;
}

/* A server that loses its data loses counts: whether the latch opened is not promised then. */
static bool data_was_lost(const struct history *history, const struct latch *latch)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < latch->count; i++)
        if (latch->records[i]->return_ns > last_ns)
            last_ns = latch->records[i]->return_ns;
    return lost_within(history, latch->records[0]->object, latch->records[0]->invoke_ns, last_ns);
}

/* Who waits for a count to appear is never told that there is none, nor let through before one was set. */
static void check_appearing(struct report *report, const struct latch *latch)
{
    bool may_be_set = data_was_lost(report->history, latch);
    for (size_t i = 0; i < latch->count; i++)
        may_be_set = may_be_set || latch->records[i]->op == OP_SET;
    for (size_t i = 0; i < latch->count; i++) {
        const struct record *record = latch->records[i];
        if (record->op == OP_WAIT && record->return_ns != 0 &&
            (record->code == ENOENT || (record->code == 0 && !may_be_set)))
            violation(report, I8, record, NULL, "did not wait for a count to be set");
    }
}

static void check_latch(struct report *report, struct latch *latch)
{
    if (is_appearing(latch->records[0]->object))
        check_appearing(report, latch);
    if (!was_set(latch, report->history->slack_ms) || data_was_lost(report->history, latch))
        return;
    find_opening(latch);
    report->latches++;
    if (certain_counts(latch, INT64_MAX) > latch->size)
        violation(report, I8, latch->records[0], NULL, "%lld counts of %lld",
                  (long long)certain_counts(latch, INT64_MAX), (long long)latch->size);
    for (size_t i = 0; i < latch->count; i++)
        check_record(report, latch, latch->records[i]);
}

void check_latches(struct report *report)
{
    const struct history *history = report->history;
    const struct record **records = calloc(history->count + 1, sizeof *records);
    size_t count = 0;
    if (records == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++)
        if (is_latch(history->records[i].object) && history->records[i].op < OP_LOST)
            records[count++] = &history->records[i];
    qsort(records, count, sizeof *records, by_instance);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && same_instance(records[end], records[first]);)
            end++;
        struct latch latch = { .records = records + first, .count = end - first };
        check_latch(report, &latch);
    }
    free(records);
}
