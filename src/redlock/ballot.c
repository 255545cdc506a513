/* SPDX-License-Identifier: MIT */
/*
 * ballot.c - one question to all servers of a quorum at once
 *
 * A thread can wait at one connection at a time, so it goes from one to the next in short steps, and looks at all of them
 * in between: an answer that came meanwhile lies in its socket. So a server that does not answer costs a step. Another
 * thread of the client that reads there and stands still is seen to do so over many steps, also of several threads.
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
    struct lk__vote *vote = LK__CONTAINER(request, struct lk__vote, request);
    lk__request_take(request, reply);
    vote->verdict = request->answer.verdict;
    if (request->judged.ruling == LK__ANSWER && vote->ballot->read != NULL)
        vote->ballot->read(vote, reply);
}

static void begin_vote(struct lk__vote *vote, struct lk__ballot *ballot, struct lk__node *node)
{
    *vote = (struct lk__vote){ .ballot = ballot, .node = node };
    lk__request_init(&vote->request, &ballot->parker, NULL);
    vote->request.take = take;
    vote->request.says = vote->text;
    vote->request.says_size = sizeof vote->text;
}

void lk__ballot_begin(struct lk__ballot *ballot, lk_client_t *client, int64_t timeout_ms)
{
    struct lk__node *node;
    *ballot = (struct lk__ballot){ .until_us = lk__now_us() + timeout_ms * 1000 };
    for (; (node = lk__node_nth(&client->node, ballot->count)) != NULL; ballot->count++)
        begin_vote(&ballot->votes[ballot->count], ballot, node);
    ballot->majority = lk__majority_of(ballot->count);
    lk__parker_init(&ballot->parker);
}

void lk__ballot_leaveout(struct lk__ballot *ballot, unsigned i, int code)
{
    ballot->votes[i].command.script = NULL;
    ballot->votes[i].code = code;
}

void lk__ballot_bind(struct lk__vote *vote, const struct lk__peerinfo *run)
{
    vote->bound = true;
    vote->run = run->epoch;
}

static void set_deadline(struct lk__vote *vote)
{
    int64_t now_us = lk__now_us();
    struct lk__until until = lk__conn_until(&vote->node->lanes[LK__LANE_COMMANDS], now_us, vote->ballot->until_us - now_us);
    vote->sent.deadline_us = until.date.us;
    vote->sent.terms = "0 0 0"; /* a redlock does not queue */
    vote->sent.epoch = until.date.epoch;
    lk__until_extend(&vote->until, &until); /* an earlier connection may have known the clock worse */
}

/* A server that does not let this client in refuses what it would be asked. */
static int why_unsent(struct lk__vote *vote, int code)
{
    int last_error;
    if (code != ENOTCONN)
        return code;
    last_error = lk__node_lasterror(vote->node, LK__LANE_COMMANDS, vote->text, sizeof vote->text);
    return last_error == EACCES || last_error == EPROTO || last_error == ENOTSUP ? last_error : ENOTCONN;
}

/* There is no answer, for that reason if it is known that nothing was done. */
static void give_up(struct lk__vote *vote, int code)
{
    vote->waits = false;
    vote->state = vote->repeated ? LK__VOTE_UNKNOWN : LK__VOTE_NONE;
    vote->code = vote->repeated ? EIO : code;
}

/* The connection may be to a later run by now, or the first one there; or it is still to be made. */
static bool is_elsewhere(const struct lk__vote *vote)
{
    return vote->bound && (vote->run == 0 || vote->sent.epoch != vote->run);
}

/* Not asked. A connection is wanted, as if it had been. */
static void pass_over(struct lk__vote *vote)
{
    lk__node_want(vote->node, LK__LANE_COMMANDS);
    give_up(vote, vote->run != 0 ? ESTALE : why_unsent(vote, ENOTCONN));
}

/* It is to be asked again. What may have been carried out before is harmless, as the id is the same. */
static void await_connection(struct lk__vote *vote)
{
    lk__node_want(vote->node, LK__LANE_COMMANDS);
    vote->waits = true;
}

/* Not asked, or cut off: is a connection being made, after one that ended? */
static bool may_come_up(const struct lk__vote *vote)
{
    return lk__node_connects(vote->node, LK__LANE_COMMANDS) > 0 && lk__conn_failures(&vote->node->lanes[LK__LANE_COMMANDS]) == 0 &&
           lk__now_us() < vote->ballot->until_us;
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

/* Once it is sent, another thread may have the answer taken before this one goes on. */
static void ask(struct lk__vote *vote)
{
    vote->state = LK__VOTE_OPEN;
    vote->waits = false;
    vote->code = 0;
    vote->text[0] = '\0';
    if (vote->ballot->dated)
        set_deadline(vote);
    if (is_elsewhere(vote)) {
        pass_over(vote);
        return;
    }
    if (!is_taught(vote))
        vote->request.manner = LK__BY_TEXT;
    int rc = lk__conn_send(&vote->node->lanes[LK__LANE_COMMANDS], &vote->request, &vote->command, &vote->sent);
    if (rc == ENOTCONN && may_come_up(vote))
        await_connection(vote);
    else if (rc != 0)
        give_up(vote, why_unsent(vote, rc));
}

void lk__ballot_ask(struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < ballot->count; i++)
        if (ballot->votes[i].command.script != NULL)
            ask(&ballot->votes[i]);
}

/* What became of an open vote? */
static void look_at(struct lk__vote *vote)
{
    int state = atomic_load(&vote->request.state);
    if (vote->state != LK__VOTE_OPEN || state == LK__INFLIGHT)
        return;
    if (vote->waits) {
        if (!may_come_up(vote))
            give_up(vote, why_unsent(vote, ENOTCONN));
        else if (lk__node_isup(vote->node, LK__LANE_COMMANDS))
            ask(vote);
        return;
    }
    vote->repeated |= state == LK__CUT;
    const struct lk__judged *judged = lk__request_over(&vote->request);
    if (judged->ruling == LK__AGAIN) {
        ask(vote);
    } else if (judged->ruling != LK__UNANSWERED) {
        vote->state = LK__VOTE_CAST;
        vote->code = judged->code;
    } else if (state != LK__GARBLED && may_come_up(vote)) {
        await_connection(vote);
    } else {
        vote->repeated |= state != LK__UNSENT;
        give_up(vote, ENOTCONN);
    }
}

/* At all, without waiting. */
static void look(struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < ballot->count; i++) {
        struct lk__vote *vote = &ballot->votes[i];
        if (vote->state == LK__VOTE_OPEN)
            lk__request_look(&vote->request);
        look_at(vote);
    }
}

/* The next one from that on whose answer is under way; NULL: there is none. */
static struct lk__vote *next_asked(struct lk__ballot *ballot, unsigned *turn)
{
    for (unsigned i = 0; i < ballot->count; i++) {
        struct lk__vote *vote = &ballot->votes[(*turn)++ % ballot->count];
        if (vote->state == LK__VOTE_OPEN && !vote->waits)
            return vote;
    }
    return NULL;
}

void lk__ballot_await(struct lk__ballot *ballot, bool (*enough)(const struct lk__ballot *ballot))
{
    unsigned turn = 0;
    int64_t now_us;
    for (look(ballot); !enough(ballot) && lk__ballot_open(ballot) > 0; look(ballot)) {
        now_us = lk__now_us();
        if (now_us >= ballot->until_us)
            return;
        int64_t step_us = now_us + STEP_US < ballot->until_us ? now_us + STEP_US : ballot->until_us;
        struct lk__vote *vote = next_asked(ballot, &turn);
        if (vote != NULL)
            lk__request_awaitbriefly(&vote->request, step_us);
        else
            lk__parker_park(&ballot->parker, step_us);
    }
}

void lk__ballot_close(struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < ballot->count; i++) {
        struct lk__vote *vote = &ballot->votes[i];
        if (vote->state != LK__VOTE_OPEN)
            continue;
        if (!vote->waits)
            look_at(vote);
        lk__request_abandon(&vote->request);
        if (vote->state != LK__VOTE_OPEN)
            continue;
        vote->repeated |= !vote->waits;
        give_up(vote, ENOTCONN);
    }
}

void lk__ballot_end(struct lk__ballot *ballot)
{
    lk__ballot_close(ballot);
    lk__parker_destroy(&ballot->parker);
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
    if (first != NULL && first->text[0] != '\0')
        snprintf(words, LK__REFUSAL_MAX, "; server %u: %s", (unsigned)(first - ballot->votes) + 1, first->text);
    return count_refusals(ballot) > ballot->count - ballot->majority ? first->code : 0;
}

bool lk__ballot_knowsrefusal(const struct lk__ballot *ballot)
{
    unsigned refusing = count_refusals(ballot), most = ballot->count - ballot->majority;
    return refusing > most || refusing + lk__ballot_open(ballot) <= most;
}
