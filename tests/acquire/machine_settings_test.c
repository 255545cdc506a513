/* SPDX-License-Identifier: MIT */
/*
 * machine_settings_test.c - what an acquire does next when others use the name with other settings
 *
 * labels: memory
 */
#include "machine.h"

static struct play begin_comparing(struct lk__acquirefsm_settings settings)
{
    settings.compare = true;
    return begin_as(settings);
}

static void expect_marked(const struct play *play, bool marked, bool disagreed)
{
    assert_int_equal(marked, result_of(play)->marked);
    assert_int_equal(disagreed, result_of(play)->disagreed);
}

static enum lk__marking marking(const struct play *play)
{
    return play->machine.marking;
}

/* Compared once: neither polls nor an acquire that is not to compare look at the mark. */
static void settings_are_compared_by_the_first_answered_ask(void)
{
    struct play play = begin_comparing(limited(LIMIT)), other = begin();
    assert_int_equal(LK__UNMARKED, marking(&other));
    assert_int_equal(LK__COMPARE, marking(&play));
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK });
    assert_int_equal(LK__COMPARE, marking(&play));
    RUN(&play, { 1, SENDS, TO_AWAIT(HARD) }, { 4, QUEUES(900, 2, 0), TO_PARK(905) });
    assert_int_equal(LK__UNMARKED, marking(&play));
    expect_marked(&play, true, false);
    RUN(&play, { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) }, { 907, GRANTS(7, 906), TO_END(0) });
    expect_marked(&play, true, false);
}

/* A script that came too late looked at nothing. */
static void a_late_ask_compares_again(void)
{
    struct play play = begin_comparing(limited(LIMIT));
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_LATE(900), TO_ASK });
    assert_int_equal(LK__COMPARE, marking(&play));
    expect_marked(&play, false, false);
}

/* The next ask comes at once, even where the limit has passed: a try is no worse off. */
static void who_disagrees_is_let_in_all_the_same(void)
{
    struct play play = begin_comparing(trying());
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 2, DISAGREES(1), TO_ASK });
    assert_int_equal(LK__REPLACE, marking(&play));
    RUN(&play, { 2, SENDS, TO_AWAIT(COMMAND) }, { 4, GRANTS(7, 3), TO_END(0) });
    assert_int_equal(LK__UNMARKED, marking(&play));
    expect_marked(&play, true, true);
    expect_held(&play, (2 + LEASE - LEASE / 100 - 2) * 1000, false);
}

static void who_is_refused_ends(void)
{
    struct play play = begin_comparing(limited(LIMIT));
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, BARS(1), TO_END(EINVAL) });
    expect_marked(&play, false, true);
    assert_false(result_of(&play)->unknown);
}

/* An earlier copy may have been granted it before others came with other settings. */
static void who_is_refused_and_may_hold_it_gives_it_back(void)
{
    struct play play = begin_comparing(limited(LIMIT));
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(HARD) },
        { 2, BARS(1), TO_LEAVE }, { 2, SENDS, TO_AWAIT(402) }, { 3, HAS_LEFT(COMMAND + 3), TO_END(EINVAL) });
    assert_false(result_of(&play)->unknown);
    play = begin_comparing(limited(LIMIT)); /* likewise when the copy is past its deadline */
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(HARD) },
        { 2, BARS(COMMAND + 2), TO_LEAVE }, { 2, SENDS, TO_AWAIT(402) },
        { 3, HAS_LEFT(COMMAND + 3), TO_END(EINVAL) });
}

/* An ask that does not compare cannot be told so: such a server would have it ask for ever. */
static void an_ask_that_does_not_compare_cannot_disagree(void)
{
    struct play play = begin_comparing(limited(LIMIT)), other = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, DISAGREES(1), TO_ASK },
        { 2, SENDS, TO_AWAIT(HARD) }, { 4, DISAGREES(3), TO_LEAVE }, { 4, SENDS, TO_AWAIT(404) },
        { 5, HAS_LEFT(4), TO_END(EPROTO) });
    RUN(&other, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, DISAGREES(1), TO_LEAVE },
        { 2, SENDS, TO_AWAIT(402) }, { 5, HAS_LEFT(4), TO_END(EPROTO) });
}

int main(void)
{
    return plain_run_with(middle_draws, settings_are_compared_by_the_first_answered_ask, a_late_ask_compares_again,
                          who_disagrees_is_let_in_all_the_same, who_is_refused_ends,
                          who_is_refused_and_may_hold_it_gives_it_back, an_ask_that_does_not_compare_cannot_disagree);
}
