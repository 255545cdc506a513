/* SPDX-License-Identifier: MIT */
/*
 * parker.c - where a thread sleeps until told
 *
 * Condition variables know no CLOCK_BOOTTIME, so a sleep is cut into slices of a second on
 * CLOCK_MONOTONIC and the deadline read again after each.
 */
#include "base/base.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define SLICE_US 1000000

void lk__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int lk__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mu, int64_t until_us)
{
    if (until_us == LK__NEVER)
        return pthread_cond_wait(cond, mu);
    int64_t left_us = until_us - lk__now_us();
    if (left_us <= 0)
        return ETIMEDOUT;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (left_us < SLICE_US ? left_us : SLICE_US) * 1000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int rc = pthread_cond_timedwait(cond, mu, &until);
    return rc == ETIMEDOUT && lk__now_us() < until_us ? 0 : rc;
}

void lk__parker_init(struct lk__parker *parker)
{
    pthread_mutex_init(&parker->mu, NULL);
    lk__cond_init(&parker->cond);
    parker->signals = 0;
    parker->wake_fd = -1;
}

void lk__parker_destroy(struct lk__parker *parker)
{
    pthread_mutex_lock(&parker->mu);
    pthread_mutex_unlock(&parker->mu);
    pthread_cond_destroy(&parker->cond);
    pthread_mutex_destroy(&parker->mu);
}

/* Under parker->mu. */
static void add_signal(struct lk__parker *parker, unsigned signal)
{
    parker->signals |= signal;
    if (parker->wake_fd >= 0)
        lk__eventfd_set(parker->wake_fd);
    else
        pthread_cond_signal(&parker->cond);
}

void lk__parker_signal(struct lk__parker *parker, unsigned signal)
{
    pthread_mutex_lock(&parker->mu);
    add_signal(parker, signal);
    pthread_mutex_unlock(&parker->mu);
}

void lk__parker_publish(struct lk__parker *parker, unsigned signal, _Atomic int *word, int value)
{
    pthread_mutex_lock(&parker->mu);
    atomic_store(word, value);
    add_signal(parker, signal);
    pthread_mutex_unlock(&parker->mu);
}

static unsigned take_signals(struct lk__parker *parker)
{
    unsigned signals = parker->signals;
    parker->signals = 0;
    return signals;
}

unsigned lk__parker_park(struct lk__parker *parker, int64_t until_us)
{
    pthread_mutex_lock(&parker->mu);
    while (parker->signals == 0 && lk__cond_wait(&parker->cond, &parker->mu, until_us) != ETIMEDOUT)
        ;
    unsigned signals = take_signals(parker);
    pthread_mutex_unlock(&parker->mu);
    return signals;
}

static void unlock(void *mu)
{
    pthread_mutex_unlock(mu); /* a wait that is cancelled has it again */
}

unsigned lk__parker_parkopen(struct lk__parker *parker, int64_t until_us, int cancel_state)
{
    int before;
    pthread_mutex_lock(&parker->mu);
    pthread_cleanup_push(unlock, &parker->mu);
    pthread_setcancelstate(cancel_state, &before);
    while (parker->signals == 0 && lk__cond_wait(&parker->cond, &parker->mu, until_us) != ETIMEDOUT)
        ;
    pthread_setcancelstate(before, NULL);
    pthread_cleanup_pop(0);
    unsigned signals = take_signals(parker);
    pthread_mutex_unlock(&parker->mu);
    return signals;
}

unsigned lk__parker_pollwith(struct lk__parker *parker, int fd)
{
    pthread_mutex_lock(&parker->mu);
    unsigned signals = take_signals(parker);
    parker->wake_fd = fd;
    pthread_mutex_unlock(&parker->mu);
    return signals;
}

int lk__eventfd_open(void)
{
    return lk__fd_ours(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void lk__eventfd_set(int fd)
{
    int before = errno;
    uint64_t one = 1;
    ssize_t sent = write(fd, &one, sizeof one); /* refused only when it is set 2^64 times */
    (void)sent;
    errno = before;
}

void lk__eventfd_clear(int fd)
{
    int before = errno;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
    errno = before;
}
