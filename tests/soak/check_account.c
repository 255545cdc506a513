/* SPDX-License-Identifier: MIT */
/*
 * check_account.c - I7 at the end: all permits are there, but those that died with who held them
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#define SETTLED_NS (5000 * NS_PER_MS) /* after an unknown outcome, with a server that answers */

struct account {
    int64_t gone;   /* certainly */
    int64_t unsure; /* perhaps */
};

/* When the client of that record was closed. 0: it was killed. */
static int64_t closed_ns(const struct history *history, const struct record *of)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_CLOSE && record->process == of->process && record->incarnation == of->incarnation)
            return record->invoke_ns;
    }
    return 0;
}

/*
 * semaphore.h: after EIO the library goes on trying for half a minute, and a request counts once. Who is killed
 * meanwhile tries no more, and who closes the client soon afterwards may not have come that far.
 */
static bool settled(const struct history *history, const struct record *record)
{
    return closed_ns(history, record) > record->return_ns + SETTLED_NS;
}

static void count_take(struct account *account, const struct history *history, const struct record *take)
{
    if (take->return_ns == 0 || ((take->code == EIO || take->code == ECANCELED) && !settled(history, take)))
        account->unsure += take->permits;
}

/* Held for good: its holder was killed, or its thread ended; nobody else knows of it. */
static void count_hold(struct account *account, const struct history *history, const struct hold *hold)
{
    const struct record *give = hold->give;
    int64_t permits = hold->take->permits;
    if (give == NULL || (give->return_ns != 0 && give->code == ENOTCONN)) /* ENOTCONN: unchanged, says semaphore.h */
        account->gone += permits;
    else if (give->return_ns == 0 || (give->code == EIO && !settled(history, give)))
        account->unsure += permits;
}

/* Permits that were added: none of them is gone. Whether one was that compared is not settled later. */
static void count_add(struct account *account, const struct history *history, const struct record *add)
{
    bool settles = add->permits == 0 && settled(history, add);
    if (add->return_ns != 0 && (add->code == 0 || (add->code == EIO && settles))) {
        account->gone -= add->limit_ms;
    } else if (add->return_ns == 0 || add->code == EIO) {
        account->unsure += llabs(add->limit_ms);
        account->gone -= add->limit_ms > 0 ? add->limit_ms : 0;
    }
}

/* How many there are in all: neither more nor fewer than were added to what there was at first, whoever has them. */
static void check_sum(struct report *report, const struct record *value)
{
    const struct history *history = report->history;
    struct account account = { 0, 0 };
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_ADD && same_instance(&history->records[i], value))
            count_add(&account, history, &history->records[i]);
    int64_t most = (int64_t)permits_of(value->object) - account.gone, least = most - account.unsure;
    if (value->limit_ms < least || value->limit_ms > most)
        violation(report, I7, value, NULL, "there are %d permits in all at the end, not %lld to %lld", value->limit_ms,
                  (long long)least, (long long)most);
}

static struct account account_of(const struct history *history, const struct record *value)
{
    struct account account = { 0, 0 };
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_TAKE && same_instance(&history->records[i], value))
            count_take(&account, history, &history->records[i]);
        else if (history->records[i].op == OP_ADD && same_instance(&history->records[i], value))
            count_add(&account, history, &history->records[i]);
    for (size_t i = 0; i < history->hold_count; i++)
        if (same_instance(history->holds[i].take, value))
            count_hold(&account, history, &history->holds[i]);
    return account;
}

/* From its first use on: a number that was lost begins anew, and permits of before are added to it. */
static bool data_was_lost(const struct history *history, const struct record *value)
{
    int64_t first_ns = value->invoke_ns;
    for (size_t i = 0; i < history->count; i++)
        if (same_instance(&history->records[i], value) && history->records[i].invoke_ns < first_ns)
            first_ns = history->records[i].invoke_ns;
    return lost_within(history, value->object, first_ns, value->return_ns);
}

/* As many as there were in all at last: all of them, as they are leased. */
static void check_total(struct report *report, const struct record *value)
{
    struct resizes resizes = resizes_of(report->history, value->object);
    int64_t most = most_permits(report->history, &resizes, value->object, value->invoke_ns, value->return_ns);
    if ((int64_t)value->token > most || value->token == 0)
        violation(report, I7, value, NULL, "%lld permits are free at the end, of %lld", (long long)value->token,
                  (long long)most);
    resizes_free(&resizes);
}

void check_account(struct report *report)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *value = &history->records[i];
        struct account account = { 0, 0 };
        if (value->op != OP_VALUE || data_was_lost(history, value))
            continue;
        if (kind_of(value->object) == GROWN)
            check_sum(report, value);
        if (is_counting(value->object)) /* leased permits come back by themselves: all are there */
            account = account_of(history, value);
        int64_t most = (int64_t)permits_of(value->object) - account.gone, least = most - account.unsure;
        report->accounts++;
        if (kind_of(value->object) == RESIZED) {
            check_total(report, value);
            continue;
        }
        if ((int64_t)value->token < least || (int64_t)value->token > most)
            violation(report, I7, value, NULL, "%lld permits are free at the end, not %lld to %lld",
                      (long long)value->token, (long long)least, (long long)most);
    }
}
