/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting until a latch opens
 *
 *   look ── open, deleted, lost, never there ──► the end
 *    ▲  └── closed ──► join the broadcast, once; park ── message, poll due, limit ──┐
 *    └──────────────────────────────────────────────────────────────────────────┘
 *
 * The first look needs no subscription. The thread looks again once it has subscribed, and again when the server
 * has confirmed that, so no opening falls between two looks. Threads that wait for one latch look together, see
 * look.c. A message is a hint to look. Only where a count ended without a mark, as with Redisson, does the message say
 * how. With `appear` a latch that was never there is waited for likewise, until it is closed or has opened meanwhile.
 */
#include "latch/latch.h"

#include <stdlib.h>

enum {
    PATIENCE_US = 3000000, /* a wait without a server for longer than this is logged */
    GRACE_US = 100000      /* the message of an end may come after the answer that knows of it */
};

/* One wait, on the stack of the thread that waits. */
struct waiting {
    struct lk__op op;
    struct lk__latch *latch;
    struct lk__parker parker;
    struct lk__subscriber subscriber;
    int64_t began_us, limit_us;
    int64_t joined_us; /* when it subscribed, and has not looked since; 0: it has */
    int64_t came_us;   /* when the answer of the last look came */
    uint64_t judged;   /* the number of that look; 0: none */
    int64_t serial;    /* serial of the end before the count that is waited for */
    bool looked;       /* the server has answered */
    bool appearing;    /* there is no count yet, and there was none since the first look */
    bool joined;
    bool unsubscribed; /* there will be no message */
    bool doubted;      /* the count vanished; the message of its end may still be on the way */
    bool told;         /* the log says that there is no server */
    char word;         /* the last message since we saw a count; 0: none */
    int last_error;    /* why the last look got no answer, or 0 */
};

static void begin(struct waiting *waiting)
{
    atomic_fetch_add(&waiting->op.object->waiting, 1);
    lk__parker_init(&waiting->parker);
    waiting->subscriber.parker = &waiting->parker;
    waiting->latch = lk__latch_of(&waiting->op);
    waiting->began_us = lk__now_us();
}

static void join(struct waiting *waiting)
{
    waiting->joined = true;
    atomic_fetch_add(&waiting->op.object->client->hub.waiters, 1);
    waiting->unsubscribed = !lk__broadcast_join(&waiting->latch->broadcast, &waiting->subscriber);
    waiting->joined_us = lk__now_us();
}

/* End the wait, but for the public call around it. */
static void end(struct waiting *waiting)
{
    if (waiting->joined) {
        lk__broadcast_leave(&waiting->latch->broadcast, &waiting->subscriber);
        atomic_fetch_sub(&waiting->op.object->client->hub.waiters, 1);
    }
    lk__parker_destroy(&waiting->parker);
    atomic_fetch_sub(&waiting->op.object->waiting, 1);
}

/* The thread was cancelled while it was parked. */
static void abandon(void *arg)
{
    struct waiting *waiting = arg;
    end(waiting);
    lk__op_leave(&waiting->op, 0);
}

/* --- what a look means to this waiter: 0 open, EAGAIN wait on, or why there is nothing to wait for -------------- */

static int deleted(const struct waiting *waiting)
{
    return lk__fail(ECANCELED, "%s: was deleted", waiting->op.object->what);
}

/*
 * The count that we saw is not there, and nobody left a mark. A 1 may be of the time when that count was set, and be read
 * late: it counts when no 0 follows.
 */
static int vanished(const struct waiting *waiting)
{
    const struct lk__object *object = waiting->op.object;
    if (waiting->word == '0')
        return 0;
    if (waiting->word == '1' && (waiting->doubted || waiting->unsubscribed))
        return deleted(waiting);
    if (waiting->word == 0 && object->client->options->redisson)
        return 0;
    return lk__fail(ESTALE,
                    "%s: its count vanished, by its ttl_ms or with the server's data; "
                    "whether it opened is not known",
                    object->what);
}

/* Redisson leaves no mark: where it sets counts, too, one may have come and gone between two looks. */
static int not_there_yet(const struct waiting *waiting)
{
    return waiting->word == '0' && waiting->op.object->client->options->redisson ? 0 : EAGAIN;
}

static int judge_first(struct waiting *waiting, const struct lk__latchstate *state)
{
    const struct lk__object *object = waiting->op.object;
    waiting->looked = true;
    waiting->serial = state->serial;
    if (state->count > 0)
        return EAGAIN;
    if (state->count == 0 || (state->opened && !state->since))
        return 0;
    waiting->appearing = lk__latch_attr(&waiting->op)->appear != 0;
    if (waiting->appearing)
        return EAGAIN;
    if (state->deleted && !state->since)
        return deleted(waiting);
    if (object->client->options->redisson)
        return 0;
    return lk__fail(ENOENT, "%s: has no count, and none that opened within ten minutes is known", object->what);
}

static int judge_again(struct waiting *waiting, const struct lk__latchstate *state)
{
    if (state->serial != 0 && state->serial != waiting->serial) /* also if there is a new count by now */
        return state->deleted ? deleted(waiting) : 0;
    if (state->count == 0)
        return 0;
    if (state->count < 0)
        return waiting->appearing ? not_there_yet(waiting) : vanished(waiting);
    waiting->appearing = waiting->doubted = false;
    return EAGAIN;
}

static bool may_pass(int code)
{
    return code == ENOTCONN || code == EIO;
}

/* Say once that there is nobody to ask; the words are there from the call that failed. */
static void warn_of_wait(struct waiting *waiting)
{
    if (waiting->told || lk__now_us() - waiting->began_us <= PATIENCE_US)
        return;
    waiting->told = true;
    lk__log(LK_LOG_WARNING, "waiting for more than %d s; %s", PATIENCE_US / 1000000, lk_errortext());
}

/* Which look tells what is to be known now: how it is after the call, the subscription, or the limit; else any new one. */
static uint64_t look_for(struct waiting *waiting)
{
    struct lk__broadcast *broadcast = &waiting->latch->broadcast;
    int64_t since_us = waiting->joined_us != 0 ? waiting->joined_us : waiting->limit_us;
    if (waiting->judged == 0)
        since_us = waiting->began_us;
    else if (waiting->joined_us == 0 && lk__now_us() < waiting->limit_us)
        return waiting->judged + 1;
    waiting->joined_us = 0;
    return lk__looks_after(broadcast, since_us);
}

static void take_word(struct waiting *waiting)
{
    char word = lk__broadcast_take(&waiting->latch->broadcast, &waiting->subscriber);
    if (word != 0)
        waiting->word = word;
}

static int look(struct waiting *waiting)
{
    struct lk__sight sight;
    take_word(waiting);
    int rc = lk__looks_see(&waiting->op, &waiting->subscriber, look_for(waiting), &sight);
    waiting->judged = sight.number;
    waiting->came_us = sight.came_us;
    waiting->last_error = may_pass(rc) ? rc : 0;
    if (waiting->last_error != 0) {
        warn_of_wait(waiting);
        return EAGAIN;
    }
    if (rc != 0)
        return rc;
    if (sight.state.count > 0)
        waiting->word = 0; /* it was about an earlier count; one that came since the look began is still there */
    else
        take_word(waiting);
    return waiting->looked ? judge_again(waiting, &sight.state) : judge_first(waiting, &sight.state);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 80 to 120 per cent of the poll ceiling after the last look, so that clients that began together do not ask together. */
static int64_t next_poll(const struct waiting *waiting)
{
    int64_t poll_us = waiting->op.object->client->options->poll_ms * 1000;
    return waiting->came_us + poll_us * 4 / 5 + (int64_t)lk__random_below((uint64_t)poll_us * 2 / 5 + 1);
}

/* The one place where this thread sleeps long, and may be cancelled. */
static void park(struct waiting *waiting, int64_t until_us)
{
    pthread_cleanup_push(abandon, waiting);
    lk__hub_park(&waiting->op.object->client->hub, &waiting->parker, until_us, waiting->op.api.cancel_state);
    pthread_cleanup_pop(0);
}

/* Sleep until a message or the next poll, and a pause longer, however many messages come. */
static void await_word(struct waiting *waiting)
{
    struct lk__broadcast *broadcast = &waiting->latch->broadcast;
    const lk_client_t *client = waiting->op.object->client;
    int64_t until_us = earlier(next_poll(waiting), waiting->limit_us);
    while (lk__now_us() < until_us && !lk__looks_news(broadcast, waiting->judged) && !lk__client_isclosed(client))
        park(waiting, until_us);
    until_us = earlier(lk__looks_next(broadcast, waiting->judged), waiting->limit_us);
    while (lk__now_us() < until_us && !lk__client_isclosed(client))
        park(waiting, until_us);
}

/* Sleep until the message that says how the count ended; other messages may come before it. */
static void await_end(struct waiting *waiting)
{
    int64_t until_us = earlier(lk__now_us() + GRACE_US, waiting->limit_us);
    waiting->doubted = true;
    while (waiting->word != '0' && lk__now_us() < until_us && !lk__client_isclosed(waiting->op.object->client)) {
        park(waiting, until_us);
        take_word(waiting);
    }
}

static int out_of_time(const struct waiting *waiting)
{
    const struct lk__object *object = waiting->op.object;
    if (waiting->last_error == 0)
        return lk__fail(ETIMEDOUT, "%s: %s within the time", object->what,
                        waiting->appearing ? "was not given a count" : "did not open");
    if (waiting->last_error == EIO)
        return lk__fail(ENOTCONN, "%s: the server did not answer within the time", object->what);
    return waiting->last_error; /* with the words of the call that failed */
}

static int wait_for_it(struct waiting *waiting)
{
    const struct lk__object *object = waiting->op.object;
    for (;;) {
        int rc = look(waiting);
        bool late = waiting->came_us >= waiting->limit_us;
        if (rc == ESTALE && !waiting->doubted && !waiting->unsubscribed && !late) {
            await_end(waiting);
        } else if (rc != EAGAIN) {
            return rc;
        } else if (late) {
            return out_of_time(waiting);
        } else if (!waiting->joined) {
            join(waiting);
        } else {
            await_word(waiting);
        }
        if (lk__client_isclosed(object->client))
            return lk__fail(ECANCELED, "%s: the client was closed", object->what);
    }
}

static void count_wait(const struct waiting *waiting)
{
    struct lk__object *object = waiting->op.object;
    lk__histogram_add(&object->client->stats[LK_KIND_LATCH].wait, lk__now_us() - waiting->began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (waiting->joined)
        atomic_fetch_add(&object->contended, 1);
}

static int wait_until(lk_latch_t *l, int64_t limit_us)
{
    struct waiting waiting = { .limit_us = limit_us };
    int rc = lk__latch_enter(&waiting.op, l, limit_us);
    if (rc != 0)
        return rc;
    begin(&waiting);
    rc = wait_for_it(&waiting);
    if (rc == 0)
        count_wait(&waiting);
    if (rc == 0 && waiting.joined && waiting.word == 0)
        lk__hub_doubt(&waiting.op.object->client->hub); /* a message should have told */
    end(&waiting);
    return lk__op_leave(&waiting.op, rc);
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
