/* SPDX-License-Identifier: MIT */
/*
 * acquire.h - how something is acquired: where its thread parks, who else waits here; fsm.h has what it does next
 *
 * One way for all primitives. They bring a script that asks and one that gives back; both speak the language of
 * queue.lua, whose answers are in fsm.h.
 */
#ifndef LK__ACQUIRE_H
#define LK__ACQUIRE_H

#include "acquire/fsm.h"
#include "hub/hub.h"
#include "redis/redis.h"
#include "watchdog/lease.h"

/* --- waiters.c: where the acquires of a client wait ----------------------------------------------------------- */

struct lk__waiters;

/* A channel on which waiters of a client hear: one for all; where messages are sharded, one for each hash tag. */
struct lk__ear {
    struct lk__subscription subscription;
    struct lk__waiters *waiters;
    struct lk__entry entry; /* under waiters->mu: in waiters->ears, by the tag */
    unsigned users;         /* under waiters->mu: waiters that hear by it */
    int64_t unused_us;      /* under waiters->mu: since when it has none */
    atomic_bool listening;  /* the subscription is with the hub */
};

struct lk__waiters {
    struct lk__mu mu;      /* after hub->mu, before a connection's */
    struct lk__map by_id;  /* under mu, by owner id */
    struct lk__node *node; /* the server, or the way to it */
    struct lk__hub *hub;
    const struct lk__options *options;
    struct lk__ear ear; /* this client's channel */
    char channel[16 + LK__ID_LENGTH + 1];
    struct lk__map ears; /* under mu: those of hash tags */
    bool closed;         /* under mu: the client is closing, all waiters end */
};

/* When a wait is too long, and who is told that then, once. */
struct lk__patience {
    int64_t until_us; /* LK__NEVER: it was told, or is not to be */
    bool over;
    void (*tell)(struct lk__patience *patience); /* on the thread that waits, without any lock */
};

static inline void lk__patience_check(struct lk__patience *patience, int64_t now_us)
{
    if (now_us < patience->until_us)
        return;
    patience->until_us = LK__NEVER;
    patience->over = true;
    patience->tell(patience);
}

struct lk__waiter {
    struct lk__acquirefsm machine;
    struct lk__patience patience;
    bool explained; /* the log, who keeps it waiting, or what */
    struct lk__parker parker;
    const struct lk__outboxentry *release; /* the owner id, and the command that gives back what it got */
    struct lk__command ask;
    void (*read)(const struct lk__reply *reply, struct lk__asked *asked); /* an answer to the ask */
    struct lk__request request;
    struct lk__replybuf answer;
    const struct lk__terms *terms; /* of its client */
    const char *what;         /* "mutex orders", for the log */
    const char *name;         /* "orders", for tracepoints */
    int64_t total;            /* what an ask was told; 0: it was not asked for */
    bool absent;              /* an ask was told that there is nothing to wait for any more */
    struct lk__entry entry;   /* under waiters->mu */
    struct lk__ear *ear;      /* written by its thread alone, under waiters->mu: by which it hears; NULL: by none yet */
    struct lk__link hint;     /* under the mu of whatever hints at it; private to the primitive */
    /*
     * The thread was cancelled while it was parked, or a signal handler ended it. It has left the queue at the server by
     * then, and this takes down what the calls above it would have.
     */
    void (*unwind)(struct lk__waiter *waiter);
    int cancel_state; /* while it is parked */
    struct lk__settingsmark *settings; /* NULL, or to be looked at if the machine's settings say so */
    /* Tell that others use the name with the settings `found`; with an error text, if that is the end. */
    bool (*disagrees)(struct lk__waiter *waiter, const char *found);
    /* under waiters->mu: see waiters.c */
    struct lk__waiter *leader; /* whose place in the queue is good for this one, too; NULL: it has its own */
    struct lk__link following; /* in leader->followers */
    struct lk__link followers;
    int64_t heard_us; /* of a leader: when it had its last answer; 0: it was none yet */
    atomic_bool told; /* something may have come in since it looked last */
    /* under waiters->mu: what that is */
    bool hinted, cancelled;
    struct lk__grant granted; /* server_us 0: none */
};

void lk__waiters_init(struct lk__waiters *waiters, const char *client_id, struct lk__node *node, struct lk__hub *hub,
                      const struct lk__options *options);
/* All waiters end with ECANCELED, and so do those that come later. */
void lk__waiters_close(struct lk__waiters *waiters);
void lk__waiters_destroy(struct lk__waiters *waiters);

/* Tell a waiter, whose wait has begun and not ended, that asking now may help. Any thread. */
void lk__waiter_hint(struct lk__waiters *waiters, struct lk__waiter *waiter);

/* --- waiters.c: where messages are sharded ------------------------------------------------------------------------ */

/* By which the waiter hears from now on; NULL: ENOMEM, it does not. */
struct lk__ear *lk__ear_join(struct lk__waiters *waiters, struct lk__waiter *waiter);
/* It hears no more. An ear that nobody used for long ends. */
void lk__ear_leave(struct lk__waiters *waiters, struct lk__waiter *waiter);
/* What hears by a subscription; for waiters.c's own, too. */
void lk__ear_onmessage(struct lk__subscription *subscription, const char *payload);

/* --- waiters.c: waiters of a client behind one of them ---------------------------------------------------------- */

/* Wait behind the waiter `id` of this client, or be hinted at once if that is not to be had any more. */
void lk__waiter_follow(struct lk__waiters *waiters, struct lk__waiter *waiter, const char *id, int64_t now_us);
/* Is there a leader? One that had no answer for `silence_us` is one no more: `waiter` leads its followers. */
bool lk__waiter_isled(struct lk__waiters *waiters, struct lk__waiter *waiter, int64_t now_us, int64_t silence_us);

/* Under waiters->mu: */
void lk__waiter_stopfollowing(struct lk__waiter *waiter); /* harmless without a leader */
void lk__waiter_bringin(struct lk__waiter *leader);       /* it was granted: all followers are to ask */
void lk__waiter_handon(struct lk__waiter *leader,
                       int64_t now_us); /* it gives up: one of its followers leads the others */

/* --- wait.c: one acquire, driven by the thread that wants it --------------------------------------------------- */

/* What one wait has beyond its machine; private to it. */
struct lk__attempt {
    struct lk__waiters *waiters;
    struct lk__waiter *waiter;
    struct lk__step step; /* what is to be done next */
    bool explained; /* the server said why it refused: the error text has it */
    int asks;       /* how many were sent that may have been carried out */
    bool heard;     /* a message came since the last answer */
    bool led;       /* another waiter may be asking for this one, too */
};

/*
 * Run an acquire to its end, in two parts, of one thread: up to its first ask, for which nothing waits, and the rest, where
 * the thread blocks. Its machine has its settings, and release, ask and read are filled in. Returns the result's code, with
 * an error text; machine.result tells the rest.
 */
void lk__waiters_begin(struct lk__waiters *waiters, struct lk__waiter *waiter, struct lk__attempt *attempt);
int lk__waiters_end(struct lk__attempt *attempt);

/* Before and after that: the parker and the request of a waiter. */
void lk__waiter_init(struct lk__waiter *waiter);
void lk__waiter_destroy(struct lk__waiter *waiter);
/* Set up the machine: `settings` says what is asked of this acquire; times come from the client's options. */
void lk__waiter_set(struct lk__waiters *waiters, struct lk__waiter *waiter, struct lk__acquirefsm_settings settings);

/* --- wait.c: what is said of a wait ---------------------------------------------------------------------------- */

/*
 * Tell the log who keeps the waiter waiting for so long, or what: `asked` is an answer, or NULL, there is no connection;
 * that is told once for all waiters. False: it is not known yet, and nothing was said.
 */
bool lk__wait_warn(struct lk__waiters *waiters, const struct lk__waiter *waiter, const struct lk__asked *asked);
/* The result's code, with an error text; `explained`: it has one that an answer brought. */
int lk__wait_explain(struct lk__waiters *waiters, const struct lk__waiter *waiter, bool explained);

/* --- waiters.c: what a client asks of those who hand something over to it ------------------------------------ */

/* "<ms for which an ask is a sign of life> <claim ms> <1: it receives no messages, or 0>": what queue.lua is told of a client. */
struct lk__terms {
    char texts[2][44];   /* of a waiter that messages reach, and of one that none reaches */
    int64_t liveness_ms; /* a waiter that is not among the first two asks three times within that */
};

/* `leased`: a claim is a hold, and lasts no longer than this client's leases. */
void lk__terms_set(struct lk__terms *terms, const struct lk__options *options, bool leased);

/* For how long after its last ask there may be something of a waiter: its place, and what was handed to that. */
int64_t lk__handover_lasts(const struct lk__options *options, bool leased);

/* --- local_queue.c: threads of one process wait for their turn to wait in Redis -------------------------------------- */

struct lk__localqueue {
    struct lk__mu *mu;
    struct lk__link qnodes; /* under mu; the first of them waits in Redis */
    unsigned length;        /* under mu: how many */
};

struct lk__qnode {
    struct lk__link link;
    struct lk__parker *parker;
    struct lk__patience *patience; /* NULL, or that of a waiter, for its whole wait */
    bool behind;    /* the queue was not empty when it came */
    bool cancelled; /* under queue->mu */
};

void lk__localqueue_init(struct lk__localqueue *queue, struct lk__mu *mu);
void lk__localqueue_destroy(struct lk__localqueue *queue);
/* As lk__localqueue_enter(), by a thread that has joined the queue. */
int lk__localqueue_await(struct lk__localqueue *queue, struct lk__qnode *qnode, int64_t until_us);
void lk__localqueue_stepout(struct lk__localqueue *queue, struct lk__qnode *qnode); /* under queue->mu */
void lk__localqueue_cancel(struct lk__localqueue *queue);                           /* all that are in it now */

/* 0: it is our turn · ETIMEDOUT · ECANCELED: not in the queue. `patience`: NULL, or a waiter's, for its whole wait. */
static inline int lk__localqueue_enter(struct lk__localqueue *queue, struct lk__qnode *qnode, struct lk__parker *parker,
                                       int64_t until_us, struct lk__patience *patience)
{
    *qnode = (struct lk__qnode){ .parker = parker, .patience = patience };
    lk__mu_lock(queue->mu);
    lk__list_append(&queue->qnodes, &qnode->link);
    bool behind = qnode->behind = queue->length++ > 0;
    lk__mu_unlock(queue->mu);
    return behind ? lk__localqueue_await(queue, qnode, until_us) : 0;
}

static inline void lk__localqueue_leave(struct lk__localqueue *queue, struct lk__qnode *qnode)
{
    lk__mu_lock(queue->mu);
    if (queue->length > 1) {
        lk__localqueue_stepout(queue, qnode);
    } else {
        lk__list_remove(&qnode->link);
        queue->length = 0;
    }
    lk__mu_unlock(queue->mu);
}

#endif
