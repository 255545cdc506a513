/* SPDX-License-Identifier: MIT */
/*
 * api.c - a public call leaves errno alone, is no cancellation point unless it says so, and logs what it failed at
 * when it is over; and where logs go
 */
#include "base/base.h"

struct lk__apistate lk__api_enter(void)
{
    struct lk__apistate api = { .error = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &api.cancel_state);
    api.thread = lk__thread_self();
    if (api.thread != NULL)
        api.thread->inside++;
    return api;
}

int lk__api_leave(const struct lk__apistate *api, int code)
{
    struct lk__thread *thread = api->thread;
    if (thread != NULL && thread->inside > 0 && --thread->inside == 0 && thread->unlogged)
        lk__log_failure(thread); /* not in the child of a fork amid the call: it begins anew */
    pthread_setcancelstate(api->cancel_state, NULL);
    errno = api->error;
    return code;
}

int lk_addlog(lk_log_t log, int level, void *arg, uint64_t *handle)
{
    if (level < LK_LOG_ERROR || level > LK_LOG_DEBUG)
        return lk__fail(EINVAL, "log level %d: LK_LOG_ERROR to LK_LOG_DEBUG are 1 to 4", level);
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sinks_add(log, level, arg, handle);
    return lk__api_leave(&api, rc == 0 ? 0 : lk__fail(rc, "out of memory for a log"));
}

int lk_removelog(uint64_t handle)
{
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sinks_remove(handle);
    return lk__api_leave(&api, rc == 0 ? 0 : lk__fail(rc, "there is no log of this handle, or it was removed"));
}

/* --- how a caller's deadlines come to the one clock, and why they may not ----------------------------------------- */

#define US_PER_S 1000000LL
#define NS_PER_S 1000000000L

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
    int64_t left_us = there_us - lk__clock_us(clock);
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
