/* SPDX-License-Identifier: MIT */
/*
 * latch.h - the countdown latch
 *
 * object.c  keys, channel and attributes    broadcast.c  waiting threads, and messages for them
 * count.c   set, count down, look, delete   look.c       one look for all threads that wait
 *                                           wait.c       waiting until it opens
 */
#ifndef LK__LATCH_H
#define LK__LATCH_H

#include "latch/scripts.h"
#include "object/anonymous.h"
#include "object/idempotent.h"
#include "object/keys.h"

#include <latchkey/latch.h>

/* What the server knows of a latch. */
struct lk__latchstate {
    int64_t count;        /* -1: there is none */
    bool opened, deleted; /* how the last count ended; neither: not known */
    bool since;           /* who comes now is not to see that end: there was a new count since, or it was removed */
    int64_t serial;       /* serial of that end; 0: not known */
};

/* --- broadcast.c: all threads of a client that wait for one latch, behind one subscription ------------------------ */

/* What a look saw, whoever looked. */
struct lk__sight {
    uint64_t number; /* looks are numbered as they begin; 0: none yet */
    int64_t came_us; /* when the answer was there */
    int rc;          /* 0, or why there is no `state` */
    struct lk__latchstate state;
};

/* The looks of all threads that wait, see look.c; under broadcast->mu. */
struct lk__looks {
    uint64_t begun;            /* number of the last one that began */
    int64_t began_us;          /* when that was */
    uint64_t wanted;           /* no earlier one knows what the last message was about; 0: any does */
    struct lk__sight last;     /* the latest that is over */
    struct lk__link followers; /* threads that wait for one that another thread began */
};

struct lk__broadcast {
    lk_client_t *client;
    struct lk__subscription subscription;
    struct lk__mu mu;            /* after hub->mu and client->mu, before a parker's */
    struct lk__link subscribers; /* under mu */
    struct lk__looks looks;      /* under mu */
    bool listening;              /* under mu */
};

struct lk__subscriber {
    struct lk__link link;      /* under broadcast->mu: in broadcast->subscribers */
    struct lk__link following; /* under broadcast->mu: in looks.followers */
    struct lk__parker *parker; /* gets LK__WOKEN */
    char word;                 /* under broadcast->mu: the last message, '0' or '1', not taken yet; 0: none */
};

void lk__broadcast_init(struct lk__broadcast *broadcast, lk_client_t *client,
                        const char *channel); /* `channel` lives as long */
void lk__broadcast_destroy(struct lk__broadcast *broadcast);
void lk__broadcast_stop(struct lk__broadcast *broadcast); /* unsubscribes; before the hub ends */
void lk__broadcast_wake(struct lk__broadcast *broadcast); /* wakes all: the client is closing */

/* Under mu: wake all, as by messages that may have been missed; and those that wait for a look of another thread. */
void lk__broadcast_wakeall(struct lk__broadcast *broadcast);
void lk__broadcast_wakefollowers(struct lk__broadcast *broadcast);

/* Wake its parker from now on, by each message and when messages may have been missed. False: no messages, poll. */
bool lk__broadcast_join(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber);
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

/* Ask, for one command timeout at most. As lk__call_run(), and EPROTO for a key that is no latch. */
int lk__latch_look(const struct lk__latch *latch, struct lk__latchstate *state);

/* --- look.c: one look for all threads that wait -------------------------------------------------------------------- */

/* The number of the first look that is sure to have begun after `since_us`. */
uint64_t lk__looks_after(struct lk__broadcast *broadcast, int64_t since_us);

/*
 * What a look of this number or a later one saw: of one that is over, of one that another thread has begun, or of its
 * own. Messages that came before this call are known to it. Returns sight->rc, and its error text. The thread may
 * sleep for a little longer than the command timeout; only its own look has an error that lasts.
 */
int lk__looks_see(const struct lk__op *op, struct lk__subscriber *subscriber, uint64_t from, struct lk__sight *sight);

/* Is there something later to see than that look, or a message that it did not know? */
bool lk__looks_news(struct lk__broadcast *broadcast, uint64_t number);

/* When this client may look again because of a message; in the past if nothing has to be sent for it. */
int64_t lk__looks_next(struct lk__broadcast *broadcast, uint64_t number);

#endif
