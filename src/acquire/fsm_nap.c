/* SPDX-License-Identifier: MIT */
/*
 * fsm_nap.c - how long a queued waiter sleeps until it asks again by itself
 *
 * A waiter that has waited for some seconds, for a lease that ends late, says with an ask that it rests. From then on it
 * sleeps for long, and scripts that change something tell it (see call_resting() of queue.lua). All others ask so often
 * that a claim which nobody takes is found by them.
 */
#include "acquire/fsm_inside.h"

enum {
    PASSED_OVER = -1,      /* the place of a head of the queue that hears no message and is passed over */
    SHORT_CLAIM_MS = 100,  /* claims of waiters that hear no message are this short, as they may not notice in time */
    SLEEP_MIN_US = 5000,   /* a lease that "has 0 ms left" has not ended yet */
    REST_LEAST_MS = 5000,  /* a lease that ends sooner is waited for awake */
    REST_PLACES = 120,     /* a little less than CALLED_MAX of queue.lua, as places change */
    REST_SPREAD_US = 25000 /* those who rest until the same lease ends come one by one */
};

int64_t lk__fsm_jittered(int64_t us)
{
    return us * 4 / 5 + (int64_t)lk__random_below((uint64_t)us * 2 / 5 + 1);
}

/* Does what is in its way last, and will it be called when something changes? A lease of -1 has no end, or it is not known. */
bool lk__fsm_mayrest(const struct lk__acquirefsm_state *a, int64_t left_ms, int64_t place)
{
    return a->set.rest_ms > 0 && a->hearing == LK__HEARD && place >= 0 && place < REST_PLACES &&
           (left_ms == -1 || left_ms >= REST_LEAST_MS);
}

/* How long it rests. */
static int64_t rest(const struct lk__acquirefsm_state *a, int64_t left_ms, int64_t place)
{
    int64_t us = lk__fsm_jittered(a->set.rest_ms * 1000);
    return left_ms >= 0 && left_ms < us / 1000 ? (left_ms + 1) * 1000 + place * REST_SPREAD_US : us;
}

/*
 * How long one sleeps that hears nothing, but for the ends of leases: the back-off doubles from the least to the longest. It
 * begins anew when the waiter has moved up, as what it wants changes hands just now. So who is in front asks about as often
 * as that happens, and a turn is short enough for all to have as many.
 */
static int64_t back_off(struct lk__acquirefsm_state *a, int64_t rank)
{
    if (rank < a->rank)
        a->backoff_ms = 0;
    a->rank = rank;
    a->backoff_ms = lk__backoff(a->backoff_ms, a->set.backoff_min_ms, a->set.backoff_max_ms);
    return a->backoff_ms;
}

/*
 * How long a queued waiter sleeps: the head aims at the end of the present lease, as does everybody at that of a short
 * claim; those far behind ask less often. The first one that was passed over, as it hears nothing, asks as often as it
 * may; one that hears nothing yet does not wait until it does.
 */
int64_t lk__fsm_nap(struct lk__acquirefsm_state *a, int64_t left_ms, int64_t rank)
{
    if (a->rests && a->may_rest)
        return rest(a, left_ms, rank);
    int64_t longest_ms = a->hearing == LK__UNHEARD ? back_off(a, rank) : a->set.poll_ms;
    if (rank == PASSED_OVER)
        return lk__fsm_jittered(lk__fsm_earlier(a->set.retry_min_ms, a->set.backoff_min_ms) * 1000);
    if (a->hearing == LK__JOINING && a->backoff_ms < a->set.poll_ms) {
        a->backoff_ms = lk__backoff(a->backoff_ms, a->set.retry_min_ms, a->set.poll_ms);
        return lk__fsm_jittered(a->backoff_ms * 1000);
    }
    if (rank >= 2 && a->hearing != LK__UNHEARD && (left_ms < 0 || left_ms > SHORT_CLAIM_MS))
        return lk__fsm_jittered(a->set.liveness_ms * 1000 / 3);
    int64_t us = lk__fsm_jittered(longest_ms * 1000);
    if (left_ms >= 0 && left_ms < us / 1000)
        us = (left_ms + 1) * 1000;
    return us < SLEEP_MIN_US ? SLEEP_MIN_US : us;
}
