/* SPDX-License-Identifier: MIT */
/*
 * hold.h - what an owner has of an object: levels, a token, and a lease that keeps it
 *
 * A hold points to its lease. That is usually the one in its own memory, so that both are one allocation.
 */
#ifndef LK__HOLD_H
#define LK__HOLD_H

#include "watchdog/watchdog.h"

struct lk__hold {
    atomic_int refs;             /* its object's, and those of who looks at it or is told of it */
    unsigned char kind;          /* never changes */
    unsigned char event, reason; /* under the events' mu: the last thing that happened */
    bool owner_died;             /* the owner's: EOWNERDEAD was told, and nobody said yet that it is consistent */
    struct lk__lease *lease;     /* a reference, unless it is `own` */

    /* never change once it is held */
    uint64_t owner; /* who may give it back; 0: anybody, by its id */
    uint64_t token;
    int64_t began_us; /* granted */

    /* the owner's, or under its object's mu */
    int holds; /* of this owner; of a read-write lock: for writing */
    int reads; /* of a read-write lock: for reading */

    struct lk__link for_listener; /* under the events' mu, as the next ones: to be told, with a reference ... */
    struct lk__link for_eventfd;  /* ... to be fetched, likewise */

    struct lk__link mine;   /* under its object's mu */
    struct lk__entry owned; /* under its object's mu: the oldest of its owner, or a permit with an id */
    struct lk__link kin;    /* under its object's mu: younger ones of its owner follow the oldest */

    struct lk__lease own; /* the last; its id is as long as was asked for */
};

/* A hold to be of `owner`, with a lease of its own as lk__lease_new() makes it. NULL: with an error text. */
struct lk__hold *lk__hold_new(struct lk__watchdog *dog, uint64_t owner, size_t id_size);
struct lk__hold *lk__hold_ref(struct lk__hold *hold);
void lk__hold_unref(struct lk__hold *hold); /* accepts NULL; not under the watchdog's mu */

/* Its owner gives it back: from now on its release says what is known by then. */
void lk__hold_given(const struct lk__hold *hold);

#endif
