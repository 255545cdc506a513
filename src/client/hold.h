/* SPDX-License-Identifier: MIT */
/*
 * hold.h - what an owner has of an object: levels, a token, and a lease that keeps it
 *
 * It is made before it is granted, and freed when nobody looks at it any more.
 */
#ifndef LK__HOLD_H
#define LK__HOLD_H

#include "watchdog/watchdog.h"

/* The last thing that happened to a hold or an object. Under the events' mu, but what never changes. */
struct lk__news {
    struct lk__link link; /* in events->spent: no queue has it any more, and its reference is to be dropped */
    unsigned number;      /* of changes so far; an older one in a queue is passed over */
    unsigned queued;      /* places in queues, which have a reference together */
    unsigned char event, reason;
    bool notice; /* never changes: of an object; else part of a hold */
};

struct lk__hold {
    atomic_int refs;     /* its object's, and those of who looks at it or is told of it */
    unsigned char kind;  /* never changes */
    bool robust;         /* never changes once it is held: who follows a dead holder is told */
    bool owner_died;     /* the owner's: EOWNERDEAD was told, and nobody said yet that it is consistent */
    bool untold;         /* the owner's: ... or not told, as it is given back at once; so the next one is to be */

    /* never change once it is held */
    uint64_t token;
    int64_t began_us; /* granted */

    /* the owner's, or under its object's mu */
    int holds; /* of this owner; of a read-write lock: for writing */
    int reads; /* of a read-write lock: for reading */

    struct lk__news news;

    struct lk__link mine;   /* under its object's mu */
    struct lk__entry owned; /* under its object's mu: the oldest of its owner, or a permit with an id */
    struct lk__link kin;    /* under its object's mu: younger ones of its owner follow the oldest */

    struct lk__lease lease; /* the last; its id is as long as was asked for */
};

static inline struct lk__hold *lk__hold_ref(struct lk__hold *hold)
{
    atomic_fetch_add(&hold->refs, 1);
    return hold;
}

/* Accepts NULL; not under the watchdog's mu. The memory goes with the lease, which may be needed longer. */
static inline void lk__hold_unref(struct lk__hold *hold)
{
    if (hold == NULL || atomic_fetch_sub(&hold->refs, 1) != 1)
        return;
    assert(!lk__listed(&hold->mine) && !lk__listed(&hold->news.link));
    lk__lease_unref(&hold->lease);
}

/*
 * Until when a mark of a robust object may be settled for this hold, which has it: then the server still has the hold, by
 * any clock. 0: it has none, as a reader. Before the lease ends.
 */
static inline int64_t lk__hold_marked(const struct lk__hold *hold)
{
    int64_t until_us = atomic_load(&hold->lease.valid_until_us);
    return hold->holds > 0 ? until_us - hold->lease.dog->options->command_timeout_ms * 1000 : 0;
}

/* Its owner gives it back: from now on its release says what is known by then. */
static inline void lk__hold_given(struct lk__hold *hold)
{
    struct lk__outboxentry *release = &hold->lease.release;
    release->dating = release->until.date.us != 0 ? LK__KEEP : LK__UNDATED;
    unsigned news = hold->untold ? LK__SENT_UNTOLD : hold->owner_died ? LK__SENT_UNREPAIRED : 0;
    release->flags = (unsigned char)((release->flags & LK__SENT_AGAIN) | news);
}

#endif
