/* SPDX-License-Identifier: MIT */
/*
 * check_exclusion.c - I1, I6, I7: at no time is more of an object held than there is of it
 *
 * A hold weighs its permits; a writer, or the holder of a mutex, weighs all there is; a reader nearly
 * nothing. So one sweep over beginnings and ends does for all kinds.
 */
#include "check.h"

#include <stdlib.h>

#define WHOLE 1000000

struct edge {
    int64_t at_ns;
    int64_t weight; /* below zero at the end of a hold */
    const struct hold *hold;
};

static int64_t capacity_of(uint32_t object)
{
    return is_semaphore(object) ? permits_of(object) : WHOLE;
}

static int64_t weight_of(const struct hold *hold)
{
    if (hold->take->op == OP_SHARE || hold->take->op == OP_DOWNGRADE)
        return 1;
    return is_semaphore(hold->take->object) ? hold->take->permits : WHOLE;
}

static enum invariant invariant_of(uint32_t object)
{
    switch (kind_of(object)) {
    case RWLOCK:
        return I6;
    case COUNTING:
    case GROWN:
    case PASSING:
    case LEASED:
    case BYID:
    case RESIZED:
    case REMOVED:
    case ANONYMOUS:
        return I7;
    default:
        return I1;
    }
}

/* Ends before beginnings: who returns at that nanosecond was granted before it. */
static int by_time(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a->weight > 0) - (b->weight > 0);
}

/* A permit of a counting semaphore has no lease: it is held until somebody gives it back. */
static int64_t end_of(const struct hold *hold)
{
    if (!is_counting(hold->take->object))
        return hold->until_ns;
    return hold->give != NULL ? hold->give->invoke_ns : INT64_MAX;
}

/* How many losses were over before it was asked for; and whether that is certain, as none happened meanwhile. */
static int losses_before(const struct history *history, const struct hold *hold, int64_t since_ns, bool *certain)
{
    int over = 0, begun = 0;
    for (size_t i = 0; i < history->loss_count; i++) {
        const struct loss *loss = &history->losses[i];
        if (!loses(loss, hold->take->object) || loss->end_ns < since_ns)
            continue;
        over += loss->end_ns <= hold->take->invoke_ns;
        begun += loss->begin_ns < hold->from_ns;
    }
    *certain = over == begun;
    return over;
}

/* What is held at that edge of what was granted after so many losses. */
static int64_t load_after(const struct history *history, const struct edge *edges, size_t last, int losses,
                          int64_t since_ns)
{
    int64_t load = 0;
    for (size_t i = 0; i <= last; i++) {
        const struct hold *hold = edges[i].hold;
        bool certain;
        if (edges[i].weight > 0 && end_of(hold) > edges[last].at_ns &&
            losses_before(history, hold, since_ns, &certain) == losses && certain)
            load += edges[i].weight;
    }
    return load;
}

/*
 * What is anonymous ends when the clients of all who use it are cut off for a lease, or gone; the next one makes it anew, and
 * who still has permits of the old one finds out when it gives them back.
 */
static bool may_have_passed(const struct history *history, const struct edge *edges, size_t last)
{
    int64_t since_ns = edges[last].at_ns;
    for (size_t i = 0; i < last; i++)
        if (edges[i].weight > 0 && end_of(edges[i].hold) > edges[last].at_ns &&
            edges[i].hold->take->invoke_ns < since_ns)
            since_ns = edges[i].hold->take->invoke_ns;
    since_ns -= (history->lease_ms + history->slack_ms) * NS_PER_MS;
    return anybody_disturbed(history, since_ns, edges[last].at_ns + 1);
}

/*
 * The promise ends where "the server loses no acknowledged write" does. A hold from before such a loss is not
 * known to the server any more, though it is good for a lease at most, as no renewal finds it. So holds from
 * before and from after it may overlap for that long; each side by itself may not. An operator's
 * lk_mutex_forceunlock() breaks the promise in the same way, for one mutex.
 */
static bool excused(const struct history *history, const struct edge *edges, size_t last, int64_t capacity)
{
    int64_t at_ns = edges[last].at_ns, since_ns = at_ns - history->lease_ms * NS_PER_MS;
    if (kind_of(edges[last].hold->take->object) == PASSING)
        return may_have_passed(history, edges, last);
    if (is_counting(edges[last].hold->take->object)) /* a number knows nobody: it stays wrong for ever */
        return lost_within(history, edges[0].hold->take->object, edges[0].hold->take->invoke_ns, at_ns + 1);
    if (!lost_within(history, edges[last].hold->take->object, since_ns, at_ns + 1))
        return false;
    for (int losses = 0; losses <= (int)history->loss_count; losses++)
        if (load_after(history, edges, last, losses, since_ns) > capacity)
            return false;
    return true;
}

/*
 * When the last failover was over that may have brought what is held at that edge; 0: there was none, or an operator unlocked
 * the mutex as well.
 */
static int64_t failover_end(const struct history *history, uint32_t object, int64_t at_ns)
{
    int64_t end_ns = 0, since_ns = at_ns - history->lease_ms * NS_PER_MS;
    for (size_t i = 0; i < history->loss_count; i++) {
        const struct loss *loss = &history->losses[i];
        if (!loses(loss, object) || loss->begin_ns > at_ns || loss->end_ns <= since_ns)
            continue;
        if (!loss->failover)
            return 0;
        if (loss->end_ns > end_ns)
            end_ns = loss->end_ns;
    }
    return end_ns;
}

/* When its client knew that it was over: it was told that it was lost, if not by its validity or because it gave it back. */
static int64_t known_end(const struct history *history, const struct hold *hold)
{
    int64_t end_ns = hold->until_ns;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_LOST && record->object == hold->take->object && record->token == hold->take->token &&
            record->return_ns < end_ns)
            end_ns = record->return_ns;
    }
    return end_ns;
}

/*
 * B_see: a holder finds out by the next renewal, a third of the lease and a command timeout after the servers agree again,
 * unless its process stood still. Who does not renew finds out when its lease ends.
 */
static void check_length(struct report *report, const struct hold *hold, const struct hold *other, int64_t at_ns,
                         int64_t over_ns)
{
    const struct history *history = report->history;
    int64_t end_ns = known_end(history, hold), other_ns = known_end(history, other);
    int64_t see_ns = (history->lease_ms / 3 + history->command_ms + history->slack_ms) * NS_PER_MS;
    if (other_ns < end_ns)
        end_ns = other_ns;
    if (end_ns <= at_ns)
        return;
    report->overlaps++;
    if (end_ns - at_ns > report->longest_ns)
        report->longest_ns = end_ns - at_ns;
    see_ns += asleep_ns(history, hold->take->process, at_ns, end_ns) +
              asleep_ns(history, other->take->process, at_ns, end_ns);
    if (!is_fixed(hold->take) && !is_fixed(other->take) && end_ns > over_ns + see_ns)
        violation(report, I1, hold->take, other->take, "both hold it until %lld ms after the failover",
                  (long long)((end_ns - over_ns) / NS_PER_MS));
}

/* What a failover excuses lasts for so long only; of holds that exclude each other and have tokens. */
static void check_lengths(struct report *report, const struct edge *edges, size_t last)
{
    const struct hold *hold = edges[last].hold;
    int64_t over_ns = failover_end(report->history, hold->take->object, edges[last].at_ns);
    if (over_ns == 0 || is_semaphore(hold->take->object) || hold->take->token == 0)
        return;
    for (size_t i = 0; i < last; i++)
        if (edges[i].weight == WHOLE && edges[i].hold->take->token != 0 && end_of(edges[i].hold) > edges[last].at_ns)
            check_length(report, hold, edges[i].hold, edges[last].at_ns, over_ns);
}

/* Another hold that is in force when this one begins. */
static const struct record *partner(const struct edge *edges, size_t last)
{
    for (size_t i = last; i-- > 0;)
        if (edges[i].weight > 0 && end_of(edges[i].hold) > edges[last].at_ns)
            return edges[i].hold->take;
    return NULL;
}

/* The last of those that are held was granted after the last of them was asked for. */
static int64_t capacity_at(const struct report *report, const struct edge *edge, const struct resizes *resizes)
{
    const struct hold *hold = edge->hold;
    if (kind_of(hold->take->object) == GROWN)
        return most_grown(resizes, hold);
    if (kind_of(hold->take->object) != RESIZED)
        return capacity_of(hold->take->object);
    return most_permits(report->history, resizes, hold->take->object, hold->take->invoke_ns, hold->from_ns);
}

static void sweep(struct report *report, const struct edge *edges, size_t count, const struct resizes *resizes)
{
    int64_t load = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t capacity = edges[i].weight < 0 ? 0 : capacity_at(report, &edges[i], resizes);
        load += edges[i].weight;
        if (edges[i].weight < 0 || load <= capacity)
            continue;
        if (excused(report->history, edges, i, capacity)) {
            check_lengths(report, edges, i);
            continue;
        }
        const struct record *take = edges[i].hold->take;
        violation(report, invariant_of(take->object), take, partner(edges, i),
                  "granted while others hold it: %lld of %lld", (long long)load, (long long)capacity);
    }
}

static void check_group(struct report *report, size_t first, size_t end)
{
    const struct history *history = report->history;
    struct edge *edges = calloc(2 * (end - first), sizeof *edges);
    size_t count = 0;
    if (edges == NULL)
        abort();
    for (size_t i = first; i < end; i++) {
        const struct hold *hold = &history->holds[i];
        if (end_of(hold) <= hold->from_ns)
            continue;
        edges[count++] = (struct edge){ hold->from_ns, weight_of(hold), hold };
        edges[count++] = (struct edge){ end_of(hold), -weight_of(hold), hold };
    }
    qsort(edges, count, sizeof *edges, by_time);
    struct resizes resizes = resizes_of(history, history->holds[first].take->object);
    sweep(report, edges, count, &resizes);
    resizes_free(&resizes);
    free(edges);
}

void check_exclusion(struct report *report)
{
    const struct history *history = report->history;
    for (size_t first = 0, end; first < history->hold_count; first = end) {
        end = group_end(history, first);
        check_group(report, first, end);
    }
}
