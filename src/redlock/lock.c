/* SPDX-License-Identifier: MIT */
/*
 * lock.c - lock, trylock, timedlock, clocklock, lockfor, lockwith, unlock
 *
 * Rounds until one succeeds. Two that try at once may each get a part of the servers, so the pause between two rounds is
 * random, and longer each time: who is alone for the time of a round gets all.
 */
#include "redlock/redlock.h"

#include <limits.h>

enum {
    PAUSE_FIRST_US = 10000,
    PAUSE_MOST_US = 100000, /* up to twice that */
    NAP_US = 20000,         /* so soon a close is seen */
    NODE_TIMEOUT_MIN_MS = 20,
    LEASE_PARTS = 20,
    NODE_TIMEOUTS = 5
};

/* --- what is asked for -------------------------------------------------------------------------------------------------- */

/* Never longer than a command timeout: in so much time a close has to know that no question is under way any more. */
static int64_t node_timeout(const struct lk__op *op, int64_t asked_ms)
{
    int64_t most_ms = op->object->client->options->command_timeout_ms;
    int64_t ms = lk__redlock_attr(op)->node_timeout_ms;
    if (ms == 0)
        ms = asked_ms / LEASE_PARTS > NODE_TIMEOUT_MIN_MS ? asked_ms / LEASE_PARTS : NODE_TIMEOUT_MIN_MS;
    return ms < most_ms ? ms : most_ms;
}

static int make_plan(const struct lk__op *op, const struct lk__how *how, struct lk__plan *plan)
{
    const lk_redlockattr_t *attr = lk__redlock_attr(op);
    int64_t lease_ms = how->lease_ms != 0 ? how->lease_ms : lk__redlock_lease(op);
    int64_t asked_ms = attr->max_hold_ms != 0 && attr->max_hold_ms < lease_ms ? attr->max_hold_ms : lease_ms;
    *plan = (struct lk__plan){
        .began_us = lk__now_us(),
        .lease_ms = lease_ms,
        .asked_ms = asked_ms,
        .max_hold_ms = attr->max_hold_ms,
        .longest_ms = lk__redlock_longest(op),
        .node_timeout_ms = node_timeout(op, asked_ms),
        .fixed = how->fixed != 0 ? how->fixed > 0 : attr->fixed != 0,
        .fenced = attr->fenced != 0,
    };
    if (lk__redlock_checklease(op, lease_ms) != 0)
        return EINVAL;
    if (plan->node_timeout_ms * NODE_TIMEOUTS > asked_ms)
        return lk__fail(EINVAL, "%s: node_timeout_ms is %lld: at most a fifth of the lease", op->object->what,
                        (long long)plan->node_timeout_ms);
    return lk__object_leasecheck(op->object, asked_ms);
}

/* --- rounds -------------------------------------------------------------------------------------------------------------- */

/* A signal handler ended the thread in such a pause. */
static void ended(void *arg)
{
    struct lk__op *op = arg;
    lk__object_addwaiting(op->object, -1);
    lk__op_leave(op, ECANCELED);
}

/* Before the next round; up to the limit, so that the last round is at it. ECANCELED: the client was closed. */
static int pause_a_little(struct lk__op *op, int64_t *pause_us, int64_t limit_us)
{
    struct lk__parker parker;
    bool closed;
    int64_t now_us = lk__now_us(), until_us = now_us + *pause_us + (int64_t)lk__random_below((uint64_t)*pause_us + 1);
    if (until_us > limit_us)
        until_us = limit_us;
    *pause_us = 2 * *pause_us < PAUSE_MOST_US ? 2 * *pause_us : PAUSE_MOST_US;
    lk__parker_init(&parker);
    pthread_cleanup_push(ended, op);
    closed = lk__client_isclosed(op->object->client);
    for (; !closed && now_us < until_us; now_us = lk__now_us()) {
        lk__parker_park(&parker, now_us + NAP_US < until_us ? now_us + NAP_US : until_us);
        closed = lk__client_isclosed(op->object->client);
    }
    pthread_cleanup_pop(0);
    lk__parker_destroy(&parker);
    return closed ? lk__fail(ECANCELED, "%s: the client was closed", op->object->what) : 0;
}

/* May another round end otherwise? */
static bool may_pass(int code)
{
    return code == EBUSY || code == ENOTCONN;
}

static void tell_once(const struct lk__op *op, const struct lk__plan *plan, bool *told)
{
    int64_t warn_ms = op->object->client->options->warn_wait_ms;
    if (*told || warn_ms < 0 || lk__now_us() - plan->began_us < warn_ms * 1000)
        return;
    *told = true;
    if (lk__linepause_over(&op->object->client->waited, lk__now_us()))
        lk__log(LK_LOG_WARNING, "waiting for more than %s; %s", lk__time_text(warn_ms).text, lk_errortext());
    lk__object_waitslong(op->object, lk__op_owner(op));
}

static int acquire(struct lk__op *op, const struct lk__how *how)
{
    struct lk__plan plan;
    int64_t pause_us = PAUSE_FIRST_US;
    bool told = false;
    int rc = make_plan(op, how, &plan), round;
    if (rc != 0)
        return rc;
    while (may_pass(round = lk__redlock_round(op, &plan)) && lk__now_us() < how->limit_us) {
        plan.contended = true;
        tell_once(op, &plan, &told);
        rc = pause_a_little(op, &pause_us, how->limit_us);
        if (rc != 0)
            return rc;
    }
    return round;
}

/* --- calls --------------------------------------------------------------------------------------------------------------- */

/* The owner holds it already: the type decides. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, bool only_try)
{
    const char *what = op->object->what;
    if (lk__redlock_attr(op)->type == LK_REDLOCK_ERRORCHECK)
        return only_try ? lk__op_busy(op, hold, "")
                        : lk__fail(EDEADLK, "%s: held by %s, which would wait for itself", what, lk__op_holder(op));
    if (hold->holds == INT_MAX)
        return lk__fail(EAGAIN, "%s: held %d times", what, hold->holds);
    hold->holds++;
    return 0;
}

static int acquire_or_nest(struct lk__op *op, const struct lk__how *how, bool only_try)
{
    struct lk__hold *hold = lk__object_hold(op->object, lk__op_owner(op));
    int rc = hold != NULL ? lk__op_hold(op, &hold) : 0;
    if (rc != 0)
        return rc;
    if (hold != NULL && lk__redlock_attr(op)->type != LK_REDLOCK_NORMAL)
        return lock_again(op, hold, only_try);
    lk__op_beginwait(op);
    lk__object_addwaiting(op->object, 1);
    rc = acquire(op, how);
    lk__object_addwaiting(op->object, -1);
    return rc;
}

static int lock_as(lk_redlock_t *r, const struct lk__how *how, bool only_try)
{
    struct lk__op op;
    int rc = lk__op_enterby(&op, LK__HANDLE(r), &lk__redlock_kind, how->limit_us);
    if (rc != 0)
        return rc;
    rc = lk__op_setowner(&op, how->by);
    if (rc == 0)
        rc = lk__op_beginlock(&op, how->limit_us);
    if (rc == 0)
        rc = acquire_or_nest(&op, how, only_try);
    return lk__op_leave(&op, rc);
}

static int lock_until(lk_redlock_t *r, int64_t limit_us, bool only_try)
{
    const struct lk__how how = { .limit_us = limit_us };
    return lock_as(r, &how, only_try);
}

/* For a call with a limit, EBUSY of a try is ETIMEDOUT. */
static int lock_within(lk_redlock_t *r, int64_t limit_us)
{
    int rc = lock_until(r, limit_us, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

int lk_redlock_lock(lk_redlock_t *r)
{
    return lock_until(r, LK__NEVER, false);
}

int lk_redlock_trylock(lk_redlock_t *r)
{
    return lock_until(r, 0, true);
}

int lk_redlock_timedlock(lk_redlock_t *r, const struct timespec *abstime)
{
    return lk_redlock_clocklock(r, CLOCK_REALTIME, abstime);
}

int lk_redlock_clocklock(lk_redlock_t *r, clockid_t clock, const struct timespec *abstime)
{
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : lock_within(r, limit_us);
}

int lk_redlock_lockfor(lk_redlock_t *r, int64_t timeout_ms)
{
    int64_t limit_us;
    int rc = lk__deadline_in(timeout_ms, &limit_us);
    return rc != 0 ? rc : lock_within(r, limit_us);
}

int lk_redlock_lockwith(lk_redlock_t *r, const lk_how_t *how)
{
    struct lk__how taken;
    int rc = lk__how_take(&taken, how);
    if (rc == 0)
        rc = lock_as(r, &taken, false);
    return rc == EBUSY ? ETIMEDOUT : rc;
}

LK__UNLOCK_CALLS(redlock)
