/* SPDX-License-Identifier: MIT */
/*
 * check_lease.c - I16: a lease that is not renewed ends in time, and a name is kept as long as its holder said
 */
#include "check.h"

int64_t longest_hold_ms(const struct history *history, const struct record *record)
{
    if (is_fixed(record))
        return history->lease_ms;
    return kind_of(record->object) == CAPPED ? capped_ms(history->lease_ms) : INT64_MAX / NS_PER_MS / 2;
}

/*
 * The grant was made before the take returned. One that came by hand-over gets its fixed lease when it is confirmed,
 * and the last renewal before a cap may be sent and carried out a little later than it was thought of.
 */
static void check_ends(struct report *report)
{
    const struct history *history = report->history;
    const struct record *take = NULL;
    int64_t since_ns = 0; /* when its last lease may have begun */
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record)) {
            take = is_granted(record) ? record : NULL;
            since_ns = record->return_ns;
        }
        if (take == NULL || !same_tape(take, record) || record->hold != take->hold || record->valid_ns == 0)
            continue;
        if (record->op == OP_EXTEND && is_fixed(record))
            since_ns = record->return_ns;
        int64_t most_ms = longest_hold_ms(history, record);
        int64_t late_ms = is_fixed(record) ? history->slack_ms : history->command_ms;
        if ((record->op == OP_CHECK || record == take) && record->code != ESTALE && record->valid_ns != INT64_MAX &&
            record->valid_ns > since_ns + (most_ms + late_ms) * NS_PER_MS)
            violation(report, I16, record, take, "good for more than %lld ms", (long long)most_ms);
    }
}

/* Its validity is counted from before the request was sent, by a thread that may wait for its turn, a hundredth and 2 ms less. */
static void check_extended(struct report *report)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op != OP_EXTEND || record->return_ns == 0 || record->code != 0 || record->valid_ns == 0)
            continue;
        int64_t least_ms = kind_of(record->object) == CAPPED ? 0 : record->limit_ms * 99 / 100 - 105 - history->skew_ms;
        if (record->valid_ns < record->invoke_ns + least_ms * NS_PER_MS ||
            record->valid_ns > record->return_ns + record->limit_ms * NS_PER_MS)
            violation(report, I16, record, NULL, "good for %lld ms after it got a lease of %d",
                      (long long)((record->valid_ns - record->invoke_ns) / NS_PER_MS), record->limit_ms);
    }
}

/* Nobody else gets it before the earliest moment at which it can have been granted, and as long as was asked for. */
static void check_kept(struct report *report, size_t first, size_t end)
{
    const struct hold *holds = report->history->holds;
    for (size_t i = first + 1; i < end; i++) {
        const struct hold *before = &holds[i - 1], *after = &holds[i];
        if (after->take->token > before->take->token && before->take->token != 0 &&
            after->from_ns < before->take->invoke_ns + MIN_HOLD_MS * NS_PER_MS &&
            !lost_within(report->history, before->take->object, before->take->invoke_ns, after->from_ns))
            violation(report, I16, after->take, before->take, "granted within the time that it was to be kept");
    }
}

void check_lease(struct report *report)
{
    const struct history *history = report->history;
    check_ends(report);
    check_extended(report);
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        if (kind_of(history->holds[first].take->object) == CAPPED)
            check_kept(report, first, end);
    }
}
