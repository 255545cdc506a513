/* SPDX-License-Identifier: MIT */
/*
 * wait.c - coming to a round of a barrier, and waiting for the others
 *
 *   subscribe ─► come ── as the last one ──► the serial party
 *                 └── as another one ──► wait for a message, see await.c ── the round is over ──► passed, or broken
 *                                          └── the limit, cancelled ──► leave: that breaks the round
 *
 * While it waits a party has a lease, renewed as that of a hold: one whose lease ended breaks the round, which is noticed by
 * whoever looks or comes. What a party is told depends on its round alone, so it may look late, when others have
 * met again or somebody has begun anew.
 */
#include "barrier/barrier.h"

#include <stdio.h>
#include <string.h>

/* What a look sees, see round.lua. */
struct state {
    int64_t generation; /* 0: the server knows nothing of the barrier */
    int64_t first, ended, before;
    bool broken;
};

_Static_assert(sizeof(struct state) <= sizeof(union lk__seen), "what a look sees");

/* One wait, on the stack of the thread that waits. */
struct meeting {
    struct lk__await await;
    unsigned parties;
    int64_t generation;      /* under broadcast->mu: of the round that it came to; 0: not known yet */
    struct lk__lease *lease; /* NULL: it has none any more */
    uint64_t doubted;        /* the last look that had begun when the lease was found lost; 0: it was not */
    struct lk__until until;  /* by then no copy of its coming takes effect */
};

static const struct state *state_of(const union lk__seen *seen)
{
    return (const struct state *)(const void *)seen;
}

static int look(const struct lk__op *op, union lk__seen *seen)
{
    const struct lk__barrier_look_args args = { .channel = lk__barrier_block(op->object)->leave.channel };
    const struct lk__command command = lk__object_command(op->object, &lk__lua_barrier_look, &args);
    struct lk__barrier_look_reply reply;
    struct lk__replybuf buf;
    struct lk__call call = { .node = lk__object_node(op->object),
                             .what = op->object->what,
                             .command = &command,
                             .reply = lk__replybuf_reply(&buf) };
    int rc = lk__call_run(&call);
    if (rc == 0) {
        lk__barrier_look_read(call.reply, &reply);
        struct state state = { 0 };
        if (reply.verdict == LK__DONE)
            state = (struct state){ reply.generation, reply.first, reply.ended, reply.before, reply.broken == 1 };
        memcpy(seen, &state, sizeof state);
    }
    return rc;
}

static bool differs(const union lk__seen *one, const union lk__seen *other)
{
    return state_of(one)->generation != state_of(other)->generation || state_of(one)->broken != state_of(other)->broken;
}

/*
 * Rounds before `generation` are over: no destroy is to mind who waited for them. A thread whose own coming is not
 * answered yet may have been one of them; if it was not, it counts again when it knows, see enter_round().
 */
static void let_go(struct lk__broadcast *broadcast, int64_t generation)
{
    struct lk__barrier *barrier = LK__CONTAINER(broadcast, struct lk__barrier, broadcast);
    assert(lk__mu_held(&broadcast->mu));
    if (generation > barrier->present)
        barrier->present = generation;
    for (struct lk__link *l = lk__list_first(&broadcast->subscribers); l != NULL;
         l = lk__list_next(&broadcast->subscribers, l)) {
        struct lk__subscriber *subscriber = LK__CONTAINER(l, struct lk__subscriber, link);
        struct lk__await *await = LK__CONTAINER(subscriber, struct lk__await, subscriber);
        if (LK__CONTAINER(await, struct meeting, await)->generation < generation)
            lk__await_letgo(await);
    }
}

static void saw(struct lk__broadcast *broadcast, const union lk__seen *seen)
{
    let_go(broadcast, state_of(seen)->generation);
}

static const struct lk__scene scene = { .look = look, .differs = differs, .saw = saw };

/* --- what became of a round: 0, EAGAIN it is not over, or a code with an error text --------------------------------- */

/* Somebody deleted it at the server, or the server lost its data. */
static int lost(const struct meeting *meeting)
{
    return lk__fail(ESTALE, "%s: the server lost it; whether all came is not known", meeting->await.op.object->what);
}

static int broken(const struct meeting *meeting)
{
    return lk__fail(ECANCELED, "%s: the round is broken", meeting->await.op.object->what);
}

/*
 * The round goes on. Who has lost the lease, and does not find by a later look that it is broken, is not among those who
 * wait: somebody deleted that.
 */
static int wait_on(struct meeting *meeting)
{
    struct lk__await *await = &meeting->await;
    if (meeting->lease == NULL || lk__lease_isgood(meeting->lease, NULL))
        return EAGAIN;
    if (meeting->doubted == 0)
        meeting->doubted = lk__looks_begun(await->broadcast);
    await->at_once = true;
    return await->judged > meeting->doubted ? lost(meeting) : EAGAIN;
}

static int judge(struct lk__await *await, const union lk__seen *seen)
{
    struct meeting *meeting = LK__CONTAINER(await, struct meeting, await);
    const struct state *state = state_of(seen);
    int64_t mine = meeting->generation;
    lk__await_takeword(await);
    if (state->generation == mine && state->broken)
        return broken(meeting);
    if (state->generation == mine)
        return wait_on(meeting);
    if (state->generation > mine && (mine >= state->first || (mine >= state->before && mine < state->ended)))
        return 0;
    if (mine == state->ended)
        return broken(meeting);
    return lost(meeting);
}

/* --- the lease of a party ----------------------------------------------------------------------------------------- */

static int make_lease(struct meeting *meeting)
{
    struct lk__object *object = meeting->await.op.object;
    lk_client_t *client = object->client;
    const lk_barrierattr_t *attr = meeting->await.op.attr;
    int64_t lease_ms = attr->lease_ms != 0 ? attr->lease_ms : client->options->lease_ms;
    if (lk__object_leasecheck(object, lease_ms) != 0)
        return EINVAL;
    struct lk__lease *lease = lk__lease_new(&client->dog, 0, LK__OWNER_ID_SHORT);
    if (lease == NULL)
        return ENOMEM;
    unsigned long long number = atomic_fetch_add(&client->acquisitions, 1) + 1;
    snprintf(lease->id, LK__OWNER_ID_SHORT, "%s:0:%llu", client->id, number);
    lease->name = lk__object_name(object);
    lease->by_id = true; /* who comes last ends it, whoever's party that is: no loss to be logged */
    lease->lease_ms = lease->wanted_ms = (int)lease_ms;
    lease->renewal = &lk__lua_barrier_renew;
    lease->release.block = lk__block_ref(object->block);
    lease->release.command = lk__object_command(object, &lk__lua_barrier_leave, &lk__barrier_block(object)->leave);
    meeting->lease = lease;
    return 0;
}

/* The round is over, or this party never came. */
static void drop_lease(struct meeting *meeting)
{
    if (meeting->lease == NULL)
        return;
    lk__lease_end(meeting->lease, NULL);
    lk__lease_unref(meeting->lease);
    meeting->lease = NULL;
}

/* Leave without waiting for an answer. */
static void slip_away(struct meeting *meeting)
{
    if (meeting->lease == NULL)
        return;
    struct lk__lease *lease = meeting->lease;
    int64_t end_us;
    lk__lease_end(lease, &end_us);
    lease->release.past = meeting->until;
    lk__outbox_send(&meeting->await.op.object->client->dog, &lease->release, end_us);
    lk__error_settles(end_us);
    drop_lease(meeting);
}

/* 0: it does not wait any more; else why that is not known. `repeated`: GONE may be because a copy had it leave. */
static int leave(struct meeting *meeting, enum lk__verdict *verdict, bool *repeated)
{
    const struct lk__outboxentry *release = &meeting->lease->release;
    struct lk__object *object = meeting->await.op.object;
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = &release->command,
                             .sent = { .id = release->id, .nth = release->nth } };
    int rc = lk__call_run(&call);
    *verdict = rc == 0 ? call.answer.verdict : LK__GONE;
    *repeated = call.repeated;
    return rc;
}

/* Its time is over. What still waits at the server, if anything does, leaves in the background. */
static int give_up_unseen(struct meeting *meeting)
{
    lk__fail(EIO, "%s: the time is over, and whether all came is not known", meeting->await.op.object->what);
    slip_away(meeting);
    return EIO;
}

/*
 * Its time is over. Did the round end in the last moment? If it is broken, a copy of the leave may have done that. The
 * wait itself needs the stack that this takes.
 */
static int __attribute__((noinline)) give_up(struct meeting *meeting, int code)
{
    struct lk__await *await = &meeting->await;
    enum lk__verdict verdict;
    bool repeated;
    union lk__seen seen;
    int rc = leave(meeting, &verdict, &repeated);
    if (rc != 0)
        return give_up_unseen(meeting);
    drop_lease(meeting);
    if (verdict == LK__GONE && look(&await->op, &seen) != 0)
        return give_up_unseen(meeting);
    rc = verdict == LK__GONE ? judge(await, &seen) : EAGAIN;
    if (rc != EAGAIN && !(rc == ECANCELED && repeated && code == ETIMEDOUT))
        return rc;
    return code == ETIMEDOUT ? lk__await_outoftime(await) : code;
}

/* The server lost it, and perhaps nothing else: the others are told that it does not wait. */
static int give_up_lost(struct meeting *meeting)
{
    enum lk__verdict verdict;
    bool repeated;
    if (leave(meeting, &verdict, &repeated) == 0)
        drop_lease(meeting);
    else
        slip_away(meeting);
    return lost(meeting);
}

/* --- coming to a round -------------------------------------------------------------------------------------------- */

/* One request. As lk__idempotent(), and the verdict's code; `generation` is negative for who came last. */
static int ask_to_come(struct meeting *meeting, bool only_last, int64_t *generation)
{
    struct lk__await *await = &meeting->await;
    struct lk__object *object = await->op.object;
    const struct lk__barrier_arrive_args args = { .wanted = meeting->parties,
                                                  .lease_ms = meeting->lease->lease_ms,
                                                  .party = meeting->lease->id,
                                                  .channel = lk__barrier_block(object)->leave.channel,
                                                  .flags = only_last ? LK__BARRIER_TRY : 0 };
    struct lk__idempotent arrive = { .command = lk__object_command(object, &lk__lua_barrier_arrive, &args) };
    enum lk__verdict verdict;
    lk__await_isknown(await);
    int rc = lk__idempotent(&await->op, &lk__barrier_of(&await->op)->slots, &arrive, &verdict);
    *generation = arrive.number;
    meeting->until = arrive.until;
    if (rc != 0)
        return rc;
    if (verdict == LK__GONE)
        return broken(meeting);
    if (verdict == LK__PRESENT)
        return lk__fail(EINVAL, "%s: others wait for %lld parties, this one for %u", object->what,
                        (long long)arrive.number, meeting->parties);
    return verdict == LK__BUSY ? lk__await_outoftime(await) : 0;
}

/* As long as no server would serve it, and there is time. */
static int come(struct meeting *meeting, bool only_last, int64_t *generation)
{
    struct lk__await *await = &meeting->await;
    const lk_client_t *client = await->op.object->client;
    for (;;) {
        int rc = ask_to_come(meeting, only_last, generation);
        int64_t now_us = lk__now_us(), until_us = now_us + client->options->poll_ms * 1000;
        if (rc != ENOTCONN || now_us >= await->limit_us)
            return rc;
        lk__await_failed(await, rc);
        lk__await_park(await, until_us < await->limit_us ? until_us : await->limit_us);
        if (lk__client_isclosed(client))
            return lk__fail(ECANCELED, "%s: the client was closed", await->op.object->what);
    }
}

/* From now on it is known for which round this thread waits; or of all who waited for it, that it is over. */
static void enter_round(struct meeting *meeting, int64_t generation)
{
    struct lk__broadcast *broadcast = meeting->await.broadcast;
    lk__mu_lock(&broadcast->mu);
    meeting->generation = generation > 0 ? generation : -generation;
    meeting->lease->release.nth = meeting->generation;
    if (generation < 0)
        let_go(broadcast, -generation + 1);
    else if (generation >= lk__barrier_of(&meeting->await.op)->present)
        lk__await_counts(&meeting->await);
    lk__mu_unlock(&broadcast->mu);
}

static void unwind(struct lk__await *await)
{
    slip_away(LK__CONTAINER(await, struct meeting, await));
}

/* May the server still count the party, after a wait that ended so? */
static bool may_count(const struct meeting *meeting, int code)
{
    bool is_broken = code == ECANCELED && !lk__client_isclosed(meeting->await.op.object->client);
    return code != 0 && !is_broken;
}

/* Wait for the others. Who goes before they came must not count as one of them: the round breaks. */
static int wait_for_others(struct meeting *meeting, int64_t came_us)
{
    struct lk__lease *lease = meeting->lease;
    lease->epoch = meeting->until.date.epoch;
    lk__lease_takesent(lease, came_us);
    int rc = lk__await_run(&meeting->await);
    if (rc == ETIMEDOUT || rc == ENOTCONN)
        return give_up(meeting, rc);
    if (rc == ESTALE)
        return give_up_lost(meeting);
    if (may_count(meeting, rc))
        slip_away(meeting);
    return rc;
}

static int meet(struct meeting *meeting, bool only_last, bool *serial)
{
    struct lk__await *await = &meeting->await;
    int64_t generation = 0;
    int rc = make_lease(meeting);
    if (rc != 0)
        return rc;
    if (meeting->parties > 1 && !only_last)
        lk__await_join(await);
    rc = come(meeting, only_last, &generation);
    if (rc == EIO || rc == EPROTO) /* it may have come */
        slip_away(meeting);
    if (rc != 0)
        return rc;
    enter_round(meeting, generation);
    *serial = generation < 0;
    return *serial ? 0 : wait_for_others(meeting, await->came_us);
}

static int wait_for_all(lk_barrier_t *b, const struct lk__how *how)
{
    struct meeting meeting = {
        .await = { .limit_us = how->limit_us,
                   .scene = &scene,
                   .judge = judge,
                   .unwind = unwind,
                   .wish = "not all came" }
    };
    struct lk__await *await = &meeting.await;
    bool serial = false, only_last = how->limit_us <= lk__now_us();
    int rc = lk__barrier_enter(&await->op, b, how->limit_us, &meeting.parties);
    if (rc != 0)
        return rc;
    await->broadcast = &lk__barrier_of(&await->op)->broadcast;
    lk__await_begin(await);
    rc = meet(&meeting, only_last, &serial);
    drop_lease(&meeting);
    if (rc == 0)
        lk__await_count(await);
    lk__await_end(await);
    rc = lk__op_leave(&await->op, rc);
    return serial ? LK_BARRIER_SERIAL : rc;
}

LK__WAIT_CALLS(barrier, wait, wait_for_all)
