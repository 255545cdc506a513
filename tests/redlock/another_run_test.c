/* SPDX-License-Identifier: MIT */
/*
 * another_run_test.c - a server that started again just when it was found old enough to vote is not asked
 *
 * labels: threads memory
 */
#include "lock/scripts.h"
#include "quorum.h"
#include "redlock/ballot.h"

static bool all_said(const struct lk__ballot *ballot)
{
    return lk__ballot_open(ballot) == 0;
}

/* The ballot is open, and each question is for the run that is met there now. */
static void bind_all(struct lk__ballot *ballot, lk_client_t *client, const struct lk__command *command)
{
    struct lk__peerinfo run;
    lk__ballot_begin(ballot, client, 30000);
    for (unsigned i = 0; i < ballot->count; i++) {
        ballot->votes[i].command = *command;
        ballot->votes[i].call.sent.id = "nobody";
        lk__conn_peer(&ballot->votes[i].node->lanes[LK__LANE_COMMANDS], &run);
        lk__ballot_bind(&ballot->votes[i], &run);
    }
}

static void ask_all(struct lk__ballot *ballot)
{
    lk__ballot_ask(ballot);
    lk__ballot_await(ballot, all_said);
}

/* All servers are met, and that one is another run. */
static bool are_met(lk_redlock_t *r, const struct lk__vote *vote)
{
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    struct lk__peerinfo run;
    int rc = lk_redlock_info(r, &info);
    lk__conn_peer(&vote->node->lanes[LK__LANE_COMMANDS], &run);
    return rc == 0 && info.answered == 3 && run.epoch != vote->call.run;
}

static void a_run_that_came_meanwhile_is_not_asked(struct world *w)
{
    static const struct lk__lock_keys keys = { .mutex = "jobs" };
    const struct lk__command command = { .script = &lk__lua_lock_check, .keys = &keys };
    struct quorum *q = quorum_begin(w, 3);
    struct lk__ballot ballot;
    lk_client_t *client = quorum_client(q, "lease=10s&retry_max=50ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", NULL);
    lk__ballot_begin(&ballot, client, 30000);
    eventually(are_met(r, &ballot.votes[0]), QUORUM_WITHIN_MS);
    lk__ballot_end(&ballot);

    bind_all(&ballot, client, &command);
    quorum_kill(q, 0);
    quorum_start(q, 0);
    eventually(are_met(r, &ballot.votes[0]), QUORUM_WITHIN_MS);
    ask_all(&ballot);
    assert_int_equal(LK__VOTE_NONE, ballot.votes[0].state);
    assert_int_equal(ESTALE, ballot.votes[0].code);
    for (int i = 1; i < 3; i++)
        assert_true(lk__vote_says(&ballot.votes[i], LK__GONE));
    lk__ballot_end(&ballot);

    bind_all(&ballot, client, &command);
    ballot.votes[1].call.run = 0; /* as if nobody had been met there before */
    ask_all(&ballot);
    assert_int_equal(LK__VOTE_NONE, ballot.votes[1].state);
    assert_true(lk__vote_says(&ballot.votes[0], LK__GONE) && lk__vote_says(&ballot.votes[2], LK__GONE));
    lk__ballot_end(&ballot);
}

int main(void)
{
    return world_run(a_run_that_came_meanwhile_is_not_asked);
}
