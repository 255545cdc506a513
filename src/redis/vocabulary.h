/* SPDX-License-Identifier: MIT */
/*
 * vocabulary.h - what all scripts and their callers call by one name
 *
 * cmake/scripts.py reads this file, too: in Lua a verdict is GONE for LK__GONE, a flag is again for LK__SENT_AGAIN, and the
 * members of struct lk__sent have their names. One that is said to be digits is a text in Lua.
 */
#ifndef LK__REDIS_VOCABULARY_H
#define LK__REDIS_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

/* How a script ends; the same in all of them. */
enum lk__verdict {
    LK__GRANTED = 1,           /* it is the caller's */
    LK__GRANTED_OWNERDEAD = 2, /* likewise, and its previous holder died holding it */
    LK__QUEUED = 0,            /* others are before the caller, which has a place in the queue */
    LK__BUSY = 3,              /* others have it, and the caller only tried */
    LK__DONE = 4,              /* what was asked is done; of what only looks: here is what it saw */
    LK__GONE = 5,              /* there is no such hold, and nothing was done */
    LK__TAKEN = 6,             /* somebody holds it, or that hold stands */
    LK__FREE = 7,              /* nobody holds it */
    LK__ABSENT = 8,            /* there is none of that name, and nothing was done */
    LK__PRESENT = 9,           /* there is one of that name already, and nothing was done */
    LK__BEHIND = 10,           /* a waiter of the caller's client stands in the queue, and its place is good for both */
    LK__LATE = -1,             /* past the deadline, nothing was done */
    LK__UNRECOVERABLE = -2,    /* its holder died, and the next one gave it back unrepaired */
    LK__IMPOSSIBLE = -3,       /* more than there can ever be */
    LK__FULL = -4,             /* as many hold it as may */
    LK__OVERTAKEN = -5,        /* the request's number is finished, or older than what is remembered: nothing was done */
    LK__NEGATIVE = -6,         /* fewer than none, nothing was done */
    LK__DISAGREES = -7,        /* others use the name with other settings: nothing was done */
};

/* In the flags of struct lk__sent. */
enum {
    LK__SENT_TELL_HOLDER = 1, /* a waiter wants to know who holds it */
    LK__SENT_AGAIN = 2,       /* an ask of this id was sent before, and may have been carried out */
    LK__SENT_UNREPAIRED = 4,  /* it is given back by a holder that was told GRANTED_OWNERDEAD, and did not repair it */
    LK__SENT_UNTOLD = 8,      /* its holder may not have been told that it has it: a death that its mark tells of stays */
};

struct lk__items;

/* With which settings a name is used: a key that all its users look at. */
struct lk__settingsmark {
    const char *key;
    const char *mine; /* the sender's settings, in words */
    bool replace;     /* what is found there, instead of comparing */
};

/* The sender of a command fills this in, each time. A script takes what its header names. */
struct lk__sent {
    const char *id;        /* owner id of the hold, or a slot of the idempotency record */
    int64_t deadline_us;   /* server's clock: past it a script does nothing */
    int64_t lease_ms;      /* digits: what a renewal is to set */
    int64_t arrival;       /* own number in the queue, 0 at first */
    const char *terms;     /* of the asker's client: "<liveness ms> <claim ms> <1: it receives no messages, or 0>" */
    int64_t keep_until_us; /* digits: server's clock; until then what is given back stays taken; 0: no longer than now */
    int64_t nth;           /* which request of that id this is, see idempotent.lua; the round that a party leaves */
    int64_t parts;         /* of a hold that is given back in parts: how many there are yet */
    const struct lk__settingsmark *settings; /* now and then */

    unsigned flags;
    unsigned epoch; /* of the server whose clock its dates are of; 0: it has none */
    int64_t deadline_here_us, keep_here_us; /* the same moments on our clock; 0: not known */
    const struct lk__items *items; /* NULL, or the keys and what else each call of a batch has of its own */
};

#endif
