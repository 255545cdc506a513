/* SPDX-License-Identifier: MIT */
/*
 * check_once.c - I20: at most one run completes, unless somebody has it forgotten, and all are told of that one. That no two run
 * at once, I1 looks at
 */
#include "check.h"

#include <stdlib.h>

/* What was done with one name. */
struct run {
    const struct record **records;
    size_t count;
    bool forgotten; /* at some time, perhaps */
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

static int64_t end_of(const struct record *record)
{
    return record->return_ns != 0 ? record->return_ns : INT64_MAX;
}

static bool is_complete(const struct record *record)
{
    return record->op == OP_GIVE && record->token != 0 && record->return_ns != 0 && record->code == 0;
}

/* once.h: the library goes on trying, so after most codes it may be done later. */
static bool may_complete(const struct record *record)
{
    return record->op == OP_GIVE && record->token != 0 &&
           (record->return_ns == 0 || (record->code != ESTALE && record->code != EPERM && record->code != ENOMEM));
}

static bool may_forget(const struct record *record)
{
    return record->op == OP_RESET && (record->return_ns == 0 || record->code == 0 || record->code == EIO);
}

/* May it have been forgotten between the beginning of one and the end of the other? */
static bool forgotten_between(const struct run *run, const struct record *first, const struct record *second)
{
    for (size_t i = 0; run->forgotten && i < run->count; i++)
        if (may_forget(run->records[i]) && run->records[i]->invoke_ns < end_of(second) &&
            (run->records[i]->code != 0 || end_of(run->records[i]) > first->invoke_ns))
            return true; /* a request without an answer may be carried out later */
    return false;
}

/* Did some run complete before that returned, with that result if it is not 0? */
static bool may_be_done(const struct run *run, const struct record *record, uint64_t result)
{
    for (size_t i = 0; i < run->count; i++)
        if (may_complete(run->records[i]) && run->records[i]->invoke_ns < end_of(record) &&
            (result == 0 || run->records[i]->token == result))
            return true;
    return false;
}

/* It was certainly done by then, and not forgotten: the run that completed. */
static const struct record *done_before(const struct run *run, const struct record *record)
{
    for (size_t i = 0; i < run->count; i++)
        if (is_complete(run->records[i]) && run->records[i]->return_ns < record->invoke_ns &&
            !forgotten_between(run, run->records[i], record))
            return run->records[i];
    return NULL;
}

static void check_record(struct report *report, const struct run *run, const struct record *record)
{
    const struct record *done = done_before(run, record);
    if (record->return_ns == 0)
        return;
    if (done != NULL && is_complete(record))
        violation(report, I20, record, done, "a second run completed");
    if (done != NULL && is_granted(record))
        violation(report, I20, record, done, "run again, although it was done");
    if (done != NULL && record->op == OP_RESULT && record->code == ENOENT)
        violation(report, I20, record, done, "it was done, and that is not known");
    if (record->op == OP_TAKE && record->code == EALREADY && !may_be_done(run, record, 0))
        violation(report, I20, record, NULL, "said to be done, and no run had completed");
    if (record->op == OP_RESULT && record->code == 0 && !may_be_done(run, record, record->token))
        violation(report, I20, record, NULL, "a result that no run had");
    if (done != NULL && record->op == OP_RESULT && record->code == 0 && record->token != done->token)
        violation(report, I20, record, done, "not the result of the run that completed");
}

/* Two runs may say at about the same time that they completed, and two may hear of different ones. */
static void check_pairs(struct report *report, const struct run *run)
{
    const struct record *complete = NULL, *result = NULL;
    for (size_t i = 0; !run->forgotten && i < run->count; i++) {
        const struct record *record = run->records[i];
        if (is_complete(record) && complete != NULL && complete->return_ns >= record->invoke_ns)
            violation(report, I20, record, complete, "two runs completed");
        if (is_complete(record))
            complete = record;
        if (record->op != OP_RESULT || record->return_ns == 0 || record->code != 0)
            continue;
        if (result != NULL && result->token != record->token)
            violation(report, I20, record, result, "two results");
        result = record;
    }
    report->runs += complete != NULL;
}

/* A server that loses its data forgets what is done. */
static bool data_was_lost(const struct history *history, const struct run *run)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < run->count; i++)
        if (run->records[i]->return_ns > last_ns)
            last_ns = run->records[i]->return_ns;
    return lost_within(history, run->records[0]->object, run->records[0]->invoke_ns, last_ns);
}

static void check_run(struct report *report, struct run *run)
{
    if (data_was_lost(report->history, run))
        return;
    for (size_t i = 0; i < run->count; i++)
        run->forgotten = run->forgotten || may_forget(run->records[i]);
    for (size_t i = 0; i < run->count; i++)
        check_record(report, run, run->records[i]);
    check_pairs(report, run);
}

void check_once(struct report *report)
{
    const struct history *history = report->history;
    const struct record **records = calloc(history->count + 1, sizeof(*records));
    size_t count = 0;
    if (records == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++)
        if (kind_of(history->records[i].object) == ONCE && history->records[i].op < OP_LOST)
            records[count++] = &history->records[i];
    qsort(records, count, sizeof(*records), by_instance);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && same_instance(records[end], records[first]);)
            end++;
        struct run run = { .records = records + first, .count = end - first };
        check_run(report, &run);
    }
    free(records);
}
