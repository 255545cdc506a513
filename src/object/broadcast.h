/* SPDX-License-Identifier: MIT */
/*
 * broadcast.h - what all threads of a client wait for that a broadcast tells: one subscription, and one look for all
 *
 * broadcast.c  waiting threads, and messages for them
 * look.c       one look for all threads that wait
 */
#ifndef LK__OBJECT_BROADCAST_H
#define LK__OBJECT_BROADCAST_H

#include "object/op.h"

/* What a look sees, in the words of the primitive. */
union lk__seen {
    int64_t aligned;
    unsigned char bytes[64];
};

struct lk__broadcast;

/* How a primitive looks. */
struct lk__scene {
    /* Ask, for one command timeout at most. 0, or as lk__call_run(), with an error text. */
    int (*look)(const struct lk__op *op, union lk__seen *seen);
    /* Is there something that all who wait should know? */
    bool (*differs)(const union lk__seen *one, const union lk__seen *other);
    /* NULL, or what a change means to all that wait, whoever saw it first. Under broadcast->mu. */
    void (*saw)(struct lk__broadcast *broadcast, const union lk__seen *seen);
};

/* --- broadcast.c ----------------------------------------------------------------------------------------------- */

/* What a look saw, whoever looked. */
struct lk__sight {
    uint64_t number; /* looks are numbered as they begin; 0: none yet */
    int64_t came_us; /* when the answer was there */
    int rc;          /* 0, or why there is nothing in `seen` */
    union lk__seen seen;
};

/* The looks of all threads that wait, see look.c; under broadcast->mu. */
struct lk__looks {
    uint64_t begun;            /* number of the last one that began */
    int64_t began_us;          /* when that was */
    uint64_t wanted;           /* no earlier one knows what the last message was about; 0: any does */
    struct lk__sight last;     /* the latest that is over */
    bool changed;              /* it saw something new */
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

/* --- look.c ------------------------------------------------------------------------------------------------------ */

/* The number of the last look that has begun. */
uint64_t lk__looks_begun(struct lk__broadcast *broadcast);

/* The number of the first look that is sure to have begun after `since_us`. */
uint64_t lk__looks_after(struct lk__broadcast *broadcast, int64_t since_us);

/*
 * What a look of this number or a later one saw: of one that is over, of one that another thread has begun, or of its
 * own. Messages that came before this call are known to it. Returns sight->rc, and its error text. The thread may
 * sleep for a little longer than the command timeout; only its own look has an error that lasts.
 */
int lk__looks_see(const struct lk__op *op, struct lk__broadcast *broadcast, const struct lk__scene *scene,
                  struct lk__subscriber *subscriber, uint64_t from, struct lk__sight *sight);

/* Is there something later to see than that look, or a message that it did not know? */
bool lk__looks_news(struct lk__broadcast *broadcast, uint64_t number);

/* When this client may look again because of a message; in the past if nothing has to be sent for it. */
int64_t lk__looks_next(struct lk__broadcast *broadcast, uint64_t number);

#endif
