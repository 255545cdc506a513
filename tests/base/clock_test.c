/* SPDX-License-Identifier: MIT */
/*
 * clock_test.c - a caller's time limits, however they are said, become moments of one clock
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <limits.h>

enum { HOUR_S = 3600 };

static const int64_t untouched = -77;

static struct timespec in_future(clockid_t clock, int64_t seconds)
{
    struct timespec time;
    assert_int_equal(clock_gettime(clock, &time), 0);
    time.tv_sec += seconds;
    return time;
}

/* `deadline_us` lies as far ahead as was said when it was between the two readings; a microsecond is rounding. */
static void expect_moment(int64_t deadline_us, int64_t before_us, int64_t ahead_us)
{
    assert_between(deadline_us, before_us + ahead_us - 1, lk__now_us() + ahead_us + 1);
}

static void the_clock_counts_suspended_time(void)
{
    struct timespec now;
    int64_t before_us = lk__now_us();
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
    assert_between((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, before_us, lk__now_us());
}

static void each_clock_that_can_be_waited_on_is_converted(void)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
    static const int64_t seconds[] = { 0, 1, HOUR_S, 1000 * HOUR_S };
    for (size_t c = 0; c < 3; c++)
        for (size_t s = 0; s < 4; s++) {
            int64_t before_us = lk__now_us(), deadline_us;
            struct timespec limit = in_future(clocks[c], seconds[s]);
            assert_lk(0, lk__deadline_at(clocks[c], &limit, &deadline_us));
            expect_moment(deadline_us, before_us, seconds[s] * 1000000);
        }
}

/* A limit that passed must not turn into one that is ahead, however absurd it is. */
static void a_moment_in_the_past_stays_there(void)
{
    static const struct timespec pasts[] = { { 0, 0 }, { 1, 0 }, { -1, 0 }, { -1, 999999999 }, { -HOUR_S, 5 } };
    for (size_t i = 0; i < sizeof pasts / sizeof *pasts; i++) {
        int64_t deadline_us;
        assert_lk(0, lk__deadline_at(CLOCK_REALTIME, &pasts[i], &deadline_us));
        assert_true(deadline_us < lk__now_us());
    }
    for (size_t bits = 8; bits <= 8 * sizeof(time_t); bits += 8) {
        struct timespec past = { -((time_t)1 << (bits - 2)), 0 };
        int64_t deadline_us;
        assert_lk(0, lk__deadline_at(CLOCK_MONOTONIC, &past, &deadline_us));
        assert_true(deadline_us < lk__now_us());
    }
    int64_t before_us = lk__now_us(), deadline_us;
    struct timespec a_second_ago = in_future(CLOCK_MONOTONIC, -1);
    assert_lk(0, lk__deadline_at(CLOCK_MONOTONIC, &a_second_ago, &deadline_us));
    expect_moment(deadline_us, before_us, -1000000);
}

/* Programs say "for ever" with the largest time they know. */
static void a_time_beyond_counting_is_never(void)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
    static const int64_t seconds[] = { INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 1000000,
                                       INT64_MAX / 1000000 - 1 };
    for (size_t c = 0; c < 3; c++)
        for (size_t s = 0; s < sizeof seconds / sizeof *seconds; s++) {
            struct timespec limit = { seconds[s], 999999999 };
            int64_t deadline_us;
            assert_lk(0, lk__deadline_at(clocks[c], &limit, &deadline_us));
            assert_int_equal(deadline_us, LK__NEVER);
        }
    /* The largest that can be counted is not mistaken, nor does it overflow on the way to this clock. */
    struct timespec limit = { INT64_MAX / 1000000 - 2, 0 };
    int64_t deadline_us;
    assert_lk(0, lk__deadline_at(CLOCK_BOOTTIME, &limit, &deadline_us));
    assert_true(deadline_us > LK__NEVER - 10000000);
}

static void a_limit_that_makes_no_sense_is_refused(void)
{
    static const struct {
        clockid_t clock;
        long tv_nsec;
    } table[] = {
        { CLOCK_REALTIME, -1 },
        { CLOCK_REALTIME, 1000000000 },
        { CLOCK_MONOTONIC, LONG_MIN },
        { CLOCK_BOOTTIME, LONG_MAX },
        { CLOCK_PROCESS_CPUTIME_ID, 0 },
        { CLOCK_THREAD_CPUTIME_ID, 0 },
        { CLOCK_REALTIME_COARSE, 0 },
        { CLOCK_MONOTONIC_RAW, 0 },
        { CLOCK_TAI, 0 },
        { (clockid_t)12345, 0 },
        { (clockid_t)-1, 0 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct timespec limit = { HOUR_S, table[i].tv_nsec };
        int64_t deadline_us = untouched;
        assert_lk(EINVAL, lk__deadline_at(table[i].clock, &limit, &deadline_us));
        assert_int_equal(deadline_us, untouched);
        assert_string_not_equal(lk_errortext(), "");
    }
    int64_t deadline_us = untouched;
    assert_lk(EINVAL, lk__deadline_at(CLOCK_REALTIME, NULL, &deadline_us));
    assert_int_equal(deadline_us, untouched);
}

static void a_relative_limit_counts_from_now(void)
{
    static const int64_t timeouts_ms[] = { 0, 1, 30000, INT64_C(1) << 40 };
    for (size_t i = 0; i < sizeof timeouts_ms / sizeof *timeouts_ms; i++) {
        int64_t before_us = lk__now_us(), deadline_us;
        assert_lk(0, lk__deadline_in(timeouts_ms[i], &deadline_us));
        expect_moment(deadline_us, before_us, timeouts_ms[i] * 1000);
    }
}

static void a_relative_limit_beyond_counting_is_never(void)
{
    static const int64_t timeouts_ms[] = { LK_FOREVER, INT64_MAX, INT64_MAX / 1000 + 1, INT64_MAX / 1000 };
    for (size_t i = 0; i < sizeof timeouts_ms / sizeof *timeouts_ms; i++) {
        int64_t deadline_us;
        assert_lk(0, lk__deadline_in(timeouts_ms[i], &deadline_us));
        assert_int_equal(deadline_us, LK__NEVER);
    }
}

/* -1 is LK_FOREVER; any other negative is a computation that went wrong, and waiting for ever no answer to it. */
static void negative_relative_limits_are_refused(void)
{
    static const int64_t timeouts_ms[] = { -2, -1000, INT64_MIN + 1, INT64_MIN };
    for (size_t i = 0; i < sizeof timeouts_ms / sizeof *timeouts_ms; i++) {
        int64_t deadline_us = untouched;
        assert_lk(EINVAL, lk__deadline_in(timeouts_ms[i], &deadline_us));
        assert_int_equal(deadline_us, untouched);
    }
}

static void sums_of_times_end_at_never(void)
{
    static const struct {
        int64_t a_us, b_us, sum_us;
    } table[] = {
        { 0, 0, 0 },
        { 1, 2, 3 },
        { LK__NEVER, 0, LK__NEVER },
        { 0, LK__NEVER, LK__NEVER },
        { LK__NEVER, LK__NEVER, LK__NEVER },
        { LK__NEVER - 5, 4, LK__NEVER - 1 },
        { LK__NEVER - 5, 5, LK__NEVER },
        { LK__NEVER - 5, 6, LK__NEVER },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(lk__later(table[i].a_us, table[i].b_us), table[i].sum_us);
}

/* poll() knows milliseconds only: rounded down it would spin through the last one. */
static void waits_for_poll_are_rounded_up(void)
{
    static const struct {
        int64_t moment_us, now_us;
        int ms;
    } table[] = {
        { 0, 0, 0 },
        { 5, 6, 0 },
        { -1000000, 6, 0 },
        { 1, 0, 1 },
        { 999, 0, 1 },
        { 1000, 0, 1 },
        { 1001, 0, 2 },
        { 7001999, 7000000, 2 },
        { 7002000, 7000000, 2 },
        { INT_MAX * INT64_C(1000) - 1000, 0, INT_MAX - 1 },
        { INT_MAX * INT64_C(1000), 0, INT_MAX },
        { INT_MAX * INT64_C(1000) + 1, 0, INT_MAX },
        { LK__NEVER, 0, INT_MAX },
        { LK__NEVER, LK__NEVER - 1, 1 },
        { LK__NEVER, LK__NEVER, 0 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(lk__ms_until(table[i].moment_us, table[i].now_us), table[i].ms);
}

int main(void)
{
    return plain_run(the_clock_counts_suspended_time, each_clock_that_can_be_waited_on_is_converted,
                     a_moment_in_the_past_stays_there, a_time_beyond_counting_is_never,
                     a_limit_that_makes_no_sense_is_refused, a_relative_limit_counts_from_now,
                     a_relative_limit_beyond_counting_is_never, negative_relative_limits_are_refused,
                     sums_of_times_end_at_never, waits_for_poll_are_rounded_up);
}
