/* SPDX-License-Identifier: MIT */
/*
 * acquire_machine_test.c - what an acquire does next, whatever happens and whenever
 *
 * The machine reads no clock and sends nothing, so each case is a table: at this moment that happens, and
 * that is to be done next. Times are milliseconds since the call began; the server's clock shows the same.
 * At the end it meets a server, a network and a caller who do what they like, a hundred thousand times.
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "acquire/acquire.h"

#include <stdio.h>
#include <string.h>

/* Settings of each case, unless it says otherwise. */
enum {
    LEASE = 30000,
    CLAIM = 3000,
    POLL = 1000,
    LIVENESS = 6000,
    FAR = LIVENESS / 3, /* how often those far behind ask */
    COMMAND = 400,
    PAUSE = 20,
    PAUSE_MAX = 100,
    LIMIT = 10000,
    HARD = LIMIT + COMMAND,
    HINT_PAUSE = 5
};

#define BEGAN_US INT64_C(5000000000)
#define SERVER_BEGAN_US INT64_C(1700000000000000)
#define NEVER (-1)

static int64_t local_us(int64_t ms)
{
    return ms == NEVER ? LK__NEVER : BEGAN_US + ms * 1000;
}

static int64_t server_us(int64_t ms)
{
    return SERVER_BEGAN_US + ms * 1000;
}

/* --- random.c of this program: jitter that a table can count on ----------------------------------------- */

static enum { MIDDLE, LEAST, MOST, ANY } draws = MIDDLE;
static uint64_t seed = 1;

/* xorshift64* */
static uint64_t drawn(uint64_t bound)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return bound == 0 ? 0 : seed * 0x2545f4914f6cdd1dULL % bound;
}

uint64_t lk__random_below(uint64_t bound)
{
    switch (draws) {
    case LEAST:
        return 0;
    case MOST:
        return bound - 1;
    case ANY:
        return drawn(bound);
    default:
        return bound / 2;
    }
}

int lk__random_id(char id[LK__ID_LENGTH + 1])
{
    memset(id, '0', LK__ID_LENGTH);
    id[LK__ID_LENGTH] = '\0';
    return 0;
}

/* --- replies -------------------------------------------------------------------------------------------- */

/* `number` is a token, or a number in the queue. */
static struct lk__asked asked_of(enum lk__verdict verdict, int64_t number, int64_t left_ms, int64_t told_us,
                                 int64_t place)
{
    bool granted = verdict == LK__GRANTED || verdict == LK__GRANTED_OWNERDEAD;
    return (struct lk__asked){ .verdict = verdict,
                               .server_us = told_us,
                               .token = granted ? number : 0,
                               .arrival = granted ? 0 : number,
                               .left_ms = left_ms,
                               .place = place };
}

static struct lk__reply *error_of(const char *text)
{
    static struct lk__reply reply;
    static char memory[256];
    snprintf(memory, sizeof memory, "%s", text);
    reply = (struct lk__reply){ .type = LK__ERROR, .count = 1, .text = memory };
    reply.values[0] = (struct lk__value){ .type = LK__ERROR, .length = strlen(text) };
    return &reply;
}

/* --- a table -------------------------------------------------------------------------------------------- */

enum event { START, SEND, ANSWER, ANSWER_WORDS, ANSWER_LEFT, CUT, UNSENT, CONNECTED, GRANT, HINT, TICK, CANCEL };

struct row {
    int64_t at_ms;
    enum event event;
    int64_t numbers[5];
    const char *text;
    enum lk__act act; /* what is to be done then ... */
    int64_t value;    /* ... until that moment, or with that code */
    bool eval;
};

/* What happens ... */
#define STARTS .event = START
#define SENDS .event = SEND /* the ask or release that is due */
#define ANSWERS(verdict, number, left_ms, server_ms, place)                                                            \
    .event = ANSWER, .numbers = { verdict, number, left_ms, server_ms, place }
#define GRANTS(token, server_ms) ANSWERS(LK__GRANTED, token, 0, server_ms, 0)
#define QUEUES(left_ms, server_ms, place) ANSWERS(LK__QUEUED, 11, left_ms, server_ms, place)
#define REFUSES(server_ms) ANSWERS(LK__BUSY, 0, 900, server_ms, 0)
#define IS_LATE(server_ms) ANSWERS(LK__LATE, 0, 0, server_ms, 0)
#define SAYS(errmsg) .event = ANSWER_WORDS, .text = errmsg
#define HAS_LEFT(server_ms) .event = ANSWER_LEFT, .numbers = { server_ms }
#define IS_CUT .event = CUT, .numbers = { LK__CUT }
#define IS_CUT_UNSENT .event = CUT, .numbers = { LK__UNSENT }
#define IS_GARBLED .event = CUT, .numbers = { LK__GARBLED }
#define IS_DOWN .event = UNSENT
#define CONNECTS(code) .event = CONNECTED, .numbers = { code }
#define GRANT_COMES(server_ms, lease_ms) .event = GRANT, .numbers = { server_ms, lease_ms }
#define HINT_COMES .event = HINT
#define TIME_PASSES .event = TICK
#define CANCELS .event = CANCEL, .numbers = { ECANCELED }

/* ... and what is to be done. */
#define TO_ASK .act = LK__ASK
#define TO_ASK_WITH_TEXT .act = LK__ASK, .eval = true
#define TO_LEAVE .act = LK__LEAVE
#define TO_LEAVE_WITH_TEXT .act = LK__LEAVE, .eval = true
#define TO_AWAIT(until_ms) .act = LK__AWAIT, .value = until_ms
#define TO_CONNECT(until_ms) .act = LK__CONNECT, .value = until_ms
#define TO_PARK(until_ms) .act = LK__PARK, .value = until_ms
#define TO_END(code) .act = LK__FINISHED, .value = code

struct play {
    struct lk__acquirefsm machine;
    struct lk__step step;
    int64_t sent_us;
};

static struct play begin(void)
{
    return (struct play){ .machine = { .limit_us = local_us(LIMIT),
                                       .lease_ms = LEASE,
                                       .poll_ms = POLL,
                                       .liveness_ms = LIVENESS,
                                       .command_us = COMMAND * 1000,
                                       .retry_min_ms = PAUSE,
                                       .retry_max_ms = PAUSE_MAX } };
}

static struct play begin_limited(int64_t limit_ms)
{
    struct play play = begin();
    play.machine.limit_us = local_us(limit_ms);
    return play;
}

static struct play begin_try(void)
{
    struct play play = begin();
    play.machine.limit_us = 0;
    play.machine.try_only = true;
    return play;
}

/* As a room does it. */
static struct lk__step send_it(struct play *play, int64_t now_us, int64_t server_now_us)
{
    struct lk__acquirefsm *a = &play->machine;
    assert_true(play->step.act == LK__ASK || play->step.act == LK__LEAVE);
    if (play->step.act == LK__ASK) {
        a->deadline_us = server_now_us + a->command_us;
        a->asked = true;
    }
    a->sent = true;
    play->sent_us = now_us;
    return lk__acquirefsm_tick(a, now_us);
}

/* The ask is answered so. */
static struct lk__step answer(struct play *play, int64_t now_us, struct lk__asked asked)
{
    return lk__acquirefsm_answered(&play->machine, now_us, play->sent_us, &asked);
}

/* The release is answered. */
static struct lk__step let_go(struct play *play, int64_t server_ms)
{
    return lk__acquirefsm_left(&play->machine, &(struct lk__answer){ LK__DONE, server_us(server_ms) });
}

static struct lk__step refuse(struct play *play, int64_t at_ms, const char *text)
{
    return lk__acquirefsm_refused(&play->machine, local_us(at_ms), error_of(text));
}

static struct lk__step happens(struct play *play, const struct row *row)
{
    struct lk__acquirefsm *a = &play->machine;
    int64_t now_us = local_us(row->at_ms);
    const int64_t *n = row->numbers;
    switch (row->event) {
    case START:
        return lk__acquirefsm_start(a, now_us);
    case SEND:
        return send_it(play, now_us, server_us(row->at_ms));
    case ANSWER:
        return answer(play, now_us, asked_of((enum lk__verdict)n[0], n[1], n[2], server_us(n[3]), n[4]));
    case ANSWER_WORDS:
        return refuse(play, row->at_ms, row->text);
    case ANSWER_LEFT:
        return let_go(play, n[0]);
    case CUT:
        return lk__acquirefsm_cut(a, now_us, (enum lk__request_state)n[0]);
    case UNSENT:
        return lk__acquirefsm_unsent(a, now_us);
    case CONNECTED:
        return lk__acquirefsm_connected(a, now_us, (int)n[0]);
    case GRANT:
        return lk__acquirefsm_granted(a, now_us, &(struct lk__grant){ server_us(n[0]), n[1], 7, false });
    case HINT:
        return lk__acquirefsm_hinted(a, now_us);
    case CANCEL:
        return lk__acquirefsm_cancel(a, now_us, (int)n[0]);
    default:
        return lk__acquirefsm_tick(a, now_us);
    }
}

static const char *act_name(enum lk__act act)
{
    static const char *const names[] = { "ask", "leave", "await", "connect", "park", "done" };
    return names[act];
}

static void expect_step(const struct play *play, int number, const struct row *row)
{
    struct lk__step step = play->step;
    int64_t value = 0, expected = row->value;
    if (step.act == LK__FINISHED)
        value = play->machine.code;
    else if (step.act != LK__ASK && step.act != LK__LEAVE)
        value = step.until_us == LK__NEVER ? NEVER : step.until_us - BEGAN_US;
    if (row->act != LK__FINISHED && expected != NEVER)
        expected *= 1000;
    if (step.act != row->act || value != expected || step.eval != row->eval)
        fail_msg("row %d, at %lld ms: %s %lld%s, but expected %s %lld%s", number, (long long)row->at_ms,
                 act_name(step.act), (long long)value, step.eval ? " with text" : "", act_name(row->act),
                 (long long)expected, row->eval ? " with text" : "");
}

static void run(struct play *play, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        play->step = happens(play, &rows[i]);
        expect_step(play, (int)i, &rows[i]);
    }
}

/* Run the rows given as further arguments. */
#define RUN(play, ...)                                                                                                 \
    do {                                                                                                               \
        static const struct row run_rows[] = { __VA_ARGS__ };                                                          \
        run((play), run_rows, sizeof run_rows / sizeof *run_rows);                                                     \
    } while (0)

static void expect_held(const struct play *play, int64_t valid_us, bool claimed)
{
    assert_true(play->machine.code == 0 || play->machine.code == EOWNERDEAD);
    assert_int_equal(play->machine.valid_until_us - BEGAN_US, valid_us);
    assert_int_equal(play->machine.token, 7);
    assert_int_equal(play->machine.claimed, claimed);
    assert_false(play->machine.unknown);
}

static int middle_draws(void **state)
{
    (void)state;
    draws = MIDDLE;
    return 0;
}

/* Asked, and queued as the first, 4 ms after the start; the server's answer was given at 2 ms. */
#define QUEUED_BEHIND(left_ms, until_ms)                                                                               \
    { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },                                                               \
    {                                                                                                                  \
        4, QUEUES(left_ms, 2, 0), TO_PARK(until_ms)                                                                    \
    }

/* --- granted at once ------------------------------------------------------------------------------------ */

static void a_free_lock_is_held_after_one_answer(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 2), TO_END(0) });
    expect_held(&play, (LEASE - LEASE / 100 - 2) * 1000, false);
    assert_int_equal(play.machine.first_us, local_us(LEASE / 3));
    assert_int_equal(play.machine.grant_server_us, server_us(2));
}

static void a_dead_holder_is_told_of(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 4, ANSWERS(LK__GRANTED_OWNERDEAD, 7, 0, 2, 0), TO_END(EOWNERDEAD) });
    expect_held(&play, (LEASE - LEASE / 100 - 2) * 1000, false);
}

/* The server's lease began at some moment between sending and the answer: count from the first. */
static void validity_counts_from_before_the_request_was_sent(void **state)
{
    static const struct {
        int64_t lease_ms, sent_ms, came_ms, valid_ms;
    } table[] = {
        { 100, 0, 1, 97 },    { 100, 0, 96, 97 },         { 100, 50, 60, 147 },
        { 1000, 0, 10, 988 }, { 30000, 300, 399, 29998 }, { 86400000, 0, 1, 85535998 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin();
        play.machine.lease_ms = table[i].lease_ms;
        play.step = lk__acquirefsm_start(&play.machine, local_us(0));
        play.step = send_it(&play, local_us(table[i].sent_ms), server_us(table[i].sent_ms));
        play.step =
            answer(&play, local_us(table[i].came_ms), asked_of(LK__GRANTED, 7, 0, server_us(table[i].came_ms), 0));
        assert_int_equal(play.step.act, LK__FINISHED);
        expect_held(&play, table[i].valid_ms * 1000, false);
        assert_int_equal(play.machine.first_us, local_us(table[i].sent_ms) + table[i].lease_ms * 1000 / 3);
    }
}

/* An answer that took longer than the lease is no hold; asking again finds the same hold and renews it. */
static void an_answer_slower_than_the_lease_is_asked_again(void **state)
{
    struct play play = begin();
    (void)state;
    play.machine.lease_ms = 100;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 97, GRANTS(7, 1), TO_ASK },
        { 97, SENDS, TO_AWAIT(HARD) }, { 99, GRANTS(7, 98), TO_END(0) });
    expect_held(&play, (97 + 97) * 1000, false);
}

/* --- granted by a message ------------------------------------------------------------------------------- */

static void a_queued_waiter_is_held_by_a_message(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905), { 500, GRANT_COMES(499, CLAIM), TO_END(0) });
    /* from the ask at 0, answered at the server's 2, to the grant at 499, and the claim: less 1 % and 2 ms */
    expect_held(&play, 3497000 - 34970 - 2000, true);
    assert_int_equal(play.machine.first_us, local_us(497 + CLAIM / 3));
    assert_int_equal(play.machine.grant_server_us, server_us(499));
    assert_int_equal(play.machine.arrival, 11);
}

/* Messages come by another connection: this one may be faster than the answer that puts us into the queue. */
static void a_grant_may_overtake_the_answer_that_queued_us(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(HARD) },
        { 4, QUEUES(900, 2, 0), TO_END(0) });
    expect_held(&play, 3001000 - 30010 - 2000, true);
}

/* The answer knows better: at its moment we were in the queue again, and no owner. */
static void a_grant_older_than_the_answer_is_dropped(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(1, CLAIM), TO_AWAIT(HARD) },
        { 4, QUEUES(900, 2, 0), TO_PARK(905) }, { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 908, GRANTS(7, 906), TO_END(0) });
    expect_held(&play, (905 + LEASE - LEASE / 100 - 2) * 1000, false);
}

/* What cannot be dated, or is over, still says that something happened. */
static void a_grant_that_cannot_be_used_is_a_hint(void **state)
{
    struct play late = begin(), older = begin(), undated = begin();
    (void)state;
    RUN(&late, QUEUED_BEHIND(900, 905), { 3470, GRANT_COMES(499, CLAIM), TO_ASK });
    RUN(&older, QUEUED_BEHIND(900, 905), { 10, GRANT_COMES(1, CLAIM), TO_ASK });
    RUN(&undated, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 4, GRANT_COMES(3, CLAIM), TO_ASK });
}

static void a_grant_is_good_until_its_last_microsecond(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905), { 3460, GRANT_COMES(499, CLAIM), TO_END(0) });
    expect_held(&play, 3497000 - 34970 - 2000, true); /* 3460.03 ms */
}

/* The connection breaks after the grant came and before the answer of a poll: an older answer dates it. */
static void a_grant_outlives_the_connection_of_a_poll(void **state)
{
    struct play play = begin(), first = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, GRANT_COMES(904, CLAIM), TO_AWAIT(HARD) }, { 907, IS_CUT, TO_END(0) });
    expect_held(&play, 3902000 - 39020 - 2000, true);
    RUN(&first, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(HARD) },
        { 4, IS_CUT, TO_ASK });
}

/* A copy of an ask that is still on its way finds the claim, and sets the lease that we asked for: it may be shorter. */
static void a_claim_is_no_longer_than_what_a_copy_asks_for(void **state)
{
    struct play play = begin();
    (void)state;
    play.machine.lease_ms = 1000;
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, GRANT_COMES(904, CLAIM), TO_AWAIT(HARD) }, { 907, IS_CUT, TO_END(0) });
    expect_held(&play, 1902000 - 19020 - 2000, true);
}

/* The caller was late, in a signal handler or without a CPU; its grant was not. It is held until its claim ends. */
static void a_grant_that_came_beats_a_limit_that_passed(void **state)
{
    struct play play = begin_limited(500), later = begin_limited(500), last = begin_limited(500);
    (void)state;
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
    assert_false(last.machine.unknown);
}

/* Likewise beside a poll that is answered after the limit, or never: then a copy of it may still come. */
static void a_grant_beats_the_limit_of_a_poll_under_way(void **state)
{
    struct play play = begin_limited(500), silent = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 600, GRANT_COMES(499, CLAIM), TO_AWAIT(900) },
        { 601, QUEUES(5000, 307, 0), TO_END(0) });
    expect_held(&play, 305000 + 3192000 - 31920 - 2000, true);
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 600, GRANT_COMES(499, CLAIM), TO_AWAIT(900) },
        { 900, TIME_PASSES, TO_END(0) });
    expect_held(&silent, 3497000 - 34970 - 2000, true);
    assert_int_equal(silent.machine.duplicates_until_us, server_us(305 + COMMAND));
}

/* What the server remembers by the request is confirmed by an ask, which the limit does not forbid. */
static void a_grant_to_be_confirmed_is_asked_for_after_the_limit(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    play.machine.recorded = true;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 600, GRANT_COMES(499, CLAIM), TO_ASK }, { 600, SENDS, TO_AWAIT(900) }, { 603, GRANTS(7, 602), TO_END(0) });
}

/* Who was told to give up does, whatever came. */
static void a_grant_does_not_hold_one_that_was_cancelled(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(300, 2, 0), TO_PARK(305) },
        { 305, TIME_PASSES, TO_ASK }, { 305, SENDS, TO_AWAIT(900) }, { 306, CANCELS, TO_AWAIT(706) },
        { 307, GRANT_COMES(306, CLAIM), TO_AWAIT(706) }, { 308, QUEUES(5000, 305, 0), TO_LEAVE },
        { 308, SENDS, TO_AWAIT(706) }, { 310, HAS_LEFT(309), TO_END(ECANCELED) });
}

/* --- when to ask again ---------------------------------------------------------------------------------- */

static int64_t nap_us(int64_t left_ms, int64_t place, bool unsubscribed)
{
    struct play play = begin();
    play.machine.unsubscribed = unsubscribed;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
    play.step = answer(&play, local_us(4), asked_of(LK__QUEUED, 11, left_ms, server_us(2), place));
    assert_int_equal(play.step.act, LK__PARK);
    return play.step.until_us - local_us(4);
}

static void how_long_a_waiter_sleeps_depends_on_its_place(void **state)
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
        { 200, 0, true, 201 },
        { 200, 2, true, 201 },
        { 5000, 1000, true, POLL },
        /* it was passed over, and hears nothing */
        { 5000, -1, true, PAUSE },
        { -1, -1, false, PAUSE },
        /* who has a short claim may not find it in time: then everybody may have it */
        { 100, 2, false, 101 },
        /* nonsense from the server does no harm */
        { INT64_MAX, 0, false, POLL },
        { INT64_MAX / 1000, 1, false, POLL },
        { INT64_MIN, 0, false, POLL },
        { 200, INT64_MAX, false, FAR },
        { 200, -5, false, 201 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(nap_us(table[i].left_ms, table[i].place, table[i].unsubscribed), table[i].nap_ms * 1000);
}

/* Those who sleep equally long must not come at one moment. */
static void naps_are_spread_by_a_fifth_to_either_side(void **state)
{
    int64_t least_us = INT64_MAX, most_us = 0;
    (void)state;
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

static void a_hint_brings_the_next_ask_forward(void **state)
{
    struct play play = begin(), soon = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905), { 100, HINT_COMES, TO_ASK });
    RUN(&soon, QUEUED_BEHIND(900, 905), { 4, HINT_COMES, TO_PARK(HINT_PAUSE) }, { HINT_PAUSE, TIME_PASSES, TO_ASK });
}

/* It tells of something that the answer under way may not know. */
static void a_hint_during_an_ask_is_kept_for_after_it(void **state)
{
    struct play play = begin();
    (void)state;
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
static void a_flood_of_hints_causes_few_asks(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905));
    assert_between(asks_in_flood(&play, 1000, false), 100, 1000 / HINT_PAUSE + 1);
}

/* Least of all for one that says it cannot: its pauses are there to be kept. */
static void a_flood_of_hints_spares_a_server_that_refuses(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905));
    assert_between(asks_in_flood(&play, 1000, true), 1, 1000 / HINT_PAUSE + 1);
}

/* --- the limit ------------------------------------------------------------------------------------------ */

static void a_waiter_leaves_the_queue_at_its_limit(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 499, TIME_PASSES, TO_PARK(500) }, { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) },
        { 503, HAS_LEFT(502), TO_END(ETIMEDOUT) });
    assert_false(play.machine.unknown);
}

/* One that slept through its limit, stopped or suspended, still has the time to leave; an answer may wait for it. */
static void a_waiter_that_slept_through_its_limit_leaves(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 600000, TIME_PASSES, TO_LEAVE }, { 600000, SENDS, TO_AWAIT(600400) },
        { 600003, HAS_LEFT(600002), TO_END(ETIMEDOUT) });
    assert_false(play.machine.unknown);

    play = begin_limited(500);
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 600000, TIME_PASSES, TO_AWAIT(600400) },
        { 600001, QUEUES(5000, 2, 0), TO_LEAVE }, { 600001, SENDS, TO_AWAIT(600400) },
        { 600003, HAS_LEFT(600002), TO_END(ETIMEDOUT) });
    assert_false(play.machine.unknown);
}

/* Whatever comes for one who is leaving, it leaves; what it may have been granted goes with it. */
static void nothing_stops_a_waiter_that_leaves(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 501, GRANT_COMES(500, CLAIM), TO_AWAIT(900) },
        { 501, HINT_COMES, TO_AWAIT(900) }, { 501, CANCELS, TO_AWAIT(900) }, { 502, IS_CUT, TO_LEAVE },
        { 502, IS_DOWN, TO_CONNECT(900) }, { 503, GRANT_COMES(500, CLAIM), TO_LEAVE },
        { 503, IS_DOWN, TO_CONNECT(900) }, { 505, CONNECTS(0), TO_LEAVE }, { 505, SENDS, TO_AWAIT(900) },
        { 507, SAYS("NOSCRIPT none"), TO_LEAVE_WITH_TEXT }, { 507, SENDS, TO_AWAIT(900) },
        { 509, HAS_LEFT(508), TO_END(ETIMEDOUT) });
    assert_false(play.machine.unknown);
}

/* What was sent before the limit is awaited: the second clock. */
static void an_ask_under_way_at_the_limit_is_awaited(void **state)
{
    struct play held = begin_limited(500), queued = begin_limited(500), silent = begin_limited(500);
    (void)state;
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 899, GRANTS(7, 600), TO_END(0) });
    expect_held(&held, (LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&queued, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 600, QUEUES(900, 599, 0), TO_LEAVE }, { 600, SENDS, TO_AWAIT(900) },
        { 601, HAS_LEFT(601), TO_END(ETIMEDOUT) });
    assert_false(queued.machine.unknown);
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 500, TIME_PASSES, TO_AWAIT(900) },
        { 899, TIME_PASSES, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(silent.machine.unknown);
    assert_int_equal(silent.machine.duplicates_until_us, server_us(COMMAND));
}

static void a_release_that_is_not_answered_leaves_it_unknown(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(play.machine.unknown);
}

static void without_a_limit_a_wait_goes_on(void **state)
{
    struct play play = begin_limited(NEVER);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(NEVER) }, { 4, QUEUES(900, 2, 0), TO_PARK(905) },
        { 905, TIME_PASSES, TO_ASK }, { 905, IS_DOWN, TO_CONNECT(NEVER) },
        { 99999, CONNECTS(ENOTCONN), TO_CONNECT(NEVER) }, { 999999, CONNECTS(0), TO_ASK },
        { 999999, SENDS, TO_AWAIT(NEVER) }, { 1000004, GRANTS(7, 1000002), TO_END(0) });
}

/* --- trying --------------------------------------------------------------------------------------------- */

static void a_try_ends_with_its_answer(void **state)
{
    struct play busy = begin_try(), held = begin_try(), silent = begin_try();
    (void)state;
    RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, REFUSES(2), TO_END(EBUSY) });
    assert_false(busy.machine.unknown);
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, GRANTS(7, 2), TO_END(0) });
    RUN(&silent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { COMMAND, TIME_PASSES, TO_END(EIO) });
    assert_true(silent.machine.unknown);
}

static void a_try_asks_again_what_got_no_answer(void **state)
{
    struct play cut = begin_try(), late = begin_try(), unknown = begin_try();
    (void)state;
    RUN(&cut, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_CUT_UNSENT, TO_ASK },
        { 3, IS_DOWN, TO_CONNECT(COMMAND) }, { 9, CONNECTS(0), TO_ASK }, { 9, SENDS, TO_AWAIT(COMMAND) },
        { 12, REFUSES(10), TO_END(EBUSY) });
    RUN(&late, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_LATE(2), TO_ASK },
        { 3, SENDS, TO_AWAIT(COMMAND) }, { 5, REFUSES(4), TO_END(EBUSY) });
    RUN(&unknown, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) },
        { 3, SAYS("NOSCRIPT none"), TO_ASK_WITH_TEXT }, { 3, SENDS, TO_AWAIT(COMMAND) },
        { 5, REFUSES(4), TO_END(EBUSY) });
}

static void a_try_without_a_server_says_so(void **state)
{
    static const struct {
        int connect_code, code;
    } table[] = {
        { ENOTCONN, ENOTCONN }, { ETIMEDOUT, ENOTCONN }, { EACCES, EACCES }, { ENOTSUP, ENOTSUP }, { EPROTO, EPROTO }
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin_try();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(COMMAND) });
        play.step = lk__acquirefsm_connected(&play.machine, local_us(9), table[i].connect_code);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, table[i].code);
        assert_false(play.machine.unknown);
    }
}

/* A refused try may have put itself into the way of others with an earlier copy: it makes sure. */
static void a_busy_try_leaves_when_a_copy_may_come(void **state)
{
    struct play play = begin_try();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 3, IS_CUT, TO_ASK },
        { 3, SENDS, TO_AWAIT(COMMAND) }, { 5, REFUSES(4), TO_LEAVE }, { 5, SENDS, TO_AWAIT(COMMAND) },
        { 7, HAS_LEFT(6), TO_END(EIO) });
    assert_true(play.machine.unknown);
}

/* --- lost connections ----------------------------------------------------------------------------------- */

/* The first is repeated at once, then with pauses that double: the same id, so a copy does no harm. */
static void what_was_cut_is_sent_again(void **state)
{
    struct play play = begin();
    (void)state;
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
static void an_answer_ends_the_pauses(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(HARD) },
        { 2, IS_CUT, TO_PARK(22) }, { 22, TIME_PASSES, TO_ASK }, { 22, SENDS, TO_AWAIT(HARD) },
        { 24, QUEUES(900, 23, 0), TO_PARK(925) }, { 925, TIME_PASSES, TO_ASK }, { 925, SENDS, TO_AWAIT(HARD) },
        { 926, IS_CUT, TO_ASK });
    assert_int_equal(play.machine.arrival, 11); /* it brings its place along */
}

static void a_wait_without_a_connection_lasts_until_the_limit(void **state)
{
    struct play play = begin_limited(500), never_sent = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(500) }, { 30, CONNECTS(ENOTCONN), TO_CONNECT(500) },
        { 70, CONNECTS(ENOTCONN), TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_END(ENOTCONN) });
    assert_false(play.machine.unknown);
    RUN(&never_sent, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, IS_CUT_UNSENT, TO_ASK },
        { 1, IS_DOWN, TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_END(ENOTCONN) });
    assert_false(never_sent.machine.unknown);
}

/* Waiting longer would not help. */
static void a_server_that_refuses_us_ends_a_wait_at_once(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 30, CONNECTS(EACCES), TO_END(EACCES) });
}

static void what_was_sent_and_never_confirmed_is_unknown(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, IS_CUT, TO_ASK },
        { 1, IS_DOWN, TO_CONNECT(500) }, { 500, CONNECTS(ETIMEDOUT), TO_CONNECT(900) },
        { 900, CONNECTS(ETIMEDOUT), TO_END(EIO) });
    assert_true(play.machine.unknown);
    assert_int_equal(play.machine.duplicates_until_us, server_us(COMMAND));
}

/* While there is time for an answer it is asked for, also behind the limit. */
static void a_cut_near_the_limit_is_asked_again_while_time_is_left(void **state)
{
    struct play held = begin_limited(500), unknown = begin_limited(500);
    (void)state;
    RUN(&held, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 510, IS_CUT, TO_ASK },
        { 510, SENDS, TO_AWAIT(900) }, { 515, GRANTS(7, 512), TO_END(0) });
    expect_held(&held, (510 + LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&unknown, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 899, IS_CUT, TO_ASK },
        { 899, SENDS, TO_AWAIT(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(unknown.machine.unknown);
}

/* A pause is no reason to return later than promised. */
static void a_pause_ends_with_the_time_that_is_left(void **state)
{
    struct play play = begin_limited(100);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(500) }, { 490, IS_CUT, TO_ASK },
        { 490, SENDS, TO_AWAIT(500) }, { 491, IS_CUT, TO_PARK(500) }, { 500, TIME_PASSES, TO_END(EIO) });
    assert_true(play.machine.unknown);
}

/*
 * An ask that got no answer may still reach the server, up to its deadline. A release answered later than
 * that ends it; one answered before does not.
 */
static void a_release_counts_when_no_copy_can_come_after_it(void **state)
{
    struct play before = begin_limited(400), after = begin_limited(400);
    (void)state;
    RUN(&before, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(800) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(800) },
        { 3, QUEUES(5000, 2, 0), TO_PARK(400) }, { 400, TIME_PASSES, TO_LEAVE }, { 400, SENDS, TO_AWAIT(800) },
        { 402, HAS_LEFT(COMMAND), TO_END(EIO) }); /* at the deadline itself it would still be obeyed */
    assert_true(before.machine.unknown);
    RUN(&after, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(800) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(800) },
        { 3, QUEUES(5000, 2, 0), TO_PARK(400) }, { 400, TIME_PASSES, TO_LEAVE }, { 400, SENDS, TO_AWAIT(800) },
        { 402, HAS_LEFT(COMMAND + 1), TO_END(ETIMEDOUT) });
    assert_false(after.machine.unknown);
}

/* A later answer of the server shows that its clock is past the deadline. */
static void an_answer_after_the_deadline_ends_the_doubt(void **state)
{
    struct play play = begin_limited(1500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(1900) }, { 1, IS_CUT, TO_ASK }, { 1, SENDS, TO_AWAIT(1900) },
        { 3, QUEUES(900, 2, 0), TO_PARK(904) }, { 904, TIME_PASSES, TO_ASK }, { 904, SENDS, TO_AWAIT(1900) },
        { 906, REFUSES(905), TO_LEAVE });
    assert_int_equal(play.machine.duplicates_until_us, 0);
}

/* --- the server does not know the script, or is not fit ------------------------------------------------- */

static void an_unknown_script_is_sent_as_text(void **state)
{
    struct play play = begin(), queued = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 2, SAYS("NOSCRIPT No matching script."), TO_ASK_WITH_TEXT }, { 2, SENDS, TO_AWAIT(HARD) },
        { 4, GRANTS(7, 3), TO_END(0) });
    expect_held(&play, (2 + LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&queued, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT }, { 907, SENDS, TO_AWAIT(HARD) },
        { 909, QUEUES(900, 908, 0), TO_PARK(1810) });
}

/* News that comes between does not make it forget. */
static void news_does_not_hide_that_a_script_is_unknown(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT },
        { 2, HINT_COMES, TO_ASK_WITH_TEXT }, { 2, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 3), TO_END(0) });
}

/* Sent as text there is nothing left to know: asking on would go round as fast as the network lets it. */
static void a_server_that_knows_no_script_is_not_asked_for_ever(void **state)
{
    struct play play = begin(), queued = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT },
        { 2, SENDS, TO_AWAIT(HARD) }, { 4, SAYS("NOSCRIPT"), TO_END(EPROTO) });
    RUN(&queued, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, SAYS("NOSCRIPT"), TO_ASK_WITH_TEXT }, { 907, SENDS, TO_AWAIT(HARD) },
        { 909, SAYS("NOSCRIPT"), TO_LEAVE }, { 909, SENDS, TO_AWAIT(909 + COMMAND) },
        { 911, SAYS("NOSCRIPT"), TO_LEAVE_WITH_TEXT }, { 911, SENDS, TO_AWAIT(909 + COMMAND) },
        { 913, SAYS("NOSCRIPT"), TO_END(EPROTO) });
    assert_true(queued.machine.unknown);
}

/* The server's clock was set: the answer says what it shows now, and the next deadline is right. */
static void a_late_ask_is_asked_again(void **state)
{
    struct play play = begin(), listed = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, IS_LATE(1), TO_ASK },
        { 2, SENDS, TO_AWAIT(HARD) }, { 4, IS_LATE(3), TO_PARK(24) }, { 24, TIME_PASSES, TO_ASK },
        { 24, SENDS, TO_AWAIT(HARD) }, { 26, GRANTS(7, 25), TO_END(0) });
    RUN(&listed, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(490, 2, 0), TO_PARK(495) },
        { 495, TIME_PASSES, TO_ASK }, { 495, SENDS, TO_AWAIT(900) }, { 501, IS_LATE(500), TO_LEAVE });
}

/* What passes is waited for, with pauses that double up to their maximum. */
static void a_server_that_is_not_ready_is_asked_less_and_less_often(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 1, SAYS("LOADING Redis is loading"), TO_PARK(21) }, { 21, TIME_PASSES, TO_ASK },
        { 21, SENDS, TO_AWAIT(HARD) }, { 22, SAYS("LOADING"), TO_PARK(62) }, { 62, TIME_PASSES, TO_ASK },
        { 62, SENDS, TO_AWAIT(HARD) }, { 63, SAYS("BUSY Redis is busy"), TO_PARK(143) }, { 143, TIME_PASSES, TO_ASK },
        { 143, SENDS, TO_AWAIT(HARD) }, { 144, SAYS("OOM command not"), TO_PARK(244) }, { 244, TIME_PASSES, TO_ASK },
        { 244, SENDS, TO_AWAIT(HARD) }, { 245, SAYS("OOM"), TO_PARK(345) }, { 345, TIME_PASSES, TO_ASK },
        { 345, SENDS, TO_AWAIT(HARD) }, { 347, QUEUES(900, 346, 0), TO_PARK(1248) }, { 1248, TIME_PASSES, TO_ASK },
        { 1248, SENDS, TO_AWAIT(HARD) }, { 1249, SAYS("LOADING"), TO_PARK(1269) });
}

static void at_the_limit_the_reason_is_told(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin_limited(500), busy = begin_limited(500), try = begin_try();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) });
        play.step = refuse(&play, 495, table[i].text);
        assert_int_equal(play.step.act, LK__PARK);
        assert_int_equal(play.step.until_us, local_us(500));
        play.step = lk__acquirefsm_tick(&play.machine, local_us(500));
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, table[i].code);
        assert_false(play.machine.unknown);

        /* in the queue already: it leaves */
        RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(400, 2, 0), TO_PARK(405) },
            { 405, TIME_PASSES, TO_ASK }, { 405, SENDS, TO_AWAIT(900) });
        busy.step = refuse(&busy, 490, table[i].text);
        RUN(&busy, { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
        busy.step = let_go(&busy, 501);
        assert_int_equal(busy.step.act, LK__FINISHED);
        assert_int_equal(busy.machine.code, table[i].code);

        /* a try does not wait for better times */
        RUN(&try, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) });
        try.step = refuse(&try, 4, table[i].text);
        assert_int_equal(try.step.act, LK__FINISHED);
        assert_int_equal(try.machine.code, table[i].code);
    }
}

/* It could, meanwhile, and somebody else has it: that is the reason then. */
static void trouble_that_is_over_is_no_reason(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 1, SAYS("LOADING"), TO_PARK(21) },
        { 21, TIME_PASSES, TO_ASK }, { 21, SENDS, TO_AWAIT(900) }, { 24, QUEUES(5000, 22, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 502, HAS_LEFT(501), TO_END(ETIMEDOUT) });
}

/* A rule that stopped the script may have done so in its middle, so that what it did is taken back. */
static void missing_rights_end_a_wait_at_once(void **state)
{
    static const char *const texts[] = { "NOPERM User worker has no permissions", "NOAUTH Authentication required.",
                                         "ERR The user executing the script can't run this command or subcommand" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, texts[i]);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        play.step = let_go(&play, 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, EACCES);
        assert_false(play.machine.unknown);
    }
}

/* A helper key of another type: half of the script may have run, so what it took goes back. */
static void what_stopped_in_its_middle_is_taken_back(void **state)
{
    static const char *const texts[] = { "WRONGTYPE Operation against a key holding the wrong kind of value",
                                         "ERR something new", "" };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, texts[i / 2]);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        if (i % 2 == 0) /* it was the key itself: a release begins with that, and finds no hold of ours */
            play.step = refuse(&play, 6, texts[0]);
        else
            play.step = let_go(&play, 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, EPROTO);
        assert_false(play.machine.unknown);
    }
}

static void what_will_not_pass_ends_a_wait_at_once(void **state)
{
    static const struct {
        const char *text;
        int code;
    } table[] = {
        { "MOVED 3999 127.0.0.1:6381", ENOTSUP },
        { "ASK 3999 127.0.0.1:6381", ENOTSUP },
        { "CROSSSLOT Keys in request don't hash to the same slot", ENOTSUP },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = refuse(&play, 4, table[i].text);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, table[i].code);
        assert_false(play.machine.unknown);
    }
}

static void an_unrecoverable_mutex_ends_a_wait_at_once(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 907, ANSWERS(LK__UNRECOVERABLE, 0, 0, 906, 0), TO_END(ENOTRECOVERABLE) });
    assert_false(play.machine.unknown);
}

/* As many hold it as may: there is nothing to wait for, and nothing to take back. */
static void a_full_lock_ends_a_wait_at_once(void **state)
{
    struct play play = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) },
        { 2, ANSWERS(LK__FULL, 0, 0, 1, 0), TO_END(EAGAIN) });
    assert_false(play.machine.unknown);
}

/* A finished number gets nothing any more: what bears it is given back, and the caller draws another one. */
static void an_overtaken_number_is_given_up(void **state)
{
    struct play play = begin(), unsure = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 2, ANSWERS(LK__OVERTAKEN, 0, 0, 1, 0), TO_LEAVE },
        { 2, SENDS, TO_AWAIT(COMMAND + 2) }, { 4, HAS_LEFT(3), TO_END(ESTALE) });
    assert_false(play.machine.unknown);
    RUN(&unsure, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_CUT, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 3, ANSWERS(LK__OVERTAKEN, 0, 0, 2, 0), TO_END(EIO) });
    assert_true(unsure.machine.unknown);
}

/* --- answers that make no sense ------------------------------------------------------------------------- */

static void an_answer_that_makes_no_sense_is_taken_back(void **state)
{
    const struct lk__asked table[] = {
        asked_of(LK__GRANTED, 0, 0, server_us(2), 0), /* no token */
        asked_of(LK__GRANTED, -7, 0, server_us(2), 0),
        asked_of(LK__GRANTED_OWNERDEAD, 0, 0, server_us(2), 0),
        asked_of(LK__QUEUED, 0, 0, server_us(2), 0), /* no place */
        asked_of(LK__QUEUED, -1, 0, server_us(2), 0),
        asked_of(LK__DONE, 7, 0, server_us(2), 0), /* no verdict on an ask */
        asked_of(LK__GONE, 7, 0, server_us(2), 0),
    };
    enum { ANSWERS = sizeof table / sizeof *table };
    (void)state;
    for (size_t i = 0; i < ANSWERS + 1; i++) { /* the last is no answer at all */
        struct play play = begin();
        RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) });
        play.step = lk__acquirefsm_answered(&play.machine, local_us(4), play.sent_us, i < ANSWERS ? &table[i] : NULL);
        assert_int_equal(play.step.act, LK__LEAVE);
        play.step = send_it(&play, local_us(4), server_us(4));
        play.step = let_go(&play, 5);
        assert_int_equal(play.step.act, LK__FINISHED);
        assert_int_equal(play.machine.code, EPROTO);
        assert_false(play.machine.unknown);
    }
}

static void a_strange_answer_to_the_release_leaves_it_unknown(void **state)
{
    struct play play = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
    play.step = lk__acquirefsm_left(&play.machine, NULL);
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_int_equal(play.machine.code, EPROTO);
    assert_true(play.machine.unknown);
}

/* Once may be an accident of the connection; twice in a row is the server. */
static void bytes_that_cannot_be_read_are_asked_for_once_more(void **state)
{
    struct play play = begin(), spoilt = begin();
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_GARBLED, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 3, GRANTS(7, 2), TO_END(0) });
    RUN(&spoilt, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, IS_GARBLED, TO_ASK },
        { 1, SENDS, TO_AWAIT(HARD) }, { 2, IS_GARBLED, TO_END(EPROTO) });
    assert_true(spoilt.machine.unknown);
}

static void a_refused_release_is_sent_again(void **state)
{
    struct play play = begin_limited(500), stuck = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 501, SAYS("BUSY"), TO_LEAVE },
        { 501, SENDS, TO_AWAIT(900) }, { 502, SAYS("BUSY"), TO_PARK(522) }, { 522, TIME_PASSES, TO_LEAVE },
        { 522, SENDS, TO_AWAIT(900) }, { 524, HAS_LEFT(523), TO_END(ETIMEDOUT) });
    assert_false(play.machine.unknown);
    RUN(&stuck, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) }, { 880, SAYS("BUSY"), TO_LEAVE },
        { 880, SENDS, TO_AWAIT(900) }, { 890, SAYS("BUSY"), TO_PARK(900) }, { 900, TIME_PASSES, TO_END(EIO) });
    assert_true(stuck.machine.unknown);
}

/* Rights taken away meanwhile: we are in the queue still, and "not held" cannot be promised. */
static void a_release_refused_for_good_leaves_it_unknown(void **state)
{
    struct play play = begin_limited(500), unsure = begin_limited(500);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(900) }, { 4, QUEUES(5000, 2, 0), TO_PARK(500) },
        { 500, TIME_PASSES, TO_LEAVE }, { 500, SENDS, TO_AWAIT(900) });
    play.step = refuse(&play, 503, "NOPERM User worker has no permissions");
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_true(play.machine.unknown);
    assert_int_not_equal(play.machine.code, ETIMEDOUT);
    RUN(&unsure, { 490, STARTS, TO_ASK }, { 490, SENDS, TO_AWAIT(900) }, { 491, IS_CUT, TO_ASK },
        { 491, SENDS, TO_AWAIT(900) }, { 501, QUEUES(900, 493, 0), TO_LEAVE }, { 501, SENDS, TO_AWAIT(900) });
    unsure.step = refuse(&unsure, 503, "ERR something new");
    assert_int_equal(unsure.step.act, LK__FINISHED);
    assert_true(unsure.machine.unknown);
}

/* --- giving up ------------------------------------------------------------------------------------------ */

static void a_cancelled_wait_ends_at_once_when_nothing_was_sent(void **state)
{
    struct play fresh = begin(), down = begin(), pausing = begin();
    (void)state;
    RUN(&fresh, { 0, STARTS, TO_ASK }, { 0, CANCELS, TO_END(ECANCELED) });
    RUN(&down, { 0, STARTS, TO_ASK }, { 0, IS_DOWN, TO_CONNECT(LIMIT) }, { 9, CANCELS, TO_END(ECANCELED) });
    RUN(&pausing, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, SAYS("LOADING"), TO_PARK(21) },
        { 9, CANCELS, TO_END(ECANCELED) });
}

static void a_cancelled_waiter_leaves_the_queue(void **state)
{
    struct play parked = begin(), asking = begin(), polling = begin();
    (void)state;
    RUN(&parked, QUEUED_BEHIND(900, 905), { 100, CANCELS, TO_LEAVE }, { 100, SENDS, TO_AWAIT(500) },
        { 102, HAS_LEFT(101), TO_END(ECANCELED) });
    RUN(&asking, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, QUEUES(900, 2, 0), TO_LEAVE }, { 4, SENDS, TO_AWAIT(401) }, { 6, HAS_LEFT(5), TO_END(ECANCELED) });
    RUN(&polling, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, CANCELS, TO_LEAVE });
}

static void what_a_cancelled_waiter_is_granted_goes_back(void **state)
{
    struct play answered = begin(), told = begin(), both = begin();
    (void)state;
    RUN(&answered, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, GRANTS(7, 2), TO_LEAVE }, { 4, SENDS, TO_AWAIT(401) }, { 6, HAS_LEFT(5), TO_END(ECANCELED) });
    RUN(&told, QUEUED_BEHIND(900, 905), { 100, CANCELS, TO_LEAVE }, { 100, GRANT_COMES(99, CLAIM), TO_LEAVE },
        { 100, SENDS, TO_AWAIT(500) }, { 102, HAS_LEFT(101), TO_END(ECANCELED) });
    RUN(&both, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 3, GRANT_COMES(3, CLAIM), TO_AWAIT(401) }, { 4, QUEUES(900, 2, 0), TO_LEAVE });
}

static void a_cancelled_wait_ends_within_a_command_timeout(void **state)
{
    struct play play = begin_limited(NEVER);
    (void)state;
    RUN(&play, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(NEVER) }, { 100, CANCELS, TO_AWAIT(500) },
        { 500, TIME_PASSES, TO_END(EIO) });
    assert_true(play.machine.unknown);
}

/* Also one that is leaving for another reason, and would else wait for its release as long as for the lock. */
static void a_cancelled_leave_ends_within_a_command_timeout(void **state)
{
    struct play play = begin_limited(NEVER);
    (void)state;
    play.step = lk__acquirefsm_start(&play.machine, local_us(0));
    play.step = send_it(&play, local_us(0), server_us(0));
    play.step = refuse(&play, 4, "NOPERM User worker has no permissions");
    assert_int_equal(play.step.act, LK__LEAVE);
    play.step = lk__acquirefsm_unsent(&play.machine, local_us(4));
    assert_int_equal(play.step.act, LK__CONNECT);
    play.step = lk__acquirefsm_cancel(&play.machine, local_us(10), ECANCELED);
    assert_true(play.machine.hard_us <= local_us(10 + COMMAND));
    play.step = lk__acquirefsm_tick(&play.machine, local_us(10 + COMMAND));
    assert_int_equal(play.step.act, LK__FINISHED);
    assert_true(play.machine.unknown);
}

/* Who gave up wants nothing any more: what was not done is not done again. */
static void a_cancelled_wait_asks_no_more(void **state)
{
    struct play late = begin(), unknown = begin(), cut = begin(), unsent = begin();
    (void)state;
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
static void a_cancelled_wait_ends_with_its_own_code(void **state)
{
    struct play refused = begin(), full = begin();
    (void)state;
    RUN(&refused, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 1, CANCELS, TO_AWAIT(401) },
        { 4, SAYS("LOADING"), TO_END(ECANCELED) });
    RUN(&full, QUEUED_BEHIND(900, 905), { 905, TIME_PASSES, TO_ASK }, { 905, SENDS, TO_AWAIT(HARD) },
        { 906, CANCELS, TO_AWAIT(1306) }, { 908, SAYS("OOM"), TO_LEAVE }, { 908, SENDS, TO_AWAIT(1306) },
        { 910, HAS_LEFT(909), TO_END(ECANCELED) });
}

static void what_has_ended_stays_ended(void **state)
{
    struct play held = begin(), busy = begin_try();
    (void)state;
    RUN(&held, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(HARD) }, { 4, GRANTS(7, 2), TO_END(0) },
        { 5, HINT_COMES, TO_END(0) }, { 5, GRANT_COMES(5, CLAIM), TO_END(0) }, { 5, TIME_PASSES, TO_END(0) },
        { 5, CANCELS, TO_END(0) }, { HARD, TIME_PASSES, TO_END(0) }, { HARD, CANCELS, TO_END(0) });
    expect_held(&held, (LEASE - LEASE / 100 - 2) * 1000, false);
    RUN(&busy, { 0, STARTS, TO_ASK }, { 0, SENDS, TO_AWAIT(COMMAND) }, { 4, REFUSES(2), TO_END(EBUSY) },
        { 5, GRANT_COMES(5, CLAIM), TO_END(EBUSY) }, { 5, HINT_COMES, TO_END(EBUSY) }, { 5, CANCELS, TO_END(EBUSY) },
        { HARD, TIME_PASSES, TO_END(EBUSY) });
}

/* --- anything may happen -------------------------------------------------------------------------------- */

enum { SEQUENCES = 100000, EVENTS_MAX = 300, COPIES_MAX = 16, STEP_MAX_US = 60000 };

/* A request of a connection that is gone; the server may still read it. */
struct copy {
    bool ask;
    int64_t deadline_us;
};

/* One acquire, and the world it lives in. */
struct life {
    int number;
    struct play play;
    int64_t now_us;

    /* the server: whose clock runs up to 0.9 % faster or slower than ours */
    double rate;
    bool queued;           /* we are in the queue */
    bool busy;             /* somebody else holds it */
    int64_t ours_until_us; /* server's clock; 0: it is not ours */
    uint64_t token;

    /* the network */
    bool up;
    bool asking; /* what flies is an ask */
    bool text;   /* and was sent as the script's text */
    int64_t clock_before_us, clock_server_us;
    struct copy copies[COPIES_MAX];
    int copy_count;
    struct lk__grant mail; /* a message on its way; server_us 0: none */

    bool cancelled, released;
    int64_t bound_us; /* the call returns by then */
};

static bool once_in(uint64_t n)
{
    return drawn(n) == 0;
}

static int64_t server_at(const struct life *life, int64_t at_us)
{
    return SERVER_BEGAN_US + (int64_t)((double)(at_us - BEGAN_US) * life->rate);
}

static int64_t server_now(const struct life *life)
{
    return server_at(life, life->now_us);
}

/* Redis counts leases in whole milliseconds of a clock that it rounds down. */
static int64_t lease_end(const struct life *life, int64_t lease_ms)
{
    return (server_now(life) / 1000 + lease_ms) * 1000;
}

static bool is_ours(const struct life *life)
{
    return life->ours_until_us > server_now(life);
}

static struct lk__asked obey_ask(struct life *life, int64_t deadline_us)
{
    int64_t now_us = server_now(life);
    bool ours = is_ours(life);
    if (now_us > deadline_us)
        return asked_of(LK__LATE, 0, 0, now_us, 0);
    if (ours || !life->busy) {
        life->ours_until_us = lease_end(life, life->play.machine.lease_ms);
        life->queued = false;
        life->token += !ours;
        return asked_of(LK__GRANTED, (int64_t)life->token, 0, now_us, 0);
    }
    int64_t left_ms = (int64_t)drawn(3000);
    if (life->play.machine.try_only)
        return asked_of(LK__BUSY, 0, left_ms, now_us, 0);
    life->queued = true;
    return asked_of(LK__QUEUED, 11, left_ms, now_us, (int64_t)drawn(4));
}

static struct lk__answer obey_release(struct life *life)
{
    bool ours = is_ours(life);
    life->ours_until_us = 0;
    life->queued = false;
    return (struct lk__answer){ ours ? LK__DONE : LK__GONE, server_now(life) };
}

/* What others do: they take it and give it back, also to us. */
static void let_others_act(struct life *life)
{
    if (is_ours(life) || !once_in(4))
        return;
    life->busy = !life->busy;
    if (life->busy || !life->queued)
        return;
    life->ours_until_us = lease_end(life, CLAIM);
    life->queued = false;
    life->token++;
    if (!once_in(8)) /* or the message gets lost */
        life->mail = (struct lk__grant){ server_now(life), CLAIM, life->token, false };
}

static void let_a_copy_arrive(struct life *life)
{
    if (life->copy_count == 0 || !once_in(3))
        return;
    struct copy copy = life->copies[--life->copy_count];
    if (copy.ask)
        obey_ask(life, copy.deadline_us);
    else
        obey_release(life);
}

/* Let time pass, but not beyond `until_us`. */
static void pass(struct life *life, int64_t us, int64_t until_us)
{
    life->now_us = until_us - life->now_us < us ? until_us : life->now_us + us;
    let_others_act(life);
    let_a_copy_arrive(life);
}

static struct lk__step connection_breaks(struct life *life)
{
    static const enum lk__request_state states[] = { LK__CUT, LK__CUT, LK__GARBLED, LK__UNSENT };
    struct lk__acquirefsm *a = &life->play.machine;
    enum lk__request_state how = states[drawn(4)];
    life->up = false;
    if (how != LK__UNSENT) {
        if (life->copy_count < COPIES_MAX && once_in(2))
            life->copies[life->copy_count++] = (struct copy){ life->asking, a->deadline_us };
        else if (once_in(2) && life->asking)
            obey_ask(life, a->deadline_us);
        else if (!life->asking)
            obey_release(life);
    }
    return lk__acquirefsm_cut(a, life->now_us, how);
}

/* The answer of a server that cannot now; it did nothing, or what a rule let it do. */
static const char *refusal(struct life *life)
{
    static const char *const texts[] = { "LOADING", "OOM", "BUSY", "NOSCRIPT", "NOSCRIPT", "NOPERM" };
    const char *text = texts[drawn(life->asking ? 6 : 5)];
    if (strcmp(text, "NOSCRIPT") == 0 && life->text) /* it is told the script and knows it */
        text = "BUSY";
    if (text[0] == 'N' && text[2] == 'P' && life->busy && !life->play.machine.try_only)
        life->queued = true;
    return text;
}

/* Others may have the server answer them on the way. */
static void answer_travels(struct life *life)
{
    pass(life, (int64_t)drawn(STEP_MAX_US / 10), life->play.step.until_us);
    life->play.machine.unsubscribed = once_in(20);
}

static struct lk__step ask_is_answered(struct life *life)
{
    struct lk__asked asked = obey_ask(life, life->play.machine.deadline_us);
    bool garbled = once_in(100);
    answer_travels(life);
    if (garbled)
        return lk__acquirefsm_answered(&life->play.machine, life->now_us, life->play.sent_us, NULL);
    life->clock_before_us = life->play.sent_us;
    life->clock_server_us = asked.server_us;
    return answer(&life->play, life->now_us, asked);
}

static struct lk__step release_is_answered(struct life *life)
{
    struct lk__answer left = obey_release(life);
    answer_travels(life);
    return lk__acquirefsm_left(&life->play.machine, &left);
}

static struct lk__step server_answers(struct life *life)
{
    if (!once_in(8))
        return life->asking ? ask_is_answered(life) : release_is_answered(life);
    const char *text = refusal(life);
    answer_travels(life);
    return lk__acquirefsm_refused(&life->play.machine, life->now_us, error_of(text));
}

static struct lk__step somebody_cancels(struct life *life)
{
    if (!life->cancelled && life->bound_us > life->now_us + COMMAND * 1000)
        life->bound_us = life->now_us + COMMAND * 1000;
    life->cancelled = true;
    return lk__acquirefsm_cancel(&life->play.machine, life->now_us, ECANCELED);
}

/* What may come in whatever is done; false: nothing did. */
static bool something_comes(struct life *life, struct lk__step *step)
{
    struct lk__acquirefsm *a = &life->play.machine;
    if (life->mail.server_us != 0 && once_in(3)) {
        struct lk__grant mail = life->mail;
        life->mail.server_us = 0;
        *step = lk__acquirefsm_granted(a, life->now_us, &mail);
    } else if (once_in(10)) {
        *step = lk__acquirefsm_hinted(a, life->now_us);
    } else if (once_in(60)) {
        *step = somebody_cancels(life);
    } else {
        return false;
    }
    return true;
}

static struct lk__step carry_out(struct life *life, struct lk__step step)
{
    struct lk__acquirefsm *a = &life->play.machine;
    switch (step.act) {
    case LK__ASK:
    case LK__LEAVE:
        if (life->released && step.act == LK__ASK)
            fail_msg("sequence %d: it asks after its release", life->number);
        if (!life->up)
            return lk__acquirefsm_unsent(a, life->now_us);
        life->asking = step.act == LK__ASK;
        life->text = step.eval;
        life->released |= !life->asking;
        return send_it(&life->play, life->now_us, life->clock_server_us + (life->now_us - life->clock_before_us));
    case LK__AWAIT:
        pass(life, (int64_t)drawn(STEP_MAX_US), step.until_us);
        if (something_comes(life, &step))
            return step;
        if (once_in(6))
            return connection_breaks(life);
        return once_in(4) ? lk__acquirefsm_tick(a, life->now_us) : server_answers(life);
    case LK__CONNECT:
        pass(life, (int64_t)drawn(STEP_MAX_US), step.until_us);
        if (something_comes(life, &step))
            return step;
        if (once_in(4))
            return lk__acquirefsm_unsent(a, life->now_us);
        life->up = once_in(2);
        return lk__acquirefsm_connected(a, life->now_us,
                                        life->up                        ? 0
                                        : life->now_us >= step.until_us ? ETIMEDOUT
                                                                        : ENOTCONN);
    default:
        pass(life, once_in(3) ? (int64_t)drawn(STEP_MAX_US) : 3000000, step.until_us);
        if (something_comes(life, &step))
            return step;
        return lk__acquirefsm_tick(a, life->now_us);
    }
}

static void expect_sane_step(const struct life *life)
{
    const struct lk__step *step = &life->play.step;
    bool waits = step->act == LK__AWAIT || step->act == LK__CONNECT || step->act == LK__PARK;
    if (waits && step->until_us > life->bound_us)
        fail_msg("sequence %d: %s until %lld us after the last moment", life->number, act_name(step->act),
                 (long long)(step->until_us - life->bound_us));
    if (waits && step->until_us < life->now_us)
        fail_msg("sequence %d: %s until a moment in the past", life->number, act_name(step->act));
}

static void expect_true_end(const struct life *life)
{
    const struct lk__acquirefsm *a = &life->play.machine;
    if (life->now_us > life->bound_us)
        fail_msg("sequence %d: ends too late", life->number);
    if (a->code == 0 || a->code == EOWNERDEAD) {
        if (a->valid_until_us <= life->now_us || a->unknown || life->released)
            fail_msg("sequence %d: held, but no longer valid", life->number);
        if (life->ours_until_us < server_at(life, a->valid_until_us))
            fail_msg("sequence %d: valid for longer than the server says", life->number);
        if (a->token != life->token)
            fail_msg("sequence %d: another token than the server gave", life->number);
        return;
    }
    if (a->unknown) {
        if (a->code != EIO && a->code != EPROTO)
            fail_msg("sequence %d: unknown, but %s", life->number, code_name(a->code));
        return;
    }
    if (a->code == EIO)
        fail_msg("sequence %d: known, but EIO", life->number);
    if (is_ours(life) || life->queued)
        fail_msg("sequence %d: %s, but the server has it", life->number, code_name(a->code));
    if (a->sent)
        fail_msg("sequence %d: %s, but its last request is under way", life->number, code_name(a->code));
    for (int i = 0; i < life->copy_count; i++)
        if (life->copies[i].ask && life->copies[i].deadline_us >= server_now(life))
            fail_msg("sequence %d: %s, but a copy may still come", life->number, code_name(a->code));
}

static void live(int number, int *ends)
{
    struct life life = { .number = number, .now_us = BEGAN_US, .token = 1, .busy = true, .up = true };
    struct lk__acquirefsm *a = &life.play.machine;
    seed = (uint64_t)number * 0x9e3779b97f4a7c15ULL + 1;
    life.play = once_in(4) ? begin_try() : begin_limited(once_in(4) ? NEVER : (int64_t)drawn(1500));
    a->lease_ms = once_in(4) ? 300 : LEASE;
    a->lease_ms = a->lease_ms < CLAIM && !a->try_only ? CLAIM : a->lease_ms; /* a claim is never longer */
    life.rate = 0.991 + (double)drawn(18001) / 1e6;
    life.busy = !once_in(3);
    life.up = !once_in(5);
    life.clock_before_us = BEGAN_US;
    life.clock_server_us = server_at(&life, BEGAN_US) + (int64_t)drawn(5000);
    life.bound_us = a->limit_us == LK__NEVER ? LK__NEVER
                    : a->limit_us > BEGAN_US ? a->limit_us + COMMAND * 1000
                                             : BEGAN_US + COMMAND * 1000;
    life.play.step = lk__acquirefsm_start(a, life.now_us);
    for (int event = 0; life.play.step.act != LK__FINISHED; event++) {
        if (event == EVENTS_MAX) /* it must end, whatever else happens */
            life.play.step = somebody_cancels(&life);
        else if (event > 2 * EVENTS_MAX + COMMAND * 1000)
            fail_msg("sequence %d: does not end", number);
        else
            life.play.step = carry_out(&life, life.play.step);
        expect_sane_step(&life);
    }
    expect_true_end(&life);
    ends[a->unknown ? 2 : a->code != 0]++;
}

static void whatever_happens_the_outcome_is_true_and_in_time(void **state)
{
    int ends[3] = { 0 };
    (void)state;
    draws = ANY;
    for (int number = 1; number <= SEQUENCES; number++)
        live(number, ends);
    /* or it would prove nothing */
    for (int i = 0; i < 3; i++)
        assert_true(ends[i] > SEQUENCES / 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, middle_draws)
    const struct CMUnitTest tests[] = {
        TEST(a_free_lock_is_held_after_one_answer),
        TEST(a_dead_holder_is_told_of),
        TEST(validity_counts_from_before_the_request_was_sent),
        TEST(an_answer_slower_than_the_lease_is_asked_again),
        TEST(a_queued_waiter_is_held_by_a_message),
        TEST(a_grant_may_overtake_the_answer_that_queued_us),
        TEST(a_grant_older_than_the_answer_is_dropped),
        TEST(a_grant_that_cannot_be_used_is_a_hint),
        TEST(a_grant_is_good_until_its_last_microsecond),
        TEST(a_grant_outlives_the_connection_of_a_poll),
        TEST(a_claim_is_no_longer_than_what_a_copy_asks_for),
        TEST(a_grant_that_came_beats_a_limit_that_passed),
        TEST(a_grant_beats_the_limit_of_a_poll_under_way),
        TEST(a_grant_to_be_confirmed_is_asked_for_after_the_limit),
        TEST(a_grant_does_not_hold_one_that_was_cancelled),
        TEST(how_long_a_waiter_sleeps_depends_on_its_place),
        TEST(naps_are_spread_by_a_fifth_to_either_side),
        TEST(a_hint_brings_the_next_ask_forward),
        TEST(a_hint_during_an_ask_is_kept_for_after_it),
        TEST(a_flood_of_hints_causes_few_asks),
        TEST(a_flood_of_hints_spares_a_server_that_refuses),
        TEST(a_waiter_leaves_the_queue_at_its_limit),
        TEST(a_waiter_that_slept_through_its_limit_leaves),
        TEST(nothing_stops_a_waiter_that_leaves),
        TEST(an_ask_under_way_at_the_limit_is_awaited),
        TEST(a_release_that_is_not_answered_leaves_it_unknown),
        TEST(without_a_limit_a_wait_goes_on),
        TEST(a_try_ends_with_its_answer),
        TEST(a_try_asks_again_what_got_no_answer),
        TEST(a_try_without_a_server_says_so),
        TEST(a_busy_try_leaves_when_a_copy_may_come),
        TEST(what_was_cut_is_sent_again),
        TEST(an_answer_ends_the_pauses),
        TEST(a_wait_without_a_connection_lasts_until_the_limit),
        TEST(a_server_that_refuses_us_ends_a_wait_at_once),
        TEST(what_was_sent_and_never_confirmed_is_unknown),
        TEST(a_cut_near_the_limit_is_asked_again_while_time_is_left),
        TEST(a_pause_ends_with_the_time_that_is_left),
        TEST(a_release_counts_when_no_copy_can_come_after_it),
        TEST(an_answer_after_the_deadline_ends_the_doubt),
        TEST(an_unknown_script_is_sent_as_text),
        TEST(news_does_not_hide_that_a_script_is_unknown),
        TEST(a_server_that_knows_no_script_is_not_asked_for_ever),
        TEST(a_late_ask_is_asked_again),
        TEST(a_server_that_is_not_ready_is_asked_less_and_less_often),
        TEST(at_the_limit_the_reason_is_told),
        TEST(trouble_that_is_over_is_no_reason),
        TEST(missing_rights_end_a_wait_at_once),
        TEST(what_stopped_in_its_middle_is_taken_back),
        TEST(what_will_not_pass_ends_a_wait_at_once),
        TEST(an_unrecoverable_mutex_ends_a_wait_at_once),
        TEST(a_full_lock_ends_a_wait_at_once),
        TEST(an_overtaken_number_is_given_up),
        TEST(an_answer_that_makes_no_sense_is_taken_back),
        TEST(a_strange_answer_to_the_release_leaves_it_unknown),
        TEST(bytes_that_cannot_be_read_are_asked_for_once_more),
        TEST(a_refused_release_is_sent_again),
        TEST(a_release_refused_for_good_leaves_it_unknown),
        TEST(a_cancelled_wait_ends_at_once_when_nothing_was_sent),
        TEST(a_cancelled_waiter_leaves_the_queue),
        TEST(what_a_cancelled_waiter_is_granted_goes_back),
        TEST(a_cancelled_wait_ends_within_a_command_timeout),
        TEST(a_cancelled_leave_ends_within_a_command_timeout),
        TEST(a_cancelled_wait_asks_no_more),
        TEST(a_cancelled_wait_ends_with_its_own_code),
        TEST(what_has_ended_stays_ended),
        TEST(whatever_happens_the_outcome_is_true_and_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
