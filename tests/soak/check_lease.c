/* SPDX-License-Identifier: MIT */
/*
 * check_lease.c - I16: a lease that is not renewed ends in time, and a name is kept as long as its holder said
 */
#include "check.h"

int64_t longest_hold_ms(const struct history *history, uint32_t object)
{
    switch (kind_of(object)) {
    case FIXED:
        return history->lease_ms;
    case CAPPED:
        return capped_ms(history->lease_ms);
    default:
        return INT64_MAX / NS_PER_MS / 2;
    }
}

/*
 * The grant was made before the take returned. One that came by hand-over gets its fixed lease when it is confirmed,
 * and the last renewal before a cap may be sent and carried out a little later than it was thought of.
 */
static void check_ends(struct report *report)
{
    const struct history *history = report->history;
    const struct record *take = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record))
            take = is_granted(record) ? record : NULL;
        if (take == NULL || !same_tape(take, record) || record->hold != take->hold || record->valid_ns == 0)
            continue;
        int64_t most_ms = longest_hold_ms(history, record->object);
        int64_t late_ms = kind_of(record->object) == FIXED ? history->slack_ms : history->command_ms;
        if ((record->op == OP_CHECK || record == take) && record->code != ESTALE && record->valid_ns != INT64_MAX &&
            record->valid_ns > take->return_ns + (most_ms + late_ms) * NS_PER_MS)
            violation(report, I16, record, take, "good for more than %lld ms", (long long)most_ms);
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
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        if (kind_of(history->holds[first].take->object) == CAPPED)
            check_kept(report, first, end);
    }
}
