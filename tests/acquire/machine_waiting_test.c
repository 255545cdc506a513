/* SPDX-License-Identifier: MIT */
/*
 * machine_waiting_test.c - what an acquire that waits does next: granted at once or by a message, and when it asks again
 *
 * labels: memory
 */
#include "machine.h"

/* --- granted at once ------------------------------------------------------------------------------------ */

static void a_free_lock_is_held_after_one_answer(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 2), TO_END(0) });
    expect_held(&play, (LEASE - LEASE / 100 - 2) * 1000, false);
    assert_int_equal(result_of(&play)->first_us, local_us(LEASE / 3));
    assert_int_equal(result_of(&play)->granted.us, server_us(2));
}

static void a_dead_holder_is_told_of(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 4, ANSWERS(LK__GRANTED_OWNERDEAD, 7, 0, 2, 0), TO_END(EOWNERDEAD) });
    expect_held(&play, (LEASE - LEASE / 100 - 2) * 1000, false);
}

/* The server's lease began at some moment between sending and the answer: count from the first. */
static void validity_counts_from_before_the_request_was_sent(void)
{
    static const struct {
        int64_t lease_ms, sent_ms, came_ms, valid_ms;
    } table[] = {
        { 100, 0, 1, 97 },    { 100, 0, 96, 97 },         { 100, 50, 60, 147 },
        { 1000, 0, 10, 988 }, { 30000, 300, 399, 29998 }, { 86400000, 0, 1, 85535998 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin_leased(table[i].lease_ms);
        play.step = lk__acquirefsm_start(&play.machine, local_us(0));
        play.step = send_it(&play, local_us(table[i].sent_ms), server_us(table[i].sent_ms));
        play.step =
            answer(&play, local_us(table[i].came_ms), asked_of(LK__GRANTED, 7, 0, server_us(table[i].came_ms), 0));
        assert_int_equal(play.step.act, LK__FINISHED);
        expect_held(&play, table[i].valid_ms * 1000, false);
        assert_int_equal(result_of(&play)->first_us, local_us(table[i].sent_ms) + table[i].lease_ms * 1000 / 3);
    }
}

/* An answer that took longer than the lease is no hold; asking again finds the same hold and renews it. */
static void an_answer_slower_than_the_lease_is_asked_again(void)
{
    struct play play = begin_leased(100);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 97, GRANTS(7, 1), TO_ASK },
        { 97, SENDS, TO_AWAIT(HARD) }, { 99, GRANTS(7, 98), TO_END(0) });
    expect_held(&play, (97 + 97) * 1000, false);
}

/* --- granted by a message ------------------------------------------------------------------------------- */

static void a_queued_waiter_is_held_by_a_message(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 500, GRANT_COMES(499, CLAIM), TO_END(0) });
    /* from the ask at 0, answered at the server's 2, to the grant at 499, and the claim: less 1 % and 2 ms */
    expect_held(&play, 3497000 - 34970 - 2000, true);
    assert_int_equal(result_of(&play)->first_us, local_us(497 + CLAIM / 3));
    assert_int_equal(result_of(&play)->granted.us, server_us(499));
    assert_int_equal(result_of(&play)->arrival, 11);
}

/* Messages come by another connection: this one may be faster than the answer that puts us into the queue. */
static void a_grant_may_overtake_the_answer_that_queued_us(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(HARD) },
        { 4, QUEUES(900, 2, 0), TO_END(0) });
    expect_held(&play, 3001000 - 30010 - 2000, true);
}

/* The answer knows better: at its moment we were in the queue again, and no owner. */
static void a_grant_older_than_the_answer_is_dropped(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(1, CLAIM), TO_AWAIT(HARD) },
        { 4, QUEUES(900, 2, 0), TO_PARK(905) }, { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 908, GRANTS(7, 906), TO_END(0) });
    expect_held(&play, (905 + LEASE - LEASE / 100 - 2) * 1000, false);
}

/* What cannot be dated, or is over, still says that something happened. */
static void a_grant_that_cannot_be_used_is_a_hint(void)
{
    struct play late = begin(), older = begin(), undated = begin();
    RUN(&late, QUEUED_BEHIND(900, 905), { 3470, GRANT_COMES(499, CLAIM), TO_ASK });
    RUN(&older, QUEUED_BEHIND(900, 905), { 10, GRANT_COMES(1, CLAIM), TO_ASK });
    RUN(&undated, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 4, GRANT_COMES(3, CLAIM), TO_ASK });
}

static void a_grant_is_good_until_its_last_microsecond(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 3460, GRANT_COMES(499, CLAIM), TO_END(0) });
    expect_held(&play, 3497000 - 34970 - 2000, true); /* 3460.03 ms */
}

/* The connection breaks after the grant came and before the answer of a poll: an older answer dates it. */
static void a_grant_outlives_the_connection_of_a_poll(void)
{
    struct play play = begin(), first = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, GRANT_COMES(904, CLAIM), TO_AWAIT(HARD) }, { 907, IS_CUT, TO_END(0) });
    expect_held(&play, 3902000 - 39020 - 2000, true);
    RUN(&first, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(HARD) },
        { 4, IS_CUT, TO_ASK });
}

/* A copy of an ask that is still on its way finds the claim, and sets the lease that we asked for: it may be shorter. */
static void a_claim_is_no_longer_than_what_a_copy_asks_for(void)
{
    struct play play = begin_leased(1000);
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, GRANT_COMES(904, CLAIM), TO_AWAIT(HARD) }, { 907, IS_CUT, TO_END(0) });
    expect_held(&play, 1902000 - 19020 - 2000, true);
}

/* The caller was late, in a signal handler or without a CPU; its grant was not. It is held until its claim ends. */
static void a_grant_that_came_beats_a_limit_that_passed(void)
{
    struct play play = begin_limited(500), later = begin_limited(500), last = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 700, GRANT_COMES(499, CLAIM), TO_END(0) });
    expect_held(&play, 3497000 - 34970 - 2000, true);
    RUN(&later, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 950, GRANT_COMES(499, CLAIM), TO_END(0) }); /* even when the time for an answer has passed, too */
    expect_held(&later, 3497000 - 34970 - 2000, true);
    RUN(&last, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 3461, GRANT_COMES(499, CLAIM), TO_ASK }, { 3461, SENDS, TO_AWAIT(3861) },
        { 3463, QUEUES(5000, 3462, 0), TO_LEAVE }, { 3463, SENDS, TO_AWAIT(3861) },
        { 3465, HAS_LEFT(3464), TO_END(ETIMEDOUT) }); /* a claim that ended is asked about, once */
    assert_false(result_of(&last)->unknown);
}

/* Likewise beside a poll that is answered after the limit, or never: then a copy of it may still come. */
static void a_grant_beats_the_limit_of_a_poll_under_way(void)
{
    struct play play = begin_limited(500), silent = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 600, GRANT_COMES(499, CLAIM), TO_AWAIT(900) },
        { 601, QUEUES(5000, 307, 0), TO_END(0) });
    expect_held(&play, 305000 + 3192000 - 31920 - 2000, true);
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 600, GRANT_COMES(499, CLAIM), TO_AWAIT(900) },
        { 900, TIME_PASSES, TO_END(0) });
    expect_held(&silent, 3497000 - 34970 - 2000, true);
    assert_int_equal(result_of(&silent)->duplicates_until.date.us, server_us(305 + COMMAND));
}

/* What the server remembers by the request is confirmed by an ask, which the limit does not forbid. */
static void a_grant_to_be_confirmed_is_asked_for_after_the_limit(void)
{
    struct lk__acquirefsm_settings settings = limited(500);
    settings.recorded = true;
    struct play play = begin_as(settings);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 600, GRANT_COMES(499, CLAIM), TO_ASK }, { 600, SENDS, TO_AWAIT(900) }, { 603, GRANTS(7, 602), TO_END(0) });
}

/* Of a claim of a waiter that no message was to reach little may be left: an ask makes a lease of it. */
static void a_short_claim_is_asked_for(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 100, GRANT_COMES(99, 300), TO_ASK }, { 100, SENDS, TO_AWAIT(HARD) },
        { 103, GRANTS(7, 102), TO_END(0) });
}

/* Who was told to give up does, whatever came. */
static void a_grant_does_not_hold_one_that_was_cancelled(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 306, CANCELS, TO_AWAIT(706) },
        { 307, GRANT_COMES(306, CLAIM), TO_AWAIT(706) }, { 308, QUEUES(5000, 305, 0), TO_LEAVE },
        { 308, SENDS, TO_AWAIT(706) }, { 310, HAS_LEFT(309), TO_END(ECANCELED) });
}

/* --- when to ask again ---------------------------------------------------------------------------------- */

static int64_t nap_us(int64_t left_ms, int64_t place, bool unsubscribed)
{
    struct play play = begin();
    play.machine.heard = !unsubscribed;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
    play.step = answer(&play, local_us(4), asked_of(LK__QUEUED, 11, left_ms, server_us(2), place));
    assert_int_equal(play.step.act, LK__PARK);
    return play.step.until_us - local_us(4);
}

static void how_long_a_waiter_sleeps_depends_on_its_place(void)
{
    static const struct {
        int64_t left_ms, place;
        bool unsubscribed;
        int64_t nap_ms;
    } table[] = {
        /* the head aims at the end of the lease, and looks now and then in case the message got lost */
        { 900, 0, false, 901 },
        { 200, 0, false, 201 },
        { 5000, 0, false, POLL },
        { 999, 0, false, POLL },
        /* a lease that has no time left ends soon: no use in asking at once and again */
        { 0, 0, false, 5 },
        { 3, 0, false, 5 },
        { 4, 0, false, 5 },
        { 5, 0, false, 6 },
        /* no lease at all, or it is not known */
        { -1, 0, false, POLL },
        { -2, 0, false, POLL },
        /* the second may be the head by then */
        { 200, 1, false, 201 },
        { 5000, 1, false, POLL },
        /* those far behind only show that they live */
        { 200, 2, false, FAR },
        { -1, 2, false, FAR },
        { 5000, 1000, false, FAR },
        /* whom no message reaches must look by itself, wherever it stands */
        { 5000, 0, true, 10 },
        { 8, 0, true, 9 },
        { 8, 2, true, 9 },
        { 5000, 1000, true, 170 },
        { 5000, 1, true, 20 },
        /* nonsense from the server does no harm */
        { INT64_MAX, 0, false, POLL },
        { INT64_MAX / 1000, 1, false, POLL },
        { INT64_MIN, 0, false, POLL },
        { 200, INT64_MAX, false, FAR },
        { 200, -5, false, 201 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(nap_us(table[i].left_ms, table[i].place, table[i].unsubscribed), table[i].nap_ms * 1000);
}

/* Those who sleep equally long must not come at one moment. */
static void naps_are_spread_by_a_fifth_to_either_side(void)
{
    int64_t least_us = INT64_MAX, most_us = 0;
    draws = LEAST;
    assert_int_equal(nap_us(-1, 0, false), POLL * 800);
    assert_int_equal(nap_us(-1, 5, false), FAR * 800);
    draws = MOST;
    assert_int_equal(nap_us(-1, 0, false), POLL * 1200);
    assert_int_equal(nap_us(-1, 5, false), FAR * 1200);
    assert_int_equal(nap_us(900, 0, false), 901 * 1000); /* never later than the end of the lease */
    draws = ANY;
    for (int i = 0; i < 1000; i++) {
        int64_t us = nap_us(-1, 0, false);
        assert_between(us, POLL * 800, POLL * 1200);
        least_us = us < least_us ? us : least_us;
        most_us = us > most_us ? us : most_us;
    }
    assert_true(least_us < POLL * 850 && most_us > POLL * 1150);
}

/* Another waiter of its client asks for it: it asks when told to, and leaves nothing behind when it gives up. */
static void one_behind_another_of_its_client_does_not_ask(void)
{
    enum { LOOK = 3 * FAR / 2 };
    struct play play = begin_as(limited(3 * LOOK));
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(3 * LOOK + COMMAND) });
    for (int turn = 0; turn < 2; turn++) {
        play.step = turn == 0 ? answer(&play, local_us(4), asked_of(LK__BEHIND, 11, 900, server_us(2), 0))
                              : lk__acquirefsm_led(&play.machine, local_us(4 + LOOK));
        assert_int_equal(play.step.act, LK__PARK);
        assert_int_equal(play.step.until_us, local_us(4 + (1 + turn) * LOOK));
        play.step = lk__acquirefsm_tick(&play.machine, local_us(4 + (1 + turn) * LOOK));
        assert_int_equal(play.step.act, LK__ASK);
    }
    struct play told = play;
    told.step = lk__acquirefsm_led(&told.machine, local_us(4 + 2 * LOOK));
    told.step = lk__acquirefsm_hinted(&told.machine, local_us(5 + 2 * LOOK));
    assert_int_equal(told.step.act, LK__ASK);
    play.step = lk__acquirefsm_led(&play.machine, local_us(4 + 2 * LOOK));
    assert_int_equal(play.step.until_us, local_us(3 * LOOK));
    play.step = lk__acquirefsm_tick(&play.machine, local_us(3 * LOOK));
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_int_equal(result_of(&play)->code, ETIMEDOUT);
}

/* --- unheard ------------------------------------------------------------------------------------------------------- */

static struct play begin_unheard(void)
{
    struct play play = begin_as(limited(600000));
    play.machine.heard = false;
    play.step = lk__acquirefsm_start(&play.machine, local_us(0));
    return play;
}

/* It asks and is told its place: for how long does it sleep then? */
static int64_t next_nap_ms(struct play *play, int64_t place)
{
    int64_t now_ms = play->step.act == LK__PARK ? play->step.until_us / 1000 - local_us(0) / 1000 : 0;
    play->step = lk__acquirefsm_tick(&play->machine, local_us(now_ms));
    play->step = send_it(play, local_us(now_ms), server_us(now_ms));
    play->step = answer(play, local_us(now_ms), asked_of(LK__QUEUED, 11, 30000, server_us(now_ms), place));
    assert_int_equal(play->step.act, LK__PARK);
    return (play->step.until_us - local_us(now_ms)) / 1000;
}

/* The less often, the longer nothing happens; when it moves up, something does. Near the front a claim may come at any time. */
static void one_that_hears_nothing_backs_off_until_it_moves_up(void)
{
    static const struct {
        int64_t place, nap_ms;
    } table[] = {
        { 50, 170 }, { 50, 340 }, { 50, 680 }, { 30, 170 }, { 31, 340 }, { 31, 680 }, { 31, POLL }, { 31, POLL }, { 5, 60 },
        { 5, 120 },  { 5, 200 },  { 6, 200 },  { 3, 40 },   { 3, 80 },   { 0, 10 },   { 0, 20 },    { 0, 40 },    { 0, 80 },
        { 0, 160 },  { 0, 200 },  { 16, 400 }, { 16, 800 }, { 16, POLL }, { 15, 160 }, { 15, 200 }, { 14, 150 },
    };
    struct play play = begin_unheard();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(table[i].nap_ms, next_nap_ms(&play, table[i].place));
}

static void a_hint_brings_the_next_ask_forward(void)
{
    struct play play = begin(), soon = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 100, HINT_COMES, TO_ASK });
    RUN(&soon, QUEUED_BEHIND(900, 905), { 4, HINT_COMES, TO_PARK(HINT_PAUSE) }, { HINT_PAUSE, TIME_PASSES, TO_ASK });
}

/* It tells of something that the answer under way may not know. */
static void a_hint_during_an_ask_is_kept_for_after_it(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, HINT_COMES, TO_AWAIT(HARD) },
        { 4, QUEUES(900, 2, 0), TO_PARK(4 + HINT_PAUSE) }, { 4 + HINT_PAUSE, TIME_PASSES, TO_ASK },
        { 9, SENDS, TO_AWAIT(HARD) }, { 10, QUEUES(900, 9, 0), TO_PARK(911) });
}

/* Asks that a flood of hints causes in `ms` milliseconds, each answered at once. */
static int asks_in_flood(struct play *play, int ms, bool refused)
{
    int asks = 0;
    for (int now = 10; now < 10 + ms; now++) {
        play->step = lk__acquirefsm_hinted(&play->machine, local_us(now));
        if (play->step.act != LK__ASK)
            continue;
        asks++;
        play->step = send_it(play, local_us(now), server_us(now));
        if (refused)
            play->step = refuse(play, now, "LOADING");
        else
            play->step = answer(play, local_us(now), asked_of(LK__QUEUED, 11, 900, server_us(now), 0));
    }
    return asks;
}

/* Anybody who may publish can forge hints: they must not make us a burden for the server. */
static void a_flood_of_hints_causes_few_asks(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905));
    assert_between(asks_in_flood(&play, 1000, false), 100, 1000 / HINT_PAUSE + 1);
}

/* Least of all for one that says it cannot: its pauses are there to be kept. */
static void a_flood_of_hints_spares_a_server_that_refuses(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905));
    assert_between(asks_in_flood(&play, 1000, true), 1, 1000 / HINT_PAUSE + 1);
}

int main(void)
{
    return plain_run_with(
        middle_draws, a_free_lock_is_held_after_one_answer, a_dead_holder_is_told_of,
        validity_counts_from_before_the_request_was_sent, an_answer_slower_than_the_lease_is_asked_again,
        a_queued_waiter_is_held_by_a_message, a_grant_may_overtake_the_answer_that_queued_us,
        a_grant_older_than_the_answer_is_dropped, a_grant_that_cannot_be_used_is_a_hint,
        a_grant_is_good_until_its_last_microsecond, a_grant_outlives_the_connection_of_a_poll,
        a_claim_is_no_longer_than_what_a_copy_asks_for, a_grant_that_came_beats_a_limit_that_passed,
        a_grant_beats_the_limit_of_a_poll_under_way, a_grant_to_be_confirmed_is_asked_for_after_the_limit,
        a_short_claim_is_asked_for,
        a_grant_does_not_hold_one_that_was_cancelled, how_long_a_waiter_sleeps_depends_on_its_place,
        naps_are_spread_by_a_fifth_to_either_side, one_that_hears_nothing_backs_off_until_it_moves_up,
        one_behind_another_of_its_client_does_not_ask, a_hint_brings_the_next_ask_forward,
        a_hint_during_an_ask_is_kept_for_after_it, a_flood_of_hints_causes_few_asks,
        a_flood_of_hints_spares_a_server_that_refuses);
}
