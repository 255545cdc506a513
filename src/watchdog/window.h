/* SPDX-License-Identifier: MIT */
/*
 * window.h - requests of the watchdog that are under way: so many slots and bytes; for the files of this folder
 *
 * At a round trip of 100 ms the slots are enough for 10,000 renewals a second one by one, and for thirty times as many
 * in batches.
 */
#ifndef LK__WINDOW_H
#define LK__WINDOW_H

#include "redis/redis.h"

struct lk__lease;
struct lk__notesheet;
struct lk__outboxentry;
struct lk__watchdog;

/* A slot for one request: renewals of one lease or several, the command of an outbox entry, or a notice. */
struct lk__inflight {
    struct lk__link link; /* under dog->mu: in idle of the window, or a flight of a node */
    struct lk__flight *flight;
    struct lk__request request;
    unsigned count; /* leases of a renewal */
    struct lk__lease *lease; /* the first of a renewal, which leads to the others; with a reference each; or NULL */
    struct lk__notesheet *sheet;   /* of a notice; or NULL */
    struct lk__outboxentry *entry; /* the entry of any other request; the outbox has a reference */
    char digits[LK__BATCH_MAX + 2]; /* under the connection's mu until it is over: the verdict of each of several leases */
};

/* Was it answered, but not acknowledged by as many replicas as it takes to count? */
bool lk__inflight_isalone(const struct lk__watchdog *dog, const struct lk__inflight *inflight);

/* What the answer says of the n-th lease; it is good. */
static inline enum lk__verdict lk__inflight_verdict(const struct lk__inflight *inflight, unsigned n)
{
    if (inflight->count <= 1 || inflight->request.answer.verdict != LK__DONE)
        return inflight->request.answer.verdict;
    return (enum lk__verdict)(inflight->digits[n] - '0');
}

enum { LK__WINDOW_SLOTS = LK__REQUESTS_MAX - 16, LK__WINDOW_TIMED = 8 };

struct lk__window {
    struct lk__inflight *slots;        /* NULL: not made yet */
    unsigned used;                     /* slots that were in use: the first ones ... */
    struct lk__link idle;              /* ... and those of them that are free */
    unsigned leases;                   /* whose renewals are under way; what is so with each node is in the node */
    int64_t took_us[LK__WINDOW_TIMED]; /* of the last requests that were answered; 0: there were fewer */
    unsigned timed;                    /* how many of all */
};

void lk__window_init(struct lk__window *window);

/* When to send a refused request again. */
int64_t lk__window_retryat(const struct lk__watchdog *dog, int64_t now_us);
/* When to send one again that is over without a good answer; how, in inflight->request.manner. */
int64_t lk__inflight_againat(const struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us);

/* --- all under dog->mu --------------------------------------------------------------------------------------------- */

/* May no more be under way, with that node? */
bool lk__window_isfull(struct lk__watchdog *dog, struct lk__node *at);
/* With any? */
static inline bool lk__window_isempty(const struct lk__window *window)
{
    return lk__list_empty(&window->idle) && window->used == LK__WINDOW_SLOTS;
}

/* What the fastest of the last requests took, the least that the next one will; 0: not known. */
int64_t lk__window_fastest(const struct lk__watchdog *dog);

/* A free slot, all zeroes but for what a request of that manner has; there is one. */
struct lk__inflight *lk__window_slot(struct lk__watchdog *dog, enum lk__manner manner);
/* Send to that node with that slot. 0: under way; else the slot is still free, and the code is lk__conn_send()'s. */
int lk__window_send(struct lk__watchdog *dog, struct lk__node *at, struct lk__inflight *inflight,
                    const struct lk__command *command, const struct lk__sent *sent);
/* The oldest request that is over, or NULL. Its slot is free: read it before the next request is sent. */
struct lk__inflight *lk__window_next_over(struct lk__watchdog *dog);
/* Abandon all requests: they are over. */
void lk__window_abandon(struct lk__watchdog *dog);
/* The oldest request on a node's lane of the callers, which may read its answer; or NULL. */
struct lk__request *lk__window_beside(const struct lk__watchdog *dog, const struct lk__node *at);

#endif
