/* SPDX-License-Identifier: MIT */
/*
 * parker.c - where a thread sleeps until told
 *
 * Guards: parker->mu the signals that were not taken yet, and where they go. No thread sleeps under it.
 *
 * A thread that is woken often runs at once, in the place of the one that woke it, and then must not find a lock taken that
 * the other still has: it would sleep again, and both would switch twice more. So a signal has two steps: it is noted,
 * under whatever lock the caller has, and the sleeper is woken when the caller has left all locks. In between the owner may
 * find the signal by itself, go on, and want to destroy the parker. So each wake-up that was promised is counted, those
 * that came are, too, and lk__parker_destroy() waits until they are as many.
 *
 * The last access of a wake-up is the one by which it can be seen: that is what sem_post() promises, and why the parker has
 * a semaphore. With a condition variable it would be the unlocking of its mutex, and the sleeper, which needs that mutex,
 * would wait for it.
 */
#include "base/base.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum { TICK_US = 1000000, YEAR_S = 365 * 24 * 3600 };

void lk__parker_init(struct lk__parker *parker)
{
    lk__mu_init(&parker->mu, LK__MU_PARKER);
    sem_init(&parker->tick, 0, 0); /* which needs nothing, and no end */
    parker->signals = parker->promised = parker->came = 0;
    parker->wake_fd = -1;
    parker->interruptible = parker->interrupted = false;
}

/* --- others tell it ----------------------------------------------------------------------------------------------- */

sem_t *lk__parker_note(struct lk__parker *parker, unsigned signal)
{
    sem_t *tick = NULL;
    lk__mu_lock(&parker->mu);
    parker->signals |= signal;
    if (parker->wake_fd >= 0) {
        lk__eventfd_set(parker->wake_fd);
    } else {
        parker->promised++;
        tick = &parker->tick;
    }
    lk__mu_unlock(&parker->mu);
    return tick;
}

void lk__parker_wake(sem_t *tick)
{
    if (tick != NULL)
        sem_post(tick);
}

void lk__parker_signal(struct lk__parker *parker, unsigned signal)
{
    lk__parker_wake(lk__parker_note(parker, signal));
}

/* --- its own thread ----------------------------------------------------------------------------------------------- */

void lk__parker_destroy(struct lk__parker *parker)
{
    lk__mu_lock(&parker->mu);
    unsigned promised = parker->promised;
    lk__mu_unlock(&parker->mu);
    while (parker->came != promised)
        parker->came += sem_wait(&parker->tick) == 0;
    lk__mu_destroy(&parker->mu);
}

void lk__parker_beinterruptible(struct lk__parker *parker, bool interruptible)
{
    parker->interruptible = interruptible;
    parker->interrupted = false;
}

unsigned lk__parker_pollwith(struct lk__parker *parker, int fd)
{
    lk__mu_lock(&parker->mu);
    unsigned signals = parker->signals;
    parker->signals = 0;
    parker->wake_fd = fd;
    lk__mu_unlock(&parker->mu);
    return signals;
}

/* When to look at the own clock again: that of sem_clockwait() does not count the time of a suspend. */
static struct timespec next_look(int64_t until_us)
{
    struct timespec look;
    clock_gettime(CLOCK_MONOTONIC, &look);
    if (until_us == LK__NEVER) {
        look.tv_sec += YEAR_S;
        return look;
    }
    int64_t left_us = until_us - lk__now_us();
    int64_t ns = look.tv_nsec + (left_us < TICK_US ? left_us : TICK_US) * 1000;
    look.tv_sec += ns / 1000000000;
    look.tv_nsec = ns % 1000000000;
    return look;
}

/* Sleep until a tick, and for a while at most: without a limit the kernel would not tell of all signal handlers. */
static void await_tick(struct lk__parker *parker, int64_t until_us)
{
    int before = errno;
    struct timespec look = next_look(until_us);
    if (sem_clockwait(&parker->tick, CLOCK_MONOTONIC, &look) == 0)
        parker->came++;
    else if (errno == EINTR)
        parker->interrupted = parker->interruptible;
    errno = before;
}

/*
 * `open`: an interruption is the end of it. The clock is read before the signals are looked for: what came in time counts,
 * however late this thread is, and a signal handler that ThreadSanitizer put off runs there, not under the mutex.
 */
static unsigned park(struct lk__parker *parker, int64_t until_us, bool open)
{
    assert(lk__mu_holdsnone()); /* whoever wants a mutex of this thread would wait as long */
    for (;;) {
        bool over = lk__now_us() >= until_us;
        unsigned signals = lk__parker_pollwith(parker, -1);
        if (signals != 0 || over || (open && parker->interrupted))
            return signals;
        await_tick(parker, until_us);
    }
}

unsigned lk__parker_park(struct lk__parker *parker, int64_t until_us)
{
    return park(parker, until_us, false);
}

unsigned lk__parker_parkopen(struct lk__parker *parker, int64_t until_us, int cancel_state)
{
    int before;
    pthread_setcancelstate(cancel_state, &before);
    unsigned signals = park(parker, until_us, true);
    pthread_setcancelstate(before, NULL);
    return signals;
}

/* --- eventfds ----------------------------------------------------------------------------------------------------- */

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
