/* SPDX-License-Identifier: MIT */
/*
 * give.c - giving several locks back at once
 *
 * Each is given back as lk_mutex_unlock() does it, but all releases are sent before the first answer is awaited: one round
 * trip, to however many servers, and one command timeout for all of them.
 *
 * A thread can wait at one connection at a time, so it goes from one to the next in short steps: a server that does not
 * answer costs the others a step, and one that is away nothing.
 *
 * That takes memory for each, and giving back must not fail for want of memory: without it they go one after the other.
 */
#include "multi/multi.h"

enum { STEP_US = 1000 };

/* What is under way. */
struct giving {
    const struct lk__multi *multi;
    lk_owner_t *owner;
    struct lk__given *given;
    struct lk__unlocking *under_way;
    unsigned parts[LK_MULTI_MAX];         /* which these are */
    unsigned places[LK_MULTI_MAX], count; /* of them in `under_way`, as far as they are open */
    struct lk__failure words;             /* of `code` */
    int code;                             /* that a lease was lost, else the first */
    int64_t settled_us;                   /* the last of all */
};

static void note(struct giving *giving, unsigned part, int code)
{
    int64_t settled_us = code != 0 ? lk__thread_self()->settled_us : 0;
    giving->given[part] = (struct lk__given){ code, settled_us };
    if (settled_us > giving->settled_us)
        giving->settled_us = settled_us;
    if (code == 0 || (giving->code != 0 && (code != ESTALE || giving->code == ESTALE)))
        return;
    giving->code = code;
    lk__failure_keep(&giving->words);
}

static void begin(struct giving *giving, unsigned index)
{
    const struct lk__part *part = giving->multi->parts[index];
    struct lk__unlocking *unlocking = &giving->under_way[giving->count];
    lk__unlock_begin(unlocking, part->handle, part->kind, giving->owner);
    if (!unlocking->begun) {
        note(giving, index, unlocking->code);
        return;
    }
    giving->parts[giving->count] = index;
    giving->places[giving->count] = giving->count;
    giving->count++;
}

static void end_one(struct giving *giving, unsigned i)
{
    unsigned place = giving->places[i];
    giving->places[i] = giving->places[--giving->count];
    note(giving, giving->parts[place], lk__unlock_end(&giving->under_way[place]));
}

/* For each of them in turn, until its answer is there: what the others were told is read then, too. */
static void end_all(struct giving *giving)
{
    for (unsigned i = 0; giving->count > 0; i = i + 1 < giving->count ? i + 1 : 0)
        if (lk__unlock_await(&giving->under_way[giving->places[i]], lk__now_us() + STEP_US))
            end_one(giving, i);
}

/* `under_way` has room for so many at once. */
static int give(const struct lk__multi *multi, const bool *which, lk_owner_t *owner, struct lk__given *given,
                struct lk__unlocking *under_way, unsigned room)
{
    struct giving giving = { .multi = multi, .owner = owner, .given = given, .under_way = under_way };
    for (unsigned i = multi->count; i-- > 0;) {
        if (!which[i])
            continue;
        begin(&giving, i);
        if (giving.count == room)
            end_all(&giving);
    }
    end_all(&giving);
    if (giving.code == 0)
        return 0;
    lk__failure_restore(&giving.words);
    if (giving.settled_us != 0)
        lk__error_settles(giving.settled_us);
    return giving.code;
}

/* Without memory; not inlined, since the stack may be small. */
static int __attribute__((noinline))
give_one_by_one(const struct lk__multi *multi, const bool *which, lk_owner_t *owner, struct lk__given *given)
{
    struct lk__unlocking one;
    return give(multi, which, owner, given, &one, 1);
}

int lk__give_back(const struct lk__multi *multi, const bool *which, lk_owner_t *owner, struct lk__given *given)
{
    struct lk__unlocking *all = lk__alloc(multi->count * sizeof *all);
    if (all == NULL)
        return give_one_by_one(multi, which, owner, given);
    int rc = give(multi, which, owner, given, all, multi->count);
    lk__free(all);
    return rc;
}
