/* SPDX-License-Identifier: MIT */
/*
 * check_buffer.c - I17: each item of a buffer is put once and taken once, nobody changes it but who has the mutex, and no
 * signal is lost
 */
#include "check.h"

#include <stdlib.h>

#define ITEMS_MAX (1 << 16)
#define LIVENESS_NS (5000 * NS_PER_MS) /* Lw: so long a dead waiter keeps its place, and again a signal */

struct items {
    const struct record *put, *taken; /* NULL: nobody did, or may have */
};

/* Who was killed may have come that far. */
static bool may_have_moved(const struct record *record)
{
    return record->return_ns == 0 || record->code == 0;
}

static int64_t end_of(const struct record *record)
{
    return record->return_ns != 0 ? record->return_ns : INT64_MAX;
}

static void note_move(struct report *report, struct items *items, const struct record *move)
{
    struct items *item = &items[move->token % ITEMS_MAX];
    const struct record **done = move->permits != 0 ? &item->taken : &item->put;
    if (*done != NULL && (*done)->return_ns != 0 && move->return_ns != 0)
        violation(report, I17, move, *done, "item %d was %s twice", (int)move->token,
                  move->permits != 0 ? "taken" : "put");
    if (*done == NULL || (*done)->return_ns == 0)
        *done = move;
}

static void check_item(struct report *report, const struct items *items, int number)
{
    const struct record *put = items[number].put, *taken = items[number].taken;
    if (taken != NULL && put == NULL)
        violation(report, I17, taken, NULL, "item %d was taken, and nobody had put it", number);
    else if (taken != NULL && put->invoke_ns > end_of(taken))
        violation(report, I17, taken, put, "item %d was taken before it was put", number);
    if (put == NULL || number < BUFFER_ROOM)
        return;
    const struct record *before = items[number - BUFFER_ROOM].taken;
    if (before == NULL || before->invoke_ns > end_of(put))
        violation(report, I17, put, NULL, "item %d was put where there was no room", number);
}

/* The word is changed by its holder alone; where the server lost the hold, or a failover did, by another one, too. */
static void check_refused(struct report *report, const struct record *move)
{
    const struct history *history = report->history;
    if (move->return_ns != 0 && move->code == EBUSY &&
        !lost_within(history, move->object, move->invoke_ns - history->lease_ms * NS_PER_MS, move->return_ns))
        violation(report, I17, move, NULL, "somebody else changed the buffer within a valid hold");
}

static void check_moves(struct report *report, uint32_t object)
{
    const struct history *history = report->history;
    struct items *items = calloc(ITEMS_MAX, sizeof *items);
    if (items == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->object != object || record->op != OP_MOVE)
            continue;
        check_refused(report, record);
        if (may_have_moved(record))
            note_move(report, items, record);
    }
    for (int number = 0; number < ITEMS_MAX; number++) {
        check_item(report, items, number);
        report->items += items[number].taken != NULL;
    }
    free(items);
}

/* --- signals --------------------------------------------------------------------------------------------------------- */

/* Of one condition. */
struct sleeps {
    const struct record **records, **signals;
    size_t count, signal_count;
};

static struct sleeps sleeps_of(const struct history *history, uint32_t object, bool items)
{
    struct sleeps sleeps = { calloc(history->count + 1, sizeof *sleeps.records),
                             calloc(history->count + 1, sizeof *sleeps.signals), 0, 0 };
    if (sleeps.records == NULL || sleeps.signals == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->object != object || record->permits != items)
            continue;
        if (record->op == OP_SLEEP)
            sleeps.records[sleeps.count++] = record;
        else if (record->op == OP_SIGNAL && record->return_ns != 0 && record->code == 0)
            sleeps.signals[sleeps.signal_count++] = record;
    }
    return sleeps;
}

/*
 * May a signal of that time have been for this waiter? One that comes back at its limit has passed its own on. What became of
 * any other is not known, and it may keep its place and its signal for a while.
 */
static bool may_have_taken(const struct record *sleep, int64_t from_ns, int64_t until_ns)
{
    bool woken = sleep->return_ns != 0 && sleep->code == 0;
    if (sleep->invoke_ns >= until_ns || (sleep->return_ns != 0 && sleep->code == ETIMEDOUT))
        return false;
    return end_of(sleep) > (woken ? from_ns : from_ns - 2 * LIVENESS_NS);
}

/*
 * While this one slept, each signal woke another one. It was queued by `from_ns`; a signal until `until_ns` would have given it
 * the mutex before it came back, if it was for this one.
 */
static void check_sleep(struct report *report, const struct sleeps *sleeps, const struct record *sleep, int64_t from_ns,
                        int64_t until_ns)
{
    const struct record *last = NULL;
    int64_t signals = 0, takers = 0;
    for (size_t i = 0; i < sleeps->signal_count; i++) {
        const struct record *signal = sleeps->signals[i];
        if (signal->invoke_ns < from_ns || signal->return_ns > until_ns)
            continue;
        signals += signal->token != 0 ? (int64_t)sleeps->count : 1; /* one for all is for this one as well */
        last = signal;
    }
    for (size_t i = 0; i < sleeps->count; i++)
        takers += sleeps->records[i] != sleep && may_have_taken(sleeps->records[i], from_ns, until_ns);
    report->sleeps += signals > 0;
    if (signals > takers)
        violation(report, I17, sleep, last, "slept on while %lld signals came that were for %lld others at most",
                  (long long)signals, (long long)takers);
}

static void check_condition(struct report *report, uint32_t object, bool items)
{
    const struct history *history = report->history;
    struct sleeps sleeps = sleeps_of(history, object, items);
    int64_t back_ns = (history->lease_ms + history->slack_ms) * NS_PER_MS;
    for (size_t i = 0; i < sleeps.count; i++) {
        const struct record *sleep = sleeps.records[i];
        if (sleep->return_ns != 0 && sleep->code == EINVAL)
            violation(report, I17, sleep, NULL, "all sleep with the same mutex");
        int64_t from_ns = sleep->invoke_ns + history->command_ms * NS_PER_MS;
        int64_t limit_ns = sleep->invoke_ns + sleep->limit_ms * NS_PER_MS;
        int64_t until_ns =
            (sleep->return_ns < limit_ns ? sleep->return_ns : limit_ns) - history->lease_ms * NS_PER_MS / 2;
        if (is_slept(sleep) && sleep->code != ECANCELED && until_ns > from_ns &&
            !anybody_disturbed(history, sleep->invoke_ns - back_ns, sleep->return_ns) &&
            !machine_slow(history, sleep->invoke_ns - back_ns, sleep->return_ns))
            check_sleep(report, &sleeps, sleep, from_ns, until_ns);
    }
    free(sleeps.records);
    free(sleeps.signals);
}

/* All levels come back, and no more. */
static void check_levels(struct report *report, const struct record *record)
{
    if (kind_of(record->object) == BUFFER && (record->op == OP_GIVE || record->op == OP_UNNEST) &&
        record->return_ns != 0 && record->code == EPERM)
        violation(report, I17, record, NULL, "held with fewer levels than before");
}

void check_buffer(struct report *report)
{
    for (unsigned index = 0; index < HOT; index++) {
        check_moves(report, object_of(BUFFER, index));
        check_condition(report, object_of(BUFFER, index), false);
        check_condition(report, object_of(BUFFER, index), true);
    }
    for (size_t i = 0; i < report->history->count; i++)
        check_levels(report, &report->history->records[i]);
}
