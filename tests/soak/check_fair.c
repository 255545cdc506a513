/* SPDX-License-Identifier: MIT */
/*
 * check_fair.c - I5: of two that wait for a fair mutex, the one that came first gets it first
 *
 * When a request reached the queue is not known here; but one that was made so much earlier than another,
 * while nothing happened to its process or the server, was there first.
 */
#include "check.h"

/*
 * Newcomers pass nobody that listens, says docs/keys.md; a client that was cut off does not, until it is connected
 * again, which takes a tenth of a lease or two. So only those count who were not disturbed while they waited nor
 * shortly before. Who came later may have been: that only holds him up.
 */
static void check_pair(struct report *report, const struct hold *early, const struct hold *late)
{
    const struct record *first = early->take, *second = late->take;
    int64_t connected_ns = report->history->lease_ms * NS_PER_MS / 4;
    if (disturbed(report->history, first->process, first->invoke_ns - connected_ns, first->return_ns) ||
        machine_slow(report->history, first->invoke_ns - connected_ns, second->invoke_ns))
        return;
    report->pairs++;
    if (second->return_ns < first->return_ns)
        violation(report, I5, second, first, "granted before one that came %lld ms earlier",
                  (long long)((second->invoke_ns - first->invoke_ns) / NS_PER_MS));
}

/* Those that came while this one waited. */
static void check_waiter(struct report *report, size_t waiter, size_t first, size_t end)
{
    const struct hold *holds = report->history->holds;
    int64_t clearly_ns = report->history->slack_ms * NS_PER_MS / 4;
    for (size_t i = first; i < end; i++)
        if (holds[i].take->invoke_ns > holds[waiter].take->invoke_ns + clearly_ns &&
            holds[i].take->invoke_ns < holds[waiter].take->return_ns)
            check_pair(report, &holds[waiter], &holds[i]);
}

static void check_group(struct report *report, size_t first, size_t end)
{
    const struct hold *holds = report->history->holds;
    int64_t clearly_ns = report->history->slack_ms * NS_PER_MS / 4;
    for (size_t i = first; i < end; i++)
        if (holds[i].take->return_ns - holds[i].take->invoke_ns > clearly_ns)
            check_waiter(report, i, first, end);
}

void check_fair(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        if (kind_of(history->holds[first].take->object) == FAIR)
            check_group(report, first, end);
    }
}
