/* SPDX-License-Identifier: MIT */
/*
 * clock.c - one clock, and how a caller's deadlines come to it
 *
 * CLOCK_BOOTTIME goes on while the machine sleeps, as the server's leases do, and nobody can set it.
 */
#include "base/base.h"

#include <limits.h>

#define US_PER_S 1000000LL
#define NS_PER_S 1000000000L

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    int rc = clock_gettime(clock, &now);
    assert(rc == 0); /* the clocks used here exist since Linux 2.6.39 */
    (void)rc;
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t lk__now_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t lk__later(int64_t a_us, int64_t b_us)
{
    return a_us > LK__NEVER - b_us ? LK__NEVER : a_us + b_us;
}

/* Microseconds of a time that may be far out of range, rounded up so that no wait ends early. */
static int64_t saturated_us(const struct timespec *time)
{
    if (time->tv_sec >= INT64_MAX / US_PER_S - 1)
        return LK__NEVER;
    if (time->tv_sec < 0)
        return 0; /* long ago on each of these clocks */
    return (int64_t)time->tv_sec * US_PER_S + (time->tv_nsec + 999) / 1000;
}

int lk__deadline_at(clockid_t clock, const struct timespec *abstime, int64_t *deadline_us)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
        return lk__fail(EINVAL, "clock %d: only CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME can be waited on",
                        (int)clock);
    if (abstime == NULL)
        return lk__fail(EINVAL, "no time limit was given");
    if (abstime->tv_nsec < 0 || abstime->tv_nsec >= NS_PER_S)
        return lk__fail(EINVAL, "the time limit's nanoseconds must lie in 0..999999999");
    int64_t there_us = saturated_us(abstime);
    if (there_us == LK__NEVER) {
        *deadline_us = LK__NEVER;
        return 0;
    }
    int64_t left_us = there_us - read_us(clock);
    *deadline_us = left_us > 0 ? lk__later(lk__now_us(), left_us) : lk__now_us() + left_us;
    return 0;
}

int lk__deadline_in(int64_t timeout_ms, int64_t *deadline_us)
{
    if (timeout_ms < 0 && timeout_ms != LK_FOREVER)
        return lk__fail(EINVAL,
                        "a timeout of %lld ms: 0 tries once, LK_FOREVER (-1) waits on, other negatives mean nothing",
                        (long long)timeout_ms);
    if (timeout_ms == LK_FOREVER || timeout_ms > LK__NEVER / 1000)
        *deadline_us = LK__NEVER;
    else
        *deadline_us = lk__later(lk__now_us(), timeout_ms * 1000);
    return 0;
}

int lk__ms_until(int64_t moment_us, int64_t now_us)
{
    if (moment_us <= now_us)
        return 0;
    int64_t ms = (moment_us - now_us - 1) / 1000 + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
