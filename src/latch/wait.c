/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting until a latch opens
 *
 * Only where a count ended without a mark, as with Redisson, does the message say how. With `appear` a latch that was never
 * there is waited for likewise, until it is closed or has opened meanwhile.
 */
#include "latch/latch.h"

#include <stdlib.h>

enum { GRACE_US = 100000 }; /* the message of an end may come after the answer that knows of it */

/* One wait, on the stack of the thread that waits. */
struct waiting {
    struct lk__await await;
    int64_t serial; /* serial of the end before the count that is waited for */
    bool looked;    /* the server has answered */
    bool appearing; /* there is no count yet, and there was none since the first look */
    bool doubted;   /* the count vanished; the message of its end may still be on the way */
};

/* --- what a look means to this waiter: 0 open, EAGAIN wait on, or why there is nothing to wait for -------------- */

static int deleted(const struct waiting *waiting)
{
    return lk__fail(ECANCELED, "%s: was deleted", waiting->await.op.object->what);
}

/*
 * The count that we saw is not there, and nobody left a mark. A 1 may be of the time when that count was set, and be read
 * late: it counts when no 0 follows.
 */
static int vanished(const struct waiting *waiting)
{
    const struct lk__object *object = waiting->await.op.object;
    if (waiting->await.word == '0')
        return 0;
    if (waiting->await.word == '1' && (waiting->doubted || waiting->await.unsubscribed))
        return deleted(waiting);
    if (waiting->await.word == 0 && object->client->options->redisson)
        return 0;
    return lk__fail(ESTALE,
                    "%s: its count vanished, by its ttl_ms or with the server's data; "
                    "whether it opened is not known",
                    object->what);
}

/* Redisson leaves no mark: where it sets counts, too, one may have come and gone between two looks. */
static int not_there_yet(const struct waiting *waiting)
{
    return waiting->await.word == '0' && waiting->await.op.object->client->options->redisson ? 0 : EAGAIN;
}

static int judge_first(struct waiting *waiting, const struct lk__latchstate *state)
{
    const struct lk__object *object = waiting->await.op.object;
    waiting->looked = true;
    waiting->serial = state->serial;
    if (state->count > 0)
        return EAGAIN;
    if (state->count == 0 || (state->opened && !state->since))
        return 0;
    waiting->appearing = lk__latch_attr(&waiting->await.op)->appear != 0;
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

/* Sleep until the message that says how the count ended; other messages may come before it. */
static void await_end(struct waiting *waiting)
{
    struct lk__await *await = &waiting->await;
    int64_t until_us = lk__now_us() + GRACE_US;
    if (until_us > await->limit_us)
        until_us = await->limit_us;
    waiting->doubted = true;
    while (await->word != '0' && lk__now_us() < until_us && !lk__client_isclosed(await->op.object->client)) {
        lk__await_park(await, until_us);
        lk__await_takeword(await);
    }
    await->at_once = true;
}

static int judge(struct lk__await *await, const union lk__seen *seen)
{
    struct waiting *waiting = LK__CONTAINER(await, struct waiting, await);
    const struct lk__latchstate *state = lk__latch_state(seen);
    if (state->count > 0)
        await->word = 0; /* it was about an earlier count; one that came since the look began is still there */
    else
        lk__await_takeword(await);
    int rc = waiting->looked ? judge_again(waiting, state) : judge_first(waiting, state);
    await->wish = waiting->appearing ? "was not given a count" : "did not open";
    if (rc != ESTALE || waiting->doubted || await->unsubscribed || await->came_us >= await->limit_us)
        return rc;
    await_end(waiting);
    return EAGAIN;
}

static int wait_for_opening(lk_latch_t *l, const struct lk__how *how)
{
    struct waiting waiting = {
        .await = { .limit_us = how->limit_us, .scene = &lk__latch_scene, .judge = judge, .wish = "did not open" }
    };
    struct lk__await *await = &waiting.await;
    int rc = lk__latch_enter(&await->op, l, how->limit_us);
    if (rc != 0)
        return rc;
    await->broadcast = &lk__latch_of(&await->op)->broadcast;
    lk__await_begin(await);
    rc = lk__await_run(await);
    if (rc == 0)
        lk__await_count(await);
    lk__await_end(await);
    return lk__op_leave(&await->op, rc);
}

LK__WAIT_CALLS(latch, wait, wait_for_opening)
