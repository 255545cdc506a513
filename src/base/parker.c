/* SPDX-License-Identifier: MIT */
/*
 * parker.c - where a thread sleeps until told
 */
#include "base/base.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum { TICK_US = 1000000 };

void lk__parker_init(struct lk__parker *parker)
{
    lk__mu_init(&parker->mu, LK__MU_PARKER);
    lk__cond_init(&parker->cond);
    parker->signals = 0;
    parker->wake_fd = -1;
    parker->interruptible = parker->interrupted = false;
}

void lk__parker_destroy(struct lk__parker *parker)
{
    lk__mu_lock(&parker->mu);
    lk__mu_unlock(&parker->mu);
    pthread_cond_destroy(&parker->cond);
    lk__mu_destroy(&parker->mu);
}

static void add_signal(struct lk__parker *parker, unsigned signal)
{
    assert(lk__mu_held(&parker->mu));
    parker->signals |= signal;
    if (parker->wake_fd >= 0)
        lk__eventfd_set(parker->wake_fd);
    else if (parker->interruptible)
        sem_post(&parker->tick);
    else
        pthread_cond_signal(&parker->cond);
}

void lk__parker_signal(struct lk__parker *parker, unsigned signal)
{
    lk__mu_lock(&parker->mu);
    add_signal(parker, signal);
    lk__mu_unlock(&parker->mu);
}

void lk__parker_publish(struct lk__parker *parker, unsigned signal, _Atomic int *word, int value)
{
    lk__mu_lock(&parker->mu);
    atomic_store(word, value);
    add_signal(parker, signal);
    lk__mu_unlock(&parker->mu);
}

static unsigned take_signals(struct lk__parker *parker)
{
    unsigned signals = parker->signals;
    parker->signals = 0;
    return signals;
}

void lk__parker_beinterruptible(struct lk__parker *parker, bool interruptible)
{
    lk__mu_lock(&parker->mu);
    if (interruptible)
        sem_init(&parker->tick, 0, 0); /* which needs nothing, and no end */
    parker->interruptible = interruptible;
    parker->interrupted = false;
    lk__mu_unlock(&parker->mu);
}

static unsigned signals_now(struct lk__parker *parker)
{
    lk__mu_lock(&parker->mu);
    unsigned signals = take_signals(parker);
    lk__mu_unlock(&parker->mu);
    return signals;
}

/* Sleep a while, as lk__cond_wait() does, but until a tick; a condition does not say that a signal handler ran. */
static void await_tick(struct lk__parker *parker, int64_t until_us)
{
    struct timespec until;
    int before = errno;
    int64_t left_us = until_us - lk__now_us();
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (left_us < TICK_US ? left_us : TICK_US) * 1000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    if (sem_clockwait(&parker->tick, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
        parker->interrupted = true;
    errno = before;
}

/* `open`: an interruption is the end of it. */
static unsigned park_interruptibly(struct lk__parker *parker, int64_t until_us, bool open)
{
    for (;;) {
        unsigned signals = signals_now(parker);
        if (signals != 0 || lk__now_us() >= until_us || (open && parker->interrupted))
            return signals;
        await_tick(parker, until_us);
    }
}

unsigned lk__parker_park(struct lk__parker *parker, int64_t until_us)
{
    if (parker->interruptible)
        return park_interruptibly(parker, until_us, false);
    lk__mu_lock(&parker->mu);
    while (parker->signals == 0 && lk__cond_wait(&parker->cond, &parker->mu, until_us) != ETIMEDOUT)
        ;
    unsigned signals = take_signals(parker);
    lk__mu_unlock(&parker->mu);
    return signals;
}

static void unlock(void *mu)
{
    lk__mu_unlock(mu); /* a wait that is cancelled has it again */
}

unsigned lk__parker_parkopen(struct lk__parker *parker, int64_t until_us, int cancel_state)
{
    int before;
    if (parker->interruptible) { /* no lock is held while it sleeps */
        pthread_setcancelstate(cancel_state, &before);
        unsigned came = park_interruptibly(parker, until_us, true);
        pthread_setcancelstate(before, NULL);
        return came;
    }
    lk__mu_lock(&parker->mu);
    pthread_cleanup_push(unlock, &parker->mu);
    pthread_setcancelstate(cancel_state, &before);
    while (parker->signals == 0 && lk__cond_wait(&parker->cond, &parker->mu, until_us) != ETIMEDOUT)
        ;
    pthread_setcancelstate(before, NULL);
    pthread_cleanup_pop(0);
    unsigned signals = take_signals(parker);
    lk__mu_unlock(&parker->mu);
    return signals;
}

unsigned lk__parker_pollwith(struct lk__parker *parker, int fd)
{
    lk__mu_lock(&parker->mu);
    unsigned signals = take_signals(parker);
    parker->wake_fd = fd;
    lk__mu_unlock(&parker->mu);
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
