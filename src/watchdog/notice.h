/* SPDX-License-Identifier: MIT */
/*
 * notice.h - a notice that hangs at the server as long as the client is there: put up by the watchdog, nobody waits for it
 *
 * It is put up when the watchdog's connection to a server comes up, and again at a third of the time for which it hangs,
 * each time with all its words: a server that lost them, or was replaced, has them again. Nothing depends on it. A refusal
 * is left at that until the next time; one by access rules until the next connection.
 */
#ifndef LK__NOTICE_H
#define LK__NOTICE_H

#include "redis/redis.h"

struct lk__watchdog;
struct lk__inflight;

/* At one server; all but the first under dog->mu. */
struct lk__notesheet {
    unsigned place;              /* of a quorum: which of its servers, from 1 on; else 0 */
    struct lk__node *at;         /* where it hangs, or is to; NULL: that was not asked yet */
    unsigned long long connects; /* which connection to there */
    int64_t due_us;              /* when it is put up by that connection; LK__NEVER: not any more */
    int64_t sent_us;             /* when it was last; 0: never */
    bool hangs;                  /* the server has it, or had it */
    bool inflight;
    enum lk__manner manner; /* of the next request */
};

struct lk__notice {
    const char *what;            /* for the log */
    struct lk__command up, down; /* the same script, so that it is known when the notice is taken down */
    int64_t lasts_ms;            /* how long it hangs when it is not put up again: `up` says so to the server */
    bool refused;                /* under dog->mu: the log was told */
    unsigned count;              /* of sheets */
    struct lk__notesheet sheets[LK__QUORUM_MAX];
};

/* --- for the watchdog's own files; all under dog->mu ------------------------------------------------------------- */

/* Put it up where that is due. */
void lk__notice_serve(struct lk__watchdog *dog, int64_t now_us);
/* When it will be; LK__NEVER: something else happens before. */
int64_t lk__notice_dueat(struct lk__watchdog *dog);
/* The request of a sheet is over. */
void lk__notice_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us);
/* The client is closed: have it taken down, where that needs no waiting. What is left hangs for the rest of its time. */
void lk__notice_takedown(struct lk__watchdog *dog);

#endif
