/* SPDX-License-Identifier: MIT */
/*
 * ballot.c - one question to all servers of a quorum at once
 *
 * A thread can wait at one connection at a time, so it goes from one to the next in short steps: an answer that came
 * meanwhile lies in its socket. So a server that does not answer costs a step. Another thread of the client that reads
 * there and stands still is seen to do so over many steps, also of several threads.
 *
 * An idle connection may have been closed, which is seen when it is used: the vote stays open, and is asked again when
 * there is another connection. Once an attempt to make one failed, that server is away.
 */
#include "redlock/ballot.h"
#include "lock/scripts.h"

#include <stdio.h>

enum { STEP_US = 1000 };

/* Under a connection's mu. */
static void take(struct lk__request *request, const struct lk__reply *reply)
{
    struct lk__vote *vote = LK__CONTAINER(request, struct lk__vote, ongoing.request);
    lk__request_take(request, reply);
    vote->verdict = request->answer.verdict;
    if (request->judged.ruling == LK__ANSWER && vote->ballot->read != NULL)
        vote->ballot->read(vote, reply);
}

void lk__ballot_begin(struct lk__ballot *ballot, lk_client_t *client, int64_t timeout_ms)
{
    struct lk__node *node;
    *ballot = (struct lk__ballot){ .until_us = lk__now_us() + timeout_ms * 1000 };
    for (; (node = lk__node_nth(&client->node, ballot->count)) != NULL; ballot->count++)
        ballot->votes[ballot->count] = (struct lk__vote){ .ballot = ballot, .node = node };
    ballot->majority = lk__majority_of(ballot->count);
}

void lk__ballot_leaveout(struct lk__ballot *ballot, unsigned i, int code)
{
    ballot->votes[i].command.script = NULL;
    ballot->votes[i].code = code;
}

void lk__ballot_bind(struct lk__vote *vote, const struct lk__peerinfo *run)
{
    vote->bound = true;
    vote->call.run = run->epoch;
}

/* A server that does not let this client in refuses what it would be asked. */
static int why_unsent(struct lk__vote *vote)
{
    struct lk__conn *conn = &vote->node->lanes[LK__LANE_COMMANDS];
    int last_error = lk__conn_lasterror(conn, vote->ongoing.says, sizeof vote->ongoing.says);
    return last_error == EACCES || last_error == EPROTO || last_error == ENOTSUP ? last_error : ENOTCONN;
}

/* There is no answer, for that reason if it is known that nothing was done. */
static void give_up(struct lk__vote *vote, int code)
{
    vote->state = vote->repeated ? LK__VOTE_UNKNOWN : LK__VOTE_NONE;
    vote->code = vote->repeated ? EIO : code == ENOTCONN ? why_unsent(vote) : code;
}

/*
 * Nobody hears a server say that it does not know the script if it is always slower than the others. So the first acquire by
 * each connection goes with its text.
 */
static bool is_taught(struct lk__vote *vote)
{
    unsigned long long connects = lk__node_connects(vote->node, LK__LANE_COMMANDS);
    return vote->command.script != &lk__lua_lock_acquire || atomic_exchange(&vote->node->taught, connects) == connects;
}

static void ask(struct lk__vote *vote, unsigned place)
{
    if (vote->bound && vote->call.run == 0) { /* nobody was met there */
        lk__node_want(vote->node, LK__LANE_COMMANDS);
        give_up(vote, ENOTCONN);
        return;
    }
    vote->command.place = place;
    vote->call.node = vote->node;
    vote->call.what = "redlock";
    vote->call.command = &vote->command;
    vote->call.end_us = vote->ballot->until_us;
    vote->call.at_once = true;
    vote->call.manner = is_taught(vote) ? LK__BY_SHA1 : LK__BY_TEXT;
    vote->call.take = take;
    vote->state = LK__VOTE_OPEN;
    lk__call_begin(&vote->ongoing, &vote->call);
}

void lk__ballot_ask(struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < ballot->count; i++)
        if (ballot->votes[i].command.script != NULL)
            ask(&ballot->votes[i], i + 1);
}

/* It is over, or is to be. */
static void end_vote(struct lk__vote *vote, int code)
{
    const struct lk__request *request = &vote->ongoing.request;
    vote->repeated = vote->call.repeated;
    if (atomic_load(&request->state) == LK__ANSWERED && request->judged.ruling != LK__AGAIN) {
        vote->state = LK__VOTE_CAST;
        vote->code = request->judged.code;
    } else {
        give_up(vote, code);
    }
}

void lk__ballot_await(struct lk__ballot *ballot, bool (*enough)(const struct lk__ballot *ballot))
{
    for (unsigned turn = 0; !enough(ballot) && lk__ballot_open(ballot) > 0; turn++) {
        struct lk__vote *vote = &ballot->votes[turn % ballot->count];
        int64_t now_us = lk__now_us();
        if (now_us >= ballot->until_us)
            return;
        if (vote->state == LK__VOTE_OPEN && lk__call_await(&vote->ongoing, now_us + STEP_US))
            end_vote(vote, lk__call_end(&vote->ongoing));
    }
}

void lk__ballot_end(struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < ballot->count; i++) {
        struct lk__vote *vote = &ballot->votes[i];
        if (vote->state != LK__VOTE_OPEN)
            continue;
        lk__call_abandon(&vote->ongoing);
        end_vote(vote, ENOTCONN);
    }
}

unsigned lk__ballot_count(const struct lk__ballot *ballot, enum lk__verdict verdict)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        count += lk__vote_says(&ballot->votes[i], verdict);
    return count;
}

unsigned lk__ballot_open(const struct lk__ballot *ballot)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        count += ballot->votes[i].state == LK__VOTE_OPEN;
    return count;
}

/* Not for a moment, as who is away, loads, or stands behind its master. */
static bool refuses(const struct lk__vote *vote)
{
    bool known = vote->state == LK__VOTE_CAST || vote->state == LK__VOTE_NONE;
    return known && vote->code != 0 && vote->code != ENOTCONN && vote->code != ESTALE;
}

static unsigned count_refusals(const struct lk__ballot *ballot)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ballot->count; i++)
        count += refuses(&ballot->votes[i]);
    return count;
}

int lk__ballot_refused(const struct lk__ballot *ballot, char words[LK__REFUSAL_MAX])
{
    const struct lk__vote *first = NULL;
    words[0] = '\0';
    for (unsigned i = 0; i < ballot->count && first == NULL; i++)
        first = refuses(&ballot->votes[i]) ? &ballot->votes[i] : NULL;
    if (first != NULL && first->ongoing.says[0] != '\0')
        snprintf(words, LK__REFUSAL_MAX, "; server %u: %s", (unsigned)(first - ballot->votes) + 1, first->ongoing.says);
    return count_refusals(ballot) > ballot->count - ballot->majority ? first->code : 0;
}

bool lk__ballot_knowsrefusal(const struct lk__ballot *ballot)
{
    unsigned refusing = count_refusals(ballot), most = ballot->count - ballot->majority;
    return refusing > most || refusing + lk__ballot_open(ballot) <= most;
}
