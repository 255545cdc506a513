/* SPDX-License-Identifier: MIT */
/*
 * actor.h - a client process of a soak: its objects, and its threads
 */
#ifndef TESTS_SOAK_ACTOR_H
#define TESTS_SOAK_ACTOR_H

#include "soak.h"

#include <latchkey/latchkey.h>
#include <pthread.h>

/* --- things.c: objects under one set of functions for all kinds; any thread may call them ------------------------- */

/* Made when it is first needed; it stays until the end. */
struct thing {
    struct thing *next; /* of the same kind and index, an older one */
    uint32_t instance;
    union {
        struct {
            lk_mutex_t mutex;
            lk_cond_t cond; /* of a GUARD */
        };
        lk_rwlock_t rwlock;
        lk_once_t once;
        lk_sem_t sem;
        lk_latch_t latch;
        lk_barrier_t barrier;
    };
};

struct things;
struct things *things_begin(lk_client_t *client);
int things_end(struct things *things); /* after the client was closed; 0, or what a destroy said */

struct thing *thing_of(struct things *things, uint32_t object, uint32_t instance);

/* What is taken and given back, and for whom; owner NULL: this thread. */
struct grip {
    struct things *things;
    uint32_t object, instance;
    unsigned permits;
    lk_owner_t *owner;
};

int grip_take(const struct grip *grip, bool share, int limit_ms); /* limit_ms 0: tries */
int grip_give(const struct grip *grip, bool complete);            /* of a run: it is complete; else it is given up */
int grip_repair(const struct grip *grip);
int grip_force(const struct grip *grip);
int grip_remaining(const struct grip *grip, int64_t *ms); /* ENOTSUP: it has no lease */
int grip_token(const struct grip *grip, uint64_t *token); /* likewise */
int grip_sleep(const struct grip *grip, int limit_ms);
int grip_signal(const struct grip *grip, bool all);

/* --- worker.c: a thread that takes and gives back, one episode after the other ------------------------------------ */

/*
 * What an episode does follows from the seed, the place of the thread and the number of the episode alone, not from how
 * earlier ones went.
 */
struct worker {
    struct table *table;
    struct things *things;
    struct tape tape;
    int process, incarnation, thread;
    uint64_t episodes;
    uint64_t luck; /* of this episode */
    uint32_t holds;
    lk_owner_t *owner; /* what it does some of its cycles for */
    pthread_t id;
    int ended; /* atomic builtins: by itself or cancelled; to be joined and started again */
};

void *worker_run(void *worker);

#endif
