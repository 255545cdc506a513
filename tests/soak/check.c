/* SPDX-License-Identifier: MIT */
/*
 * check.c - the invariants of a soak, each read from the records once: see check.h
 */
#include "check.h"

#include <stdlib.h>

#define WHOLE 1000000       /* what a writer, or the holder of a mutex, has of it; a reader has 1 */
#define LONG_ENOUGH_MS 5000 /* in calm there is more than enough time for everybody's turn */
#define VERY_LATE_MS 20000  /* beyond four leases, for which a process may stand still */

static void *room_for(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* --- I1, I2, I3: the holds of one object -------------------------------------------------------------------------- */

static int64_t weight_of(const struct hold *hold)
{
    if (hold->take->op == OP_SHARE)
        return 1;
    return is_semaphore(hold->take->object) ? hold->take->permits : WHOLE;
}

/* A plain number has no lease: a permit is held until somebody gives it back. */
static int64_t held_until(const struct hold *hold)
{
    if (kind_of(hold->take->object) != COUNTING)
        return hold->until_ns;
    return hold->give != NULL ? hold->give->invoke_ns : INT64_MAX;
}

/*
 * The promise ends where "the server loses no acknowledged write" does. A hold from before such a loss is not known to
 * the server any more, though it is good for a lease at most, as no renewal finds it. So one from before and one from
 * after it may overlap for that long; two from after it may not. A plain number knows nobody: it stays wrong for ever.
 */
static bool is_excused(const struct history *history, const struct hold *first, const struct hold *early,
                       const struct hold *late)
{
    int64_t least_ns = late->from_ns - history->lease_ms * NS_PER_MS;
    int64_t from_ns = early->take->invoke_ns < late->take->invoke_ns ? early->take->invoke_ns : late->take->invoke_ns;
    if (kind_of(late->take->object) == COUNTING)
        from_ns = first->take->invoke_ns;
    else if (from_ns < least_ns)
        from_ns = least_ns;
    return lost_within(history, late->take->object, from_ns, late->from_ns + 1);
}

static void check_exclusion(struct report *report, const struct hold *holds, size_t count)
{
    const struct hold **active = room_for(count, sizeof(*active));
    uint32_t object = holds->take->object;
    int64_t capacity = is_semaphore(object) ? permits_of(object) : WHOLE;
    size_t active_count = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t load = weight_of(&holds[i]);
        size_t kept = 0;
        if (held_until(&holds[i]) <= holds[i].from_ns)
            continue;
        for (size_t j = 0; j < active_count; j++)
            if (held_until(active[j]) > holds[i].from_ns)
                active[kept++] = active[j];
        for (size_t j = 0; j < kept; j++)
            load += weight_of(active[j]);
        for (size_t j = 0; j < kept && load > capacity; j++)
            if (is_excused(report->history, holds, active[j], &holds[i]))
                load -= weight_of(active[j]);
        if (load > capacity)
            violation(report, I1, holds[i].take, active[0]->take, "granted while others hold it: %lld of %lld",
                      (long long)load, (long long)capacity);
        active[kept] = &holds[i];
        active_count = kept + 1;
    }
    report->seen[I1] += (int64_t)count;
    free(active);
}

/* A hold that began to be asked for when another one was there already was granted after it. */
static void check_tokens(struct report *report, const struct hold *holds, size_t count)
{
    const struct hold *largest = NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t token = holds[i].take->token;
        if ((holds[i].take->op != OP_TAKE && holds[i].take->op != OP_SLEEP) || token == 0)
            continue;
        report->seen[I2]++;
        if (largest != NULL && token == largest->take->token)
            violation(report, I2, holds[i].take, largest->take, "the same token twice");
        else if (largest != NULL && token < largest->take->token && largest->from_ns <= holds[i].take->invoke_ns)
            violation(report, I2, holds[i].take, largest->take, "a token below an earlier one");
        if (largest == NULL || token > largest->take->token)
            largest = &holds[i];
    }
}

static int by_token(const void *left, const void *right)
{
    const struct hold *a = *(const struct hold *const *)left, *b = *(const struct hold *const *)right;
    return (a->take->token > b->take->token) - (a->take->token < b->take->token);
}

/* Grants that nobody saw may lie between two holds: then what the second one is told follows from nothing. */
static bool anything_unknown(const struct history *history, const struct hold *first, const struct hold *second)
{
    int64_t from_ns = first->take->invoke_ns - 2 * history->lease_ms * NS_PER_MS;
    int64_t ended_ns = first->give != NULL ? first->give->invoke_ns : first->until_ns;
    if (lost_within(history, first->take->object, from_ns, second->from_ns) ||
        !quiet(history, ended_ns - history->command_ms * NS_PER_MS, second->from_ns))
        return true;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        bool unsure = is_take(record) && (record->return_ns == 0 || record->code == EIO || record->code == ECANCELED);
        if (unsure && record->object == first->take->object && record->invoke_ns < second->from_ns &&
            end_of(record) > from_ns)
            return true;
    }
    return false;
}

static bool was_left_broken(const struct hold *hold)
{
    return hold->take->code == EOWNERDEAD && !hold->repaired;
}

static void check_heir(struct report *report, const struct hold *first, const struct hold *second)
{
    const struct record *give = first->give;
    bool told = second->take->code == EOWNERDEAD, died = first->exit != NULL;
    bool given = give != NULL && give->return_ns != 0 && give->code == 0 && !first->lost;
    if ((!given && !died) || anything_unknown(report->history, first, second))
        return;
    report->seen[I3]++;
    if (given && was_left_broken(first))
        violation(report, I3, second->take, first->take, "granted after it was given back unrepaired");
    else if (given && told)
        violation(report, I3, second->take, first->take, "told of a dead holder after one that gave it back");
    else if (died && !told)
        violation(report, I3, second->take, first->take, "not told that the holder before has died");
}

/* Tokens tell which grant followed which. */
static void check_heirs(struct report *report, const struct hold *holds, size_t count)
{
    const struct hold **ordered = room_for(count, sizeof(*ordered));
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (holds[i].take->token != 0)
            ordered[found++] = &holds[i];
    qsort(ordered, found, sizeof(*ordered), by_token);
    for (size_t i = 1; i < found; i++)
        check_heir(report, ordered[i - 1], ordered[i]);
    free(ordered);
}

static void check_holds(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        const struct hold *holds = &history->holds[first];
        for (end = first; end < history->hold_count && same_instance(history->holds[end].take, holds->take);)
            end++;
        check_exclusion(report, holds, end - first);
        check_tokens(report, holds, end - first);
        if (kind_of(holds->take->object) == ROBUST)
            check_heirs(report, holds, end - first);
    }
}

/* Somebody must have given it back unrepaired, or died with it, before. */
static void check_broken(struct report *report, const struct record *told)
{
    const struct history *history = report->history;
    if (!is_take(told) || told->return_ns == 0 || told->code != ENOTRECOVERABLE)
        return;
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct hold *hold = &history->holds[i];
        if (hold->take->object == told->object && was_left_broken(hold) && hold->take->invoke_ns < told->return_ns)
            return;
    }
    violation(report, I3, told, NULL, "not recoverable, though nobody left it unrepaired");
}

/* --- I4 ----------------------------------------------------------------------------------------------------------- */

/* What is gone for certain, with those who died, and perhaps, as an answer was lost; and when it was used first. */
struct account {
    int64_t gone, unsure, first_ns;
};

static struct account account_of(const struct history *history, const struct record *value)
{
    struct account account = { 0, 0, value->invoke_ns };
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (!same_instance(record, value))
            continue;
        if (record->invoke_ns < account.first_ns)
            account.first_ns = record->invoke_ns;
        if (is_take(record) && (record->return_ns == 0 || record->code == EIO || record->code == ECANCELED))
            account.unsure += record->permits;
    }
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct hold *hold = &history->holds[i];
        if (!same_instance(hold->take, value))
            continue;
        if (hold->give == NULL || (hold->give->return_ns != 0 && hold->give->code == ENOTCONN))
            account.gone += hold->take->permits; /* ENOTCONN: unchanged, says semaphore.h */
        else if (hold->give->return_ns == 0 || hold->give->code == EIO)
            account.unsure += hold->take->permits;
    }
    return account;
}

/* Leased permits come back by themselves. A number that was lost begins anew, and permits of before are added to it. */
static void check_value(struct report *report, const struct record *value)
{
    if (value->op != OP_VALUE)
        return;
    struct account account = account_of(report->history, value);
    if (lost_within(report->history, value->object, account.first_ns, value->return_ns))
        return;
    report->seen[I4]++;
    int64_t most = permits_of(value->object), least = most;
    if (kind_of(value->object) == COUNTING) {
        most -= account.gone;
        least = most - account.unsure;
    }
    if ((int64_t)value->token < least || (int64_t)value->token > most)
        violation(report, I4, value, NULL, "%lld permits are free at the end, not %lld to %lld",
                  (long long)value->token, (long long)least, (long long)most);
}

/* --- I5, I6: all records of one latch, or of one barrier ---------------------------------------------------------- */

struct group {
    const struct record **records; /* in order of their beginnings */
    size_t count;
    bool lost; /* the server may have forgotten it meanwhile */
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

static void each_group(struct report *report, enum kind kind, void (*check)(struct report *, const struct group *))
{
    const struct history *history = report->history;
    const struct record **records = room_for(history->count, sizeof(*records));
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++)
        if (kind_of(history->records[i].object) == kind && history->records[i].op < OP_LOST)
            records[count++] = &history->records[i];
    qsort(records, count, sizeof(*records), by_instance);
    for (size_t first = 0, end; first < count; first = end) {
        int64_t last_ns = 0;
        for (end = first; end < count && same_instance(records[end], records[first]); end++)
            if (records[end]->return_ns > last_ns)
                last_ns = records[end]->return_ns;
        struct group group = { records + first, end - first,
                               lost_within(history, records[first]->object, records[first]->invoke_ns, last_ns) };
        check(report, &group);
    }
    free(records);
}

/* Countdowns that were, or may have been, carried out by then; but for that one. */
static int64_t counts(const struct group *group, bool certain, int64_t by_ns, const struct record *but)
{
    int64_t count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        bool done = record->return_ns != 0 && record->code == 0;
        if (record->op != OP_COUNTDOWN || record == but)
            continue;
        count += certain ? done && record->return_ns <= by_ns
                         : (done || record->return_ns == 0 || record->code == EIO) && record->invoke_ns < by_ns;
    }
    return count;
}

/* Before a count is set a countdown finds none, either, and a wait with redisson=yes finds it open. */
static bool says_open(const struct record *record, const struct record *set)
{
    bool is_set = record->invoke_ns > set->return_ns;
    return record->return_ns != 0 &&
           ((record->op == OP_WAIT && record->code == 0 && (is_set || is_appearing(record->object))) ||
            (record->op == OP_COUNTDOWN && record->code == ENOENT && is_set));
}

/* By when it was open for certain. */
static int64_t opened_by(const struct group *group, const struct record *set)
{
    int64_t opened_ns = INT64_MAX;
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        if (record->return_ns != 0 && record->return_ns < opened_ns &&
            (says_open(record, set) || counts(group, true, record->return_ns, NULL) >= set->permits))
            opened_ns = record->return_ns;
    }
    return opened_ns;
}

static void check_latch(struct report *report, const struct group *group)
{
    const struct record *set = NULL;
    bool may_be_set = group->lost;
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        may_be_set |= record->op == OP_SET;
        if (record->op == OP_SET && record->return_ns != 0 && record->code == 0)
            set = record;
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        if (record->op == OP_WAIT && record->return_ns != 0 && is_appearing(record->object) &&
            (record->code == ENOENT || (record->code == 0 && !may_be_set))) /* others with redisson=yes find it open */
            violation(report, I5, record, NULL, "did not wait for a count to be set");
    }
    if (set == NULL || group->lost) /* no count was set, as far as is known: then no promise was made */
        return;
    report->seen[I5]++;
    int64_t opened_ns = opened_by(group, set);
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        bool after = record->invoke_ns > opened_ns && record->return_ns != 0;
        if (says_open(record, set) && counts(group, false, record->return_ns, record) < set->permits)
            violation(report, I5, record, set, "open before all counts");
        else if (record->op == OP_WAIT && record->code == ENOENT && record->invoke_ns > set->return_ns &&
                 !is_appearing(record->object))
            violation(report, I5, record, set, "a latch that was set is not known");
        else if (record->op == OP_COUNTDOWN && after && record->code == 0)
            violation(report, I5, record, set, "counted after it had opened");
        else if (record->op == OP_WAIT && after && record->code == ETIMEDOUT)
            violation(report, I5, record, set, "closed after it had opened");
    }
    if (counts(group, true, INT64_MAX, NULL) > set->permits)
        violation(report, I5, set, NULL, "more counts than there were");
}

static bool has_passed(const struct record *record)
{
    return record->op == OP_MEET && record->return_ns != 0 && record->code == 0;
}

/* Killed, or without an answer: it may have passed, even as the serial one. */
static bool may_have_passed(const struct record *record)
{
    return record->op == OP_MEET && !has_passed(record) &&
           (record->return_ns == 0 || (record->code != ETIMEDOUT && record->code != ECANCELED));
}

/* Of one whose leaving was not answered the server may count the coming, as long as it has a lease. */
static int64_t counts_until(const struct history *history, const struct record *record)
{
    int64_t lasts_ms = history->lease_ms + history->command_ms + history->slack_ms;
    return may_have_passed(record) && record->return_ns != 0 ? record->return_ns + lasts_ms * NS_PER_MS
                                                             : end_of(record);
}

/* All that pass a round are there at one moment, so their times overlap. */
static void check_party(struct report *report, const struct group *group, const struct record *record)
{
    const struct history *history = report->history;
    unsigned others = 0, serials = record->token != 0;
    if (lost_within(history, record->object, record->invoke_ns - history->lease_ms * NS_PER_MS, record->return_ns))
        return;
    for (size_t i = 0; i < group->count && group->records[i]->invoke_ns < record->return_ns; i++) {
        const struct record *other = group->records[i];
        bool may = may_have_passed(other);
        if (other == record || (!has_passed(other) && !may) || counts_until(history, other) <= record->invoke_ns)
            continue;
        others++;
        serials += may || other->token != 0;
    }
    if (others + 1 < parties_of(record->object))
        violation(report, I6, record, NULL, "passed when %u others were there", others);
    else if (serials == 0)
        violation(report, I6, record, NULL, "passed, and there was no serial party");
}

static void check_barrier(struct report *report, const struct group *group)
{
    int64_t parties = parties_of(group->records[0]->object), passed = 0, serial = 0, unsure = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct record *record = group->records[i];
        unsure += may_have_passed(record);
        if (!has_passed(record))
            continue;
        passed++;
        serial += record->token != 0;
        check_party(report, group, record);
    }
    report->seen[I6] += passed;
    if (!group->lost && (serial * parties > passed + unsure || passed > (serial + unsure) * parties))
        violation(report, I6, group->records[0], NULL, "%lld passed, %lld of them as serial parties of %lld",
                  (long long)passed, (long long)serial, (long long)parties);
}

/* --- I7 ----------------------------------------------------------------------------------------------------------- */

/* What no call answers where nothing is wrong. */
static bool is_failure(const struct record *record)
{
    int code = record->code;
    switch (record->op) {
    case OP_TAKE:
    case OP_SHARE: /* a try may find it taken, a wait ends with a grant */
        return !is_granted(record) && code != ENOTRECOVERABLE && code != EALREADY &&
               !(record->limit_ms == 0 && (code == EBUSY || code == EAGAIN)) &&
               !(code == ETIMEDOUT && record->limit_ms < LONG_ENOUGH_MS);
    case OP_CHECK: /* EPERM: asked after a take that failed */
        return code != 0 && code != EPERM;
    case OP_SLEEP: /* nobody may signal */
        return code != 0 && code != ETIMEDOUT;
    case OP_WAIT: /* nobody may count down; I5 looks at what is not known */
        return code != 0 && code != ETIMEDOUT && code != ENOENT;
    case OP_MEET: /* not all may come, which breaks the round */
        return code != 0 && code != ETIMEDOUT && code != ECANCELED;
    case OP_COUNTDOWN: /* open already */
        return code != 0 && code != ENOENT;
    case OP_GIVE:
    case OP_REPAIR:
    case OP_FORCE:
    case OP_SIGNAL:
    case OP_SET:
    case OP_RESET:
        return code != 0;
    default:
        return false;
    }
}

/* A lease that is not renewed ends, and so does what an operator takes away. */
static bool may_be_lost(const struct history *history, const struct record *record)
{
    int64_t from_ns = record->invoke_ns - 2 * history->lease_ms * NS_PER_MS;
    return record->code == ESTALE && (kind_of(record->object) == FIXED ||
                                      lost_within(history, record->object, from_ns, record->return_ns));
}

/* Holds of the dead end, and everybody connects again, within a lease after a fault. */
static void check_calm(struct report *report, const struct record *record)
{
    const struct history *history = report->history;
    int64_t back_ns = (history->lease_ms + history->slack_ms) * NS_PER_MS;
    if (history->calm_ns == 0 || record->invoke_ns < history->calm_ns || record->return_ns == 0)
        return;
    if (is_take(record) && record->limit_ms >= LONG_ENOUGH_MS)
        report->acquires[kind_of(record->object)]++;
    report->seen[I7]++;
    if (is_failure(record) && !may_be_lost(history, record) &&
        quiet(history, record->invoke_ns - back_ns, record->return_ns))
        violation(report, I7, record, NULL, "failed although nothing was done to anybody");
}

/* --- I8, I9 ------------------------------------------------------------------------------------------------------- */

/* The simulation judges in milliseconds. A wait for a condition waits for the mutex as long as others hold it. */
static void check_return(struct report *report, const struct record *record)
{
    const struct history *history = report->history;
    if (record->op == OP_EXIT || record->op == OP_OPEN || record->op >= OP_HEARD)
        return;
    report->seen[I8]++;
    if (record->return_ns == 0 && close_of(history, record) != NULL)
        violation(report, I8, record, NULL, "never returned");
    int64_t late_ms = (end_of(record) - record->invoke_ns) / NS_PER_MS - record->limit_ms;
    if (record->return_ns != 0 && record->op < OP_LOST && record->op != OP_SLEEP &&
        late_ms > VERY_LATE_MS + 4 * history->lease_ms)
        violation(report, I8, record, NULL, "returned %lld ms too late", (long long)late_ms);
}

static void check_failures(struct report *report)
{
    const struct history *history = report->history;
    const struct record *failed = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        bool returned = record->return_ns != 0;
        if (is_take(record) || record->op == OP_SLEEP) {
            failed = returned && !is_granted(record) && !is_slept(record) ? record : NULL;
            report->seen[I9] += failed != NULL;
        } else if (failed != NULL && record->op == OP_CHECK && returned && same_hold(failed, record) &&
                   record->code != EPERM && record->code != EALREADY) {
            violation(report, I9, record, failed, "something is held after a failure");
        }
    }
}

/* --- I10 ---------------------------------------------------------------------------------------------------------- */

static bool asks(const struct record *record)
{
    return record->op == OP_CHECK || record->op == OP_GIVE || record->op == OP_SLEEP;
}

/* After ESTALE each call of that hold says so. What comes after a sleep is of another hold, or of none. */
static void check_finality(struct report *report)
{
    const struct record *lost = NULL;
    for (size_t i = 0; i < report->history->count; i++) {
        const struct record *record = &report->history->records[i];
        if (is_take(record))
            lost = NULL;
        if (asks(record) && record->return_ns != 0 && record->code == ESTALE && lost == NULL)
            lost = record;
        else if (asks(record) && record->return_ns != 0 && record->code != ESTALE && lost != NULL &&
                 same_hold(lost, record))
            violation(report, I10, record, lost, "no ESTALE after a hold was lost");
        if (record->op == OP_SLEEP)
            lost = NULL;
    }
}

/* What one client lost of one object. */
struct losses {
    const struct record *first;
    int64_t told, seen, unsure; /* by its listener, by its threads; holds whose end is not known */
};

static int by_client(const void *left, const void *right)
{
    const struct record *a = ((const struct losses *)left)->first, *b = ((const struct losses *)right)->first;
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    int order = a->process - b->process;
    return order != 0 ? order : a->incarnation - b->incarnation;
}

static size_t collect(const struct history *history, struct losses *all)
{
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_LOST)
            all[count++] = (struct losses){ .first = &history->records[i], .told = 1 };
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct hold *hold = &history->holds[i];
        const struct record *give = hold->give;
        bool lost = hold->lost || hold->exit != NULL;
        bool given = give != NULL && give->return_ns != 0 && (give->code == 0 || is_slept(give));
        if (kind_of(hold->take->object) != COUNTING && (lost || !given))
            all[count++] = (struct losses){ .first = hold->take, .seen = lost, .unsure = !lost };
    }
    return count;
}

/* Only of clients that lived to the end: the others may not have come to tell. */
static void check_told(struct report *report)
{
    const struct history *history = report->history;
    struct losses *all = room_for(history->count + history->hold_count, sizeof *all);
    size_t count = collect(history, all);
    qsort(all, count, sizeof *all, by_client);
    for (size_t i = 0, end; i < count; i = end) {
        struct losses sum = all[i];
        for (end = i + 1; end < count && by_client(&sum, &all[end]) == 0; end++) {
            sum.told += all[end].told;
            sum.seen += all[end].seen;
            sum.unsure += all[end].unsure;
        }
        const struct record *closed = close_of(history, sum.first);
        if (closed == NULL || closed->return_ns == 0)
            continue;
        report->seen[I10] += sum.told;
        if (sum.told < sum.seen || sum.told > sum.seen + sum.unsure)
            violation(report, I10, sum.first, NULL, "%lld holds were lost, %lld were reported (%lld unsure)",
                      (long long)sum.seen, (long long)sum.told, (long long)sum.unsure);
    }
    free(all);
}

/* --- I11, I12 ----------------------------------------------------------------------------------------------------- */

static void check_close(struct report *report, const struct record *opened, const struct record *closed)
{
    report->seen[I11]++;
    if (closed->limit_ms != opened->limit_ms || closed->permits != opened->permits)
        violation(report, I11, closed, opened, "%d threads and %d descriptors, %d and %d before", closed->limit_ms,
                  closed->permits, opened->limit_ms, opened->permits);
    if (closed->code != 0 && closed->code != EIO) /* EIO: something ends with its lease, which ending.c looks at */
        violation(report, I11, closed, NULL, "the client could not be closed cleanly");
}

static void check_end(struct report *report)
{
    const struct record *opened = NULL;
    for (size_t i = 0; i < report->history->count; i++) {
        const struct record *record = &report->history->records[i];
        if (record->op == OP_OPEN)
            opened = record;
        if (record->op == OP_CLOSE && opened != NULL && same_client(opened, record))
            check_close(report, opened, record);
        if (record->op == OP_HEARD && (int64_t)record->token != record->limit_ms)
            violation(report, I10, record, NULL, "a listener heard of %d losses, a queue of events of %lld",
                      record->limit_ms, (long long)record->token);
        report->seen[I12] += record->op == OP_FORK;
        if (record->op == OP_FORK && record->return_ns != 0 && record->code != EPERM && record->code != ECANCELED)
            violation(report, I12, record, NULL, "a child could use its parent's hold, or died of it");
        if (record->op == OP_LEFT && record->code == ECANCELED)
            violation(report, I12, record, NULL, "process %d ended with status %d", record->process, record->limit_ms);
        else if (record->op == OP_LEFT)
            violation(report, I11, record, NULL, "something is left on the server");
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

const char *invariant_name(enum invariant invariant)
{
    static const char *const names[] = { "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12" };
    return names[invariant];
}

const char *invariant_units(enum invariant invariant)
{
    static const char *const units[] = { "grants",
                                         "tokens",
                                         "heirs of robust mutexes",
                                         "semaphores at the end",
                                         "latches",
                                         "passed barriers",
                                         "calls in calm",
                                         "calls",
                                         "failed acquires",
                                         "losses",
                                         "closed clients",
                                         "children" };
    return units[invariant];
}

int check_all(struct report *report, const struct history *history)
{
    report->history = history;
    check_holds(report);
    each_group(report, LATCH, check_latch);
    each_group(report, BARRIER, check_barrier);
    check_failures(report);
    check_finality(report);
    check_told(report);
    check_end(report);
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        check_broken(report, record);
        check_value(report, record);
        check_calm(report, record);
        check_return(report, record);
    }
    return report->total;
}
