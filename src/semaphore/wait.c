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
    return how->by != NULL || how->lease_ms != 0 || how->fixed != 0 ? lk__op_leasedonly(&call->op) : 0;
}

static int take(lk_sem_t *s, unsigned n, const struct lk__how *how)
{
    struct lk__semcall call;
    if (!how->only_try) /* a try is no cancellation point */
        pthread_testcancel();
    int rc = lk__sem_enter(s, how->limit_us, &call);
    if (rc != 0)
        return rc;
    rc = check_how(&call, how);
    if (rc == 0)
        rc = lk__op_setowner(&call.op, how->by);
    if (rc != 0)
        return lk__op_leave(&call.op, rc);
    unsigned most = most_at_once(&call);
    if (n == 0 || n > most)
        rc = lk__fail(EINVAL, "%s: %u permits at once: at least 1, at most %u", call.what, n, most);
    else
        rc = lk__sem_isleased(call.sem) ? lk__leased_take(&call, n, how, NULL) : lk__counted_take(&call, n, how);
    if (rc == EBUSY)
        rc = lk__error_reword(EAGAIN, "%s: too few permits are free", call.what);
    else if (rc == ETIMEDOUT)
        rc = lk__error_reword(ETIMEDOUT, "%s: too few permits became free within the time", call.what);
    return lk__op_leave(&call.op, rc == EAGAIN && !how->only_try ? ETIMEDOUT : rc);
}

static int take_one(lk_sem_t *s, const struct lk__how *how)
{
    return take(s, 1, how);
}

LK__WAIT_CALLS(sem, wait, take_one)

int lk_sem_trywait(lk_sem_t *s)
{
    return take(s, 1, &(struct lk__how){ .only_try = true });
}

int lk_sem_acquire(lk_sem_t *s, unsigned n, int64_t timeout_ms)
{
    struct lk__how how = { .limit_us = 0 };
    int rc = lk__deadline_in(timeout_ms, &how.limit_us);
    return rc != 0 ? rc : take(s, n, &how);
}

int lk_sem_timedacquire(lk_sem_t *s, unsigned n, const struct timespec *abstime)
{
    return lk_sem_clockacquire(s, n, CLOCK_REALTIME, abstime);
}

int lk_sem_clockacquire(lk_sem_t *s, unsigned n, clockid_t clock, const struct timespec *abstime)
{
    struct lk__how how = { .limit_us = 0 };
    int rc = lk__deadline_at(clock, abstime, &how.limit_us);
    return rc != 0 ? rc : take(s, n, &how);
}

int lk_sem_acquirewith(lk_sem_t *s, unsigned n, const lk_how_t *given)
{
    struct lk__how how;
    int rc = lk__how_take(&how, given);
    return rc != 0 ? rc : take(s, n, &how);
}
