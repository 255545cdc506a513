/* SPDX-License-Identifier: MIT */
/* window.h - requests of the watchdog that are under way, in a fixed number of slots; for the files of this folder */
#ifndef LK__WINDOW_H
#define LK__WINDOW_H

#include "redis/redis.h"

struct lk__lease;
struct lk__outboxentry;
struct lk__watchdog;

/* A slot for one request: the renewal of a lease, or the command of an outbox entry. */
struct lk__inflight {
    struct lk__link link; /* under dog->mu: in idle, own or beside of the window */
    struct lk__request request;
    enum lk__lane via;
    const struct lk__script *script;
    struct lk__lease *lease;       /* the lease of a renewal, with a reference; or NULL */
    struct lk__outboxentry *entry; /* the entry of any other request; the outbox has a reference */
    int64_t lease_ms;              /* what a renewal asks for */
    bool as_text;

    /* under the connection's mu until it is over: the answer */
    bool good; /* an answer that its script gives: `said` */
    struct lk__answer said;
    bool error, unknown, wrong_type; /* an error; of a script that is not known; of a key of another type */
    int code;                        /* code of an error */
};

struct lk__window {
    struct lk__inflight *slots; /* NULL: not made yet */
    struct lk__link idle;       /* slots that are free */
    struct lk__link own;        /* requests on the lane for renewals, the oldest first ... */
    struct lk__link beside;     /* ... and on the lane of the callers */
};

void lk__window_init(struct lk__window *window);
void lk__window_destroy(struct lk__window *window);

/* When to send a refused request again. */
int64_t lk__window_retryat(const struct lk__watchdog *dog, int64_t now_us);

/* --- all under dog->mu --------------------------------------------------------------------------------------------- */

/* Make the slots, as the thread is made: 0 or ENOMEM. */
int lk__window_reserve(struct lk__watchdog *dog);
bool lk__window_isfull(const struct lk__watchdog *dog);

/* A free slot, all zeroes; there is one. */
struct lk__inflight *lk__window_slot(struct lk__watchdog *dog);
/* Send with that slot. 0: under way; else the slot is still free, and the code is lk__node_send()'s. */
int lk__window_send(struct lk__watchdog *dog, struct lk__inflight *inflight, const struct lk__command *command,
                    const struct lk__sent *sent);
/* The oldest request that is over, or NULL. Its slot is free: read it before the next request is sent. */
struct lk__inflight *lk__window_next_over(struct lk__watchdog *dog);
/* Abandon any request; likewise, or NULL. */
struct lk__inflight *lk__window_abandon(struct lk__watchdog *dog);
/* The oldest request on the lane of the callers, which may read its answer; or NULL. */
struct lk__request *lk__window_beside(const struct lk__watchdog *dog);

/* The lane for the next request. */
enum lk__lane lk__window_lane(struct lk__watchdog *dog);

#endif
