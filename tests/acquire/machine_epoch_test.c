/* SPDX-License-Identifier: MIT */
/*
 * machine_epoch_test.c - dates of two servers are never compared: what another server dated is a hint
 *
 * The second server's clock shows what the table says, whatever the first one showed.
 *
 * labels: memory
 */
#include "machine.h"

/* A second server, or the same one started anew; its clock is two seconds ahead. */
#define SECOND OF_EPOCH(1)
enum { AHEAD = 2000 };

/* Its clock is ahead, so the sum would be a validity that is two seconds too long. */
static void a_grant_of_another_server_is_a_hint(void)
{
    struct play play = begin(), behind = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 500, GRANT_COMES(499 + AHEAD, CLAIM), TO_ASK, SECOND },
        { 500, SENDS, TO_AWAIT(HARD), SECOND }, { 503, GRANTS(7, 502 + AHEAD), TO_END(0), SECOND });
    expect_held(&play, (500 + LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&behind, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK, SECOND }, { 905, SENDS, TO_AWAIT(HARD), SECOND },
        { 908, QUEUES(900, 906 + AHEAD, 0), TO_PARK(1809), SECOND },
        { 910, GRANT_COMES(909 + AHEAD, CLAIM), TO_ASK }); /* the subscription is at the first one still */
}

/* Both lanes are at the new server: its dates are as good as those of the one before. */
static void a_grant_of_the_server_that_answered_last_is_held(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK, SECOND }, { 905, SENDS, TO_AWAIT(HARD), SECOND },
        { 908, QUEUES(900, 906 + AHEAD, 0), TO_PARK(1809), SECOND },
        { 1000, GRANT_COMES(999 + AHEAD, CLAIM), TO_END(0), SECOND });
    expect_held(&play, 905000 + 3093000 - 30930 - 2000, true);
    assert_int_equal(result_of(&play)->granted.epoch, 1);
}

/* It came beside an ask that another server answers: nobody knows which of the two was first. */
static void a_grant_beside_the_answer_of_another_server_is_a_hint(void)
{
    struct play later = begin(), earlier = begin();
    RUN(&later, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 3, GRANT_COMES(3 + AHEAD, CLAIM), TO_AWAIT(HARD), SECOND }, { 4, QUEUES(900, 2, 0), TO_PARK(4 + HINT_PAUSE) },
        { 4 + HINT_PAUSE, TIME_PASSES, TO_ASK });
    RUN(&earlier, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD), SECOND },
        { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(HARD) }, { 4, QUEUES(900, 2 + AHEAD, 0), TO_PARK(4 + HINT_PAUSE), SECOND },
        { 4 + HINT_PAUSE, TIME_PASSES, TO_ASK, SECOND });
}

/* The answer to the poll is lost with the first server; the grant is the second one's, and the anchor is not. */
static void a_cut_does_not_make_a_grant_of_another_server_good(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, GRANT_COMES(904 + AHEAD, CLAIM), TO_AWAIT(HARD), SECOND }, { 907, IS_CUT, TO_ASK });
}

/* A clock that is ahead does not end what may still come from before: that takes its time here. */
static void copies_for_a_server_that_is_gone_are_over_by_our_clock(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, IS_CUT, TO_ASK },
        { 2, SENDS, TO_AWAIT(HARD), SECOND }, { 4, QUEUES(5000, 3 + AHEAD, 0), TO_PARK(1004), SECOND });
    assert_int_equal(result_of(&play)->duplicates_until.date.us, server_us(COMMAND));
    RUN(&play, { 1004, TIME_PASSES, TO_ASK, SECOND }, { 1004, SENDS, TO_AWAIT(HARD), SECOND },
        { 1005, QUEUES(5000, 1004 + AHEAD, 0), TO_PARK(2005), SECOND });
    assert_int_equal(result_of(&play)->duplicates_until.date.us, 0);
}

/* Nor does it make the answer of a release the last word. */
static void a_release_answered_by_another_server_ends_no_doubt(void)
{
    struct play early = begin_limited(100), late = begin_limited(600);
    RUN(&early, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(500) }, { 2, IS_CUT, TO_ASK },
        { 2, SENDS, TO_AWAIT(500), SECOND }, { 4, QUEUES(5000, 3 + AHEAD, 0), TO_PARK(100), SECOND },
        { 100, TIME_PASSES, TO_LEAVE, SECOND }, { 100, SENDS, TO_AWAIT(500), SECOND },
        { 103, HAS_LEFT(102 + AHEAD), TO_END(EIO), SECOND });
    assert_true(result_of(&early)->unknown);
    RUN(&late, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(1000) }, { 2, IS_CUT, TO_ASK },
        { 2, SENDS, TO_AWAIT(1000), SECOND }, { 4, QUEUES(5000, 3 - AHEAD, 0), TO_PARK(600), SECOND },
        { 600, TIME_PASSES, TO_LEAVE, SECOND }, { 600, SENDS, TO_AWAIT(1000), SECOND },
        { 603, HAS_LEFT(602 - AHEAD), TO_END(ETIMEDOUT), SECOND });
    assert_false(result_of(&late)->unknown);
}

/* Asks that got no answer at either server: the later end of the two counts, on the clock that is there. */
static void copies_for_two_servers_are_over_when_both_are(void)
{
    struct lk__until until = { 0 }, first = { { 1000, 1 }, 500 }, second = { { 7000, 2 }, 450 };
    lk__until_extend(&until, &first);
    assert_int_equal(until.date.us, 1000);
    lk__until_extend(&until, &(struct lk__until){ { 900, 1 }, 400 });
    assert_int_equal(until.date.us, 1000);
    lk__until_extend(&until, &second);
    assert_int_equal(until.date.us, 7050);
    assert_int_equal(until.date.epoch, 2);
    assert_int_equal(until.here_us, 500);
    lk__until_extend(&until, &(struct lk__until){ { 9000, 3 }, 800 });
    assert_int_equal(until.date.us, 9000);
    assert_int_equal(until.here_us, 800);
}

int main(void)
{
    return plain_run_with(
        middle_draws, a_grant_of_another_server_is_a_hint, a_grant_of_the_server_that_answered_last_is_held,
        a_grant_beside_the_answer_of_another_server_is_a_hint, a_cut_does_not_make_a_grant_of_another_server_good,
        copies_for_a_server_that_is_gone_are_over_by_our_clock, a_release_answered_by_another_server_ends_no_doubt,
        copies_for_two_servers_are_over_when_both_are);
}
