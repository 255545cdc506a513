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
    if (kind_of(hold->take->object) != COUNTING)
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
 * The promise ends where "the server loses no acknowledged write" does. A hold from before such a loss is not
 * known to the server any more, though it is good for a lease at most, as no renewal finds it. So holds from
 * before and from after it may overlap for that long; each side by itself may not. An operator's
 * lk_mutex_forceunlock() breaks the promise in the same way, for one mutex.
 */
static bool excused(const struct history *history, const struct edge *edges, size_t last, int64_t capacity)
{
    int64_t at_ns = edges[last].at_ns, since_ns = at_ns - history->lease_ms * NS_PER_MS;
    if (kind_of(edges[last].hold->take->object) == COUNTING) /* a number knows nobody: it stays wrong for ever */
        return lost_within(history, edges[0].hold->take->object, edges[0].hold->take->invoke_ns, at_ns + 1);
    if (!lost_within(history, edges[last].hold->take->object, since_ns, at_ns + 1))
        return false;
    for (int losses = 0; losses <= (int)history->loss_count; losses++)
        if (load_after(history, edges, last, losses, since_ns) > capacity)
            return false;
    return true;
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
        if (edges[i].weight < 0 || load <= capacity || excused(report->history, edges, i, capacity))
            continue;
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
