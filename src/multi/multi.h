/* SPDX-License-Identifier: MIT */
/*
 * multi.h - several locks at once
 *
 * set.c   making and ending a set, its members     try.c   all that are not held yet, at once
 * lock.c  taking all of them, giving them back     give.c  giving several back at once
 * ask.c   remaining, check, info
 */
#ifndef LK__MULTI_H
#define LK__MULTI_H

#include "lock/mutex.h"
#include "rwlock/rwlock.h"

#include <latchkey/multi.h>

/* One lock of a set. */
struct lk__part {
    void *lock; /* the user's mutex or read-write lock */
    struct lk__handle handle;
    const struct lk__kind *kind;
    bool write;          /* of a read-write lock: to write */
    lk_client_t *client; /* a reference: its options say which server that is */
    char key[];          /* the first of it in Redis, by which it is ordered */
};

struct lk__multi {
    atomic_uint refs;    /* the set's, and one for each call */
    atomic_uint locking; /* calls that take it */
    atomic_bool used;    /* it is complete */
    unsigned count;
    struct lk__part *parts[LK_MULTI_MAX]; /* in the order in which they are waited for */
};

/* --- set.c ---------------------------------------------------------------------------------------------------------- */

/* One public call on a set. */
struct lk__multicall {
    struct lk__apistate api;
    struct lk__multi *multi; /* with a reference */
};

/* Begin it. 0; or EINVAL, also for a set of fewer than `least` locks, or ECANCELED: it is over, with an error text. */
int lk__multi_enter(struct lk__multicall *call, const char *function, const lk_multi_t *s, unsigned least);
int lk__multi_leave(struct lk__multicall *call, int code);
void lk__multi_unref(struct lk__multi *multi);

/* The first part with the key of this one: several of one name are on servers of their own. */
unsigned lk__multi_firstlike(const struct lk__multi *multi, unsigned index);

/* --- try.c ---------------------------------------------------------------------------------------------------------- */

struct lk__tried;

/* Taking all of them, on the caller's stack. */
struct lk__taking {
    struct lk__multi *multi;
    const struct lk__how *how;
    struct lk__tried *tried;    /* one for each part */
    struct lk__failure *before; /* the words of the failure before this call, which stay if all are held */
    bool held[LK_MULTI_MAX], died[LK_MULTI_MAX];
    bool unsettled;     /* what was given back may still be there, or what was asked for without an answer, and ... */
    int64_t settled_us; /* ... no longer than that */
};

/* Something may be at a server, and until then; 0: nothing is. */
static inline void lk__taking_noteopen(struct lk__taking *taking, int64_t settled_us)
{
    taking->unsettled |= settled_us != 0;
    if (settled_us > taking->settled_us)
        taking->settled_us = settled_us;
}

/* One public call on a part: take it, by that thread or owner. */
int lk__part_lock(const struct lk__part *part, const struct lk__how *how);

/* 0 or ENOMEM, with an error text. */
int lk__try_prepare(struct lk__taking *taking);
void lk__try_end(struct lk__taking *taking);
/*
 * Try all parts that are not held. The first that was not granted, with its code and an error text; their number if there is
 * none.
 */
unsigned lk__try_all(struct lk__taking *taking, int *code);

/* --- give.c ---------------------------------------------------------------------------------------------------------- */

/* What became of one part. */
struct lk__given {
    int code;           /* as lk_mutex_unlock() */
    int64_t settled_us; /* when it ends at the latest, where that is open; or 0 */
};

/*
 * Give these parts back once, the last one first, and say of each what became of it. 0; or the code of one with an error
 * text, that a lease was lost before all others.
 */
int lk__give_back(const struct lk__multi *multi, const bool *which, lk_owner_t *owner, struct lk__given *given);

#endif
