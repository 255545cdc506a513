/* SPDX-License-Identifier: MIT */
/*
 * checker_test.c - the soak's checker finds what is wrong in histories made by hand, and nothing in good ones
 *
 * Times are milliseconds here. A lease is 1000 of them, a command timeout 200, the slack 400.
 */
#include "assert_lk.h"
#include "check.h"

#include <string.h>

#define MUTEX_0 object_of(MUTEX, 0)
#define FAIR_0 object_of(FAIR, 0)
#define ROBUST_0 object_of(ROBUST, 0)
#define CAPPED_0 object_of(CAPPED, 0)
#define FORCED_0 object_of(FORCED, 0)
#define RWLOCK_0 object_of(RWLOCK, 0)
#define NONREENTRANT object_of(RWLOCK, 1)
#define COUNTING_0 object_of(COUNTING, 0)
#define GROWN_0 object_of(GROWN, 0)
#define PASSING_0 object_of(PASSING, 0)
#define LEASED_0 object_of(LEASED, 0)
#define RESIZED_0 object_of(RESIZED, 0)
#define REMOVED_0 object_of(REMOVED, 0)
#define LATCH_0 object_of(LATCH, 0)
#define BUFFER_0 object_of(BUFFER, 0)
#define BARRIER_0 object_of(BARRIER, 0) /* of two */
#define BARRIER_1 object_of(BARRIER, 1) /* of three */
#define ONCE_0 object_of(ONCE, 0)

struct scene {
    struct history history;
    struct report report;
    uint32_t holds;
};

static struct scene scene;

static void begin(void)
{
    history_free(&scene.history);
    scene = (struct scene){ .history = { .lease_ms = 1000, .command_ms = 200, .slack_ms = 400 } };
}

static int64_t at(int64_t ms)
{
    return ms == 0 ? 0 : (1000000 + ms) * NS_PER_MS;
}

static struct record *add(enum op op, int process, uint32_t object, int64_t invoke, int64_t returned, int code)
{
    struct record record = { .invoke_ns = at(invoke),
                             .return_ns = at(returned),
                             .object = object,
                             .process = (uint16_t)process,
                             .hold = scene.holds,
                             .permits = 1,
                             .code = (int16_t)code,
                             .op = (uint8_t)op };
    history_record(&scene.history, &record);
    return &scene.history.records[scene.history.count - 1];
}

static struct record *take(int process, uint32_t object, int64_t invoke, int64_t returned, int64_t valid, int token)
{
    scene.holds++;
    struct record *record = add(OP_TAKE, process, object, invoke, returned, 0);
    record->valid_ns = at(valid);
    record->token = (uint64_t)token;
    record->limit_ms = 5000;
    return record;
}

static void give(int process, uint32_t object, int64_t invoke, int code)
{
    add(OP_GIVE, process, object, invoke, invoke + 1, code);
}

/* A hold from `returned` to `given`. */
static struct record *held(int process, uint32_t object, int64_t invoke, int64_t returned, int64_t given, int token)
{
    struct record *record = take(process, object, invoke, returned, returned + 900, token);
    give(process, object, given, 0);
    return record == &scene.history.records[scene.history.count - 2] ? record
                                                                     : &scene.history.records[scene.history.count - 2];
}

static struct record *open_and_close(int process, int64_t opened, int64_t closed)
{
    add(OP_OPEN, process, 0, opened, opened + 1, 0);
    return add(OP_CLOSE, process, 0, closed, closed + 1, 0);
}

static void happened(enum fault_kind kind, int process, int64_t begin_ms, int64_t end_ms)
{
    struct fault fault = { .kind = kind, .process = process, .begin_ns = at(begin_ms), .end_ns = at(end_ms) };
    history_fault(&scene.history, &fault);
}

static void found(int count, enum invariant invariant, int line)
{
    history_join(&scene.history);
    check_all(&scene.report, &scene.history);
    if (scene.report.violations[invariant] != count || scene.report.total != count) {
        scene.report.out = stderr;
        memset(scene.report.violations, 0, sizeof scene.report.violations);
        scene.report.total = 0;
        check_all(&scene.report, &scene.history);
        assert_failed(__FILE__, line, "%d violations of %s and %d in all, not %d", scene.report.violations[invariant],
                      invariant_name(invariant), scene.report.total, count);
    }
    begin();
}

#define finds(invariant) found(1, (invariant), __LINE__)
#define finds_nothing() found(0, I1, __LINE__)

static int scene_setup(void **state)
{
    (void)state;
    begin();
    return 0;
}

/* --- I1, I6, I7 ------------------------------------------------------------------------------------- */

static void one_after_the_other_is_fine(void)
{
    held(0, MUTEX_0, 10, 20, 30, 1);
    held(1, MUTEX_0, 15, 31, 40, 2);
    finds_nothing();
}

static void two_holders_at_once_are_found(void)
{
    held(0, MUTEX_0, 10, 20, 30, 1);
    held(1, MUTEX_0, 15, 29, 40, 2);
    finds(I1);
}

static void a_dead_holder_keeps_others_out_until_its_validity_ends(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    held(1, MUTEX_0, 15, 901, 950, 2);
    finds_nothing();
    take(0, MUTEX_0, 10, 20, 900, 1);
    held(1, MUTEX_0, 15, 899, 950, 2);
    finds(I1);
}

static void what_a_renewal_added_counts(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_CHECK, 0, MUTEX_0, 500, 501, 0)->valid_ns = at(1400);
    held(1, MUTEX_0, 15, 1000, 1001, 2);
    finds(I1);
}

static void a_loss_of_data_excuses_old_against_new_for_a_lease(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    happened(LOSE_DATA, EVERYBODY, 100, 200);
    held(1, MUTEX_0, 210, 220, 230, 2);
    finds_nothing();
}

static void two_losses_of_data_excuse_three_holds(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    happened(FLUSH_DATA, EVERYBODY, 100, 101);
    take(1, MUTEX_0, 110, 120, 1000, 2);
    happened(FLUSH_DATA, EVERYBODY, 200, 201);
    held(2, MUTEX_0, 210, 220, 230, 3);
    finds_nothing();
    take(0, MUTEX_0, 10, 20, 900, 1);
    happened(FLUSH_DATA, EVERYBODY, 100, 101);
    take(1, MUTEX_0, 110, 120, 1000, 2);
    held(2, MUTEX_0, 210, 220, 230, 3);
    finds(I1);
}

static void who_is_told_of_a_loss_holds_no_more(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_CHECK, 0, MUTEX_0, 30, 31, ESTALE);
    held(2, MUTEX_0, 10, 32, 33, 3);
    finds_nothing();
}

static void a_loss_of_data_excuses_no_overlap_of_new_holds(void)
{
    happened(LOSE_DATA, EVERYBODY, 100, 200);
    held(0, MUTEX_0, 205, 210, 250, 2);
    held(1, MUTEX_0, 210, 220, 230, 3);
    finds(I1);
}

static void a_loss_of_data_excuses_nothing_a_lease_later(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    happened(LOSE_DATA, EVERYBODY, 100, 200);
    add(OP_CHECK, 0, MUTEX_0, 1000, 1001, 0)->valid_ns = at(1900);
    held(1, MUTEX_0, 1300, 1310, 1320, 2);
    finds(I1);
}

/* Two servers may grant while one replaces the other, and who was robbed finds out within B_see. */
static void a_failover_excuses_an_overlap_for_a_while(void)
{
    happened(CUT_MASTER, EVERYBODY, 100, 2000);
    held(0, MUTEX_0, 200, 210, 900, 2);
    held(1, MUTEX_0, 300, 310, 800, 3);
    finds_nothing();
    happened(CUT_MASTER, EVERYBODY, 100, 2000);
    take(0, MUTEX_0, 1900, 1910, 2900, 4);
    held(1, MUTEX_0, 1950, 1960, 2500, 5);
    finds_nothing();
    happened(CUT_MASTER, EVERYBODY, 100, 2000);
    take(0, MUTEX_0, 1900, 1910, 9000, 2);
    take(1, MUTEX_0, 1950, 1960, 9000, 3);
    finds(I1);
    happened(KILL_SENTINEL, EVERYBODY, 100, 2000);
    held(0, MUTEX_0, 200, 210, 900, 2);
    held(1, MUTEX_0, 300, 310, 800, 3);
    finds(I1);
}

/* Whatever servers do, the resource takes no write of before after one of later. */
static void a_stale_write_that_is_accepted_is_found(void)
{
    happened(CUT_MASTER, EVERYBODY, 100, 2000);
    add(OP_WRITE, 0, MUTEX_0, 300, 301, 0)->token = 5;
    add(OP_WRITE, 1, MUTEX_0, 300, 302, 0)->token = 4;
    add(OP_WRITE, 1, MUTEX_0, 303, 304, 0)->token = 6;
    finds_nothing();
    happened(CUT_MASTER, EVERYBODY, 100, 2000);
    add(OP_WRITE, 0, MUTEX_0, 300, 301, 0)->token = 5;
    add(OP_WRITE, 1, MUTEX_0, 302, 303, 0)->token = 4;
    finds(I3);
}

static void readers_share_and_a_writer_does_not(void)
{
    held(0, RWLOCK_0, 10, 20, 60, 0)->op = OP_SHARE;
    held(1, RWLOCK_0, 10, 20, 60, 0)->op = OP_SHARE;
    held(2, RWLOCK_0, 10, 61, 70, 1);
    finds_nothing();
    held(0, RWLOCK_0, 10, 20, 60, 0)->op = OP_SHARE;
    held(2, RWLOCK_0, 10, 59, 70, 1);
    finds(I6);
    held(2, RWLOCK_0, 10, 20, 60, 1);
    held(0, RWLOCK_0, 10, 59, 70, 0)->op = OP_SHARE;
    finds(I6);
}

static void a_downgrade_lets_readers_in_and_no_writer(void)
{
    take(0, RWLOCK_0, 10, 20, 900, 1);
    add(OP_DOWNGRADE, 0, RWLOCK_0, 30, 31, 0)->valid_ns = at(900);
    held(1, RWLOCK_0, 10, 32, 60, 0)->op = OP_SHARE;
    finds_nothing();
    take(0, RWLOCK_0, 10, 20, 900, 1);
    add(OP_DOWNGRADE, 0, RWLOCK_0, 30, 31, 0)->valid_ns = at(900);
    held(1, RWLOCK_0, 10, 32, 60, 2);
    finds(I6);
    take(0, RWLOCK_0, 10, 20, 900, 1);
    held(1, RWLOCK_0, 10, 29, 60, 0)->op = OP_SHARE;
    finds(I6);
}

static void a_thread_that_waits_for_itself_is_found(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_NEST, 0, MUTEX_0, 30, 31, EBUSY);
    finds(I12);
}

static void nest(uint32_t object, enum op op, int code)
{
    take(0, object, 10, 20, 900, 1)->op = (uint8_t)op;
    add(OP_NEST, 0, object, 30, 31, code)->limit_ms = 100;
}

static void a_writer_that_locks_again_what_is_not_reentrant_is_found(void)
{
    nest(NONREENTRANT, OP_TAKE, EDEADLK);
    finds_nothing();
    nest(NONREENTRANT, OP_TAKE, 0);
    finds(I12);
    nest(NONREENTRANT, OP_TAKE, ETIMEDOUT);
    finds(I12);
    nest(NONREENTRANT, OP_SHARE, 0);
    finds_nothing();
    nest(NONREENTRANT, OP_SHARE, EDEADLK);
    finds(I12);
    nest(RWLOCK_0, OP_TAKE, EDEADLK);
    finds(I12);
}

static void more_permits_than_there_are_are_found(void)
{
    held(0, LEASED_0, 10, 20, 60, 0)->permits = 2;
    held(1, LEASED_0, 10, 20, 60, 0);
    finds_nothing();
    held(0, LEASED_0, 10, 20, 60, 0)->permits = 2;
    held(1, LEASED_0, 10, 20, 60, 0)->permits = 2;
    finds(I7);
}

static void permits_of_the_dead_do_not_come_back_without_a_lease(void)
{
    take(0, COUNTING_0, 10, 20, 0, 0)->permits = 3;
    held(1, COUNTING_0, 90000, 90010, 90020, 0);
    finds(I7);
}

static void permits_at_the_end_are_counted(void)
{
    held(0, COUNTING_0, 10, 20, 60, 0);
    add(OP_VALUE, 8, COUNTING_0, 9000, 9001, 0)->token = 3;
    finds_nothing();
    held(0, COUNTING_0, 10, 20, 60, 0);
    add(OP_VALUE, 8, COUNTING_0, 9000, 9001, 0)->token = 2;
    finds(I7);
    held(0, COUNTING_0, 10, 20, 60, 0);
    add(OP_VALUE, 8, COUNTING_0, 9000, 9001, 0)->token = 4;
    finds(I7);
    take(0, COUNTING_0, 10, 20, 0, 0); /* killed */
    add(OP_VALUE, 8, COUNTING_0, 9000, 9001, 0)->token = 2;
    finds_nothing();
    take(0, COUNTING_0, 10, 20, 0, 0);
    add(OP_VALUE, 8, COUNTING_0, 9000, 9001, 0)->token = 3;
    finds(I7);
}

static void an_unknown_outcome_is_settled_in_time(void)
{
    take(0, COUNTING_0, 10, 20, 0, 0);
    give(0, COUNTING_0, 30, EIO);
    open_and_close(0, 1, 9000);
    add(OP_VALUE, 8, COUNTING_0, 9500, 9501, 0)->token = 2;
    finds(I7);
    take(0, COUNTING_0, 10, 20, 0, 0);
    give(0, COUNTING_0, 30, EIO);
    open_and_close(0, 1, 4000);
    add(OP_VALUE, 8, COUNTING_0, 9500, 9501, 0)->token = 2;
    finds_nothing();
}

/* --- I2, I3 ----------------------------------------------------------------------------------------- */

static void tokens_must_rise(void)
{
    held(0, MUTEX_0, 10, 20, 30, 2);
    held(1, MUTEX_0, 15, 31, 40, 1);
    finds(I2);
    held(0, MUTEX_0, 10, 20, 30, 2);
    held(1, MUTEX_0, 15, 31, 40, 2);
    finds(I2);
}

/* Several hold at once: their answers may come in another order than their permits were granted in. */
static void tokens_of_permits_must_rise(void)
{
    held(0, LEASED_0, 10, 20, 60, 2);
    held(1, LEASED_0, 15, 25, 60, 1);
    finds_nothing();
    held(0, LEASED_0, 10, 20, 60, 2);
    held(1, LEASED_0, 21, 25, 60, 1);
    finds(I2);
}

static void tokens_must_rise_across_a_loss_of_data(void)
{
    held(0, MUTEX_0, 10, 20, 30, 2);
    happened(LOSE_DATA, EVERYBODY, 100, 200);
    held(1, MUTEX_0, 250, 260, 270, 1);
    finds(I2);
}

static void a_valid_hold_must_not_be_refused(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_WRITE, 0, MUTEX_0, 30, 31, ESTALE);
    finds_nothing();
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_WRITE, 0, MUTEX_0, 30, 31, EBUSY);
    finds(I3);
}

/* --- I5 --------------------------------------------------------------------------------------------- */

static void who_came_first_gets_it_first(void)
{
    held(1, FAIR_0, 10, 500, 510, 1);
    held(2, FAIR_0, 300, 520, 530, 2);
    finds_nothing();
    held(2, FAIR_0, 300, 500, 510, 1);
    held(1, FAIR_0, 10, 520, 530, 2);
    finds(I5);
}

static void who_came_at_about_the_same_time_may_come_in_any_order(void)
{
    held(2, FAIR_0, 60, 500, 510, 1);
    held(1, FAIR_0, 10, 520, 530, 2);
    finds_nothing();
}

static void who_was_disturbed_may_lose_its_place(void)
{
    held(2, FAIR_0, 300, 500, 510, 1);
    held(1, FAIR_0, 10, 520, 530, 2);
    happened(STALL, 1, 100, 200);
    finds_nothing();
    held(2, FAIR_0, 300, 500, 510, 1);
    held(1, FAIR_0, 10, 520, 530, 2);
    happened(STALL, 2, 100, 200);
    finds(I5);
}

/* --- I8 --------------------------------------------------------------------------------------------- */

static void a_latch(int64_t waited, int64_t last_count)
{
    add(OP_SET, 0, LATCH_0, 10, 11, 0)->permits = 3;
    add(OP_COUNTDOWN, 1, LATCH_0, 20, 21, 0);
    add(OP_COUNTDOWN, 2, LATCH_0, 20, 21, 0);
    add(OP_COUNTDOWN, 3, LATCH_0, last_count, last_count + 1, 0);
    add(OP_WAIT, 4, LATCH_0, 15, waited, 0)->limit_ms = 1000;
}

static void a_latch_opens_after_the_last_count(void)
{
    a_latch(31, 30);
    finds_nothing();
    a_latch(29, 30); /* and the last count is counted after it opened */
    found(2, I8, __LINE__);
}

static void a_latch_that_opened_stays_open(void)
{
    a_latch(31, 30);
    add(OP_WAIT, 4, LATCH_0, 40, 140, ETIMEDOUT)->limit_ms = 100;
    finds(I8);
    a_latch(31, 30);
    add(OP_WAIT, 4, LATCH_0, 40, 41, ENOENT);
    finds(I8);
}

static void a_count_too_many_is_found(void)
{
    a_latch(31, 30);
    add(OP_COUNTDOWN, 4, LATCH_0, 29, 32, 0);
    finds(I8);
}

static void counts_of_unknown_outcome_may_have_opened_it(void)
{
    add(OP_SET, 0, LATCH_0, 10, 11, 0)->permits = 2;
    add(OP_COUNTDOWN, 1, LATCH_0, 20, 21, 0);
    add(OP_COUNTDOWN, 2, LATCH_0, 22, 23, EIO);
    add(OP_WAIT, 4, LATCH_0, 24, 25, 0);
    finds_nothing();
    add(OP_SET, 0, LATCH_0, 10, 11, 0)->permits = 2;
    add(OP_COUNTDOWN, 1, LATCH_0, 20, 21, 0);
    add(OP_COUNTDOWN, 2, LATCH_0, 22, 23, ENOTCONN);
    add(OP_WAIT, 4, LATCH_0, 24, 25, 0);
    finds(I8);
}

/* --- I9, I11, I12, I13 ------------------------------------------------------------------------------ */

static void in_calm_nobody_waits_in_vain(void)
{
    for (int calm = 0; calm < 2; calm++) {
        scene.history.calm_ns = calm ? at(10) : 0;
        scene.holds++;
        add(OP_TAKE, 0, MUTEX_0, 20, 6020, ETIMEDOUT)->limit_ms = 6000;
        found(calm, I9, __LINE__);
    }
    scene.history.calm_ns = at(10);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 220, EIO)->limit_ms = 6000;
    finds(I9);
    scene.history.calm_ns = at(10);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 220, EIO)->limit_ms = 6000;
    add(OP_LATE, 1, 0, 60, 160, 0);
    finds_nothing();
    scene.history.calm_ns = at(10);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 220, EIO)->limit_ms = 6000;
    add(OP_BUSY, 1, 0, 60, 160, 0);
    finds_nothing();
}

static void a_call_that_takes_too_long_is_found(void)
{
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1600, ETIMEDOUT)->limit_ms = 1000;
    finds_nothing();
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1630, ETIMEDOUT)->limit_ms = 1000;
    finds(I11);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1630, ETIMEDOUT)->limit_ms = 1000;
    happened(STOP_PROCESS, 0, 100, 150);
    finds_nothing();
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1700, ETIMEDOUT)->limit_ms = 1000;
    happened(STOP_PROCESS, 0, 100, 150);
    add(OP_LATE, 0, 0, 90, 160, 0); /* the same time is not counted twice */
    finds(I11);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1630, ETIMEDOUT)->limit_ms = 1000;
    add(OP_BUSY, 0, 0, 90, 160, 0); /* there all get on */
    finds(I11);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 1630, ETIMEDOUT)->limit_ms = 1000;
    happened(STOP_PROCESS, 1, 100, 150);
    finds(I11);
}

static void a_call_that_never_returns_is_found(void)
{
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 0, 0);
    finds_nothing(); /* killed */
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 0, 0);
    open_and_close(0, 1, 100);
    finds(I11);
}

static void a_hold_after_a_failure_is_found(void)
{
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 30, EBUSY);
    add(OP_CHECK, 0, MUTEX_0, 31, 32, EPERM);
    finds_nothing();
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 20, 30, EBUSY);
    add(OP_CHECK, 0, MUTEX_0, 31, 32, 0);
    finds(I12);
}

/* A hold that was lost at 950, and what the give at 960 said. */
static void a_loss(int code, int told)
{
    open_and_close(0, 1, 2000);
    take(0, MUTEX_0, 10, 20, 900, 1);
    add(OP_CHECK, 0, MUTEX_0, 950, 951, ESTALE);
    give(0, MUTEX_0, 960, code);
    scene.holds = 0;
    for (int i = 0; i < told; i++)
        add(OP_LOST, 0, MUTEX_0, 950, 951, 1)->thread = 6;
}

static void a_loss_is_told_once_and_final(void)
{
    a_loss(ESTALE, 1);
    finds_nothing();
    a_loss(0, 1);
    finds(I13);
    a_loss(ESTALE, 0);
    finds(I13);
    a_loss(ESTALE, 2);
    finds(I13);
}

static void a_loss_that_was_none_is_found(void)
{
    open_and_close(0, 1, 2000);
    held(0, MUTEX_0, 10, 20, 30, 1);
    add(OP_LOST, 0, MUTEX_0, 25, 26, 1)->thread = 6;
    finds(I13);
}

static void a_queue_that_missed_a_loss_is_found(void)
{
    struct record *heard = add(OP_HEARD, 0, 0, 2001, 2002, 0);
    heard->limit_ms = 2;
    heard->token = 2;
    finds_nothing();
    add(OP_HEARD, 0, 0, 2001, 2002, 0)->limit_ms = 1;
    finds(I13);
}

/* --- I4, I10, I16, and what an operator does --------------------------------------------------------- */

static void an_operator_excuses_old_against_new_for_a_lease(void)
{
    take(0, FORCED_0, 10, 20, 900, 1);
    add(OP_FORCE, 1, FORCED_0, 100, 101, 0);
    held(1, FORCED_0, 102, 110, 200, 2);
    finds_nothing();
    take(0, FORCED_0, 10, 20, 900, 1);
    add(OP_FORCE, 1, MUTEX_0, 100, 101, 0); /* another one */
    held(1, FORCED_0, 102, 110, 200, 2);
    finds(I1);
    happened(CUT_MASTER, EVERYBODY, 100, 200); /* which is over for long */
    take(0, FORCED_0, 990, 1000, 1900, 1);
    add(OP_FORCE, 1, FORCED_0, 1100, 1101, 0);
    held(1, FORCED_0, 1105, 1110, 1500, 2);
    finds_nothing();
    add(OP_FORCE, 1, FORCED_0, 5, 6, 0); /* before both */
    take(0, FORCED_0, 10, 20, 900, 1);
    held(1, FORCED_0, 102, 110, 200, 2);
    finds(I1);
}

/* A hold that ended by the end of its thread, or by a give; then one that was told this. */
static void an_heir(enum op end, bool repaired, int told)
{
    take(0, ROBUST_0, 10, 20, 900, 1);
    if (repaired)
        add(OP_REPAIR, 0, ROBUST_0, 30, 31, 0);
    add(end, 0, ROBUST_0, 40, 41, 0);
    take(1, ROBUST_0, 1000, 1010, 1900, 2)->code = (int16_t)told;
}

static void an_heir_is_told_and_nobody_else(void)
{
    an_heir(OP_GIVE, false, 0);
    finds_nothing();
    an_heir(OP_EXIT, false, EOWNERDEAD);
    finds_nothing();
    an_heir(OP_EXIT, false, 0);
    finds(I4);
    an_heir(OP_GIVE, false, EOWNERDEAD);
    finds(I4);
    an_heir(OP_GIVE, false, EOWNERDEAD);
    happened(STOP_SERVER, EVERYBODY, 500, 600);
    finds_nothing();
}

/* One after a dead holder, and one more after it. */
static void an_heirs_heir(bool repaired, int told)
{
    take(0, ROBUST_0, 10, 20, 900, 1);
    add(OP_EXIT, 0, ROBUST_0, 40, 41, 0);
    take(1, ROBUST_0, 1000, 1010, 1900, 2)->code = EOWNERDEAD;
    if (repaired)
        add(OP_REPAIR, 1, ROBUST_0, 1020, 1021, 0);
    give(1, ROBUST_0, 1030, 0);
    scene.holds++;
    struct record *last = add(OP_TAKE, 2, ROBUST_0, 1040, 1050, told);
    last->token = told == 0 ? 3 : 0;
    last->valid_ns = told == 0 ? at(1900) : 0;
}

static void what_was_not_repaired_is_granted_to_nobody(void)
{
    an_heirs_heir(true, 0);
    finds_nothing();
    an_heirs_heir(false, ENOTRECOVERABLE);
    finds_nothing();
    an_heirs_heir(false, 0);
    finds(I4);
    an_heirs_heir(true, ENOTRECOVERABLE);
    finds(I4);
    an_heirs_heir(false, 0);
    add(OP_FORCE, 3, ROBUST_0, 1032, 1033, 0);
    finds_nothing();
}

static void a_capped_hold_ends_and_is_kept(void)
{
    take(0, CAPPED_0, 10, 20, 519, 1);
    finds_nothing();
    take(0, CAPPED_0, 10, 20, 730, 1);
    finds(I16);
    take(0, CAPPED_0, 10, 20, 519, 1);
    add(OP_CHECK, 0, CAPPED_0, 100, 101, 0)->valid_ns = at(730);
    finds(I16);
    take(0, CAPPED_0, 10, 11, 400, 1);
    give(0, CAPPED_0, 12, 0);
    take(1, CAPPED_0, 10, 16, 400, 2);
    finds_nothing();
    take(0, CAPPED_0, 10, 11, 400, 1);
    give(0, CAPPED_0, 12, 0);
    take(1, CAPPED_0, 10, 14, 400, 2);
    finds(I16);
}

static void extended(int valid_ms, int checked_ms)
{
    take(0, MUTEX_0, 10, 20, 900, 1);
    struct record *record = add(OP_EXTEND, 0, MUTEX_0, 100, 110, 0);
    record->limit_ms = 500;
    record->valid_ns = at(valid_ms);
    if (checked_ms != 0)
        add(OP_CHECK, 0, MUTEX_0, 120, 121, 0)->valid_ns = at(checked_ms);
}

static void who_extends_gets_that_lease(void)
{
    extended(595, 0);
    finds_nothing();
    extended(480, 0);
    finds(I16);
    extended(620, 0);
    finds(I16);
}

/* What was known of a hold before it got a shorter lease is no promise any more, what is known afterwards is. */
static void a_shorter_lease_ends_earlier(void)
{
    extended(595, 0);
    take(1, MUTEX_0, 120, 600, 1400, 2);
    finds_nothing();
    extended(595, 700);
    take(1, MUTEX_0, 120, 600, 1400, 2);
    finds(I1);
}

static void a_lease_that_a_call_fixes_ends(void)
{
    take(0, MUTEX_0, 10, 20, 900, 1)->fixed = 1;
    struct record *check = add(OP_CHECK, 0, MUTEX_0, 800, 801, 0);
    check->fixed = 1;
    check->valid_ns = at(1900);
    finds(I16);
    take(0, object_of(FIXED, 0), 10, 20, 900, 1)->fixed = -1;
    check = add(OP_CHECK, 0, object_of(FIXED, 0), 800, 801, 0);
    check->fixed = -1;
    check->valid_ns = at(1900);
    finds_nothing();
}

static void a_lease_in_the_way_is_one_that_can_be(void)
{
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 10, 20, ETIMEDOUT)->token = 1001;
    finds_nothing();
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 10, 20, ETIMEDOUT)->token = 1002;
    finds(I12);
    scene.holds++;
    add(OP_TAKE, 0, MUTEX_0, 10, 20, ENOTCONN)->token = 1;
    finds(I12);
    scene.holds++;
    add(OP_TAKE, 0, COUNTING_0, 10, 20, ETIMEDOUT)->token = 1;
    finds(I12);
}

static void who_waits_for_a_latch_to_appear_waits(void)
{
    uint32_t appearing = object_of(LATCH, 1);
    add(OP_WAIT, 0, appearing, 10, 20, ETIMEDOUT);
    finds_nothing();
    add(OP_WAIT, 0, appearing, 10, 20, ENOENT);
    finds(I8);
    add(OP_WAIT, 0, appearing, 10, 20, 0);
    finds(I8);
}

static void resize(int invoke, int expected, int total, int code, int found)
{
    struct record *record = add(OP_RESIZE, 3, RESIZED_0, invoke, invoke + 10, code);
    record->token = (uint64_t)expected;
    record->permits = (uint16_t)total;
    record->limit_ms = found;
}

/* Three permits, from 1000 on two, and from 1200 on, if so, three again. */
static void two_permits(bool three_again, bool unknown)
{
    resize(1000, 3, 2, 0, 3);
    if (three_again)
        resize(1200, 2, 3, unknown ? EIO : 0, 2);
    for (int i = 0; i < 2; i++)
        held(i, RESIZED_0, 1100, 1110, 1400, i + 1);
}

static void no_more_permits_than_there_are_at_that_time(void)
{
    two_permits(false, false);
    finds_nothing();
    two_permits(false, false);
    held(2, RESIZED_0, 1300, 1310, 1320, 3);
    finds(I7);
    two_permits(true, false);
    held(2, RESIZED_0, 1300, 1310, 1320, 3);
    finds_nothing();
    two_permits(true, true);
    held(2, RESIZED_0, 1300, 1310, 1320, 3);
    finds_nothing();
    two_permits(true, false);
    held(2, RESIZED_0, 1150, 1160, 1180, 3);
    finds(I7);
    two_permits(false, false);
    happened(FLUSH_DATA, EVERYBODY, 1250, 1260);
    held(2, RESIZED_0, 1300, 1310, 1320, 3);
    finds_nothing();
}

static struct record *added(int invoke, int n, int code)
{
    struct record *record = add(OP_ADD, 3, GROWN_0, invoke, invoke + 10, code);
    record->limit_ms = n;
    record->permits = 0;
    return record;
}

/* Three permits, from 1000 on five, from 1200 on three again; they are all held from 900, two from 1100 to 1400. */
static void two_more(int code)
{
    added(1000, 2, 0);
    added(1200, -2, code);
    for (int i = 0; i < 3; i++)
        held(i, GROWN_0, 900, 910, 1150, 0);
    for (int i = 3; i < 5; i++)
        held(i, GROWN_0, 1100, 1110, 1400, 0);
}

static void no_more_permits_than_were_added(void)
{
    two_more(0);
    finds_nothing();
    two_more(0);
    held(5, GROWN_0, 1120, 1130, 1140, 0);
    finds(I7);
    two_more(0);
    held(5, GROWN_0, 1300, 1310, 1320, 0);
    finds_nothing();
    two_more(0);
    held(5, GROWN_0, 1300, 1310, 1320, 0)->permits = 2;
    finds(I7);
    two_more(EIO); /* it may not have been done */
    held(5, GROWN_0, 1300, 1310, 1320, 0)->permits = 2;
    finds_nothing();
}

static void at_the_end(int available, int in_all)
{
    struct record *record = add(OP_VALUE, 8, GROWN_0, 9500, 9501, 0);
    record->token = (uint64_t)available;
    record->limit_ms = in_all;
}

/* All that were added are there, and none besides. */
static void added_permits_are_counted_at_the_end(void)
{
    added(1000, 2, 0);
    at_the_end(5, 5);
    finds_nothing();
    added(1000, 2, ENOTCONN);
    at_the_end(3, 3);
    finds_nothing();
    added(1000, 2, 0);
    added(1200, -2, 0);
    at_the_end(3, 4);
    finds(I7);
    added(1000, 2, 0);
    at_the_end(4, 5);
    finds(I7);
    added(1000, -1, EIO);
    at_the_end(3, 3);
    finds_nothing();
    added(1000, -1, EIO);
    at_the_end(2, 2);
    finds_nothing();
    added(1000, 1, EIO);
    open_and_close(3, 1, 9000); /* settled by then */
    at_the_end(3, 3);
    found(2, I7, __LINE__);
    added(1000, 1, EIO)->permits = 1; /* nobody asks again whether the total was changed */
    open_and_close(3, 1, 9000);
    at_the_end(3, 3);
    finds_nothing();
    held(0, GROWN_0, 10, 20, 60, 0);
    take(0, GROWN_0, 100, 110, 0, 0); /* killed: its permit is gone, though there are three in all */
    at_the_end(2, 3);
    finds_nothing();
}

/* Of an anonymous one who was cut off may have permits of a semaphore that is over. */
static void a_semaphore_that_is_over_has_permits_of_its_own(void)
{
    held(0, PASSING_0, 10, 20, 9000, 0)->permits = 3;
    held(1, PASSING_0, 5000, 5010, 5020, 0);
    finds(I7);
    happened(CUT, 0, 1000, 4000);
    held(0, PASSING_0, 10, 20, 9000, 0)->permits = 3;
    held(1, PASSING_0, 5000, 5010, 5020, 0);
    finds_nothing();
}

static void who_compares_finds_what_was_set(void)
{
    resize(1000, 3, 2, 0, 3);
    resize(1100, 3, 1, EEXIST, 2);
    resize(1200, 2, 1, 0, 2);
    finds_nothing();
    resize(1000, 2, 1, 0, 2);
    finds(I7);
    resize(1000, 3, 2, 0, 3);
    resize(1100, 2, 1, EEXIST, 3);
    finds(I7);
    resize(1000, 3, 2, EEXIST, 2); /* what it set itself, when it was sent again */
    finds(I7);
    resize(1000, 3, 2, EEXIST, 3);
    finds(I7);
}

static void who_makes_one_finds_none(void)
{
    held(0, REMOVED_0, 10, 20, 30, 1);
    add(OP_MAKE, 1, REMOVED_0, 40, 50, EEXIST);
    finds_nothing();
    held(0, REMOVED_0, 10, 20, 30, 1);
    add(OP_MAKE, 1, REMOVED_0, 40, 50, 0);
    finds(I7);
    held(0, REMOVED_0, 10, 20, 30, 1);
    add(OP_FORCE, 2, REMOVED_0, 34, 36, 0);
    add(OP_MAKE, 1, REMOVED_0, 40, 50, 0);
    finds_nothing();
    held(0, REMOVED_0, 10, 20, 30, 1);
    add(OP_FORCE, 2, REMOVED_0, 34, 36, ENOENT);
    finds(I7);
}

static void what_is_anonymous_may_end_when_its_client_is_cut_off(void)
{
    uint32_t alone = object_of(ALONE, 0);
    for (int cut_off = 0; cut_off < 2; cut_off++) {
        add(OP_SET, 0, alone, 10, 20, 0)->permits = 1;
        add(OP_WAIT, 0, alone, 2000, 2001, ESTALE);
        if (cut_off)
            happened(STALL, 0, 500, 1800);
        found(!cut_off, I8, __LINE__);
    }
}

static void asks(int count, int code, int limit_ms)
{
    for (int i = 0; i < count; i++) {
        scene.holds++;
        add(OP_TAKE, 0, MUTEX_0, 5000 + 4 * i, 5001 + 4 * i, code)->limit_ms = limit_ms;
        if (code == 0)
            give(0, MUTEX_0, 5002 + 4 * i, 0);
    }
}

static void who_has_time_gets_it_999_times_of_1000(void)
{
    asks(2000, 0, 3000);
    asks(2, ETIMEDOUT, 3000);
    finds_nothing();
    asks(2000, 0, 3000);
    asks(3, ETIMEDOUT, 3000);
    finds(I10);
    asks(2000, 0, 3000);
    asks(3, ETIMEDOUT, 2900);
    finds_nothing();
    asks(2000, 0, 3000);
    asks(3, ETIMEDOUT, 3000);
    happened(STOP_PROCESS, 3, 4000, 4010);
    finds_nothing();
    asks(2000, 0, 3000);
    asks(3, ETIMEDOUT, 3000);
    happened(STOP_PROCESS, 3, 7000, 7010);
    finds_nothing();
    asks(2000, 0, 3000);
    asks(3, ETIMEDOUT, 3000);
    happened(STOP_PROCESS, 3, 7000, 7010);
    open_and_close(1, 1, 6500); /* they were through by then */
    finds(I10);
}

/* --- I14, I15, I18 ---------------------------------------------------------------------------------- */

static void what_is_left_is_found(void)
{
    add(OP_LEFT, 8, MUTEX_0, 9000, 9001, EEXIST);
    finds(I14);
    open_and_close(0, 1, 2000)->permits = 2;
    finds(I15);
    open_and_close(0, 1, 2000)->limit_ms = 1;
    finds(I15);
}

static void processes_that_end_and_children_that_hold_are_found(void)
{
    add(OP_LEFT, 2, 0, 9000, 9001, ECANCELED);
    finds(I18);
    add(OP_FORK, 2, MUTEX_0, 9000, 9001, EPERM);
    finds_nothing();
    add(OP_FORK, 2, MUTEX_0, 9000, 9001, 0);
    finds(I18);
}

/* --- I17: conditions -------------------------------------------------------------------------------- */

static void move(int process, bool takes, int number, int invoke, int code)
{
    struct record *record = add(OP_MOVE, process, BUFFER_0, invoke, invoke + 1, code);
    record->permits = takes;
    record->token = (uint64_t)number;
}

static void items_come_once_and_in_turn(void)
{
    move(0, false, 0, 10, 0);
    move(1, true, 0, 20, 0);
    move(0, false, 1, 30, 0);
    finds_nothing();
    move(0, false, 0, 10, 0);
    move(1, false, 0, 20, 0);
    finds(I17);
    move(0, false, 0, 10, 0);
    move(1, true, 0, 20, 0);
    move(2, true, 0, 21, 0);
    finds(I17);
    move(1, true, 0, 20, 0);
    finds(I17);
    move(1, true, 0, 20, 0);
    move(0, false, 0, 30, 0);
    finds(I17);
    for (int i = 0; i <= BUFFER_ROOM; i++)
        move(0, false, i, 10 + i, 0);
    finds(I17);
}

static void who_was_killed_may_have_moved_an_item(void)
{
    move(0, false, 0, 10, 0);
    scene.history.records[scene.history.count - 1].return_ns = 0;
    move(1, true, 0, 20, 0);
    finds_nothing();
}

static void a_buffer_that_others_change_is_found(void)
{
    move(0, false, 0, 10, EBUSY);
    finds(I17);
    move(0, false, 0, 10, ESTALE);
    finds_nothing();
    happened(LOSE_DATA, EVERYBODY, 5, 6);
    move(0, false, 0, 10, EBUSY);
    finds_nothing();
}

static struct record *slept(int process, int invoke, int returned, int code)
{
    struct record *record = add(OP_SLEEP, process, BUFFER_0, invoke, returned, code);
    record->limit_ms = 3000;
    record->valid_ns = at(returned + 900);
    return record;
}

static void signalled(int invoke, bool all)
{
    add(OP_SIGNAL, 0, BUFFER_0, invoke, invoke + 1, 0)->token = all;
}

/* One who was woken, and one who was not. */
static void two_sleep(void)
{
    slept(1, 1000, 1300, 0);
    slept(2, 1000, 4000, ETIMEDOUT);
    signalled(1290, false);
}

static void a_signal_that_is_lost_is_found(void)
{
    two_sleep();
    finds_nothing();
    two_sleep();
    signalled(2000, false);
    finds(I17);
    two_sleep();
    signalled(3600, false); /* too late for it to come back with the mutex */
    finds_nothing();
    two_sleep();
    signalled(2000, true);
    finds(I17);
    two_sleep();
    signalled(2000, false);
    add(OP_SLEEP, 3, BUFFER_0, 900, 0, 0); /* killed: the signal may have been for it */
    finds_nothing();
    two_sleep();
    signalled(2000, false);
    happened(STALL, 1, 500, 600);
    finds_nothing();
}

static void who_sleeps_has_no_hold_and_who_wakes_has_one(void)
{
    for (int64_t returned = 520; returned < 720; returned += 100) {
        take(0, BUFFER_0, 10, 20, 900, 1);
        slept(0, 30, 600, 0)->token = 3;
        give(0, BUFFER_0, 700, 0);
        held(1, BUFFER_0, 25, returned, returned + 50, returned < 600 ? 2 : 4);
        found(returned > 600, I1, __LINE__);
    }
    take(0, BUFFER_0, 10, 20, 900, 3);
    slept(0, 30, 600, 0)->token = 2;
    finds(I2);
    take(0, BUFFER_0, 10, 20, 900, 1);
    slept(0, 30, 600, 0)->token = 2;
    give(0, BUFFER_0, 700, EPERM); /* a level less than before */
    finds(I17);
    take(0, BUFFER_0, 10, 20, 900, 1);
    slept(0, 30, 600, EINVAL)->token = 2;
    finds(I17);
}

/* Cancelled before the mutex was given back, or when it had been taken again. */
static void who_is_cancelled_asleep_or_awake_has_it(void)
{
    for (int awake = 0; awake < 2; awake++) {
        take(0, BUFFER_0, 10, 20, 900, 1);
        slept(0, 30, 40, ECANCELED)->token = awake ? 1 : 2;
        give(0, BUFFER_0, 50, 0);
        held(1, BUFFER_0, 15, 45, 60, 3);
        finds(I1);
    }
}

static void a_wait_that_fails_holds_nothing(void)
{
    for (int code = 0; code <= EPERM; code += EPERM) {
        take(0, BUFFER_0, 10, 20, 900, 1);
        slept(0, 30, 600, EIO)->valid_ns = 0;
        add(OP_CHECK, 0, BUFFER_0, 601, 602, code);
        found(code == 0, I12, __LINE__);
    }
}

static void a_wait_tells_of_a_loss(void)
{
    for (int told = 0; told < 2; told++) {
        open_and_close(0, 1, 2000);
        take(0, BUFFER_0, 10, 20, 900, 1);
        slept(0, 30, 40, ESTALE)->valid_ns = 0;
        add(OP_CHECK, 0, BUFFER_0, 41, 42, EPERM);
        if (told)
            add(OP_LOST, 0, BUFFER_0, 39, 40, 1)->thread = 6;
        found(!told, I13, __LINE__);
    }
}

/* --- I19: barriers ---------------------------------------------------------------------------------- */

static struct record *met(int process, uint32_t object, int invoke, int returned, int code, int word)
{
    struct record *record = add(OP_MEET, process, object, invoke, returned, code);
    record->limit_ms = returned != 0 ? returned - invoke : 500;
    record->token = (uint64_t)word;
    return record;
}

static void all_of_a_round_pass_and_one_is_serial(void)
{
    met(0, BARRIER_0, 10, 31, 0, MET);
    met(1, BARRIER_0, 30, 32, 0, MET_SERIAL);
    met(0, BARRIER_0, 33, 51, 0, MET_SERIAL);
    met(1, BARRIER_0, 34, 52, 0, MET);
    finds_nothing();
    met(0, BARRIER_0, 10, 31, 0, MET_SERIAL);
    met(1, BARRIER_0, 30, 32, 0, MET_SERIAL);
    found(2, I19, __LINE__);
    met(0, BARRIER_0, 10, 31, 0, MET);
    met(1, BARRIER_0, 30, 32, 0, MET);
    found(2, I19, __LINE__);
    met(0, BARRIER_1, 10, 31, 0, MET);
    met(1, BARRIER_1, 30, 32, 0, MET_SERIAL);
    finds(I19);
}

static void who_passes_before_the_others_came_is_found(void)
{
    met(0, BARRIER_0, 10, 20, 0, MET);
    met(1, BARRIER_0, 30, 32, 0, MET_SERIAL);
    found(2, I19, __LINE__);
    met(0, BARRIER_0, 10, 20, 0, MET);
    met(1, BARRIER_0, 30, 32, 0, MET_SERIAL);
    happened(LOSE_DATA, EVERYBODY, 15, 25);
    finds_nothing();
}

static void of_the_dead_a_coming_counts(void)
{
    met(0, BARRIER_0, 10, 0, 0, MET); /* killed */
    met(1, BARRIER_0, 30, 32, 0, MET_SERIAL);
    finds_nothing();
    met(0, BARRIER_0, 10, 20, EIO, MET);
    met(1, BARRIER_0, 1000, 1002, 0, MET_SERIAL);
    finds_nothing();
    met(0, BARRIER_0, 10, 20, EIO, MET);
    met(1, BARRIER_0, 1700, 1702, 0, MET_SERIAL); /* its lease was over */
    finds(I19);
}

static void a_round_that_broke_is_broken_for_all(void)
{
    met(0, BARRIER_1, 1000, 1500, ETIMEDOUT, MET);
    met(1, BARRIER_1, 1100, 1510, ECANCELED, MET);
    finds_nothing();
    met(0, BARRIER_1, 1000, 1500, ETIMEDOUT, MET);
    met(1, BARRIER_1, 1100, 3000, ECANCELED, MET);
    finds(I19);
    met(0, BARRIER_1, 1000, 1500, ETIMEDOUT, MET);
    met(1, BARRIER_1, 1100, 3000, ETIMEDOUT, MET);
    finds(I19);
    for (int again = 0; again < 2; again++) {
        met(0, BARRIER_0, 1000, 1500, ETIMEDOUT, MET);
        if (again)
            add(OP_RESET, 3, BARRIER_0, 1600, 1601, 0);
        met(1, BARRIER_0, 2000, 2031, 0, MET);
        met(2, BARRIER_0, 2030, 2032, 0, MET_SERIAL);
        found(again ? 0 : 2, I19, __LINE__);
    }
}

static void a_round_that_nobody_broke_is_found(void)
{
    met(0, BARRIER_0, 1000, 1100, ECANCELED, MET);
    finds(I19);
    met(0, BARRIER_0, 1000, 1100, ECANCELED, MET_CANCELLED);
    finds_nothing();
    met(0, BARRIER_0, 1000, 1100, ECANCELED, MET);
    add(OP_RESET, 3, BARRIER_0, 1050, 1051, 0);
    finds_nothing();
    met(0, BARRIER_0, 1000, 1100, ECANCELED, MET);
    happened(KILL_PROCESS, 2, 900, 901);
    finds_nothing();
}

/* --- I20: once -------------------------------------------------------------------------------------- */

/* A run that completes at `given` with that result. */
static void ran(int process, int invoke, int given, int result)
{
    take(process, ONCE_0, invoke, invoke + 1, invoke + 900, invoke);
    add(OP_GIVE, process, ONCE_0, given, given + 1, 0)->token = (uint64_t)result;
}

static void told(int invoke, int code, int result)
{
    add(OP_RESULT, 5, ONCE_0, invoke, invoke + 1, code)->token = (uint64_t)result;
}

static void one_run_completes(void)
{
    ran(0, 10, 20, 0); /* given up */
    ran(1, 30, 40, 7);
    finds_nothing();
    ran(0, 10, 20, 7);
    ran(1, 30, 40, 8);
    found(2, I20, __LINE__); /* it began, and it completed */
    ran(0, 10, 20, 7);
    ran(1, 30, 40, 0);
    finds(I20);
    ran(0, 10, 20, 7);
    add(OP_RESET, 3, ONCE_0, 25, 26, 0);
    ran(1, 30, 40, 8);
    finds_nothing();
    ran(0, 10, 20, 7);
    happened(FLUSH_DATA, EVERYBODY, 25, 26);
    ran(1, 30, 40, 8);
    finds_nothing();
}

static void all_are_told_of_the_run_that_completed(void)
{
    ran(0, 10, 20, 7);
    told(30, 0, 7);
    add(OP_TAKE, 2, ONCE_0, 40, 41, EALREADY);
    finds_nothing();
    ran(0, 10, 20, 7);
    told(30, 0, 8);
    found(2, I20, __LINE__); /* nobody had it, and another one completed */
    ran(0, 10, 20, 7);
    told(30, ENOENT, 0);
    finds(I20);
    ran(0, 10, 20, 0);
    add(OP_TAKE, 2, ONCE_0, 40, 41, EALREADY);
    finds(I20);
}

static void two_that_run_at_once_are_found(void)
{
    take(0, ONCE_0, 10, 20, 900, 1);
    take(1, ONCE_0, 30, 40, 900, 2);
    finds(I1);
}

int main(void)
{
    int failed = plain_run_with(
        scene_setup, one_after_the_other_is_fine, two_holders_at_once_are_found,
        a_dead_holder_keeps_others_out_until_its_validity_ends, what_a_renewal_added_counts,
        a_loss_of_data_excuses_old_against_new_for_a_lease, two_losses_of_data_excuse_three_holds,
        who_is_told_of_a_loss_holds_no_more, a_failover_excuses_an_overlap_for_a_while,
        a_stale_write_that_is_accepted_is_found, a_loss_of_data_excuses_no_overlap_of_new_holds,
        a_loss_of_data_excuses_nothing_a_lease_later, readers_share_and_a_writer_does_not,
        a_downgrade_lets_readers_in_and_no_writer, a_thread_that_waits_for_itself_is_found,
        a_writer_that_locks_again_what_is_not_reentrant_is_found, more_permits_than_there_are_are_found,
        permits_of_the_dead_do_not_come_back_without_a_lease, permits_at_the_end_are_counted,
        an_unknown_outcome_is_settled_in_time, tokens_must_rise, tokens_of_permits_must_rise,
        tokens_must_rise_across_a_loss_of_data, a_valid_hold_must_not_be_refused, who_came_first_gets_it_first,
        who_came_at_about_the_same_time_may_come_in_any_order, who_was_disturbed_may_lose_its_place,
        a_latch_opens_after_the_last_count, a_latch_that_opened_stays_open, a_count_too_many_is_found,
        counts_of_unknown_outcome_may_have_opened_it, in_calm_nobody_waits_in_vain, a_call_that_takes_too_long_is_found,
        a_call_that_never_returns_is_found, a_hold_after_a_failure_is_found, a_loss_is_told_once_and_final,
        a_loss_that_was_none_is_found, a_queue_that_missed_a_loss_is_found,
        an_operator_excuses_old_against_new_for_a_lease, an_heir_is_told_and_nobody_else,
        what_was_not_repaired_is_granted_to_nobody, a_capped_hold_ends_and_is_kept, who_extends_gets_that_lease,
        no_more_permits_than_there_are_at_that_time, no_more_permits_than_were_added,
        added_permits_are_counted_at_the_end, a_semaphore_that_is_over_has_permits_of_its_own,
        who_compares_finds_what_was_set, who_makes_one_finds_none, what_is_anonymous_may_end_when_its_client_is_cut_off,
        a_shorter_lease_ends_earlier, a_lease_that_a_call_fixes_ends, a_lease_in_the_way_is_one_that_can_be,
        who_waits_for_a_latch_to_appear_waits, who_has_time_gets_it_999_times_of_1000, what_is_left_is_found,
        processes_that_end_and_children_that_hold_are_found, items_come_once_and_in_turn,
        who_was_killed_may_have_moved_an_item, a_buffer_that_others_change_is_found, a_signal_that_is_lost_is_found,
        who_sleeps_has_no_hold_and_who_wakes_has_one, who_is_cancelled_asleep_or_awake_has_it, a_wait_that_fails_holds_nothing, a_wait_tells_of_a_loss,
        all_of_a_round_pass_and_one_is_serial, who_passes_before_the_others_came_is_found,
        of_the_dead_a_coming_counts, a_round_that_broke_is_broken_for_all, a_round_that_nobody_broke_is_found,
        one_run_completes, all_are_told_of_the_run_that_completed, two_that_run_at_once_are_found);
    history_free(&scene.history);
    return failed;
}
