/* SPDX-License-Identifier: MIT */
/*
 * wait.c - wait, trywait, timedwait, clockwait, waitfor, and acquire with the same limits
 *
 * These forms differ in the moment at which waiting ends, and in how many permits they want.
 */
#include "semaphore/semaphore.h"

static unsigned most_at_once(const struct lk__semcall *call)
{
    unsigned most = lk__sem_isleased(call->sem) ? LK_SEM_LEASED_MAX : LK_SEM_PERMITS_MAX;
    return call->attr->max != 0 && call->attr->max < most ? call->attr->max : most;
}

/* Owners and leases are for leased ones. */
static int check_how(const struct lk__semcall *call, const struct lk__how *how)
{
    return how->by != NULL || how->lease_ms != 0 || how->fixed != 0 ? lk__sem_leasedonly(call) : 0;
}

static int take_as(lk_sem_t *s, unsigned n, const struct lk__how *how)
{
    struct lk__semcall call;
    if (how->limit_us != 0) /* a try is no cancellation point */
        pthread_testcancel();
    int rc = lk__sem_enterby(s, how->limit_us, &call);
    if (rc != 0)
        return rc;
    rc = check_how(&call, how);
    if (rc == 0)
        rc = lk__op_setowner(&call.op, how->by);
    if (rc != 0)
        return lk__sem_leave(&call, rc);
    unsigned most = most_at_once(&call);
    if (n == 0 || n > most)
        rc = lk__fail(EINVAL, "%s: %u permits at once: at least 1, at most %u", call.what, n, most);
    else
        rc = lk__sem_isleased(call.sem) ? lk__leased_take(&call, n, how, NULL) : lk__counted_take(&call, n, how);
    if (rc == EBUSY)
        rc = lk__error_reword(EAGAIN, "%s: too few permits are free", call.what);
    else if (rc == ETIMEDOUT)
        rc = lk__error_reword(ETIMEDOUT, "%s: too few permits became free within the time", call.what);
    return lk__sem_leave(&call, rc);
}

static int take_until(lk_sem_t *s, unsigned n, int64_t limit_us)
{
    const struct lk__how how = { .limit_us = limit_us };
    return take_as(s, n, &how);
}

/* For a call with a limit, EAGAIN of a try is ETIMEDOUT. */
static int take_within(lk_sem_t *s, unsigned n, int64_t limit_us)
{
    int rc = take_until(s, n, limit_us);
    return rc == EAGAIN ? ETIMEDOUT : rc;
}

int lk_sem_wait(lk_sem_t *s)
{
    return take_until(s, 1, LK__NEVER);
}

int lk_sem_trywait(lk_sem_t *s)
{
    return take_until(s, 1, 0);
}

int lk_sem_timedwait(lk_sem_t *s, const struct timespec *abstime)
{
    return lk_sem_clockwait(s, CLOCK_REALTIME, abstime);
}

int lk_sem_clockwait(lk_sem_t *s, clockid_t clock, const struct timespec *abstime)
{
    return lk_sem_clockacquire(s, 1, clock, abstime);
}

int lk_sem_waitfor(lk_sem_t *s, int64_t timeout_ms)
{
    return lk_sem_acquire(s, 1, timeout_ms);
}

int lk_sem_acquire(lk_sem_t *s, unsigned n, int64_t timeout_ms)
{
    int64_t limit_us;
    int rc = lk__deadline_in(timeout_ms, &limit_us);
    return rc != 0 ? rc : take_within(s, n, limit_us);
}

int lk_sem_timedacquire(lk_sem_t *s, unsigned n, const struct timespec *abstime)
{
    return lk_sem_clockacquire(s, n, CLOCK_REALTIME, abstime);
}

int lk_sem_clockacquire(lk_sem_t *s, unsigned n, clockid_t clock, const struct timespec *abstime)
{
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : take_within(s, n, limit_us);
}

int lk_sem_acquirewith(lk_sem_t *s, unsigned n, const lk_how_t *how)
{
    struct lk__how taken;
    int rc = lk__how_take(&taken, how);
    if (rc == 0)
        rc = take_as(s, n, &taken);
    return rc == EAGAIN ? ETIMEDOUT : rc;
}
