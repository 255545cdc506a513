/* SPDX-License-Identifier: MIT */
/*
 * machine.h - tables of what happens to an acquire, and what is to be done next
 *
 * The machine reads no clock and sends nothing, so each case is a table: at this moment that happens, and
 * that is to be done next. Times are milliseconds since the call began; the server's clock shows the same.
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

#include "assert_lk.h"
#include "acquire/fsm.h"

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

static inline int64_t local_us(int64_t ms)
{
    return ms == NEVER ? LK__NEVER : BEGAN_US + ms * 1000;
}

static inline int64_t server_us(int64_t ms)
{
    return SERVER_BEGAN_US + ms * 1000;
}

/* --- random.c of this program: jitter that a table can count on ----------------------------------------- */

static enum { MIDDLE, LEAST, MOST, ANY } draws = MIDDLE; /* before each test */
static uint64_t seed = 1;

/* xorshift64* */
static inline uint64_t drawn(uint64_t bound)
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
static inline struct lk__asked asked_of(enum lk__verdict verdict, int64_t number, int64_t left_ms, int64_t told_us,
                                        int64_t place)
{
    bool granted = verdict == LK__GRANTED || verdict == LK__GRANTED_OWNERDEAD;
    return (struct lk__asked){ .verdict = verdict,
                               .server_us = told_us,
                               .token = granted ? number : 0,
                               .arrival = granted ? 0 : number,
                               .left_ms = left_ms,
                               .place = place,
                               .refused = verdict == LK__DISAGREES && place != 0 };
}

static inline struct lk__reply *error_of(const char *text)
{
    static struct lk__reply reply;
    static char memory[256];
    snprintf(memory, sizeof memory, "%s", text);
    static struct lk__value value;
    value = (struct lk__value){ .type = LK__ERROR, .length = strlen(text) };
    reply = (struct lk__reply){ .type = LK__ERROR, .count = 1, .most = 1, .values = &value, .text = memory };
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
    unsigned epoch; /* of the server that it happens at */
};

/* What happens ... */
#define STARTS .event = START
#define SENDS .event = SEND /* the ask or release that is due */
#define ANSWERS(verdict, number, left_ms, server_ms, place)                                                            \
    .event = ANSWER, .numbers = { verdict, number, left_ms, server_ms, place }
#define GRANTS(token, server_ms) ANSWERS(LK__GRANTED, token, 0, server_ms, 0)
#define QUEUES(left_ms, server_ms, place) ANSWERS(LK__QUEUED, 11, left_ms, server_ms, place)
#define REFUSES(server_ms) ANSWERS(LK__BUSY, 0, 900, server_ms, 0)
#define DISAGREES(server_ms) ANSWERS(LK__DISAGREES, 0, 0, server_ms, 0)
#define BARS(server_ms) ANSWERS(LK__DISAGREES, 0, 0, server_ms, 1)
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

/* At another server than the first one. */
#define OF_EPOCH(number) .epoch = number

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
    int64_t sent_us, deadline_us; /* of the last request, of the last ask */
    unsigned epoch;               /* of the server that the present row happens at */
    enum lk__marking marking;     /* of the last ask */
    enum lk__manner manner;       /* of the next request */
};

static inline struct lk__acquirefsm_settings limited(int64_t limit_ms)
{
    return (struct lk__acquirefsm_settings){ .limit_us = local_us(limit_ms),
                                             .lease_ms = LEASE,
                                             .poll_ms = POLL,
                                             .liveness_ms = LIVENESS,
                                             .command_us = COMMAND * 1000,
                                             .retry_min_ms = PAUSE,
                                             .retry_max_ms = PAUSE_MAX };
}

static inline struct lk__acquirefsm_settings trying(void)
{
    struct lk__acquirefsm_settings settings = limited(LIMIT);
    settings.limit_us = 0;
    settings.try_only = true;
    return settings;
}

static inline struct play begin_as(struct lk__acquirefsm_settings settings)
{
    struct play play = { .sent_us = 0 };
    lk__acquirefsm_init(&play.machine, &settings);
    play.machine.heard = true;
    return play;
}

static inline struct play begin_limited(int64_t limit_ms)
{
    return begin_as(limited(limit_ms));
}

static inline struct play begin(void)
{
    return begin_limited(LIMIT);
}

static inline struct play begin_leased(int64_t lease_ms)
{
    struct lk__acquirefsm_settings settings = limited(LIMIT);
    settings.lease_ms = lease_ms;
    return begin_as(settings);
}

static inline struct play begin_try(void)
{
    return begin_as(trying());
}

static inline const struct lk__acquirefsm_result *result_of(const struct play *play)
{
    return &play->machine.result;
}

/* As wait.c does it. */
static inline struct lk__step send_it(struct play *play, int64_t now_us, int64_t server_now_us)
{
    assert_true(play->step.act == LK__ASK || play->step.act == LK__LEAVE);
    if (play->step.act == LK__ASK) {
        play->deadline_us = server_now_us + COMMAND * 1000;
        play->marking = play->machine.marking;
    }
    play->sent_us = now_us;
    return lk__acquirefsm_sent(&play->machine, now_us,
                               &(struct lk__until){ { play->deadline_us, play->epoch }, now_us + COMMAND * 1000 });
}

/* The ask is answered so. */
static inline struct lk__step answer(struct play *play, int64_t now_us, struct lk__asked asked)
{
    asked.epoch = play->epoch;
    play->manner = LK__BY_SHA1;
    return lk__acquirefsm_answered(&play->machine, now_us, play->sent_us, &asked);
}

/* The release is answered. */
static inline struct lk__step let_go(struct play *play, int64_t now_us, int64_t server_ms)
{
    return lk__acquirefsm_left(&play->machine, now_us, play->epoch,
                               &(struct lk__answer){ LK__DONE, server_us(server_ms), 0 });
}

/* A server by itself answers what the machine had sent last. */
static inline struct lk__step refuse_at(struct play *play, int64_t now_us, const char *text)
{
    static struct lk__node alone;
    static struct lk__conn conn = { .server = &alone.server };
    struct lk__request request = { .state = LK__ANSWERED, .conn = &conn, .manner = play->manner };
    lk__request_take(&request, error_of(text));
    play->manner = request.manner;
    return lk__acquirefsm_refused(&play->machine, now_us, &request.judged);
}

static inline struct lk__step refuse(struct play *play, int64_t at_ms, const char *text)
{
    return refuse_at(play, local_us(at_ms), text);
}

static inline struct lk__step happens(struct play *play, const struct row *row)
{
    struct lk__acquirefsm *a = &play->machine;
    int64_t now_us = local_us(row->at_ms);
    const int64_t *n = row->numbers;
    play->epoch = row->epoch;
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
        return let_go(play, now_us, n[0]);
    case CUT:
        return lk__acquirefsm_cut(a, now_us, (enum lk__request_state)n[0]);
    case UNSENT:
        return lk__acquirefsm_unsent(a, now_us);
    case CONNECTED:
        return lk__acquirefsm_connected(a, now_us, (int)n[0]);
    case GRANT:
        return lk__acquirefsm_granted(a, now_us, &(struct lk__grant){ server_us(n[0]), n[1], 7, false, row->epoch });
    case HINT:
        return lk__acquirefsm_hinted(a, now_us);
    case CANCEL:
        return lk__acquirefsm_cancel(a, now_us, (int)n[0]);
    default:
        return lk__acquirefsm_tick(a, now_us);
    }
}

static inline const char *act_name(enum lk__act act)
{
    static const char *const names[] = { "ask", "leave", "await", "connect", "park", "done" };
    return names[act];
}

static inline void expect_step(const struct play *play, int number, const struct row *row)
{
    struct lk__step step = play->step;
    bool as_text = (step.act == LK__ASK || step.act == LK__LEAVE) && play->manner == LK__BY_TEXT;
    int64_t value = 0, expected = row->value;
    if (step.act == LK__FINISHED)
        value = result_of(play)->code;
    else if (step.act != LK__ASK && step.act != LK__LEAVE)
        value = step.until_us == LK__NEVER ? NEVER : step.until_us - BEGAN_US;
    if (row->act != LK__FINISHED && expected != NEVER)
        expected *= 1000;
    if (step.act != row->act || value != expected || as_text != row->eval)
        fail_msg("row %d, at %lld ms: %s %lld%s, but expected %s %lld%s", number, (long long)row->at_ms,
                 act_name(step.act), (long long)value, as_text ? " with text" : "", act_name(row->act),
                 (long long)expected, row->eval ? " with text" : "");
}

static inline void run(struct play *play, const struct row *rows, size_t count)
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

static inline void expect_held(const struct play *play, int64_t valid_us, bool claimed)
{
    assert_true(result_of(play)->code == 0 || result_of(play)->code == EOWNERDEAD);
    assert_int_equal(result_of(play)->valid_until_us - BEGAN_US, valid_us);
    assert_int_equal(result_of(play)->token, 7);
    assert_int_equal(result_of(play)->claimed, claimed);
    assert_false(result_of(play)->unknown);
}

/* Before each test: `return plain_run_with(middle_draws, this, that);` in main(). */
static inline int middle_draws(void **state)
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

#endif
