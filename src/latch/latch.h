/* SPDX-License-Identifier: MIT */
/*
 * latch.h - the countdown latch
 *
 * object.c  keys, channel and attributes    broadcast.c  waiting threads, and messages for them
 * count.c   set, count down, look, delete   wait.c   waiting until it opens
 */
#ifndef LK__LATCH_H
#define LK__LATCH_H

#include "latch/scripts.h"
#include "object/anonymous.h"
#include "object/idempotent.h"
#include "object/keys.h"

#include <latchkey/latch.h>

/* --- broadcast.c: all threads of a client that wait for one latch, behind one subscription ------------------------ */

struct lk__broadcast {
    lk_client_t *client;
    struct lk__subscription subscription;
    struct lk__mu mu;            /* after hub->mu and client->mu, before a parker's */
    struct lk__link subscribers; /* under mu */
    bool listening;              /* under mu */
};

struct lk__subscriber {
    struct lk__link link;      /* under broadcast->mu */
    struct lk__parker *parker; /* gets LK__WOKEN */
    char word;                 /* under broadcast->mu: the last message, '0' or '1', not taken yet; 0: none */
};

void lk__broadcast_init(struct lk__broadcast *broadcast, lk_client_t *client,
                        const char *channel); /* `channel` lives as long */
void lk__broadcast_destroy(struct lk__broadcast *broadcast);
void lk__broadcast_stop(struct lk__broadcast *broadcast); /* unsubscribes; before the hub ends */
void lk__broadcast_wake(struct lk__broadcast *broadcast); /* wakes all: the client is closing */

/* Wake `parker` from now on, by each message and when messages may have been missed. False: no messages, poll. */
bool lk__broadcast_join(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber, struct lk__parker *parker);
void lk__broadcast_leave(struct lk__broadcast *broadcast,
                         struct lk__subscriber *subscriber); /* harmless without a join */
char lk__broadcast_take(struct lk__broadcast *broadcast,
                        struct lk__subscriber *subscriber); /* the last message since last time, or 0 */

/* --- object.c --------------------------------------------------------------------------------------------------- */

/* What commands of a latch point into. */
struct lk__latchblock {
    struct lk__block block;
    struct lk__latch_keys keys;
    const char *channel; /* Redisson's */
};

struct lk__latch {
    struct lk__object object;
    struct lk__latchblock *block;
    struct lk__broadcast broadcast;
    struct lk__slots slots;
    struct lk__presence presence; /* of an anonymous one */
};

static inline struct lk__latch *lk__latch_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__latch, object);
}

static inline const lk_latchattr_t *lk__latch_attr(const struct lk__op *op)
{
    return op->attr;
}

/* For its scripts, as far as they are the same for all. */
static inline unsigned lk__latch_flags(const struct lk__op *op)
{
    return op->object->traits.anonymous ? LK__LATCH_ANONYMOUS : 0U;
}

extern const struct lk__kind lk__latch_kind;

/* Begin a public call; then lk__op_leave(). */
int lk__latch_enter(struct lk__op *op, lk_latch_t *l, int64_t limit_us);
/* An anonymous one is used by this client, or that begins. 0 · ESTALE: that was lost · why it could not begin. */
int lk__latch_use(const struct lk__op *op);

/* --- count.c ---------------------------------------------------------------------------------------------------- */

/* What the server knows of a latch. */
struct lk__latchstate {
    int64_t count;        /* -1: there is none */
    bool opened, deleted; /* how the last count ended; neither: not known */
    bool since;           /* who comes now is not to see that end: there was a new count since, or it was removed */
    int64_t serial;       /* serial of that end; 0: not known */
};

/* Ask, for one command timeout at most. As lk__call_run(), and EPROTO for a key that is no latch. */
int lk__latch_look(const struct lk__latch *latch, struct lk__latchstate *state);

#endif
