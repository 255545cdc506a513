/* SPDX-License-Identifier: MIT */
/*
 * mu.c - mutexes that know their place in the library's lock order, and the condition variables with them
 *
 * What a thread holds is an array by rank, as no two of one rank nest. A thread that waits for a condition still counts
 * as the holder: nothing else runs on it, and when it is cancelled there its cleanup handler finds the mutex held. It
 * counts as the holder from before it has the mutex until after: a signal handler never finds fewer than there are. The
 * child of a fork has the forking thread's array, as it has the mutexes: both say what that thread held.
 *
 * Condition variables know no CLOCK_BOOTTIME, so a sleep is cut into slices of a second on CLOCK_MONOTONIC and the
 * deadline read again after each.
 */
#include "base/mu.h"

#include "base/base.h"

#include <errno.h>

#define SLICE_US 1000000

#ifndef NDEBUG

/* In the block that each thread is made with: to look at it allocates nothing. */
static _Thread_local const struct lk__mu *held[LK__MU_RANKS] __attribute__((tls_model("initial-exec")));

/* Does the calling thread hold nothing of `rank`, nor of one after it? */
static bool is_next(unsigned rank)
{
    while (rank < LK__MU_RANKS && held[rank] == NULL)
        rank++;
    return rank == LK__MU_RANKS;
}

bool lk__mu_held(const struct lk__mu *mu)
{
    assert(mu->rank > 0 && mu->rank < LK__MU_RANKS);
    return held[mu->rank] == mu;
}

bool lk__mu_holdsnone(void)
{
    return is_next(0);
}

/* Does the calling thread hold `mu` and no other? */
static bool is_alone(const struct lk__mu *mu)
{
    unsigned rank = 0;
    while (rank < LK__MU_RANKS && (held[rank] == NULL || held[rank] == mu))
        rank++;
    return rank == LK__MU_RANKS && lk__mu_held(mu);
}

void lk__mu_init(struct lk__mu *mu, enum lk__mu_rank rank)
{
    pthread_mutex_init(&mu->native, NULL);
    mu->rank = (unsigned char)rank;
}

void lk__mu_destroy(struct lk__mu *mu)
{
    assert(!lk__mu_held(mu));
    pthread_mutex_destroy(&mu->native);
}

void lk__mu_lock(struct lk__mu *mu)
{
    assert(!lk__mu_held(mu));
    assert(is_next(mu->rank)); /* else the lock order is inverted */
    held[mu->rank] = mu;
    pthread_mutex_lock(&mu->native);
}

void lk__mu_unlock(struct lk__mu *mu)
{
    assert(lk__mu_held(mu));
    unsigned rank = mu->rank; /* another thread may destroy it next */
    pthread_mutex_unlock(&mu->native);
    held[rank] = NULL;
}

#endif

void lk__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int lk__cond_wait(pthread_cond_t *cond, struct lk__mu *mu, int64_t until_us)
{
    assert(is_alone(mu)); /* whoever wants another mutex of this thread would wait as long */
    if (until_us == LK__NEVER)
        return pthread_cond_wait(cond, &mu->native);
    int64_t left_us = until_us - lk__now_us();
    if (left_us <= 0)
        return ETIMEDOUT;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (left_us < SLICE_US ? left_us : SLICE_US) * 1000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int rc = pthread_cond_timedwait(cond, &mu->native, &until);
    return rc == ETIMEDOUT && lk__now_us() < until_us ? 0 : rc;
}
