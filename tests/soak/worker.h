/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a thread of an actor: takes and gives back, one episode after the other
 *
 * What an episode does follows from the seed, the place of the thread and the number of the episode
 * alone, not from how earlier ones went.
 */
#ifndef TESTS_SOAK_WORKER_H
#define TESTS_SOAK_WORKER_H

#include "record.h"
#include "shells.h"
#include "table.h"

#include <pthread.h>

struct worker_thread {
    struct table *table;
    struct shells *shells;
    struct tape tape;
    int process, incarnation, thread;
    uint64_t episodes;
    uint64_t luck; /* of this episode */
    uint32_t holds;
    char id[LK_PERMIT_ID]; /* of the permit that it has by its number */
    lk_owner_t *owner;     /* what it does some of its cycles for; NULL: not made yet */
    pthread_t thread_id;
    int ended; /* atomic builtins: by itself or cancelled; to be joined and started again */
};

void *worker_thread_run(void *worker);

/* What an episode does with an object that is taken and given back. */
struct cycle {
    uint32_t object, instance;
    bool share;
    unsigned permits;
    int limit_ms;
    int hold_ms;
    int fixed;     /* what it says of its lease: lk_how_t */
    int extend_ms; /* 0: not */
    bool ask;
    bool nest, downgrade;
    bool owned;           /* for an owner that is no thread */
    bool repairs, forces; /* if there is a reason */
    bool makes;
    bool any;        /* which stripe it is the call says */
    uint64_t number; /* of a run: of its result; 0: it is given up */
};

/* A record of the present hold. */
struct record *cycle_begin(struct worker_thread *worker, enum op op, const struct cycle *cycle);
/* 0 or EOWNERDEAD: held, and a record of it has been ended. Otherwise nothing may be: cycle_failed() looks. */
int cycle_take(struct worker_thread *worker, struct cycle *cycle);
void cycle_failed(struct worker_thread *worker, const struct cycle *cycle);
void cycle_give(struct worker_thread *worker, const struct cycle *cycle);
/* A level more, if that is true; and less. */
bool cycle_nest(struct worker_thread *worker, const struct cycle *cycle);
void cycle_unnest(struct worker_thread *worker, const struct cycle *cycle);
/* Take, hold as the cycle says, give. What the take said. */
int cycle_run(struct worker_thread *worker, struct cycle *cycle);
/* How long is it good for, as `record` is to say; and of a new hold its token, too. The code of the question. */
int cycle_look(struct worker_thread *worker, const struct cycle *cycle, struct record *record);
int cycle_granted(struct worker_thread *worker, const struct cycle *cycle, struct record *record);

/* buffer.c: put an item, or take one, when there is room, or one. */
void buffer_episode(struct worker_thread *worker);

/* meeting.c: meet others; have something done once. */
void barrier_episode(struct worker_thread *worker);
void once_episode(struct worker_thread *worker);

/* latch.c: set, count down, wait or look. */
void latch_episode(struct worker_thread *worker);

/* Likewise, with an anonymous latch of its own. */
void latch_alone(struct worker_thread *worker);

/* A call that is a point of cancellation, so that a cancelled thread is recorded as such. */
#define CANCELABLE(record, call)                                                                                       \
    do {                                                                                                               \
        pthread_cleanup_push(cancelled, (record));                                                                     \
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);                                                           \
        (call);                                                                                                        \
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);                                                          \
        pthread_cleanup_pop(0);                                                                                        \
    } while (0)
void cancelled(void *record);

/* Now, or while there is calm long enough for everybody: how long to wait at most. */
int patience_ms(struct worker_thread *worker);
/* Longer than anybody waits where nothing is wrong: check_rate.c. */
int patient_ms(const struct worker_thread *worker);

#endif
