/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting until a latch opens
 *
 *   look ── open, deleted, lost, never there ──► the end
 *    ▲  └── closed ──► join the crowd, once; park ── message, poll due, limit ──┐
 *    └──────────────────────────────────────────────────────────────────────────┘
 *
 * The first look costs no subscription. It is repeated once messages are heard, and again when the server
 * has confirmed that, so an opening falls between no two of them. A message is a hint to look; only where a
 * count ends without a mark, as Redisson does it, is its word taken for how.
 */
#include "latch/latch.h"

#include <stdlib.h>

enum {
    PATIENCE_US = 3000000, /* without a server for longer than this is worth a line in the log */
    GRACE_US = 100000,     /* the message of an end may come after the answer that knows of it */
    HINT_PAUSE_US = 5000   /* messages are cheap to forge: look at most this often because of them */
};

/* One wait, on the stack of the thread that waits. */
struct visit {
    struct lk__frame frame;
    struct lk__latch *latch;
    struct lk__parker parker;
    struct lk__standing place;
    int64_t began_us, limit_us;
    int64_t looked_us; /* when the last look began */
    int64_t serial;    /* of the end before the count that we wait for */
    bool looked;       /* the server has answered */
    bool joined;
    bool deaf;    /* no message will come */
    bool doubted; /* it vanished; its message may still be on the way */
    bool told;    /* the log that there is no server */
    char word;    /* the last message since we saw a count; 0: none */
    int trouble;  /* why the last look got no answer, or 0 */
};

static void begin(struct visit *visit)
{
    atomic_fetch_add(&visit->frame.object->waiting, 1);
    lk__parker_init(&visit->parker);
    visit->latch = lk__latch_of(&visit->frame);
    visit->began_us = lk__now_us();
}

static void join(struct visit *visit)
{
    visit->joined = true;
    atomic_fetch_add(&visit->frame.object->client->hub.waiters, 1);
    visit->deaf = !lk__crowd_join(&visit->latch->crowd, &visit->place, &visit->parker);
}

/* Nothing of it is left but its frame. */
static void end(struct visit *visit)
{
    if (visit->joined) {
        lk__crowd_leave(&visit->latch->crowd, &visit->place);
        atomic_fetch_sub(&visit->frame.object->client->hub.waiters, 1);
    }
    lk__parker_destroy(&visit->parker);
    atomic_fetch_sub(&visit->frame.object->waiting, 1);
}

/* The thread was cancelled while it was parked. */
static void abandon(void *arg)
{
    struct visit *visit = arg;
    end(visit);
    lk__frame_leave(&visit->frame, 0);
}

/* --- what a look means to this waiter: 0 open, EAGAIN wait on, or why there is nothing to wait for -------------- */

static int deleted(const struct visit *visit)
{
    return lk__fail(ECANCELED, "%s: was deleted", visit->frame.object->what);
}

/*
 * The count that we saw is not there, and nobody left a mark. A 1 may be of the time when that count was set, and be read
 * late: it counts when no 0 follows.
 */
static int vanished(const struct visit *visit)
{
    const struct lk__object *object = visit->frame.object;
    if (visit->word == '0')
        return 0;
    if (visit->word == '1' && (visit->doubted || visit->deaf))
        return deleted(visit);
    if (visit->word == 0 && object->client->options->redisson)
        return 0;
    return lk__fail(ESTALE, "%s: its count vanished; whether it opened is not known", object->what);
}

static int judge_first(struct visit *visit, const struct lk__latchstate *state)
{
    const struct lk__object *object = visit->frame.object;
    visit->looked = true;
    visit->serial = state->serial;
    if (state->count > 0)
        return EAGAIN;
    if (state->count == 0 || (state->opened && !state->since))
        return 0;
    if (state->deleted && !state->since)
        return deleted(visit);
    if (object->client->options->redisson)
        return 0;
    return lk__fail(ENOENT, "%s: has no count, and none that opened within ten minutes is known", object->what);
}

static int judge_again(struct visit *visit, const struct lk__latchstate *state)
{
    if (state->serial != 0 && state->serial != visit->serial) /* also if there is a new count by now */
        return state->deleted ? deleted(visit) : 0;
    if (state->count == 0)
        return 0;
    if (state->count < 0)
        return vanished(visit);
    visit->doubted = false;
    return EAGAIN;
}

static bool may_pass(int code)
{
    return code == ENOTCONN || code == EIO;
}

/* Say once that there is nobody to ask; the words are there from the call that failed. */
static void grumble(struct visit *visit)
{
    if (visit->told || lk__now_us() - visit->began_us <= PATIENCE_US)
        return;
    visit->told = true;
    lk__log(LK_LOG_WARNING, "waiting for more than %d s; %s", PATIENCE_US / 1000000, lk_errortext());
}

static int look(struct visit *visit)
{
    struct lk__crowd *crowd = &visit->latch->crowd;
    struct lk__latchstate state;
    char word = lk__crowd_take(crowd, &visit->place);
    if (word != 0)
        visit->word = word;
    visit->looked_us = lk__now_us();
    int rc = lk__latch_look(visit->latch, &state);
    visit->trouble = may_pass(rc) ? rc : 0;
    if (visit->trouble != 0) {
        grumble(visit);
        return EAGAIN;
    }
    if (rc != 0)
        return rc;
    if (state.count > 0)
        visit->word = 0; /* of a count before this one; what has come since the question is still there */
    else if ((word = lk__crowd_take(crowd, &visit->place)) != 0)
        visit->word = word;
    return visit->looked ? judge_again(visit, &state) : judge_first(visit, &state);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 80 to 120 per cent of the poll ceiling, so that those who wait together do not ask together. */
static int64_t next_poll(const struct visit *visit)
{
    int64_t poll_us = visit->frame.object->client->options->poll_ms * 1000;
    return lk__now_us() + poll_us * 4 / 5 + (int64_t)lk__random_below((uint64_t)poll_us * 2 / 5 + 1);
}

/* The one place where this thread sleeps long, and may be cancelled. */
static void park(struct visit *visit, int64_t until_us)
{
    pthread_cleanup_push(abandon, visit);
    lk__parker_parkopen(&visit->parker, until_us, visit->frame.manners.cancel_state);
    pthread_cleanup_pop(0);
}

/* Until a message or the next poll; not to look again at once, however many messages come. */
static void await_word(struct visit *visit)
{
    park(visit, earlier(next_poll(visit), visit->limit_us));
    int64_t next_us = earlier(visit->looked_us + HINT_PAUSE_US, visit->limit_us);
    while (lk__now_us() < next_us && !lk__client_isclosed(visit->frame.object->client))
        park(visit, next_us);
}

/* Until the message that says how it ended; others may be read before it. */
static void await_end(struct visit *visit)
{
    int64_t until_us = earlier(lk__now_us() + GRACE_US, visit->limit_us);
    visit->doubted = true;
    while (visit->word != '0' && lk__now_us() < until_us && !lk__client_isclosed(visit->frame.object->client)) {
        park(visit, until_us);
        char word = lk__crowd_take(&visit->latch->crowd, &visit->place);
        if (word != 0)
            visit->word = word;
    }
}

static int out_of_time(const struct visit *visit)
{
    const struct lk__object *object = visit->frame.object;
    if (visit->trouble == 0)
        return lk__fail(ETIMEDOUT, "%s: did not open within the time", object->what);
    if (visit->trouble == EIO)
        return lk__fail(ENOTCONN, "%s: the server did not answer within the time", object->what);
    return visit->trouble; /* with the words of the call that failed */
}

static int wait_for_it(struct visit *visit)
{
    const struct lk__object *object = visit->frame.object;
    for (;;) {
        int rc = look(visit);
        bool late = lk__now_us() >= visit->limit_us;
        if (rc == ESTALE && !visit->doubted && !visit->deaf && !late) {
            await_end(visit);
        } else if (rc != EAGAIN) {
            return rc;
        } else if (late) {
            return out_of_time(visit);
        } else if (!visit->joined) {
            join(visit);
        } else {
            await_word(visit);
        }
        if (lk__client_isclosed(object->client))
            return lk__fail(ECANCELED, "%s: the client was closed", object->what);
    }
}

static void count_wait(const struct visit *visit)
{
    struct lk__object *object = visit->frame.object;
    lk__histogram_add(&object->client->stats[LK_KIND_LATCH].wait, lk__now_us() - visit->began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (visit->joined)
        atomic_fetch_add(&object->contended, 1);
}

static int wait_until(lk_latch_t *l, int64_t limit_us)
{
    struct visit visit = { .limit_us = limit_us };
    int rc = lk__latch_enterby(l, limit_us, &visit.frame);
    if (rc != 0)
        return rc;
    begin(&visit);
    rc = wait_for_it(&visit);
    if (rc == 0)
        count_wait(&visit);
    end(&visit);
    return lk__frame_leave(&visit.frame, rc);
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
