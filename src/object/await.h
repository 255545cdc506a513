/* SPDX-License-Identifier: MIT */
/*
 * await.h - waiting for something that all are told at once by a broadcast
 */
#ifndef LK__OBJECT_AWAIT_H
#define LK__OBJECT_AWAIT_H

#include "object/broadcast.h"

/* One wait, on the stack of the thread that waits; the primitive's own is built around it. */
struct lk__await {
    struct lk__op op; /* entered */
    struct lk__broadcast *broadcast;
    const struct lk__scene *scene;
    int64_t limit_us;
    /* What it means to this waiter: 0 or a code: the end; EAGAIN: wait on. It may call lk__await_park(), and set what follows. */
    int (*judge)(struct lk__await *await, const union lk__seen *seen);
    void (*unwind)(struct lk__await *await); /* NULL, or what else a thread does that is cancelled; its call goes on */
    const char *wish;                        /* "did not open", for words */
    int64_t soon_us;                         /* 0, or when to look again at the latest */
    bool at_once;                            /* look again at once */
    bool known;                              /* what a first look would see is known: see lk__await_isknown() */
    char word; /* the last message, and a look that began later has not been judged; 0: none */

    /* private, but to be read */
    struct lk__parker parker;
    struct lk__subscriber subscriber;
    int64_t began_us;
    int64_t joined_us; /* when it subscribed, and has not looked since; 0: it has */
    int64_t came_us;   /* when the answer of the last look came */
    int64_t pause_ms;  /* of one without messages, between its last two looks; 0: there was one look */
    uint64_t judged;   /* the number of that look; 0: none */
    bool joined;
    bool unsubscribed; /* there will be no message */
    bool told;         /* the log says that there is no server */
    bool over;         /* under broadcast->mu: the thread is about to return, and no destroy is to mind it */
    int last_error;    /* why the last look got no answer, or 0 */
};

/* Begin a wait whose first part is filled in, and end it, but for the public call around it. */
void lk__await_begin(struct lk__await *await);
void lk__await_end(struct lk__await *await);

/* It has what it waited for, for statistics. */
void lk__await_count(const struct lk__await *await);

/* Hear messages from now on, unless it does already. */
void lk__await_join(struct lk__await *await);

/* What is asked from now on tells this waiter as much as a look would: before that request is sent. */
void lk__await_isknown(struct lk__await *await);
/* Under broadcast->mu: this waiter may still be about to return, but does not count as waiting any more; or it does again. */
void lk__await_letgo(struct lk__await *await);
void lk__await_counts(struct lk__await *await);

/* Look and wait until judge() says how it ends, or the limit. A cancelled thread leaves it and the public call. */
int lk__await_run(struct lk__await *await);

/* Take the last message, if one came. */
void lk__await_takeword(struct lk__await *await);
/* Sleep until something is signalled; the one place where this thread may be cancelled. */
void lk__await_park(struct lk__await *await, int64_t until_us);

/* The call may go on trying after this code. */
static inline bool lk__await_maypass(int code)
{
    return code == ENOTCONN || code == EIO;
}
/* A request of this wait ended with such a code, and with words: the log is told, once, after a while. */
void lk__await_failed(struct lk__await *await, int code);
/* Why it ends at its limit, with an error text. */
int lk__await_outoftime(const struct lk__await *await);

#endif
