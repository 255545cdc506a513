/* SPDX-License-Identifier: MIT */
/*
 * check_time.c - I11: each call returns by its limit and one command timeout
 */
#include "check.h"

#define ANY_MS (INT64_MAX / NS_PER_MS / 4) /* may take as long as it likes, but returns */

/* -1: need not return. */
static int64_t longest_ms(const struct history *history, const struct record *record)
{
    switch (record->op) {
    case OP_TAKE:
    case OP_SHARE:
    case OP_NEST:
    case OP_WAIT:
    case OP_MEET:
        return record->limit_ms + history->command_ms;
    case OP_ASK:
    case OP_EXTEND:
    case OP_GIVE:
    case OP_UNNEST:
    case OP_DOWNGRADE:
    case OP_FORCE:
    case OP_RESIZE:
    case OP_MAKE:
    case OP_SET:
    case OP_COUNTDOWN:
    case OP_SIGNAL:
    case OP_RESULT:
    case OP_RESET:
        return history->command_ms;
    case OP_SLEEP: /* cond.h: after its time it waits for the mutex, as long as others hold it */
        return ANY_MS;
    case OP_CLOSE: /* client.h: two command timeouts at most */
        return 2 * history->command_ms;
    case OP_CHECK: /* semaphore.h: of a permit that this client has no more the server is asked */
        return kind_of(record->object) == BYID ? history->command_ms : 0;
    case OP_REPAIR:
    case OP_WRITE:
        return 0;
    default:
        return -1;
    }
}

static bool was_killed(const struct history *history, const struct record *of)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_CLOSE && record->process == of->process && record->incarnation == of->incarnation)
            return false;
    }
    return true;
}

/* Nobody can return while his process is stopped or not given the processor; the promise is about the library. */
static void check_record(struct report *report, const struct record *record)
{
    const struct history *history = report->history;
    int64_t limit_ms = longest_ms(history, record);
    if (limit_ms < 0)
        return;
    if (record->return_ns == 0) {
        if (!was_killed(history, record))
            violation(report, I11, record, NULL, "never returned");
        return;
    }
    int64_t late_ns = record->return_ns - record->invoke_ns - (limit_ms + history->slack_ms) * NS_PER_MS;
    if (late_ns <= 0)
        return;
    late_ns -= asleep_ns(history, record->process, record->invoke_ns, record->return_ns);
    if (late_ns > 0)
        violation(report, I11, record, NULL, "returned %lld ms too late", (long long)(late_ns / NS_PER_MS));
}

void check_time(struct report *report)
{
    for (size_t i = 0; i < report->history->count; i++)
        check_record(report, &report->history->records[i]);
}
