/* SPDX-License-Identifier: MIT */
/*
 * check_rate.c - I10: who has time enough and is not disturbed gets what he asks for, in 999 of 1000 cases
 *
 * A lock that grants nothing keeps all the other promises. In calm check_calm.c asks for more; this one also looks
 * at the lulls of the storm, where the library has just come through something.
 */
#include "check.h"

#define FEW 1000 /* of fewer acquires one may fail */

/* Holds are short: with a limit of three leases nobody times out because of others. */
static bool is_patient(const struct history *history, const struct record *record)
{
    return is_take(record) && record->limit_ms >= 3 * history->lease_ms;
}

/* When the first process began to end, which keeps a machine busy. */
static int64_t first_close(const struct history *history)
{
    int64_t first_ns = INT64_MAX;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_CLOSE && record->invoke_ns < first_ns)
            first_ns = record->invoke_ns;
    }
    return first_ns;
}

/*
 * Holds of the dead end, and everybody connects again, within a lease after a fault. What comes after `stop_ns` is
 * no matter to who was through by then.
 */
static bool is_undisturbed(const struct history *history, const struct record *record, int64_t stop_ns)
{
    int64_t before_ns = (history->lease_ms + history->slack_ms) * NS_PER_MS;
    int64_t until_ns = record->invoke_ns + record->limit_ms * NS_PER_MS;
    if (until_ns > stop_ns && record->return_ns != 0 && record->return_ns < stop_ns)
        until_ns = stop_ns;
    return !anybody_disturbed(history, record->invoke_ns - before_ns, until_ns);
}

static bool counts(const struct history *history, const struct record *record, int64_t stop_ns)
{
    if (!is_patient(history, record) || record->code == ENOTRECOVERABLE ||
        is_answer(record)) /* an answer, not a failure */
        return false;
    if (is_counting(record->object) && record->invoke_ns < history->calm_ns)
        return false; /* its permits may have died with somebody */
    return is_undisturbed(history, record, stop_ns);
}

void check_rate(struct report *report)
{
    const struct history *history = report->history;
    const struct record *failure = NULL;
    int64_t acquires = 0, failures = 0, stop_ns = first_close(history);
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (!counts(history, record, stop_ns))
            continue;
        acquires++;
        report->acquires[kind_of(record->object)]++;
        if (is_granted(record))
            continue;
        failures++;
        failure = record;
    }
    report->failed += failures;
    if (failures * 1000 > (acquires > FEW ? acquires : FEW))
        violation(report, I10, failure, NULL, "%lld of %lld acquires failed that had time and were not disturbed",
                  (long long)failures, (long long)acquires);
}
