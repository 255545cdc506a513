/* SPDX-License-Identifier: MIT */
/*
 * begin.c - beginning a run, or waiting until it is done or may be begun
 *
 *   begin ── granted, done ──► the end
 *    ▲  └── somebody runs it ──► wait for a message, see await.c ── it is done ──► the end
 *    └──────────────────────── given up, or its lease is over ──┘
 *
 * Nobody queues: when a run completes all go on at once, and when one is given up it does not matter who is next. Of the
 * threads of a client one asks whether it may begin.
 */
#include "once/once.h"

#include <string.h>

/* What a look sees. */
struct state {
    enum lk__verdict verdict; /* DONE, TAKEN or FREE */
    int64_t left_ms;          /* TAKEN: of its lease; negative: it has no end */
};

_Static_assert(sizeof(struct state) <= sizeof(union lk__seen), "what a look sees");

/* One call, on the stack of the thread that waits. */
struct beginning {
    struct lk__await await;
    struct lk__how at_once; /* what the caller says of the run; each attempt to begin it waits for nobody */
};

static const struct state *state_of(const union lk__seen *seen)
{
    return (const struct state *)(const void *)seen;
}

static int look(const struct lk__op *op, union lk__seen *seen)
{
    const struct lk__command command = lk__object_command(op->object, &lk__lua_once_look, NULL);
    struct lk__replybuf buf;
    struct lk__once_look_reply reply;
    int rc = lk__object_ask(op->object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc == 0) {
        lk__once_look_read(&buf.reply, &reply);
        const struct state state = { reply.verdict, reply.left_ms };
        memcpy(seen, &state, sizeof state);
    }
    return rc;
}

static bool differs(const union lk__seen *one, const union lk__seen *other)
{
    return state_of(one)->verdict != state_of(other)->verdict;
}

static const struct lk__scene scene = { .look = look, .differs = differs };

/* An attempt to begin it. */
struct asking {
    struct lk__acquire acquire;
    struct beginning *beginning;
    bool alone; /* no other thread asks meanwhile */
};

/* A signal handler ended the thread while it waited for a connection. */
static void unwind(struct lk__acquire *acquire)
{
    struct asking *asking = LK__CONTAINER(acquire, struct asking, acquire);
    struct lk__await *await = &asking->beginning->await;
    if (asking->alone)
        atomic_store(&lk__once_of(&await->op)->beginning, false);
    lk__await_end(await);
    lk__op_leave(&await->op, ECANCELED);
}

/*
 * Ask whether this thread may run it now. 0 · EALREADY · EBUSY somebody else does · why that is not known. `final`: the
 * wait ends with that, as too few replicas acknowledged it.
 */
static int ask_to_begin(struct beginning *beginning, bool alone, bool *final)
{
    struct lk__op *op = &beginning->await.op;
    const struct lk__onceblock *block = lk__once_block(op->object);
    const lk_onceattr_t *attr = op->attr;
    struct asking asking = {
        .acquire = { .op = op,
                     .how = &beginning->at_once,
                     .holds = 1,
                     .lease_ms = attr->lease_ms,
                     .read = lk__once_begin_read,
                     .give_back = lk__object_command(op->object, &lk__lua_once_fail, &block->fail),
                     .renewal = &lk__lua_once_renew,
                     .unwind = unwind },
        .beginning = beginning,
        .alone = alone,
    };
    struct lk__acquire *acquire = &asking.acquire;
    lk__acquire_plan(acquire);
    const struct lk__once_begin_args args = { .lease_ms = acquire->asked_ms };
    acquire->ask = lk__object_command(op->object, &lk__lua_once_begin, &args);
    int rc = lk__acquire_run(acquire);
    *final = !lk__await_maypass(rc) || acquire->unconfirmed;
    return rc;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* Nobody runs it, as it seems. Another thread that asks already is woken with all others if that changes something. */
static int begin_now(struct lk__await *await)
{
    struct lk__once *once = lk__once_of(&await->op);
    if (atomic_exchange(&once->beginning, true))
        return EAGAIN;
    bool final;
    int rc = ask_to_begin(LK__CONTAINER(await, struct beginning, await), true, &final);
    atomic_store(&once->beginning, false);
    if (!final)
        lk__await_failed(await, rc);
    return rc == EBUSY || !final ? EAGAIN : rc;
}

static int judge(struct lk__await *await, const union lk__seen *seen)
{
    const struct state *state = state_of(seen);
    await->soon_us = 0;
    lk__await_takeword(await);
    if (state->verdict == LK__DONE)
        return lk__fail(EALREADY, "%s: is done", await->op.object->what);
    if (state->verdict == LK__FREE)
        return begin_now(await);
    if (state->left_ms >= 0 && state->left_ms < LK__LEASE_MAX_MS)
        await->soon_us = await->came_us + (state->left_ms + 1) * 1000;
    return EAGAIN;
}

/* Ask, and wait while somebody else runs it, or as long as nobody answers. */
static int ask_and_wait(struct beginning *beginning)
{
    struct lk__await *await = &beginning->await;
    bool final;
    int rc = ask_to_begin(beginning, false, &final);
    if (rc != EBUSY && final)
        return rc;
    await->last_error = rc == EBUSY ? 0 : rc;
    if (lk__now_us() >= await->limit_us)
        return rc == EBUSY ? lk__await_outoftime(await) : rc;
    lk__await_join(await);
    return lk__await_run(await);
}

static int begin(struct beginning *beginning)
{
    struct lk__await *await = &beginning->await;
    await->broadcast = &lk__once_of(&await->op)->broadcast;
    lk__op_beginwait(&await->op);
    lk__await_begin(await);
    int rc = ask_and_wait(beginning);
    lk__await_end(await);
    return rc;
}

static int begin_as(lk_once_t *o, const struct lk__how *how)
{
    struct beginning beginning = {
        .await = { .limit_us = how->limit_us, .scene = &scene, .judge = judge, .wish = "is run by somebody else, not done" },
        .at_once = *how,
    };
    struct lk__op *op = &beginning.await.op;
    struct lk__hold *hold;
    beginning.at_once.limit_us = 0;
    int rc = lk__op_enterlock(op, LK__HANDLE(o), &lk__once_kind, how, &hold);
    if (rc != 0)
        return rc;
    rc = hold == NULL ? begin(&beginning)
                      : lk__fail(EDEADLK, "%s: %s runs it already", op->object->what, lk__op_holder(op));
    return lk__op_leave(op, rc);
}

LK__TIMED_CALLS(once, begin, begin_as)

int lk_once_begin(lk_once_t *o, int64_t timeout_ms)
{
    struct lk__how how = { .limit_us = 0 };
    int rc = lk__deadline_in(timeout_ms, &how.limit_us);
    return rc != 0 ? rc : begin_as(o, &how);
}

int lk_once_beginwith(lk_once_t *o, const lk_how_t *given)
{
    struct lk__how how;
    int rc = lk__how_take(&how, given);
    return rc != 0 ? rc : begin_as(o, &how);
}
