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

#endif
