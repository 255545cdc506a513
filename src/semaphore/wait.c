/* SPDX-License-Identifier: MIT */
/*
 * wait.c - wait, trywait, timedwait, clockwait, waitfor, acquire
 *
 * These forms differ in the moment at which waiting ends, and in how many permits they want.
 */
#include "semaphore/semaphore.h"

static int take_until(lk_sem_t *s, unsigned n, int64_t limit_us)
{
    struct lk__semcall call;
    if (limit_us != 0) /* a try is no cancellation point */
        pthread_testcancel();
    int rc = lk__sem_enterby(s, limit_us, &call);
    if (rc != 0)
        return rc;
    if (n == 0 || n > (lk__sem_isleased(call.sem) ? LK_SEM_LEASED_MAX : LK_SEM_PERMITS_MAX))
        rc = lk__fail(EINVAL, "%s: %u permits at once: at least 1, at most %d", call.what, n,
                      lk__sem_isleased(call.sem) ? LK_SEM_LEASED_MAX : LK_SEM_PERMITS_MAX);
    else
        rc = lk__sem_isleased(call.sem) ? lk__leased_take(&call, n, limit_us, NULL)
                                        : lk__counted_take(&call, n, limit_us);
    if (rc == EBUSY)
        rc = lk__fail(EAGAIN, "%s: too few permits are free", call.what);
    else if (rc == ETIMEDOUT)
        rc = lk__fail(ETIMEDOUT, "%s: too few permits became free within the time", call.what);
    return lk__sem_leave(&call, rc);
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
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : take_within(s, 1, limit_us);
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
