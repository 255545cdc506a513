/* SPDX-License-Identifier: MIT */
/*
 * clock.c - one clock
 *
 * CLOCK_BOOTTIME goes on while the machine sleeps, as the server's leases do, and nobody can set it.
 */
#include "base/base.h"

#include <limits.h>

int64_t lk__clock_us(clockid_t clock)
{
    struct timespec now;
    int rc = clock_gettime(clock, &now);
    assert(rc == 0); /* the clocks used here exist since Linux 2.6.39 */
    (void)rc;
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t lk__now_us(void)
{
    return lk__clock_us(CLOCK_BOOTTIME);
}

int64_t lk__later(int64_t a_us, int64_t b_us)
{
    return a_us > LK__NEVER - b_us ? LK__NEVER : a_us + b_us;
}

int lk__ms_until(int64_t moment_us, int64_t now_us)
{
    if (moment_us <= now_us)
        return 0;
    int64_t ms = (moment_us - now_us - 1) / 1000 + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
