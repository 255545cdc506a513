/* SPDX-License-Identifier: MIT */
/*
 * handover.c - what a client asks of those who hand something over to it: how long it is to count as alive after each
 * ask, and how long a claim has to last for it
 *
 * Both follow from its own options, and whoever hands over may have others. So they travel with each ask, in the
 * fraction of a number that queue.lua adds to the server's milliseconds: of 2048ths, 128 for each step of the
 * liveness, and 2 for each step of the claim; 1 is added by an ask whose waiter no message would reach. Two steps have a
 * whole number as their ratio, or nearly so. What most clients ask for, which have the default times, is no fraction: the
 * server is much faster with whole numbers.
 */
#include "acquire/acquire.h"

/* RESTS_MS: as queue.lua has it; a waiter that does not rest has a shorter liveness, and asks accordingly. */
enum { LIVENESS_STEPS = 16, RESTS_MS = 40000, CLAIM_MIN_MS = 3000, CLAIM_STEPS = 64 };
enum { REST_POLL_MIN_MS = 1000 }; /* a client that shall ask more often than by default does not rest */

/* As terms_of() of queue.lua has it. */
static int64_t claim_of_step(int step)
{
    return ((int64_t)(4 + step % 4) << (step / 4)) * 15625 / 1000;
}

/* `leased`: see lk__handover_terms(). */
static int64_t claim_of(const struct lk__options *options, bool leased)
{
    int64_t claim_ms = 2 * options->command_timeout_ms;
    if (claim_ms < CLAIM_MIN_MS)
        claim_ms = CLAIM_MIN_MS;
    if (claim_ms < LK__SKEWS_MIN * options->clock_skew_ms) /* of which clock_skew is not trusted */
        claim_ms = LK__SKEWS_MIN * options->clock_skew_ms;
    return leased && claim_ms > options->lease_ms ? options->lease_ms : claim_ms;
}

/*
 * A waiter that asks often enough finds a claim of which no message told before it ends, and then doubts the subscription
 * itself. One that asks rarely may find each claim too late; there pings find out, as often as polls come.
 */
int64_t lk__handover_pingms(const struct lk__options *options)
{
    int64_t asks_ms = lk__handover_liveness(options) / 3 * 6 / 5;
    bool finds = asks_ms + options->command_timeout_ms <= claim_of(options, true);
    return finds ? LK__NEVER : options->poll_ms;
}

int64_t lk__handover_liveness(const struct lk__options *options)
{
    int64_t polls_ms = 3 * options->poll_ms;
    if (polls_ms > RESTS_MS / 2 && !options->no_pubsub)
        polls_ms = RESTS_MS / 2;
    return polls_ms > LK__LIVENESS_MIN_MS ? polls_ms : LK__LIVENESS_MIN_MS;
}

int64_t lk__handover_rest(const struct lk__options *options)
{
    if (options->no_pubsub || options->poll_ms < REST_POLL_MIN_MS)
        return 0;
    return 3 * options->poll_ms > RESTS_MS ? 3 * options->poll_ms : RESTS_MS;
}

/* The 2048ths of a liveness of at least that, without a claim. */
static int64_t liveness_2048ths(int64_t least_ms)
{
    int64_t liveness_ms = LK__LIVENESS_MIN_MS;
    int step = 0;
    while (liveness_ms < least_ms && step < LIVENESS_STEPS - 1) {
        liveness_ms *= 2;
        step++;
    }
    return liveness_ms * 2048 + 128 * (int64_t)step;
}

int64_t lk__handover_restterms(const struct lk__options *options)
{
    return liveness_2048ths(lk__handover_rest(options)) - liveness_2048ths(lk__handover_liveness(options));
}

int64_t lk__handover_lasts(const struct lk__options *options, bool leased, bool rested)
{
    int64_t silent_ms = liveness_2048ths(lk__handover_liveness(options)) / 2048;
    if (rested)
        silent_ms = liveness_2048ths(lk__handover_rest(options)) / 2048 + LK__LIVENESS_MIN_MS; /* it may be called */
    return silent_ms + claim_of(options, leased);
}

int64_t lk__handover_terms(const struct lk__options *options, bool leased)
{
    int64_t claim_ms = claim_of(options, leased);
    int claim_step = 1; /* 0: CLAIM_MIN_MS */
    while (claim_step < CLAIM_STEPS - 1 && claim_of_step(claim_step + 1) <= claim_ms)
        claim_step++;
    if (claim_ms == CLAIM_MIN_MS)
        claim_step = 0; /* as queue.lua has it */
    return liveness_2048ths(lk__handover_liveness(options)) + 2 * (int64_t)claim_step;
}
