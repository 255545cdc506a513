/* SPDX-License-Identifier: MIT */
/*
 * wait.c - wait, timedwait, clockwait, waitfor: they differ in the moment at which waiting ends
 *
 * The first ask gives the mutex back and queues in one script. So the old hold ends here before that is sent, and when
 * nothing can fail any more for want of memory. The new hold has an id of its own: it is granted by whoever gives the mutex
 * back after a signal, and confirmed by an ask, which tells the server that the signal arrived.
 *
 * At the limit, and when the thread is cancelled, the waiter leaves, which has a signal that was meant for it go on to the
 * next. Then it takes the mutex as anybody does.
 */
#include "cond/cond.h"

struct condwait {
    struct lk__op lock; /* on the mutex; begun first, so its cancelability is the caller's */
    struct lk__op op;   /* on the condition */
    struct lk__condpair *pair;
    struct lk__hold *old; /* what is given back; a reference once it is */
    int levels;
    bool gave;       /* the old hold ended here ... */
    bool good;       /* ... and was good until then, as far as was known here */
    bool open;       /* it may be at the server, and its release is on its way */
    int64_t ends_us; /* when it has ended at the server, whatever comes */
};

/* The wait for a signal. It is off the stack when the mutex is acquired again. */
struct asking {
    struct lk__acquire acquire;
    struct condwait *wait;
};

/* --- the old hold ---------------------------------------------------------------------------------------------------- */

/* When nothing can fail any more for want of memory: from now on this thread does not hold the mutex. */
static int let_go(struct lk__acquire *acquire)
{
    struct condwait *wait = LK__CONTAINER(acquire, struct asking, acquire)->wait;
    struct lk__object *object = wait->lock.object;
    lk__hold_ref(wait->old);
    wait->good = lk__lease_end(&wait->old->lease, &wait->ends_us);
    lk__object_gaveback(object, wait->old);
    lk__hold_given(wait->old);
    lk__object_drophold(object, wait->old);
    wait->lock.self->holds--;
    wait->gave = true;
    return wait->good ? 0 : lk__gone(object);
}

/* Was the first ask carried out, as far as is known? Then the old hold is given back. Else its release does that. */
static void settle_old(struct asking *asking, int rc)
{
    struct condwait *wait = asking->wait;
    struct lk__outboxentry *release = &wait->old->lease.release;
    bool done = rc == 0 || rc == EOWNERDEAD || asking->acquire.waiter.machine.result.arrival != 0;
    if (!wait->gave)
        return;
    if (rc == ESTALE && wait->good) /* so says the server: its listeners are told */
        lk__lease_wasgone(&wait->old->lease);
    wait->open = !done;
    if (!done || release->past.date.us != 0)
        lk__outbox_send(&wait->lock.object->client->dog, release, wait->ends_us);
    lk__hold_unref(wait->old);
}

/* --- the way back ---------------------------------------------------------------------------------------------------- */

/*
 * Take the mutex, however long others hold it; but a server that does not serve ends that after `patience_ms`, or a lease
 * once it has served.
 */
static int take(struct condwait *wait, int64_t patience_ms)
{
    int rc;
    do {
        const struct lk__how how = { .limit_us = lk__later(lk__now_us(), patience_ms * 1000) };
        rc = lk__mutex_acquire(&wait->lock, &how);
        patience_ms = wait->lock.object->client->options->lease_ms;
    } while (rc == ETIMEDOUT || rc == EBUSY);
    return rc;
}

/* Take it as often as it was held. 0, EOWNERDEAD, or not held, with an error text. */
static int take_again(struct condwait *wait, int64_t patience_ms)
{
    int rc = take(wait, patience_ms);
    if ((rc != 0 && rc != EOWNERDEAD) || wait->levels == 1)
        return rc;
    struct lk__hold *hold = lk__object_hold(wait->lock.object, lk__op_owner(&wait->lock));
    hold->holds = wait->levels;
    if (!lk__mutex_attr(&wait->lock)->nested_local)
        lk__mutex_nest(&wait->lock, hold, wait->levels); /* one that fails shows a lower number at the server */
    return rc;
}

/* Nothing is held, and the old hold may be at the server for longer than what is left of the new one. */
static int without_it(const struct condwait *wait, int code)
{
    if (wait->open && wait->ends_us > lk__thread_self()->settled_us)
        lk__error_settles(wait->ends_us);
    return code;
}

/* Not woken: what the caller is told, and with it the mutex, unless no server would give that. */
static int come_back(struct condwait *wait, int code)
{
    const char *what = wait->op.object->what;
    if (code == ESTALE)
        return lk__gone(wait->lock.object);
    if (code != ETIMEDOUT && code != EINVAL && code != EBUSY)
        return without_it(wait, code);
    int rc = take_again(wait, wait->lock.object->client->options->lease_ms);
    if (rc != 0)
        return rc == EOWNERDEAD ? rc : without_it(wait, rc);
    if (code == EINVAL)
        return lk__fail(EINVAL, "%s: others wait for it with another mutex", what);
    return lk__fail(ETIMEDOUT, "%s: no signal within the time", what);
}

/* The thread ended while it was parked, and has left. Its cleanup handlers run with the mutex held, if a server serves. */
static void unwind(struct lk__acquire *acquire)
{
    struct asking *asking = LK__CONTAINER(acquire, struct asking, acquire);
    struct condwait *wait = asking->wait;
    settle_old(asking, ECANCELED);
    if (!acquire->waiter.machine.result.unknown) /* else no server answered for a command timeout */
        (void)take_again(wait, wait->lock.object->client->options->command_timeout_ms);
    lk__condpair_unref(wait->pair);
    lk__op_leave(&wait->op, ECANCELED);
    lk__op_leave(&wait->lock, ECANCELED);
}

/* --- waiting ----------------------------------------------------------------------------------------------------------- */

static int __attribute__((noinline)) run(struct condwait *wait, const struct lk__how *how)
{
    struct asking asking = { .wait = wait };
    const struct lk__condpair *pair = wait->pair;
    const lk_mutexattr_t *attr = lk__mutex_attr(&wait->lock);
    struct lk__mutex *mutex = lk__mutex_of(&wait->lock);
    struct lk__mutexblock *block = lk__mutex_block(mutex);
    asking.acquire = (struct lk__acquire){
        .op = &wait->lock,
        .how = how,
        .holds = 1,
        .lease_ms = attr->lease_ms,
        .max_hold_ms = attr->max_hold_ms,
        .redisson = mutex->redisson,
        .cancellable = true,
        .unwind = unwind,
        .read = lk__cond_wait_read,
        .renewal = &lk__lua_lock_renew,
        .renewal_args = &block->renew,
        .begin = let_go,
        .block = &wait->pair->block,
        .give_back = lk__cond_command(pair, &lk__lua_cond_leave, &pair->leave),
        .held_back = lk__object_command(wait->lock.object, &lk__lua_lock_release, &block->release),
        .queues = true,
    };
    lk__acquire_plan(&asking.acquire);
    const struct lk__cond_wait_args args = { .mine = pair->mine,
                                             .old = wait->old->lease.id,
                                             .lease_ms = asking.acquire.asked_ms,
                                             .levels = attr->nested_local ? 1 : wait->levels,
                                             .channel = pair->leave.channel,
                                             .flags = pair->leave.flags };
    asking.acquire.ask = lk__cond_command(pair, &lk__lua_cond_wait, &args);
    int rc = lk__acquire_run(&asking.acquire);
    settle_old(&asking, rc);
    if (rc == 0 || rc == EOWNERDEAD)
        asking.acquire.hold->holds = wait->levels;
    return rc;
}

/* May a hold like this one be given back and taken again by a wait? */
static int check(const struct condwait *wait)
{
    const char *what = wait->lock.object->what;
    if (wait->old->lease.fixed)
        return lk__fail(EINVAL, "%s: a fixed lease is not given back by a wait, as it may not be renewed", what);
    if (wait->old->lease.release.until.date.us != 0 || lk__mutex_attr(&wait->lock)->min_hold_ms != 0)
        return lk__fail(EINVAL, "%s: with min_hold_ms it is held longer than until a wait begins", what);
    if (wait->old->owner_died)
        return lk__fail(EINVAL, "%s: its previous holder died: lk_mutex_consistent() comes before a wait", what);
    return 0;
}

/* A signal handler ended the thread while it waited for the mutex again, whose call it has left. */
static void ended(void *arg)
{
    struct condwait *wait = arg;
    lk__condpair_unref(wait->pair);
    lk__op_leave(&wait->op, ECANCELED);
}

static int wait_with_it(struct condwait *wait, int64_t limit_us)
{
    const struct lk__how how = { .limit_us = limit_us };
    int rc = lk__op_hold(&wait->lock, &wait->old);
    if (rc == ESTALE)
        return lk__op_giveback(&wait->lock, wait->old);
    if (rc == 0)
        rc = check(wait);
    if (rc == 0)
        rc = lk__condpair_with(lk__cond_of(&wait->op), lk__mutex_of(&wait->lock), &wait->pair);
    if (rc != 0)
        return rc;
    wait->levels = wait->old->holds;
    rc = run(wait, &how);
    pthread_cleanup_push(ended, wait);
    if (rc != 0 && rc != EOWNERDEAD && wait->gave)
        rc = come_back(wait, rc);
    pthread_cleanup_pop(0);
    lk__condpair_unref(wait->pair);
    return rc;
}

enum { OF_ATTRIBUTES = -1 }; /* no clock has that number */

/* When to stop waiting: a number of ms, or a moment on a clock. */
struct limit {
    int64_t timeout_ms;
    const struct timespec *abstime; /* NULL: in timeout_ms */
    clockid_t clock;                /* or OF_ATTRIBUTES */
};

static int read_limit(const struct lk__op *op, const struct limit *limit, int64_t *limit_us)
{
    if (limit->abstime == NULL)
        return lk__deadline_in(limit->timeout_ms, limit_us);
    return lk__deadline_at(limit->clock != OF_ATTRIBUTES ? limit->clock : lk__cond_attr(op)->clock, limit->abstime,
                           limit_us);
}

static int wait_until(lk_cond_t *c, lk_mutex_t *m, const struct limit *limit)
{
    struct condwait wait = { .levels = 0 };
    pthread_testcancel();
    int rc = lk__op_enter(&wait.lock, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    rc = lk__op_enter(&wait.op, LK__HANDLE(c), &lk__cond_kind);
    if (rc == 0) {
        int64_t limit_us;
        rc = read_limit(&wait.op, limit, &limit_us);
        if (rc == 0)
            rc = wait_with_it(&wait, limit_us);
        rc = lk__op_leave(&wait.op, rc);
    }
    return lk__op_leave(&wait.lock, rc);
}

static int wait_at(lk_cond_t *c, lk_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
    if (abstime == NULL)
        return lk__fail(EINVAL, "a wait for a condition: no time was given");
    return wait_until(c, m, &(struct limit){ .abstime = abstime, .clock = clock });
}

int lk_cond_wait(lk_cond_t *c, lk_mutex_t *m)
{
    return wait_until(c, m, &(struct limit){ .timeout_ms = LK_FOREVER });
}

int lk_cond_timedwait(lk_cond_t *c, lk_mutex_t *m, const struct timespec *abstime)
{
    return wait_at(c, m, OF_ATTRIBUTES, abstime);
}

int lk_cond_clockwait(lk_cond_t *c, lk_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
    if (clock == OF_ATTRIBUTES)
        return lk__fail(EINVAL, "lk_cond_clockwait: clock %d: CLOCK_REALTIME, _MONOTONIC or _BOOTTIME", (int)clock);
    return wait_at(c, m, clock, abstime);
}

int lk_cond_waitfor(lk_cond_t *c, lk_mutex_t *m, int64_t timeout_ms)
{
    return wait_until(c, m, &(struct limit){ .timeout_ms = timeout_ms });
}
