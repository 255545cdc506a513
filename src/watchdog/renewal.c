/* SPDX-License-Identifier: MIT */
/*
 * renewal.c - renewals of leases: when they are due, what is sent, what an answer means
 *
 * Guards: dog->mu, held by all of this. Runs on: the watchdog's thread.
 *
 * The hard case: a renewal that the server obeyed after the lease was lost here. It then lives on at the server with
 * no holder, so that answer is followed by a release.
 */
#include "watchdog/watchdog.h"

#include <latchkey/events.h>

/* A third of the lease from `from_us` on, spread so that many leases are not renewed at one moment. */
static int64_t next_renewal(const struct lk__lease *lease, int64_t from_us, int64_t lease_ms)
{
    if (lease->ownerless || lease->fixed)
        return LK__NEVER;
    if (lease->cap_us != LK__NEVER && from_us + lease_ms * 1000 >= lease->cap_us)
        return LK__NEVER; /* the present lease reaches the cap */
    int64_t third_us = lease_ms * 1000 / 3;
    return from_us + third_us - (int64_t)lk__random_below((uint64_t)third_us / 10 + 1);
}

/* --- sending --------------------------------------------------------------------------------------------------- */

/* With a free slot. 0: under way. */
static int send_with(struct lk__watchdog *dog, struct lk__lease *lease, const struct lk__sent *sent)
{
    assert(lk__mu_held(&dog->mu));
    const struct lk__command command = { .script = lease->renewal,
                                         .keys = lease->release.command.keys,
                                         .args = lease->renewal_args };
    struct lk__inflight *inflight = lk__window_slot(dog);
    inflight->lease = lease;
    inflight->lease_ms = sent->lease_ms;
    inflight->as_text = lease->eval;
    lease->eval = false;
    int rc = lk__window_send(dog, inflight, &command, sent);
    if (rc != 0)
        return rc;
    lease->requested = lease->asked;
    lease->inflight = true;
    lk__lease_ref(lease);
    return 0;
}

static void renewal_failed(struct lk__watchdog *dog, struct lk__lease *lease, int result, int64_t again_us)
{
    assert(lk__mu_held(&dog->mu));
    lk__lease_answer(dog, lease, lease->requested, result);
    if (lk__lease_isheld(lease) && !lease->ownerless)
        lease->renew_us = again_us;
}

static void send_renewal(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t lease_ms = lk__lease_capped(lease, lease->wanted_ms, now_us);
    int64_t believed_us = atomic_load(&lease->valid_until_us);
    lease->renew_us = LK__NEVER;
    if (lease_ms <= 0) { /* capped: ends with what it has */
        lease->risk_us = LK__NEVER;
        return;
    }
    if (lease->duplicates_lease_ms != lease_ms && now_us < lease->duplicates_until_us) {
        lease->renew_us = lease->duplicates_until_us; /* an older request with another lease might come last */
        return;
    }
    if (lease->call_lease_ms != 0 && lease->call_lease_ms != lease_ms) {
        lease->put_off = true; /* likewise the owner's, which is on its way */
        return;
    }
    int64_t lasts_us = dog->options->command_timeout_ms * 1000;
    struct lk__date deadline = lk__node_until(dog->node, lk__window_lane(dog), now_us, lasts_us).date;
    struct lk__sent sent = { .id = lease->id,
                             .lease_ms = lease_ms,
                             .deadline_us = deadline.us,
                             .parts = lease->parts,
                             .epoch = deadline.epoch };
    lk__lease_believeless(lease, now_us, lease_ms);
    int rc = send_with(dog, lease, &sent);
    if (rc == 0)
        lease->lease_ms = lease->wanted_ms;
    else
        atomic_store(&lease->valid_until_us, believed_us); /* nothing was sent */
    lease->unsent = rc == ENOTCONN;
    dog->unsent |= lease->unsent;
    if (rc != 0)
        renewal_failed(dog, lease, rc, lease->unsent ? LK__NEVER : lk__window_retryat(dog, now_us));
}

/*
 * Serve leases whose timer came. A renewal that finds too many under way waits for one of them to be over; the lease's
 * timer is then that of its risk and its loss, so that these are told in time meanwhile.
 */
static void serve_due(struct lk__watchdog *dog, int64_t now_us)
{
    struct lk__timer *timer;
    while ((timer = lk__heap_first(&dog->heap)) != NULL && timer->due_us <= now_us) {
        struct lk__lease *lease = LK__CONTAINER(timer, struct lk__lease, timer);
        bool good = lk__lease_goodat(dog, lease, now_us);
        if (good && lease->risk_us <= now_us)
            lk__lease_setstate(dog, lease, LK__AT_RISK);
        if (good && lease->renew_us <= now_us && !lk__listed(&lease->queue))
            lk__list_append(&dog->ready, &lease->queue);
        lk__lease_schedule(dog, lease);
    }
}

void lk__renewal_serve(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__link *link;
    serve_due(dog, now_us);
    while ((link = lk__list_first(&dog->ready)) != NULL && !lk__window_isfull(dog)) {
        struct lk__lease *lease = LK__CONTAINER(link, struct lk__lease, queue);
        lk__list_remove(link);
        if (lk__lease_goodat(dog, lease, now_us) && !lease->inflight && lease->renew_us <= now_us)
            send_renewal(dog, lease, now_us);
        lk__lease_schedule(dog, lease);
    }
}

void lk__renewal_serveunsent(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    dog->unsent = false;
    for (struct lk__link *l = lk__list_first(&dog->leases), *next; l != NULL; l = next) {
        struct lk__lease *lease = LK__CONTAINER(l, struct lk__lease, all);
        next = lk__list_next(&dog->leases, l); /* one that is lost now leaves the list */
        if (!lease->unsent || lease->ownerless || !lk__lease_goodat(dog, lease, now_us))
            continue;
        lease->unsent = false;
        lease->renew_us = now_us;
        lk__lease_schedule(dog, lease);
    }
}

/* --- answers --------------------------------------------------------------------------------------------------- */

static bool is_renewal(const struct lk__inflight *inflight)
{
    enum lk__verdict verdict = inflight->said.verdict;
    return inflight->good && (verdict == LK__DONE || verdict == LK__GONE || verdict == LK__LATE);
}

/* A renewal was answered. */
static void renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__lease *lease = inflight->lease;
    const struct lk__request *request = &inflight->request;
    const struct lk__answer *said = &inflight->said;
    int64_t lease_ms = inflight->lease_ms;
    int64_t until_us = request->sent_us + lease_ms * 1000 - lk__guard_us(lease_ms);

    if (said->verdict == LK__LATE) { /* the server's clock moved; it is known again now */
        renewal_failed(dog, lease, EIO, now_us);
        return;
    }
    if (!lk__lease_goodat(dog, lease, now_us)) {
        if (said->verdict == LK__DONE && lease->state == LK__LOST) /* too late: the lease is lost here */
            lk__outbox_add(dog, &lease->release, now_us + lease_ms * 1000);
        return;
    }
    if (said->verdict == LK__GONE) {
        lk__lease_loseit(dog, lease, lease->by_id ? LK_REASON_RELEASED : LK_REASON_GONE);
        return;
    }
    atomic_fetch_add(&lease->renewals, 1);
    atomic_store(&lease->valid_until_us, until_us);
    if (lk__lease_capped(lease, lease->lease_ms, now_us) < lease->lease_ms && !lease->ownerless)
        lease->reason = LK_REASON_MAX_HOLD;
    lk__lease_renewat(lease, next_renewal(lease, request->sent_us, lease_ms));
    if (lease->asked != lease->requested)
        lease->renew_us = now_us; /* a caller asked for another lease meanwhile */
    lk__lease_setstate(dog, lease, LK__HELD);
    lk__lease_answer(dog, lease, lease->requested, 0);
}

/* A renewal was refused, or never answered. */
static void not_renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__lease *lease = inflight->lease;
    const struct lk__request *request = &inflight->request;
    int state = atomic_load(&request->state);
    if (state == LK__UNSENT) {
        renewal_failed(dog, lease, ENOTCONN, now_us);
    } else if (state == LK__CUT || state == LK__GARBLED) {
        int64_t until_us = request->sent_us + 2 * dog->options->command_timeout_ms * 1000;
        lk__lease_duplicatesuntil(lease, now_us, until_us, inflight->lease_ms);
        if (state == LK__CUT)
            renewal_failed(dog, lease, EIO, now_us);
        else
            renewal_failed(dog, lease, EPROTO, lk__window_retryat(dog, now_us));
    } else if (inflight->unknown && !inflight->as_text) {
        lease->eval = true;
        lease->renew_us = now_us;
    } else if (!inflight->error) {
        renewal_failed(dog, lease, EPROTO, lk__window_retryat(dog, now_us));
    } else if (inflight->wrong_type) {
        lk__lease_loseit(dog, lease, LK_REASON_GONE);
    } else {
        renewal_failed(dog, lease, inflight->code, lk__window_retryat(dog, now_us));
    }
}

void lk__renewal_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__lease *lease = inflight->lease;
    lease->inflight = false;
    if (atomic_load(&inflight->request.state) == LK__ANSWERED && is_renewal(inflight))
        renewed(dog, inflight, now_us);
    else if (lk__lease_goodat(dog, lease, now_us))
        not_renewed(dog, inflight, now_us);
    lk__lease_schedule(dog, lease);
}
