/* SPDX-License-Identifier: MIT */
/*
 * machine_leaving_test.c - how an acquire ends that gives up: at its limit, after one try, cancelled
 *
 * labels: memory
 */
#include "machine.h"

/* --- the limit ------------------------------------------------------------------------------------------ */

static void a_waiter_leaves_the_queue_at_its_limit(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 499, TIME_PASSES, TO_PARK(500) }, { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) },
        { 503, HAS_LEFT(502), TO_END(ETIMEDOUT) });
    assert_false(result_of(&play)->unknown);
}

/* One that slept through its limit still has the time to leave; an answer may wait for it. */
static void a_waiter_that_slept_through_its_limit_leaves(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 950, TIME_PASSES, TO_LEAVE }, { 950, SENDS, TO_AWAIT(1350) }, { 953, HAS_LEFT(952), TO_END(ETIMEDOUT) });
    assert_false(result_of(&play)->unknown);

    play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 600000, TIME_PASSES, TO_AWAIT(600400) },
        { 600001, QUEUES(5000, 2, 0), TO_LEAVE }, { 600001, SENDS, TO_AWAIT(600400) },
        { 600003, HAS_LEFT(600002), TO_END(ETIMEDOUT) });
    assert_false(result_of(&play)->unknown);
}

/* Past its next poll others may have passed it over, and what it waits for be free: it asks, once. */
static void a_waiter_that_slept_through_a_poll_asks_once_more(void)
{
    struct play free = begin_limited(500), taken = begin_limited(500), silent = begin_limited(500);
    RUN(&free, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 1100, TIME_PASSES, TO_ASK }, { 1100, SENDS, TO_AWAIT(1500) }, { 1102, GRANTS(7, 1101), TO_END(0) });
    RUN(&taken, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 600000, TIME_PASSES, TO_ASK }, { 600000, SENDS, TO_AWAIT(600400) }, { 600002, QUEUES(1, 600001, 0), TO_LEAVE },
        { 600002, SENDS, TO_AWAIT(600400) }, { 600003, HAS_LEFT(600002), TO_END(ETIMEDOUT) });
    assert_false(result_of(&taken)->unknown);
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 600000, TIME_PASSES, TO_ASK }, { 600000, IS_DOWN, TO_CONNECT(600400) },
        { 600400, CONNECTS(ENOTCONN), TO_END(EIO) });
    assert_true(result_of(&silent)->unknown);
}

/* Whatever comes for one who is leaving, it leaves; what it may have been granted goes with it. */
static void nothing_stops_a_waiter_that_leaves(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 501, GRANT_COMES(500, CLAIM), TO_AWAIT(900) },
        { 501, HINT_COMES, TO_AWAIT(900) }, { 501, CANCELS, TO_AWAIT(900) }, { 502, IS_CUT, TO_LEAVE },
        { 502, IS_DOWN, TO_CONNECT(900) }, { 503, GRANT_COMES(500, CLAIM), TO_LEAVE },
        { 503, IS_DOWN, TO_CONNECT(900) }, { 505, CONNECTS(0), TO_LEAVE }, { 505, SENDS, TO_AWAIT(900) },
        { 507, SAYS("NOSCRIPT none"), TO_LEAVE_WITH_TEXT }, { 507, SENDS, TO_AWAIT(900) },
        { 509, HAS_LEFT(508), TO_END(ETIMEDOUT) });
    assert_false(result_of(&play)->unknown);
}

/* What was sent before the limit is awaited: the second clock. */
static void an_ask_under_way_at_the_limit_is_awaited(void)
{
    struct play held = begin_limited(500), queued = begin_limited(500), silent = begin_limited(500);
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 899, GRANTS(7, 600), TO_END(0) });
    expect_held(&held, (LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&queued, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 600, QUEUES(900, 599, 0), TO_LEAVE }, { 600, SENDS, TO_AWAIT(900) },
        { 601, HAS_LEFT(601), TO_END(ETIMEDOUT) });
    assert_false(result_of(&queued)->unknown);
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 899, TIME_PASSES, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&silent)->unknown);
    assert_int_equal(result_of(&silent)->duplicates_until.date.us, server_us(COMMAND));
}

static void a_release_that_is_not_answered_leaves_it_unknown(void)
{
    struct play play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&play)->unknown);
}

static void without_a_limit_a_wait_goes_on(void)
{
    struct play play = begin_limited(NEVER);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(NEVER) }, { 4, QUEUES(900, 2, 0), TO_PARK(905) },
        { 905, TIME_PASSES, TO_ASK }, { 905, IS_DOWN, TO_CONNECT(NEVER) },
        { 99999, CONNECTS(ENOTCONN), TO_CONNECT(NEVER) }, { 999999, CONNECTS(0), TO_ASK },
        { 999999, SENDS, TO_AWAIT(NEVER) }, { 1000004, GRANTS(7, 1000002), TO_END(0) });
}

/* --- trying --------------------------------------------------------------------------------------------- */

static void a_try_ends_with_its_answer(void)
{
    struct play busy = begin_try(), held = begin_try(), silent = begin_try();
    RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, REFUSES(2), TO_END(EBUSY) });
    assert_false(result_of(&busy)->unknown);
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, GRANTS(7, 2), TO_END(0) });
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { COMMAND, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&silent)->unknown);
}

static void a_try_asks_again_what_got_no_answer(void)
{
    struct play cut = begin_try(), late = begin_try(), unknown = begin_try();
    RUN(&cut, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_CUT_UNSENT, TO_ASK },
        { 3, IS_DOWN, TO_CONNECT(COMMAND) }, { 9, CONNECTS(0), TO_ASK }, { 9, SENDS, TO_AWAIT(COMMAND) },
        { 12, REFUSES(10), TO_END(EBUSY) });
    RUN(&late, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_LATE(2), TO_ASK },
        { 3, SENDS, TO_AWAIT(COMMAND) }, { 5, REFUSES(4), TO_END(EBUSY) });
    RUN(&unknown, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) },
        { 3, SAYS("NOSCRIPT none"), TO_ASK_WITH_TEXT }, { 3, SENDS, TO_AWAIT(COMMAND) },
        { 5, REFUSES(4), TO_END(EBUSY) });
}

static void a_try_without_a_server_says_so(void)
{
    static const struct {
        int connect_code, code;
    } table[] = {
        { ENOTCONN, ENOTCONN }, { ETIMEDOUT, ENOTCONN }, { EACCES, EACCES }, { ENOTSUP, ENOTSUP }, { EPROTO, EPROTO }
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin_try();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(COMMAND) });
        play.step = lk__acquirefsm_connected(&play.machine, local_us(COMMAND), table[i].connect_code);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(result_of(&play)->code, table[i].code);
        assert_false(result_of(&play)->unknown);
    }
}

/* A refused try may have put itself into the way of others with an earlier copy: it makes sure. */
static void a_busy_try_leaves_when_a_copy_may_come(void)
{
    struct play play = begin_try();
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_CUT, TO_ASK },
        { 3, SENDS, TO_AWAIT(COMMAND) }, { 5, REFUSES(4), TO_LEAVE }, { 5, SENDS, TO_AWAIT(COMMAND) },
        { 7, HAS_LEFT(6), TO_END(EIO) });
    assert_true(result_of(&play)->unknown);
}

/* --- giving up ------------------------------------------------------------------------------------------ */

static void a_cancelled_wait_ends_at_once_when_nothing_was_sent(void)
{
    struct play fresh = begin(), down = begin(), pausing = begin();
    RUN(&fresh, { 0, STARTS, TO_ASK }, { 0, CANCELS, TO_END(ECANCELED) });
    RUN(&down, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 9, CANCELS, TO_END(ECANCELED) });
    RUN(&pausing, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, SAYS("LOADING"), TO_PARK(21) },
        { 9, CANCELS, TO_END(ECANCELED) });
}

static void a_cancelled_waiter_leaves_the_queue(void)
{
    struct play parked = begin(), asking = begin(), polling = begin();
    RUN(&parked, QUEUED_BEHIND(900, 905), { 100, CANCELS, TO_LEAVE }, { 100, SENDS, TO_AWAIT(500) },
        { 102, HAS_LEFT(101), TO_END(ECANCELED) });
    RUN(&asking, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, QUEUES(900, 2, 0), TO_LEAVE }, { 4, SENDS, TO_AWAIT(401) }, { 6, HAS_LEFT(5), TO_END(ECANCELED) });
    RUN(&polling, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, CANCELS, TO_LEAVE });
}

static void what_a_cancelled_waiter_is_granted_goes_back(void)
{
    struct play answered = begin(), told = begin(), both = begin();
    RUN(&answered, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, GRANTS(7, 2), TO_LEAVE }, { 4, SENDS, TO_AWAIT(401) }, { 6, HAS_LEFT(5), TO_END(ECANCELED) });
    RUN(&told, QUEUED_BEHIND(900, 905), { 100, CANCELS, TO_LEAVE }, { 100, GRANT_COMES(99, CLAIM), TO_LEAVE },
        { 100, SENDS, TO_AWAIT(500) }, { 102, HAS_LEFT(101), TO_END(ECANCELED) });
    RUN(&both, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(401) }, { 4, QUEUES(900, 2, 0), TO_LEAVE });
}

static void a_cancelled_wait_ends_within_a_command_timeout(void)
{
    struct play play = begin_limited(NEVER);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(NEVER) }, { 100, CANCELS, TO_AWAIT(500) },
        { 500, TIME_PASSES, TO_END(EIO) });
    assert_true(result_of(&play)->unknown);
}

/* Also one that is leaving for another reason, and would else wait for its release as long as for the lock. */
static void a_cancelled_leave_ends_within_a_command_timeout(void)
{
    struct play play = begin_limited(NEVER);
    play.step = lk__acquirefsm_start(&play.machine, local_us(0));
    play.step = send_it(&play, local_us(0), server_us(0));
    play.step = refuse(&play, 4, "NOPERM User worker has no permissions");
    assert_int_equal(play.step.act, LK__LEAVE);
    play.step = lk__acquirefsm_unsent(&play.machine, local_us(4));
    assert_int_equal(play.step.act, LK__CONNECT);
    play.step = lk__acquirefsm_cancel(&play.machine, local_us(10), ECANCELED);
    assert_true(play.step.until_us <= local_us(10 + COMMAND));
    play.step = lk__acquirefsm_tick(&play.machine, local_us(10 + COMMAND));
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_true(result_of(&play)->unknown);
}

/* Who gave up wants nothing any more: what was not done is not done again. */
static void a_cancelled_wait_asks_no_more(void)
{
    struct play late = begin(), unknown = begin(), cut = begin(), unsent = begin();
    RUN(&late, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, IS_LATE(2), TO_END(ECANCELED) });
    RUN(&unknown, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, SAYS("NOSCRIPT"), TO_END(ECANCELED) });
    RUN(&unsent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, IS_CUT_UNSENT, TO_END(ECANCELED) });
    RUN(&cut, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, IS_CUT, TO_LEAVE }, { 4, SENDS, TO_AWAIT(401) }, { 6, HAS_LEFT(COMMAND + 1), TO_END(ECANCELED) });
}

/* The server's trouble is not why the call ends. */
static void a_cancelled_wait_ends_with_its_own_code(void)
{
    struct play refused = begin(), full = begin();
    RUN(&refused, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, SAYS("LOADING"), TO_END(ECANCELED) });
    RUN(&full, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, CANCELS, TO_AWAIT(1306) }, { 908, SAYS("OOM"), TO_LEAVE }, { 908, SENDS, TO_AWAIT(1306) },
        { 910, HAS_LEFT(909), TO_END(ECANCELED) });
}

static void what_has_ended_stays_ended(void)
{
    struct play held = begin(), busy = begin_try();
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 2), TO_END(0) },
        { 5, HINT_COMES, TO_END(0) }, { 5, GRANT_COMES(5, CLAIM), TO_END(0) }, { 5, TIME_PASSES, TO_END(0) },
        { 5, CANCELS, TO_END(0) }, { HARD, TIME_PASSES, TO_END(0) }, { HARD, CANCELS, TO_END(0) });
    expect_held(&held, (LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, REFUSES(2), TO_END(EBUSY) },
        { 5, GRANT_COMES(5, CLAIM), TO_END(EBUSY) }, { 5, HINT_COMES, TO_END(EBUSY) }, { 5, CANCELS, TO_END(EBUSY) },
        { HARD, TIME_PASSES, TO_END(EBUSY) });
}

int main(void)
{
    return plain_run_with(
        middle_draws, a_waiter_leaves_the_queue_at_its_limit, a_waiter_that_slept_through_its_limit_leaves,
        a_waiter_that_slept_through_a_poll_asks_once_more,
        nothing_stops_a_waiter_that_leaves, an_ask_under_way_at_the_limit_is_awaited,
        a_release_that_is_not_answered_leaves_it_unknown, without_a_limit_a_wait_goes_on, a_try_ends_with_its_answer,
        a_try_asks_again_what_got_no_answer, a_try_without_a_server_says_so, a_busy_try_leaves_when_a_copy_may_come,
        a_cancelled_wait_ends_at_once_when_nothing_was_sent, a_cancelled_waiter_leaves_the_queue,
        what_a_cancelled_waiter_is_granted_goes_back, a_cancelled_wait_ends_within_a_command_timeout,
        a_cancelled_leave_ends_within_a_command_timeout, a_cancelled_wait_asks_no_more,
        a_cancelled_wait_ends_with_its_own_code, what_has_ended_stays_ended);
}
