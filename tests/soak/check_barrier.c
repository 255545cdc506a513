/* SPDX-License-Identifier: MIT */
/*
 * check_barrier.c - I19: with each party that passes as many others pass as it takes, one of them is the serial one; a round
 * that broke is broken for all who waited, and nobody passes before somebody begins anew
 *
 * Which round a call came to it does not tell. All that pass one were there at one moment, so their times overlap, and each
 * belongs to one round.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* Of one barrier, in order of their beginnings. */
struct meets {
    const struct record **records, **resets;
    int64_t *ends; /* of each record: by then the server does not count it any more */
    size_t count, reset_count;
    size_t others; /* with whom each passes */
    int *seats;    /* of each record: how many seats of its round are taken. Of who is matched: unused */
    size_t *round; /* of each record: in whose round it is, NOBODY */
    bool *tried;
};

#define NOBODY SIZE_MAX

static int64_t end_of(const struct record *record)
{
    return record->return_ns != 0 ? record->return_ns : INT64_MAX;
}

static bool has_passed(const struct record *record)
{
    return record->return_ns != 0 && record->code == 0;
}

static bool is_serial(const struct record *record)
{
    return has_passed(record) && record->token == MET_SERIAL;
}

static bool was_told(const struct record *record)
{
    return record->return_ns != 0 && record->code == ECANCELED && record->token != MET_CANCELLED;
}

/* Killed, cancelled, or without an answer: it may have passed, even as the serial one. */
static bool is_unknown(const struct record *record)
{
    return record->return_ns == 0 || (record->code != 0 && record->code != ETIMEDOUT && !was_told(record));
}

/* Of one whose leaving was not answered the server may count the coming, as long as it has a lease. */
static int64_t counts_until(const struct history *history, const struct record *record)
{
    int64_t lasts_ms = history->lease_ms + history->command_ms + history->slack_ms;
    return is_unknown(record) && record->return_ns != 0 ? record->return_ns + lasts_ms * NS_PER_MS : end_of(record);
}

static bool overlap(const struct meets *meets, size_t one, size_t other)
{
    return meets->records[one]->invoke_ns < meets->ends[other] && meets->records[other]->invoke_ns < meets->ends[one];
}

/* A server that loses its data, or a failover, may lose who came. */
static bool is_excused(const struct history *history, const struct record *record)
{
    return lost_within(history, record->object, record->invoke_ns - history->lease_ms * NS_PER_MS, end_of(record));
}

static int by_invocation(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left, *b = *(const struct record *const *)right;
    return (a->invoke_ns > b->invoke_ns) - (a->invoke_ns < b->invoke_ns);
}

static void *room_for(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static struct meets meets_of(const struct history *history, uint32_t object)
{
    struct meets meets = { .records = room_for(history->count, sizeof *meets.records),
                           .resets = room_for(history->count, sizeof *meets.resets),
                           .others = parties_of(object) - 1 };
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].object == object && history->records[i].op == OP_MEET)
            meets.records[meets.count++] = &history->records[i];
        else if (history->records[i].object == object && history->records[i].op == OP_RESET)
            meets.resets[meets.reset_count++] = &history->records[i];
    qsort(meets.records, meets.count, sizeof *meets.records, by_invocation);
    meets.ends = room_for(meets.count, sizeof *meets.ends);
    for (size_t i = 0; i < meets.count; i++)
        meets.ends[i] = counts_until(history, meets.records[i]);
    meets.seats = room_for(meets.count, sizeof *meets.seats);
    meets.round = room_for(meets.count, sizeof *meets.round);
    meets.tried = room_for(meets.count, sizeof *meets.tried);
    return meets;
}

static void meets_free(struct meets *meets)
{
    free(meets->records);
    free(meets->resets);
    free(meets->ends);
    free(meets->seats);
    free(meets->round);
    free(meets->tried);
}

/* --- who passed with whom: a matching of parties and the seats of rounds -------------------------------------------- */

/* Find party `i` a round of one of `rounds`, if others have to move for it. */
static bool find_round(struct meets *meets, size_t i, bool (*rounds)(const struct record *))
{
    for (size_t k = 0; k < meets->count && meets->records[k]->invoke_ns < meets->ends[i]; k++) {
        if (k == i || meets->tried[k] || !rounds(meets->records[k]) || !overlap(meets, i, k))
            continue;
        meets->tried[k] = true;
        bool free_seat = (size_t)meets->seats[k] < meets->others;
        for (size_t j = 0; !free_seat && j < meets->count; j++)
            if (meets->round[j] == k && find_round(meets, j, rounds)) {
                meets->seats[k]--;
                free_seat = true;
            }
        if (!free_seat)
            continue;
        meets->seats[k]++;
        meets->round[i] = k;
        return true;
    }
    return false;
}

static bool may_be_serial(const struct record *record)
{
    return is_serial(record) || is_unknown(record);
}

static void begin_matching(struct meets *meets)
{
    memset(meets->seats, 0, meets->count * sizeof *meets->seats);
    for (size_t i = 0; i < meets->count; i++)
        meets->round[i] = NOBODY;
}

static bool match(struct meets *meets, size_t i, bool (*rounds)(const struct record *))
{
    memset(meets->tried, 0, meets->count * sizeof *meets->tried);
    return find_round(meets, i, rounds);
}

/* Each that passed, but for the serial ones, did so in the round of a serial one. */
static void check_parties(struct report *report, struct meets *meets)
{
    begin_matching(meets);
    for (size_t i = 0; i < meets->count; i++) {
        const struct record *record = meets->records[i];
        if (has_passed(record) && !is_serial(record) && !match(meets, i, may_be_serial) &&
            !is_excused(report->history, record))
            violation(report, I19, record, NULL, "passed, and there was no serial party for it");
    }
}

/* The round of each serial one is full: first come those that passed for certain. */
static void check_serials(struct report *report, struct meets *meets)
{
    begin_matching(meets);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < meets->count; i++) {
            const struct record *record = meets->records[i];
            bool certain = has_passed(record) && !is_serial(record);
            if (pass == 0 ? certain : is_unknown(record))
                match(meets, i, is_serial);
        }
    for (size_t i = 0; i < meets->count; i++) {
        const struct record *record = meets->records[i];
        report->meetings += is_serial(record);
        if (is_serial(record) && (size_t)meets->seats[i] < meets->others && !is_excused(report->history, record))
            violation(report, I19, record, NULL, "the serial one of %d others, not %d", meets->seats[i],
                      (int)meets->others);
    }
}

/* --- broken rounds --------------------------------------------------------------------------------------------------- */

static bool is_undisturbed(const struct history *history, int64_t from_ns, int64_t until_ns)
{
    from_ns -= (history->lease_ms + history->slack_ms) * NS_PER_MS;
    return !anybody_disturbed(history, from_ns, until_ns) && !machine_slow(history, from_ns, until_ns);
}

/* Did somebody begin anew between these moments, perhaps? */
static bool was_reset(const struct meets *meets, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < meets->reset_count; i++)
        if (meets->resets[i]->invoke_ns < until_ns && (meets->resets[i]->code != 0 || end_of(meets->resets[i]) > from_ns))
            return true; /* one without an answer may be carried out later */
    return false;
}

/* That one's time ended while it waited in a round. What does that mean for this one? */
static void check_other(struct report *report, const struct meets *meets, const struct record *breaker,
                        const struct record *record)
{
    const struct history *history = report->history;
    int64_t broke_ns = breaker->invoke_ns + breaker->limit_ms * NS_PER_MS, told_ns = history->lease_ms * NS_PER_MS;
    bool waited = record->invoke_ns + history->command_ms * NS_PER_MS < broke_ns &&
                  end_of(record) > breaker->return_ns && record->limit_ms != 0;
    if (record->invoke_ns > breaker->return_ns && has_passed(record) &&
        !was_reset(meets, breaker->invoke_ns, record->return_ns) &&
        !lost_within(history, record->object, breaker->invoke_ns, record->return_ns))
        violation(report, I19, record, breaker, "passed a barrier that was broken");
    if (!waited || is_unknown(record) || !is_undisturbed(history, record->invoke_ns, record->return_ns))
        return;
    if (has_passed(record))
        violation(report, I19, record, breaker, "passed a round that was broken");
    else if (record->return_ns > breaker->return_ns + told_ns)
        violation(report, I19, record, breaker, "was told late, or not at all, that its round was broken");
}

static void check_broken(struct report *report, const struct meets *meets)
{
    for (size_t i = 0; i < meets->count; i++) {
        const struct record *breaker = meets->records[i];
        if (breaker->return_ns == 0 || breaker->code != ETIMEDOUT || breaker->limit_ms == 0 ||
            !is_undisturbed(report->history, breaker->invoke_ns, breaker->return_ns))
            continue;
        for (size_t j = 0; j < meets->count; j++)
            if (j != i)
                check_other(report, meets, breaker, meets->records[j]);
    }
}

/* Who is told that a round is broken, was there a reason, since somebody last began anew? */
static bool has_reason(const struct history *history, const struct meets *meets, const struct record *told)
{
    int64_t since_ns = 0;
    for (size_t i = 0; i < meets->reset_count; i++) {
        const struct record *reset = meets->resets[i];
        if (reset->return_ns != 0 && reset->code == 0 && reset->return_ns < told->invoke_ns &&
            reset->invoke_ns > since_ns)
            since_ns = reset->invoke_ns;
    }
    for (size_t i = 0; i < meets->reset_count; i++)
        if (meets->resets[i]->invoke_ns < told->return_ns && end_of(meets->resets[i]) > told->invoke_ns)
            return true;
    for (size_t i = 0; i < meets->count; i++) {
        const struct record *record = meets->records[i];
        if (record != told && record->invoke_ns < told->return_ns && end_of(record) > since_ns && !has_passed(record) &&
            !was_told(record))
            return true;
    }
    return anybody_disturbed(history, since_ns, told->return_ns) || machine_slow(history, since_ns, told->return_ns);
}

static void check_told(struct report *report, const struct meets *meets)
{
    for (size_t i = 0; i < meets->count; i++)
        if (was_told(meets->records[i]) && !has_reason(report->history, meets, meets->records[i]))
            violation(report, I19, meets->records[i], NULL, "told that the round is broken, and nobody broke it");
}

void check_barrier(struct report *report)
{
    for (unsigned index = 0; index < HOT; index++) {
        struct meets meets = meets_of(report->history, object_of(BARRIER, index));
        check_parties(report, &meets);
        check_serials(report, &meets);
        check_broken(report, &meets);
        check_told(report, &meets);
        meets_free(&meets);
    }
}
