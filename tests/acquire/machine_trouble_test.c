/* SPDX-License-Identifier: MIT */
/*
 * machine_trouble_test.c - what an acquire does next when connections break, and servers refuse or make no sense
 *
 * labels: memory
 */
#include "machine.h"

/* --- lost connections ----------------------------------------------------------------------------------- */

/* The first is repeated at once, then with pauses that double: the same id, so a copy does no harm. */
static void what_was_cut_is_sent_again(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(HARD) },
        { 2, IS_CUT, TO_PARK(22) }, { 22, TIME_PASSES, TO_ASK }, { 22, SENDS, TO_AWAIT(HARD) },
        { 23, IS_CUT, TO_PARK(63) }, { 63, TIME_PASSES, TO_ASK }, { 63, SENDS, TO_AWAIT(HARD) },
        { 64, IS_CUT_UNSENT, TO_PARK(144) }, { 144, TIME_PASSES, TO_ASK }, { 144, SENDS, TO_AWAIT(HARD) },
        { 145, IS_CUT, TO_PARK(245) }, { 245, TIME_PASSES, TO_ASK }, { 245, SENDS, TO_AWAIT(HARD) },
        { 246, IS_CUT, TO_PARK(346) }, { 346, TIME_PASSES, TO_ASK }, { 346, SENDS, TO_AWAIT(HARD) },
        { 350, GRANTS(7, 348), TO_END(0) });
    expect_held(&play, (346 + LEASE - LEASE / 100 - 2) * 1000, false);
}

/* An answer ends the row of failures: the next one is again answered at once. */
static void an_answer_ends_the_pauses(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(HARD) },
        { 2, IS_CUT, TO_PARK(22) }, { 22, TIME_PASSES, TO_ASK }, { 22, SENDS, TO_AWAIT(HARD) },
        { 24, QUEUES(900, 23, 0), TO_PARK(925) }, { 925, TIME_PASSES, TO_ASK }, { 925, SENDS, TO_AWAIT(HARD) },
        { 926, IS_CUT, TO_ASK });
    assert_int_equal(result_of(&play)->arrival, 11); /* it brings its place along */
}

/* Refusals are answers: the connection ended unused while their pause went by, and is not what they were about. */
static void a_cut_after_refusals_costs_no_pause(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, SAYS("TRYAGAIN"), TO_PARK(21) },
        { 21, TIME_PASSES, TO_ASK }, { 21, SENDS, TO_AWAIT(HARD) }, { 22, SAYS("TRYAGAIN"), TO_PARK(62) },
        { 62, TIME_PASSES, TO_ASK }, { 62, SENDS, TO_AWAIT(HARD) }, { 63, IS_CUT, TO_ASK },
        { 63, SENDS, TO_AWAIT(HARD) }, { 64, IS_CUT, TO_PARK(164) }, { 164, TIME_PASSES, TO_ASK },
        { 164, SENDS, TO_AWAIT(HARD) }, { 165, SAYS("TRYAGAIN"), TO_PARK(265) }, { 265, TIME_PASSES, TO_ASK },
        { 265, SENDS, TO_AWAIT(HARD) }, { 266, IS_CUT, TO_ASK });
}

/* And for an answer's time more where no attempt to connect has failed. */
static void a_wait_without_a_connection_lasts_until_the_limit(void)
{
    struct play play = begin_limited(500), never_sent = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(500) }, { 30, CONNECTS(ENOTCONN), TO_CONNECT(500) },
        { 70, CONNECTS(ENOTCONN), TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_END(ENOTCONN) });
    assert_false(result_of(&play)->unknown);
    RUN(&never_sent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, IS_CUT_UNSENT, TO_ASK },
        { 1, IS_DOWN, TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_CONNECT(900) },
        { 900, CONNECTS(ETIMEDOUT), TO_END(ENOTCONN) });
    assert_false(result_of(&never_sent)->unknown);
}

/* Only a server can say that somebody else has it. */
static void what_was_never_answered_was_not_refused_by_a_holder(void)
{
    struct play play = begin_limited(500), tried = begin_try();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(500) }, { 30, CONNECTS(0), TO_ASK },
        { 31, IS_DOWN, TO_CONNECT(500) }, { 900, TIME_PASSES, TO_END(ENOTCONN) });
    RUN(&tried, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(COMMAND) }, { 30, CONNECTS(0), TO_ASK },
        { COMMAND, IS_DOWN, TO_END(ENOTCONN) });
}

/* Waiting longer would not help. */
static void a_server_that_refuses_us_ends_a_wait_at_once(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 30, CONNECTS(EACCES), TO_END(EACCES) });
}

static void what_was_sent_and_never_confirmed_is_unknown(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, IS_CUT, TO_ASK },
        { 1, IS_DOWN, TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_CONNECT(900) },
        { 900, CONNECTS(ETIMEDOUT), TO_END(EIO) });
    assert_true(result_of(&play)->unknown);
    assert_int_equal(result_of(&play)->duplicates_until.date.us, server_us(COMMAND));
}

/* While there is time for an answer it is asked for, also behind the limit. */
static void a_cut_near_the_limit_is_asked_again_while_time_is_left(void)
{
    struct play held = begin_limited(500), unknown = begin_limited(500);
    RUN(&held, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 510, IS_CUT, TO_ASK },
        { 510, SENDS, TO_AWAIT(900) }, { 515, GRANTS(7, 512), TO_END(0) });
    expect_held(&held, (510 + LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&unknown, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 899, IS_CUT, TO_ASK },
        { 899, SENDS, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&unknown)->unknown);
}

/* A pause is no reason to return later than promised. */
static void a_pause_ends_with_the_time_that_is_left(void)
{
    struct play play = begin_limited(100);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(500) }, { 490, IS_CUT, TO_ASK },
        { 490, SENDS, TO_AWAIT(500) }, { 491, IS_CUT, TO_PARK(500) }, { 500, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&play)->unknown);
}

/*
 * An ask that got no answer may still reach the server, up to its deadline. A release answered later than
 * that ends it; one answered before does not.
 */
static void a_release_counts_when_no_copy_can_come_after_it(void)
{
    struct play before = begin_limited(400), after = begin_limited(400);
    RUN(&before, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(800) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(800) },
        { 3, QUEUES(5000, 2, 0), TO_PARK(400) }, { 400, TIME_PASSES, TO_LEAVE }, { 400, SENDS, TO_AWAIT(800) },
        { 402, HAS_LEFT(COMMAND), TO_END(EIO) }); /* at the deadline itself it would still be obeyed */
    assert_true(result_of(&before)->unknown);
    RUN(&after, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(800) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(800) },
        { 3, QUEUES(5000, 2, 0), TO_PARK(400) }, { 400, TIME_PASSES, TO_LEAVE }, { 400, SENDS, TO_AWAIT(800) },
        { 402, HAS_LEFT(COMMAND + 1), TO_END(ETIMEDOUT) });
    assert_false(result_of(&after)->unknown);
}

/* A later answer of the server shows that its clock is past the deadline. */
static void an_answer_after_the_deadline_ends_the_doubt(void)
{
    struct play play = begin_limited(1500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(1900) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(1900) },
        { 3, QUEUES(900, 2, 0), TO_PARK(904) }, { 904, TIME_PASSES, TO_ASK }, { 904, SENDS, TO_AWAIT(1900) },
        { 906, REFUSES(905), TO_LEAVE });
    assert_int_equal(result_of(&play)->duplicates_until.date.us, 0);
}

/* --- the server does not know the script, or is not fit ------------------------------------------------- */

static void an_unknown_script_is_sent_as_text(void)
{
    struct play play = begin(), queued = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 2, SAYS("NOSCRIPT No matching script."), TO_ASK_WITH_TEXT }, { 2, SENDS, TO_AWAIT(HARD) },
        { 4, GRANTS(7, 3), TO_END(0) });
    expect_held(&play, (2 + LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&queued, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT }, { 907, SENDS, TO_AWAIT(HARD) },
        { 909, QUEUES(900, 908, 0), TO_PARK(1810) });
}

/* News that comes between does not make it forget. */
static void news_does_not_hide_that_a_script_is_unknown(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT },
        { 2, HINT_COMES, TO_ASK_WITH_TEXT }, { 2, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 3), TO_END(0) });
}

/* Sent as text there is nothing left to know: asking on would go round as fast as the network lets it. */
static void a_server_that_knows_no_script_is_not_asked_for_ever(void)
{
    struct play play = begin(), queued = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT },
        { 2, SENDS, TO_AWAIT(HARD) }, { 4, SAYS("NOSCRIPT"), TO_END(EPROTO) });
    RUN(&queued, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT }, { 907, SENDS, TO_AWAIT(HARD) },
        { 909, SAYS("NOSCRIPT"), TO_LEAVE }, { 909, SENDS, TO_AWAIT(909 + COMMAND) },
        { 911, SAYS("NOSCRIPT"), TO_LEAVE_WITH_TEXT }, { 911, SENDS, TO_AWAIT(909 + COMMAND) },
        { 913, SAYS("NOSCRIPT"), TO_END(EPROTO) });
    assert_true(result_of(&queued)->unknown);
}

/* The server's clock was set: the answer says what it shows now, and the next deadline is right. */
static void a_late_ask_is_asked_again(void)
{
    struct play play = begin(), listed = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, IS_LATE(1), TO_ASK },
        { 2, SENDS, TO_AWAIT(HARD) }, { 4, IS_LATE(3), TO_PARK(24) }, { 24, TIME_PASSES, TO_ASK },
        { 24, SENDS, TO_AWAIT(HARD) }, { 26, GRANTS(7, 25), TO_END(0) });
    RUN(&listed, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(490, 2, 0), TO_PARK(495) },
        { 495, TIME_PASSES, TO_ASK }, { 495, SENDS, TO_AWAIT(900) }, { 501, IS_LATE(500), TO_LEAVE });
}

/* What passes is waited for, with pauses that double up to their maximum. */
static void a_server_that_is_not_ready_is_asked_less_and_less_often(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 1, SAYS("LOADING Redis is loading"), TO_PARK(21) }, { 21, TIME_PASSES, TO_ASK },
        { 21, SENDS, TO_AWAIT(HARD) }, { 22, SAYS("LOADING"), TO_PARK(62) }, { 62, TIME_PASSES, TO_ASK },
        { 62, SENDS, TO_AWAIT(HARD) }, { 63, SAYS("BUSY Redis is busy"), TO_PARK(143) }, { 143, TIME_PASSES, TO_ASK },
        { 143, SENDS, TO_AWAIT(HARD) }, { 144, SAYS("OOM command not"), TO_PARK(244) }, { 244, TIME_PASSES, TO_ASK },
        { 244, SENDS, TO_AWAIT(HARD) }, { 245, SAYS("OOM"), TO_PARK(345) }, { 345, TIME_PASSES, TO_ASK },
        { 345, SENDS, TO_AWAIT(HARD) }, { 347, QUEUES(900, 346, 0), TO_PARK(1248) }, { 1248, TIME_PASSES, TO_ASK },
        { 1248, SENDS, TO_AWAIT(HARD) }, { 1249, SAYS("LOADING"), TO_PARK(1269) });
}

/* A message may tell that it is over; but it is cheap to forge, so there is a least pause. */
static void a_message_shortens_the_pause(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, SAYS("TRYAGAIN"), TO_PARK(21) },
        { 21, TIME_PASSES, TO_ASK }, { 21, SENDS, TO_AWAIT(HARD) }, { 22, SAYS("TRYAGAIN"), TO_PARK(62) },
        { 62, TIME_PASSES, TO_ASK }, { 62, SENDS, TO_AWAIT(HARD) }, { 63, SAYS("TRYAGAIN"), TO_PARK(143) },
        { 70, HINT_COMES, TO_PARK(90) }, { 80, HINT_COMES, TO_PARK(90) }, { 90, TIME_PASSES, TO_ASK },
        { 90, SENDS, TO_AWAIT(HARD) }, { 91, SAYS("TRYAGAIN"), TO_PARK(191) }, { 185, HINT_COMES, TO_PARK(191) });
}

static void at_the_limit_the_reason_is_told(void)
{
    static const struct {
        const char *text;
        int code;
    } table[] = {
        { "LOADING Redis is loading the dataset in memory", ENOTCONN },
        { "BUSY Redis is busy running a script", ENOTCONN },
        { "MASTERDOWN Link with MASTER is down", ENOTCONN },
        { "READONLY You can't write against a read only replica.", ENOTCONN },
        { "MISCONF Redis is configured to save RDB snapshots", ENOTCONN },
        { "NOREPLICAS Not enough good replicas to write.", ENOTCONN },
        { "TRYAGAIN Multiple keys request during rehashing of slot", ENOTCONN },
        { "CLUSTERDOWN The cluster is down", ENOTCONN },
        { "OOM command not allowed when used memory > 'maxmemory'.", ENOSPC },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin_limited(500), busy = begin_limited(500), try = begin_try();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) });
        play.step = refuse(&play, 495, table[i].text);
        assert_int_equal(play.step.act, LK__PARK);
        assert_int_equal(play.step.until_us, local_us(500));
        play.step = lk__acquirefsm_tick(&play.machine, local_us(500));
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, table[i].code);
        assert_false(result_of(&play)->unknown);

        /* in the queue already: it leaves */
        RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(400, 2, 0), TO_PARK(405) },
            { 405, TIME_PASSES, TO_ASK }, { 405, SENDS, TO_AWAIT(900) });
        busy.step = refuse(&busy, 490, table[i].text);
        RUN(&busy, { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
        busy.step = let_go(&busy, local_us(501), 501);
        assert_int_equal(busy.step.act, LK__FINISHED);
        assert_int_equal(result_of(&busy)->code, table[i].code);

        /* a try does not wait for better times */
        RUN(&try, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) });
        try.step = refuse(&try, 4, table[i].text);
        assert_int_equal(try.step.act, LK__FINISHED);
        assert_int_equal(result_of(&try)->code, table[i].code);
    }
}

/* It could, meanwhile, and somebody else has it: that is the reason then. */
static void trouble_that_is_over_is_no_reason(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, SAYS("LOADING"), TO_PARK(21) },
        { 21, TIME_PASSES, TO_ASK }, { 21, SENDS, TO_AWAIT(900) }, { 24, QUEUES(5000, 22, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 502, HAS_LEFT(501), TO_END(ETIMEDOUT) });
}

/* A rule that stopped the script may have done so in its middle, so that what it did is taken back. */
static void missing_rights_end_a_wait_at_once(void)
{
    static const char *const texts[] = { "NOPERM User worker has no permissions", "NOAUTH Authentication required.",
                                         "ERR The user executing the script can't run this command or subcommand",
                                         "ERR ACL failure in script: User app has no permissions to run the 'set' command" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, texts[i]);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        play.step = let_go(&play, local_us(5), 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, EACCES);
        assert_false(result_of(&play)->unknown);
    }
}

/* A helper key of another type: half of the script may have run, so what it took goes back. */
static void what_stopped_in_its_middle_is_taken_back(void)
{
    static const char *const texts[] = { "WRONGTYPE Operation against a key holding the wrong kind of value",
                                         "ERR something new", "" };
    for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, texts[i / 2]);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        if (i % 2 == 0) /* it was the key itself: a release begins with that, and finds no hold of ours */
            play.step = refuse(&play, 6, texts[0]);
        else
            play.step = let_go(&play, local_us(5), 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, EPROTO);
        assert_false(result_of(&play)->unknown);
    }
}

static void what_will_not_pass_ends_a_wait_at_once(void)
{
    static const struct {
        const char *text;
        int code;
    } table[] = {
        { "MOVED 3999 127.0.0.1:6381", ENOTSUP },
        { "ASK 3999 127.0.0.1:6381", ENOTSUP },
        { "CROSSSLOT Keys in request don't hash to the same slot", ENOTSUP },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, table[i].text);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, table[i].code);
        assert_false(result_of(&play)->unknown);
    }
}

static void an_unrecoverable_mutex_ends_a_wait_at_once(void)
{
    struct play play = begin();
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, ANSWERS(LK__UNRECOVERABLE, 0, 0, 906, 0), TO_END(ENOTRECOVERABLE) });
    assert_false(result_of(&play)->unknown);
}

/* As many hold it as may: there is nothing to wait for, and nothing to take back. */
static void a_full_lock_ends_a_wait_at_once(void)
{
    struct play play = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 2, ANSWERS(LK__FULL, 0, 0, 1, 0), TO_END(EAGAIN) });
    assert_false(result_of(&play)->unknown);
}

/* A finished number gets nothing any more: what bears it is given back, and the caller draws another one. */
static void an_overtaken_number_is_given_up(void)
{
    struct play play = begin(), unsure = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, ANSWERS(LK__OVERTAKEN, 0, 0, 1, 0), TO_LEAVE },
        { 2, SENDS, TO_AWAIT(COMMAND + 2) }, { 4, HAS_LEFT(3), TO_END(ESTALE) });
    assert_false(result_of(&play)->unknown);
    RUN(&unsure, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 3, ANSWERS(LK__OVERTAKEN, 0, 0, 2, 0), TO_END(EIO) });
    assert_true(result_of(&unsure)->unknown);
}

/* --- answers that make no sense ------------------------------------------------------------------------- */

static void an_answer_that_makes_no_sense_is_taken_back(void)
{
    const struct lk__asked table[] = {
        asked_of(LK__GRANTED, 0, 0, server_us(2), 0), /* no token */
        asked_of(LK__GRANTED, -7, 0, server_us(2), 0),
        asked_of(LK__GRANTED_OWNERDEAD, 0, 0, server_us(2), 0),
        asked_of(LK__QUEUED, 0, 0, server_us(2), 0), /* no place */
        asked_of(LK__QUEUED, -1, 0, server_us(2), 0),
        asked_of(LK__DONE, 7, 0, server_us(2), 0), /* no verdict on an ask */
        asked_of(LK__FREE, 7, 0, server_us(2), 0),
    };
    enum { ANSWERS = sizeof table / sizeof *table };
    for (size_t i = 0; i < ANSWERS + 1; i++) { /* the last is no answer at all */
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = lk__acquirefsm_answered(&play.machine, local_us(4), play.sent_us, i < ANSWERS ? &table[i] : NULL);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        play.step = let_go(&play, local_us(5), 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, EPROTO);
        assert_false(result_of(&play)->unknown);
    }
}

static void a_strange_answer_to_the_release_leaves_it_unknown(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
    play.step = lk__acquirefsm_left(&play.machine, local_us(0), 0, NULL);
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_int_equal(result_of(&play)->code, EPROTO);
    assert_true(result_of(&play)->unknown);
}

/* Once may be an accident of the connection; twice in a row is the server. */
static void bytes_that_cannot_be_read_are_asked_for_once_more(void)
{
    struct play play = begin(), spoilt = begin();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_GARBLED, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 3, GRANTS(7, 2), TO_END(0) });
    RUN(&spoilt, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_GARBLED, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 2, IS_GARBLED, TO_END(EPROTO) });
    assert_true(result_of(&spoilt)->unknown);
}

static void a_refused_release_is_sent_again(void)
{
    struct play play = begin_limited(500), stuck = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 501, SAYS("BUSY"), TO_LEAVE },
        { 501, SENDS, TO_AWAIT(900) }, { 502, SAYS("BUSY"), TO_PARK(522) }, { 522, TIME_PASSES, TO_LEAVE },
        { 522, SENDS, TO_AWAIT(900) }, { 524, HAS_LEFT(523), TO_END(ETIMEDOUT) });
    assert_false(result_of(&play)->unknown);
    RUN(&stuck, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 880, SAYS("BUSY"), TO_LEAVE },
        { 880, SENDS, TO_AWAIT(900) }, { 890, SAYS("BUSY"), TO_PARK(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&stuck)->unknown);
}

/* Rights taken away meanwhile: we are in the queue still, and "not held" cannot be promised. */
static void a_release_refused_for_good_leaves_it_unknown(void)
{
    struct play play = begin_limited(500), unsure = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
    play.step = refuse(&play, 503, "NOPERM User worker has no permissions");
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_true(result_of(&play)->unknown);
    assert_int_equal(result_of(&play)->code, EACCES);
    RUN(&unsure, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 491, IS_CUT, TO_ASK },
        { 491, SENDS, TO_AWAIT(900) }, { 501, QUEUES(900, 493, 0), TO_LEAVE }, { 501, SENDS, TO_AWAIT(900) });
    unsure.step = refuse(&unsure, 503, "ERR something new");
    assert_int_equal(unsure.step.act, LK__FINISHED);
    assert_true(result_of(&unsure)->unknown);
    assert_int_equal(result_of(&unsure)->code, EIO);
}

int main(void)
{
    return plain_run_with(
        middle_draws, what_was_cut_is_sent_again, an_answer_ends_the_pauses, a_cut_after_refusals_costs_no_pause,
        a_wait_without_a_connection_lasts_until_the_limit, what_was_never_answered_was_not_refused_by_a_holder,
        a_server_that_refuses_us_ends_a_wait_at_once, what_was_sent_and_never_confirmed_is_unknown,
        a_cut_near_the_limit_is_asked_again_while_time_is_left, a_pause_ends_with_the_time_that_is_left,
        a_release_counts_when_no_copy_can_come_after_it, an_answer_after_the_deadline_ends_the_doubt,
        an_unknown_script_is_sent_as_text, news_does_not_hide_that_a_script_is_unknown,
        a_server_that_knows_no_script_is_not_asked_for_ever, a_late_ask_is_asked_again,
        a_server_that_is_not_ready_is_asked_less_and_less_often, a_message_shortens_the_pause,
        at_the_limit_the_reason_is_told, trouble_that_is_over_is_no_reason, missing_rights_end_a_wait_at_once,
        what_stopped_in_its_middle_is_taken_back, what_will_not_pass_ends_a_wait_at_once,
        an_unrecoverable_mutex_ends_a_wait_at_once, a_full_lock_ends_a_wait_at_once, an_overtaken_number_is_given_up,
        an_answer_that_makes_no_sense_is_taken_back, a_strange_answer_to_the_release_leaves_it_unknown,
        bytes_that_cannot_be_read_are_asked_for_once_more, a_refused_release_is_sent_again,
        a_release_refused_for_good_leaves_it_unknown);
}
