/* SPDX-License-Identifier: MIT */
/*
 * mu.h - mutexes that know their place in the library's lock order, and the condition variables with them
 *
 * Without NDEBUG each thread remembers which mutexes it holds, so that an assertion catches an inversion of the order
 * on the first occasion, contended or not, and a function can assert that its caller holds what it needs. With NDEBUG
 * a struct lk__mu is a pthread_mutex_t and nothing more.
 */
#ifndef LK__MU_H
#define LK__MU_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The lock order of the whole library, outermost first: under a mutex only those of greater ranks are taken, so two
 * of one rank never nest. No user callback runs under any of them, and nobody waits for the network or sleeps under
 * one; where a function does so it says that its mutex is left and taken again.
 */
enum lk__mu_rank {
    LK__MU_PROCESS = 1, /* struct lk__processstate: the default client, all clients */
    LK__MU_CLIENT,      /* struct lk_client: its objects */
    LK__MU_OBJECT,      /* struct lk__object: its holds, slots and local queue */
    LK__MU_OWNER,       /* struct lk_owner: its calls */
    LK__MU_HUB,         /* struct lk__hub: subscriptions; their callbacks run under it */
    LK__MU_BROADCAST,   /* struct lk__broadcast: who waits for what a broadcast tells */
    LK__MU_REDISSON,    /* struct lk__redissonwake: who waits for a message of Redisson's */
    LK__MU_WAITERS,     /* struct lk__waiters: who waits for a grant */
    LK__MU_WATCHDOG,    /* struct lk__watchdog: leases */
    LK__MU_EVENTS,      /* struct lk__events: notices not fetched yet */
    LK__MU_CONNECTION,  /* struct lk__conn: the pipeline */
    LK__MU_CLUSTER,     /* struct lk__cluster: its nodes */
    LK__MU_CONNECTOR,   /* struct lk__connector: which connections are wanted */
    LK__MU_PARKER,      /* struct lk__parker: signals not taken yet */
    LK__MU_LAST_THREAD, /* last_thread.c: the thread that looks */
    LK__MU_LOG,         /* log.c: lines not written yet; a line may be logged under any other */
    LK__MU_THREADS,     /* process.c: the threads that know the library; one may come to know it under any other */
    LK__MU_RANKS
};

struct lk__mu {
    pthread_mutex_t native;
#ifndef NDEBUG
    unsigned char rank;
#endif
};

#ifdef NDEBUG

#define LK__MU_INITIALIZER(rank)                                                                                       \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER                                                                                      \
    }

static inline void lk__mu_init(struct lk__mu *mu, enum lk__mu_rank rank)
{
    (void)rank;
    pthread_mutex_init(&mu->native, NULL);
}

static inline void lk__mu_destroy(struct lk__mu *mu)
{
    pthread_mutex_destroy(&mu->native);
}

static inline void lk__mu_lock(struct lk__mu *mu)
{
    pthread_mutex_lock(&mu->native);
}

static inline void lk__mu_unlock(struct lk__mu *mu)
{
    pthread_mutex_unlock(&mu->native);
}

#else

#define LK__MU_INITIALIZER(rank)                                                                                       \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, (rank)                                                                              \
    }

void lk__mu_init(struct lk__mu *mu, enum lk__mu_rank rank);
void lk__mu_destroy(struct lk__mu *mu); /* not held */
void lk__mu_lock(struct lk__mu *mu);
void lk__mu_unlock(struct lk__mu *mu); /* held */

/* Does the calling thread hold it? For assertions: there is no such function with NDEBUG. */
bool lk__mu_held(const struct lk__mu *mu);
bool lk__mu_holdsnone(void); /* of all of them */

#endif

/* pthread_cond_wait() that ends at `until_us`, also after a suspend. ETIMEDOUT or 0. `mu` alone is held. */
int lk__cond_wait(pthread_cond_t *cond, struct lk__mu *mu, int64_t until_us);
void lk__cond_init(pthread_cond_t *cond); /* on CLOCK_MONOTONIC */

#endif
