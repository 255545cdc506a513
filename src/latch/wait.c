/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting until a latch opens
 *
 *   look ── open, deleted, lost, never there ──► the end
 *    ▲  └── closed ──► join the broadcast, once; park ── message, poll due, limit ──┐
 *    └──────────────────────────────────────────────────────────────────────────┘
 *
 * The first look needs no subscription. The thread looks again once it has subscribed, and again when the server
 * has confirmed that, so no opening falls between two looks. A message is a hint to look. Only where a count
 * ended without a mark, as with Redisson, does the message say how.
 */
#include "latch/latch.h"

#include <stdlib.h>

enum {
    PATIENCE_US = 3000000, /* a wait without a server for longer than this is logged */
    GRACE_US = 100000,     /* the message of an end may come after the answer that knows of it */
    HINT_PAUSE_US = 5000   /* messages are cheap to forge: look at most this often because of them */
};

/* One wait, on the stack of the thread that waits. */
struct wait_op {
    struct lk__op op;
    struct lk__latch *latch;
    struct lk__parker parker;
    struct lk__subscriber place;
    int64_t began_us, limit_us;
    int64_t looked_us; /* when the last look began */
    int64_t serial;    /* serial of the end before the count that is waited for */
    bool looked;       /* the server has answered */
    bool joined;
    bool unsubscribed; /* there will be no message */
    bool doubted;      /* the count vanished; the message of its end may still be on the way */
    bool told;         /* the log says that there is no server */
    char word;         /* the last message since we saw a count; 0: none */
    int last_error;    /* why the last look got no answer, or 0 */
};

static void begin(struct wait_op *wait_op)
{
    atomic_fetch_add(&wait_op->op.object->waiting, 1);
    lk__parker_init(&wait_op->parker);
    wait_op->latch = lk__latch_of(&wait_op->op);
    wait_op->began_us = lk__now_us();
}

static void join(struct wait_op *wait_op)
{
    wait_op->joined = true;
    atomic_fetch_add(&wait_op->op.object->client->hub.waiters, 1);
    wait_op->unsubscribed = !lk__broadcast_join(&wait_op->latch->broadcast, &wait_op->place, &wait_op->parker);
}

/* End the wait, but for the public call around it. */
static void end(struct wait_op *wait_op)
{
    if (wait_op->joined) {
        lk__broadcast_leave(&wait_op->latch->broadcast, &wait_op->place);
        atomic_fetch_sub(&wait_op->op.object->client->hub.waiters, 1);
    }
    lk__parker_destroy(&wait_op->parker);
    atomic_fetch_sub(&wait_op->op.object->waiting, 1);
}

/* The thread was cancelled while it was parked. */
static void abandon(void *arg)
{
    struct wait_op *wait_op = arg;
    end(wait_op);
    lk__op_leave(&wait_op->op, 0);
}

/* --- what a look means to this waiter: 0 open, EAGAIN wait on, or why there is nothing to wait for -------------- */

static int deleted(const struct wait_op *wait_op)
{
    return lk__fail(ECANCELED, "%s: was deleted", wait_op->op.object->what);
}

/*
 * The count that we saw is not there, and nobody left a mark. A 1 may be of the time when that count was set, and be read
 * late: it counts when no 0 follows.
 */
static int vanished(const struct wait_op *wait_op)
{
    const struct lk__object *object = wait_op->op.object;
    if (wait_op->word == '0')
        return 0;
    if (wait_op->word == '1' && (wait_op->doubted || wait_op->unsubscribed))
        return deleted(wait_op);
    if (wait_op->word == 0 && object->client->options->redisson)
        return 0;
    return lk__fail(ESTALE, "%s: its count vanished; whether it opened is not known", object->what);
}

static int judge_first(struct wait_op *wait_op, const struct lk__latchstate *state)
{
    const struct lk__object *object = wait_op->op.object;
    wait_op->looked = true;
    wait_op->serial = state->serial;
    if (state->count > 0)
        return EAGAIN;
    if (state->count == 0 || (state->opened && !state->since))
        return 0;
    if (state->deleted && !state->since)
        return deleted(wait_op);
    if (object->client->options->redisson)
        return 0;
    return lk__fail(ENOENT, "%s: has no count, and none that opened within ten minutes is known", object->what);
}

static int judge_again(struct wait_op *wait_op, const struct lk__latchstate *state)
{
    if (state->serial != 0 && state->serial != wait_op->serial) /* also if there is a new count by now */
        return state->deleted ? deleted(wait_op) : 0;
    if (state->count == 0)
        return 0;
    if (state->count < 0)
        return vanished(wait_op);
    wait_op->doubted = false;
    return EAGAIN;
}

static bool may_pass(int code)
{
    return code == ENOTCONN || code == EIO;
}

/* Say once that there is nobody to ask; the words are there from the call that failed. */
static void warn_of_wait(struct wait_op *wait_op)
{
    if (wait_op->told || lk__now_us() - wait_op->began_us <= PATIENCE_US)
        return;
    wait_op->told = true;
    lk__log(LK_LOG_WARNING, "waiting for more than %d s; %s", PATIENCE_US / 1000000, lk_errortext());
}

static int look(struct wait_op *wait_op)
{
    struct lk__broadcast *broadcast = &wait_op->latch->broadcast;
    struct lk__latchstate state;
    char word = lk__broadcast_take(broadcast, &wait_op->place);
    if (word != 0)
        wait_op->word = word;
    wait_op->looked_us = lk__now_us();
    int rc = lk__latch_look(wait_op->latch, &state);
    wait_op->last_error = may_pass(rc) ? rc : 0;
    if (wait_op->last_error != 0) {
        warn_of_wait(wait_op);
        return EAGAIN;
    }
    if (rc != 0)
        return rc;
    if (state.count > 0)
        wait_op->word =
            0; /* the message was about an earlier count; one that came since the look began is still there */
    else if ((word = lk__broadcast_take(broadcast, &wait_op->place)) != 0)
        wait_op->word = word;
    return wait_op->looked ? judge_again(wait_op, &state) : judge_first(wait_op, &state);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 80 to 120 per cent of the poll ceiling, so that waiters that began together do not ask together. */
static int64_t next_poll(const struct wait_op *wait_op)
{
    int64_t poll_us = wait_op->op.object->client->options->poll_ms * 1000;
    return lk__now_us() + poll_us * 4 / 5 + (int64_t)lk__random_below((uint64_t)poll_us * 2 / 5 + 1);
}

/* The one place where this thread sleeps long, and may be cancelled. */
static void park(struct wait_op *wait_op, int64_t until_us)
{
    pthread_cleanup_push(abandon, wait_op);
    lk__parker_parkopen(&wait_op->parker, until_us, wait_op->op.api.cancel_state);
    pthread_cleanup_pop(0);
}

/* Sleep until a message or the next poll, and a pause longer, however many messages come. */
static void await_word(struct wait_op *wait_op)
{
    park(wait_op, earlier(next_poll(wait_op), wait_op->limit_us));
    int64_t next_us = earlier(wait_op->looked_us + HINT_PAUSE_US, wait_op->limit_us);
    while (lk__now_us() < next_us && !lk__client_isclosed(wait_op->op.object->client))
        park(wait_op, next_us);
}

/* Sleep until the message that says how the count ended; other messages may come before it. */
static void await_end(struct wait_op *wait_op)
{
    int64_t until_us = earlier(lk__now_us() + GRACE_US, wait_op->limit_us);
    wait_op->doubted = true;
    while (wait_op->word != '0' && lk__now_us() < until_us && !lk__client_isclosed(wait_op->op.object->client)) {
        park(wait_op, until_us);
        char word = lk__broadcast_take(&wait_op->latch->broadcast, &wait_op->place);
        if (word != 0)
            wait_op->word = word;
    }
}

static int out_of_time(const struct wait_op *wait_op)
{
    const struct lk__object *object = wait_op->op.object;
    if (wait_op->last_error == 0)
        return lk__fail(ETIMEDOUT, "%s: did not open within the time", object->what);
    if (wait_op->last_error == EIO)
        return lk__fail(ENOTCONN, "%s: the server did not answer within the time", object->what);
    return wait_op->last_error; /* with the words of the call that failed */
}

static int wait_for_it(struct wait_op *wait_op)
{
    const struct lk__object *object = wait_op->op.object;
    for (;;) {
        int rc = look(wait_op);
        bool late = lk__now_us() >= wait_op->limit_us;
        if (rc == ESTALE && !wait_op->doubted && !wait_op->unsubscribed && !late) {
            await_end(wait_op);
        } else if (rc != EAGAIN) {
            return rc;
        } else if (late) {
            return out_of_time(wait_op);
        } else if (!wait_op->joined) {
            join(wait_op);
        } else {
            await_word(wait_op);
        }
        if (lk__client_isclosed(object->client))
            return lk__fail(ECANCELED, "%s: the client was closed", object->what);
    }
}

static void count_wait(const struct wait_op *wait_op)
{
    struct lk__object *object = wait_op->op.object;
    lk__histogram_add(&object->client->stats[LK_KIND_LATCH].wait, lk__now_us() - wait_op->began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (wait_op->joined)
        atomic_fetch_add(&object->contended, 1);
}

static int wait_until(lk_latch_t *l, int64_t limit_us)
{
    struct wait_op wait_op = { .limit_us = limit_us };
    int rc = lk__op_enterby(&wait_op.op, LK__HANDLE(l), &lk__latch_kind, limit_us);
    if (rc != 0)
        return rc;
    begin(&wait_op);
    rc = wait_for_it(&wait_op);
    if (rc == 0)
        count_wait(&wait_op);
    end(&wait_op);
    return lk__op_leave(&wait_op.op, rc);
}

int lk_latch_wait(lk_latch_t *l)
{
    return wait_until(l, LK__NEVER);
}

int lk_latch_timedwait(lk_latch_t *l, const struct timespec *abstime)
{
    return lk_latch_clockwait(l, CLOCK_REALTIME, abstime);
}

int lk_latch_clockwait(lk_latch_t *l, clockid_t clock, const struct timespec *abstime)
{
    int64_t limit_us;
    int rc = lk__deadline_at(clock, abstime, &limit_us);
    return rc != 0 ? rc : wait_until(l, limit_us);
}

int lk_latch_waitfor(lk_latch_t *l, int64_t timeout_ms)
{
    int64_t limit_us;
    int rc = lk__deadline_in(timeout_ms, &limit_us);
    return rc != 0 ? rc : wait_until(l, limit_us);
}
