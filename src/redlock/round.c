/* SPDX-License-Identifier: MIT */
/*
 * round.c - one try: ask all servers at once, count, then keep what they granted or give it back
 *
 * Each round has a hold of its own, and each server an id of its own: a server that two nodes of the quorum lead to says
 * yes to one of them. What a round asked for is given back by that id, also by a request that comes before the answer.
 *
 * A server that did not answer when there was a majority may have granted it. That part is doubted: it is renewed, and
 * counts from the first renewal on.
 */
#include "redlock/redlock.h"
#include "base/probe.h"

#include <inttypes.h>
#include <stdio.h>

struct round {
    const struct lk__op *op;
    const struct lk__plan *plan;
    struct lk__object *object;
    struct lk__hold *hold;
    struct lk__quorum *quorum;
    struct lk__lock_acquire_args args;
    struct lk__ballot ballot;
};

/* --- before the first byte: all that may fail for want of memory ------------------------------------------------------ */

static void set_part(const struct round *round, struct lk__lease *part, unsigned place)
{
    const struct lk__redlockblock *block = lk__redlock_block(round->object);
    const struct lk__plan *plan = round->plan;
    snprintf(part->id, LK__OWNER_ID, "%s:%u", round->hold->lease.id, place);
    part->release.command = lk__redlock_command(round->object, &lk__lua_lock_release, &block->release);
    part->release.command.place = place;
    part->renewal = &lk__lua_lock_renew;
    part->renewal_args = &block->renew;
    part->lease_ms = part->wanted_ms = (int)plan->lease_ms;
    part->fixed = plan->fixed;
}

static int make_hold(struct round *round, unsigned count)
{
    round->hold = lk__object_newhold(round->object, lk__op_owner(round->op), NULL);
    if (round->hold == NULL)
        return ENOMEM;
    struct lk__lease *whole = &round->hold->lease;
    int rc = lk__quorum_make(whole, count);
    whole->lease_ms = whole->wanted_ms = (int)round->plan->lease_ms;
    whole->fixed = round->plan->fixed;
    round->hold->holds = 1;
    round->quorum = whole->quorum;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        set_part(round, round->quorum->parts[i], i + 1);
    return rc;
}

/* --- asking ------------------------------------------------------------------------------------------------------------ */

static void read_grant(struct lk__vote *vote, const struct lk__reply *reply)
{
    struct lk__asked asked = { 0 };
    lk__lock_acquire_read(reply, &asked);
    vote->token = asked.token;
    vote->left_ms = asked.left_ms;
}

/*
 * Has the server run for longer than any lease lasts? What it granted before it began has ended then, also if it forgot
 * that. What is asked of it goes to this very run: one that comes meanwhile is not asked.
 */
static bool may_vote(const struct round *round, struct lk__vote *vote)
{
    struct lk__peerinfo peer;
    int64_t longest_ms = round->plan->longest_ms;
    if (longest_ms <= 0)
        return true;
    lk__conn_peer(&vote->node->lanes[LK__LANE_COMMANDS], &peer);
    lk__ballot_bind(vote, &peer);
    return lk__now_us() > lk__ended_by(peer.born_us + longest_ms * 1000, longest_ms * 1000, 0);
}

/* Held, or not: then also whether a majority is there at all, or else whether so many refuse that there is none. */
static bool decided(const struct lk__ballot *ballot)
{
    unsigned granted = lk__ballot_count(ballot, LK__GRANTED), open = lk__ballot_open(ballot);
    unsigned there = granted + lk__ballot_count(ballot, LK__BUSY);
    if (granted + open >= ballot->majority)
        return granted >= ballot->majority;
    return there >= ballot->majority || (there + open < ballot->majority && lk__ballot_knowsrefusal(ballot));
}

static void ask(struct round *round)
{
    struct lk__ballot *ballot = &round->ballot;
    ballot->read = read_grant;
    for (unsigned i = 0; i < ballot->count; i++) {
        struct lk__vote *vote = &ballot->votes[i];
        vote->command = lk__redlock_command(round->object, &lk__lua_lock_acquire, &round->args);
        vote->call.sent.id = round->quorum->parts[i]->id;
        vote->call.sent.terms = "0 0 0"; /* a redlock does not queue */
        if (!may_vote(round, vote))
            lk__ballot_leaveout(ballot, i, ESTALE);
    }
    lk__ballot_ask(ballot);
    lk__ballot_await(ballot, decided);
}

/* --- fencing ----------------------------------------------------------------------------------------------------------- */

static bool fence_decided(const struct lk__ballot *ballot)
{
    unsigned done = lk__ballot_count(ballot, LK__DONE);
    bool is_lost = done + lk__ballot_open(ballot) < ballot->majority;
    return done >= ballot->majority || (is_lost && lk__ballot_knowsrefusal(ballot));
}

static uint64_t largest_token(const struct lk__ballot *ballot)
{
    int64_t largest = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        if (lk__vote_says(&ballot->votes[i], LK__GRANTED) && ballot->votes[i].token > largest)
            largest = ballot->votes[i].token;
    return (uint64_t)largest;
}

/* Why no majority knows it. */
static int not_fenced(const struct round *round, const struct lk__ballot *ballot)
{
    char words[LK__REFUSAL_MAX];
    int refused = lk__ballot_refused(ballot, words);
    return lk__fail(refused != 0 ? refused : ENOTCONN,
                    "%s: not held: granted, but no majority of the servers knows its token%s", round->object->what,
                    words);
}

/*
 * Have a majority know the largest token of all: any later majority has one of these servers, whose token is then above it.
 */
static int fence(struct round *round)
{
    struct lk__ballot second;
    const struct lk__redlock_fence_args args = { .largest = (int64_t)largest_token(&round->ballot) };
    lk__ballot_begin(&second, round->object->client, round->plan->node_timeout_ms);
    for (unsigned i = 0; i < second.count; i++) {
        if (!lk__vote_says(&round->ballot.votes[i], LK__GRANTED))
            continue;
        second.votes[i].command = (struct lk__command){ .script = &lk__lua_redlock_fence,
                                                        .keys = &lk__redlock_block(round->object)->fence,
                                                        .args = &args };
        second.votes[i].call.sent.id = round->quorum->parts[i]->id;
    }
    lk__ballot_ask(&second);
    lk__ballot_await(&second, fence_decided);
    int rc = lk__ballot_count(&second, LK__DONE) >= second.majority ? 0 : not_fenced(round, &second);
    lk__ballot_end(&second);
    round->hold->token = (uint64_t)args.largest;
    return rc;
}

/* --- keeping it -------------------------------------------------------------------------------------------------------- */

/* Until when a server is certain to have what it was asked for. */
static int64_t good_until(const struct round *round, const struct lk__vote *vote)
{
    return lk__lease_validuntil(&round->hold->lease, vote->call.sent_us, round->plan->asked_ms);
}

static void limit_hold(const struct lk__plan *plan, struct lk__lease *lease, int64_t now_us)
{
    if (plan->fixed)
        lease->reason = LK_REASON_FIXED;
    if (plan->max_hold_ms == 0)
        return;
    lease->cap_us = lk__later(now_us, plan->max_hold_ms > LK__NEVER / 1000 ? LK__NEVER : plan->max_hold_ms * 1000);
    if (plan->max_hold_ms <= plan->lease_ms)
        lease->reason = LK_REASON_MAX_HOLD;
}

/* The server told of no grant, and may have one, now or later. An answer to a copy says nothing of the first request. */
static bool is_doubtful(const struct lk__vote *vote)
{
    return vote->state == LK__VOTE_UNKNOWN || (vote->repeated && !lk__vote_says(vote, LK__GRANTED));
}

/* A copy of what was asked may still come. */
static void expect_late(struct lk__lease *part, const struct lk__vote *vote)
{
    part->release.past = vote->call.until;
    part->release.flags |= LK__SENT_AGAIN;
}

/* When to renew a part first, or to ask whether it is there. */
static int64_t first_renewal(const struct round *round, const struct lk__lease *part, const struct lk__vote *vote)
{
    int64_t third_us = round->plan->lease_ms * 1000 / 3;
    if (part->doubted)
        return vote->call.until.here_us + 1000;
    if (round->plan->fixed || part->reason == LK_REASON_MAX_HOLD)
        return LK__NEVER;
    return vote->call.sent_us + third_us - (int64_t)lk__random_below((uint64_t)third_us / 10 + 1);
}

static void take_parts(struct round *round, int64_t now_us)
{
    for (unsigned i = 0; i < round->quorum->count; i++) {
        struct lk__lease *part = round->quorum->parts[i];
        const struct lk__vote *vote = &round->ballot.votes[i];
        part->doubted = is_doubtful(vote);
        if (!part->doubted && !lk__vote_says(vote, LK__GRANTED))
            continue;
        limit_hold(round->plan, part, now_us);
        if (part->doubted || vote->repeated)
            expect_late(part, vote);
        part->epoch = vote->call.epoch;
        lk__lease_take(part, good_until(round, vote), first_renewal(round, part, vote));
    }
}

static void become_holder(struct round *round)
{
    struct lk__object *object = round->object;
    struct lk__hold *hold = round->hold;
    int64_t now_us = lk__now_us();
    hold->began_us = now_us;
    limit_hold(round->plan, &hold->lease, now_us);
    lk__op_counthold(round->op);
    take_parts(round, now_us);
    lk__hold_ref(hold); /* what an owner holds another thread may give back at once */
    if (lk__object_addhold(object, hold, now_us + round->plan->asked_ms * 1000, LK__NEVER))
        lk__object_droporphans(object);
    lk__quorum_taken(&hold->lease); /* as good as its parts */
    LK__PROBE4(grant, hold->lease.name, hold->lease.id, hold->token, now_us - round->plan->began_us);
    lk__hold_unref(hold);
    lk__object_acquired(object, round->plan->began_us, round->plan->contended);
}

/* Is it still good at a majority? The answers may have come late, or this thread may have stood still. */
static bool is_good(const struct round *round)
{
    unsigned good = 0;
    int64_t now_us = lk__now_us();
    for (unsigned i = 0; i < round->ballot.count; i++) {
        const struct lk__vote *vote = &round->ballot.votes[i];
        good += lk__vote_says(vote, LK__GRANTED) && good_until(round, vote) > now_us;
    }
    return good >= round->ballot.majority;
}

/* --- giving it back ---------------------------------------------------------------------------------------------------- */

/* In the background, at each server that granted it or may have: those that did not answer as well. */
static void take_back(struct round *round)
{
    const struct lk__plan *plan = round->plan;
    lk_client_t *client = round->object->client;
    int64_t end_us = lk__now_us() + (2 * client->options->command_timeout_ms + plan->asked_ms) * 1000;
    for (unsigned i = 0; i < round->quorum->count; i++) {
        struct lk__lease *part = round->quorum->parts[i];
        const struct lk__vote *vote = &round->ballot.votes[i];
        if (vote->state == LK__VOTE_UNKNOWN || vote->repeated)
            expect_late(part, vote);
        if (is_doubtful(vote) || lk__vote_says(vote, LK__GRANTED) ||
            (vote->state == LK__VOTE_CAST && vote->code != 0))
            lk__outbox_send(&client->dog, &part->release, end_us);
    }
}

/* --- why not ----------------------------------------------------------------------------------------------------------- */

/* When so many leases have run out that a majority may be free, as far as they are known; 0: they are not. */
static int64_t busy_until(const struct lk__ballot *ballot)
{
    int64_t longest_ms = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        if (lk__vote_says(&ballot->votes[i], LK__BUSY) && ballot->votes[i].left_ms > longest_ms)
            longest_ms = ballot->votes[i].left_ms;
    return longest_ms > 0 ? lk__now_us() + longest_ms * 1000 : 0;
}

static int why_not(const struct round *round)
{
    const struct lk__ballot *ballot = &round->ballot;
    unsigned granted = lk__ballot_count(ballot, LK__GRANTED), busy = lk__ballot_count(ballot, LK__BUSY), young = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        young += ballot->votes[i].state == LK__VOTE_NONE && ballot->votes[i].code == ESTALE;
    bool in_time = lk__now_us() < ballot->until_us; /* then the others decided it */
    unsigned unawaited = in_time ? lk__ballot_open(ballot) : 0;
    char words[LK__REFUSAL_MAX];
    int refused = lk__ballot_refused(ballot, words);
    int code = granted + busy >= ballot->majority ? EBUSY : refused != 0 ? refused : ENOTCONN;
    lk__fail(code,
             "%s: not held: of %u servers %u granted it, %u have it for somebody else, %u started a moment ago, %u "
             "do not answer or refuse, %u were not waited for%s",
             round->object->what, ballot->count, granted, busy, young,
             ballot->count - granted - busy - young - unawaited, unawaited, words);
    if (code == EBUSY)
        lk__error_leaves(busy_until(ballot));
    return code;
}

/* --- a round ------------------------------------------------------------------------------------------------------------ */

static int decide(struct round *round)
{
    int rc;
    if (lk__ballot_count(&round->ballot, LK__GRANTED) < round->ballot.majority)
        return why_not(round);
    rc = round->plan->fenced ? fence(round) : 0;
    if (rc == 0 && !is_good(round))
        rc = lk__fail(ENOTCONN, "%s: not held: granted, but the answers took longer than the lease", round->object->what);
    return rc;
}

int lk__redlock_round(const struct lk__op *op, const struct lk__plan *plan)
{
    struct round round = { .op = op, .plan = plan, .object = op->object };
    round.args = (struct lk__lock_acquire_args){
        .lease_ms = plan->asked_ms, .flags = lk__redlock_block(op->object)->release.flags | LK__LOCK_TRY
    };
    lk__ballot_begin(&round.ballot, op->object->client, plan->node_timeout_ms);
    int rc = make_hold(&round, round.ballot.count);
    if (rc == 0) {
        ask(&round);
        rc = decide(&round);
        lk__ballot_end(&round.ballot);
        if (rc == 0)
            become_holder(&round);
        else
            take_back(&round);
    }
    if (rc != 0)
        lk__hold_unref(round.hold);
    return rc;
}
