/* SPDX-License-Identifier: MIT */
/*
 * lock.c - lock in all its forms, unlock
 *
 * Rounds until one succeeds. Two that try at once may each get a part of the servers, so the pause between two rounds is
 * random, and longer each time: who is alone for the time of a round gets all.
 */
#include "redlock/redlock.h"

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

static int acquire_by_rounds(struct lk__op *op, const struct lk__how *how)
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

/* One level more of a hold that the owner has. */
static int lock_again(const struct lk__op *op, struct lk__hold *hold, const struct lk__how *how)
{
    int rc = lk__op_checkagain(op, hold, how, lk__redlock_attr(op)->type == LK_REDLOCK_ERRORCHECK);
    hold->holds += rc == 0;
    return rc;
}

static int acquire(struct lk__op *op, const struct lk__how *how)
{
    lk__op_beginwait(op);
    lk__object_addwaiting(op->object, 1);
    int rc = acquire_by_rounds(op, how);
    lk__object_addwaiting(op->object, -1);
    return rc;
}

static int lock(lk_redlock_t *r, const struct lk__how *how)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enterlock(&op, LK__HANDLE(r), &lk__redlock_kind, how, &hold);
    if (rc != 0)
        return rc;
    bool again = hold != NULL && lk__redlock_attr(&op)->type != LK_REDLOCK_NORMAL;
    return lk__op_leavelock(&op, how, again ? lock_again(&op, hold, how) : acquire(&op, how));
}

LK__LOCK_CALLS(redlock, lock, lock)
LK__UNLOCK_CALLS(redlock)
