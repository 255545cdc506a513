/* SPDX-License-Identifier: MIT */
/*
 * check_totals.c - I7 of semaphores whose number of permits changes, and of those that are deleted and made: who
 * compares finds a number that there was, who makes one finds none
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

struct resizes resizes_of(const struct history *history, uint32_t object)
{
    struct resizes resizes = { NULL, 0 };
    if (kind_of(object) != RESIZED && kind_of(object) != GROWN)
        return resizes;
    resizes.records = calloc(history->count + 1, sizeof *resizes.records);
    if (resizes.records == NULL)
        abort();
    for (size_t i = 0; i < history->count; i++)
        if ((history->records[i].op == OP_RESIZE || history->records[i].op == OP_ADD) &&
            history->records[i].object == object)
            resizes.records[resizes.count++] = &history->records[i];
    return resizes;
}

void resizes_free(struct resizes *resizes)
{
    free(resizes->records);
}

static bool is_certain(const struct record *resize)
{
    return resize->return_ns != 0 && resize->code == 0;
}

/* By when it was carried out, or never will be; -1: it was not. */
static int64_t done_ns(const struct history *history, const struct record *resize)
{
    if (is_certain(resize))
        return resize->return_ns;
    if (resize->return_ns != 0 && resize->code != EIO)
        return -1;
    return resize->invoke_ns + (3 * history->command_ms + history->slack_ms) * NS_PER_MS;
}

/* Did somebody set another number after `since_ns`, and before `by_ns`? */
static bool is_superseded(const struct resizes *resizes, int64_t since_ns, int64_t by_ns)
{
    for (size_t i = 0; i < resizes->count; i++)
        if (is_certain(resizes->records[i]) && resizes->records[i]->invoke_ns > since_ns &&
            resizes->records[i]->return_ns < by_ns)
            return true;
    return false;
}

/* It begins with that, and begins anew when the server loses it. */
static bool may_be_first(const struct history *history, const struct resizes *resizes, uint32_t object, int64_t from_ns,
                         int64_t until_ns)
{
    if (!is_superseded(resizes, 0, from_ns))
        return true;
    for (size_t i = 0; i < history->loss_count; i++) {
        const struct loss *loss = &history->losses[i];
        if (loses(loss, object) && loss->begin_ns < until_ns && !is_superseded(resizes, loss->end_ns, from_ns))
            return true;
    }
    return false;
}

/* A new master may know of an earlier number, until somebody sets another one there. */
static bool may_be_earlier(const struct history *history, const struct resizes *resizes, uint32_t object,
                           int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->loss_count; i++) {
        const struct loss *loss = &history->losses[i];
        if (loss->failover && loses(loss, object) && loss->begin_ns < until_ns &&
            !is_superseded(resizes, loss->end_ns, from_ns))
            return true;
    }
    return false;
}

/* May there be so many at a moment of that time, without what `but` did? */
static bool may_be(const struct history *history, const struct resizes *resizes, const struct record *but,
                   int64_t total, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < resizes->count; i++) {
        const struct record *resize = resizes->records[i];
        int64_t by_ns = done_ns(history, resize);
        if (resize != but && resize->permits == total && by_ns >= 0 && resize->invoke_ns < until_ns &&
            (!is_superseded(resizes, by_ns, from_ns) ||
             may_be_earlier(history, resizes, resize->object, from_ns, until_ns)))
            return true;
    }
    return false;
}

int64_t most_permits(const struct history *history, const struct resizes *resizes, uint32_t object, int64_t from_ns,
                     int64_t until_ns)
{
    int64_t most = permits_of(object);
    if (may_be_first(history, resizes, object, from_ns, until_ns))
        return most;
    while (most > 0 && !may_be(history, resizes, NULL, most, from_ns, until_ns))
        most--;
    return most;
}

int64_t most_grown(const struct resizes *adds, const struct hold *hold)
{
    int64_t most = permits_of(hold->take->object);
    for (size_t i = 0; i < adds->count; i++) {
        const struct record *add = adds->records[i];
        bool possible = add->return_ns == 0 || add->code == 0 || add->code == EIO;
        if (!same_instance(add, hold->take))
            continue;
        if (add->limit_ms > 0 && possible && add->invoke_ns < hold->from_ns)
            most += add->limit_ms;
        else if (add->limit_ms < 0 && is_certain(add) && add->return_ns < hold->take->invoke_ns)
            most += add->limit_ms;
    }
    return most;
}

static void check_resizes(struct report *report, uint32_t object)
{
    const struct history *history = report->history;
    struct resizes resizes = resizes_of(history, object);
    for (size_t i = 0; i < resizes.count; i++) {
        const struct record *record = resizes.records[i];
        if (record->return_ns == 0 || (record->code != 0 && record->code != EEXIST))
            continue;
        int64_t found = record->code == 0 ? (int64_t)record->token : record->limit_ms;
        bool first = found == permits_of(object) &&
                     may_be_first(history, &resizes, object, record->invoke_ns, record->return_ns);
        if (record->code == EEXIST && found == (int64_t)record->token)
            violation(report, I7, record, NULL, "refused although there were as many as expected");
        else if (!first && !may_be(history, &resizes, record, found, record->invoke_ns, record->return_ns))
            violation(report, I7, record, NULL, "found %lld permits, which nobody had set", (long long)found);
    }
    resizes_free(&resizes);
}

/* Who made a semaphore, or took a permit, has seen that there is one: until somebody deletes it. */
static void check_makes(struct report *report, uint32_t object)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i], *seen = NULL;
        bool none = record->op == OP_MAKE ? record->code == 0 : record->op == OP_FORCE && record->code == ENOENT;
        if (record->object != object || record->return_ns == 0 || !none)
            continue;
        for (size_t j = 0; j < history->count; j++) {
            const struct record *other = &history->records[j];
            bool is_there = is_granted(other) || (other->op == OP_MAKE && other->code == 0);
            if (other->object == object && is_there && other->return_ns != 0 && other->return_ns < record->invoke_ns &&
                (seen == NULL || other->invoke_ns > seen->invoke_ns))
                seen = other;
        }
        if (seen != NULL && !lost_within(history, object, seen->invoke_ns, record->return_ns))
            violation(report, I7, record, seen, "there was one, and nobody had deleted it");
    }
}

void check_totals(struct report *report)
{
    for (unsigned index = 0; index < HOT; index++) {
        check_resizes(report, object_of(RESIZED, index));
        check_makes(report, object_of(REMOVED, index));
    }
}
