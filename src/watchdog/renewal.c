/* SPDX-License-Identifier: MIT */
/*
 * renewal.c - renewals of leases: when they are due, what is sent, what an answer means
 *
 * Guards: dog->mu, held by all of this. Runs on: the watchdog's thread.
 *
 * Leases that are due at one time are renewed by one request, a batch. For the protocol these are renewals of their own:
 * each has its lease, its answer, and its doubts. A batch that the server refuses may be so for one of them, so all are
 * asked for again one by one.
 *
 * The hard case: a renewal that the server obeyed after the lease was lost here. It then lives on at the server with
 * no holder, so that answer is followed by a release.
 */
#include "watchdog/watchdog.h"
#include "base/probe.h"

#include <latchkey/events.h>

/* A third of the lease from `from_us` on, spread so that many leases are not renewed at one moment. */
static int64_t next_renewal(const struct lk__lease *lease, int64_t from_us, int64_t lease_ms)
{
    if (lease->ownerless || lease->fixed)
        return LK__NEVER;
    if (lease->cap_us != LK__NEVER && from_us + (lease_ms + 1) * 1000 > lease->cap_us)
        return LK__NEVER; /* the present lease reaches the cap, but for a part of a millisecond */
    int64_t third_us = lease_ms * 1000 / 3;
    return from_us + third_us - (int64_t)lk__random_below((uint64_t)third_us / 10 + 1);
}

/* --- sending --------------------------------------------------------------------------------------------------- */

enum {
    PASS = 200,      /* leases that are served before others get the lock: less than a millisecond */
    SINGLE = 8,      /* a renewal by itself counts as so many of a batch */
    BATCH_LEAST = 4, /* fewer are not renewed early */
    SEARCH = 2 * LK__BATCH_MAX
};

/* Renewals that go with one request. */
struct batch {
    struct lk__lease *first, **last; /* lead to each other */
    int64_t believed_us[LK__BATCH_MAX];
    int parts;
    struct lk__node *at;
    bool single;
    enum lk__manner manner;
    struct lk__items items;
};

/* Its request may pass another time: it goes once more, and a caller that waits for it waits on as long as it may. */
static void send_again(struct lk__lease *lease, int64_t again_us)
{
    assert(lk__mu_held(&lease->dog->mu));
    if (lk__lease_isheld(lease) && !lease->ownerless)
        lease->renew_us = again_us;
}

static void renewal_failed(struct lk__watchdog *dog, struct lk__lease *lease, int result, int64_t again_us)
{
    assert(lk__mu_held(&dog->mu));
    lk__lease_answer(dog, lease, lease->requested, result);
    send_again(lease, again_us);
}

/* May the lease be asked for now? Else it is not renewed any more, or later. */
static bool may_ask(struct lk__lease *lease, int64_t lease_ms, int64_t now_us)
{
    assert(lk__mu_held(&lease->dog->mu));
    lease->renew_us = LK__NEVER;
    if (lease_ms <= 0) { /* capped: ends with what it has */
        lease->risk_us = LK__NEVER;
        return false;
    }
    if (lease->duplicates_lease_ms != lease_ms && now_us < lease->duplicates_until_us) {
        lease->renew_us = lease->duplicates_until_us; /* an older request with another lease might come last */
        return false;
    }
    if (lease->call_lease_ms != 0 && lease->call_lease_ms != lease_ms) {
        lease->put_off = true; /* likewise the owner's, which is on its way */
        return false;
    }
    return true;
}

static bool fits(struct batch *batch, const struct lk__lease *lease, int64_t lease_ms)
{
    struct lk__items *items = &batch->items;
    int parts = lease->parts > 1 ? lease->parts : 1;
    const struct lk__item item = { .keys = lease->release.command.keys,
                                   .args = lease->renewal_args,
                                   .id = lease->id,
                                   .lease_ms = lease_ms,
                                   .parts = lease->parts };
    if (batch->single)
        items->each[items->count++] = item;
    else if ((items->count > 0 && batch->parts + parts > LK__BATCH_MAX) || !lk__items_add(items, lease->renewal, &item))
        return false;
    batch->parts += parts;
    return true;
}

/* Have a lease that is ready go with the batch, if it may be asked for at all. False: it does not fit in. */
static bool add_renewal(struct lk__watchdog *dog, struct batch *batch, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t due_us = lease->renew_us, lease_ms = lk__lease_capped(lease, lease->wanted_ms, now_us);
    if (lease->recheck)
        lease_ms = (lk__lease_believedthere(lease) - now_us) / 1000; /* what a fixed one has left */
    if (!may_ask(lease, lease_ms, now_us)) {
        lk__lease_unready(dog, lease);
        lk__lease_schedule(dog, lease);
        return true;
    }
    if (!fits(batch, lease, lease_ms)) {
        lease->renew_us = due_us;
        return false;
    }
    lk__lease_unready(dog, lease);
    batch->believed_us[batch->items.count - 1] = atomic_load(&lease->valid_until_us);
    if (lease->manner != LK__BY_SHA1)
        batch->manner = lease->manner;
    lease->manner = LK__BY_SHA1;
    lease->flight_ms = (int)lease_ms;
    lk__lease_believeless(lease, now_us, lease_ms);
    *batch->last = lease;
    batch->last = &lease->together;
    return true;
}

/* With a free slot. 0: under way. */
static int send_batch(struct lk__watchdog *dog, const struct batch *batch, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *inflight = lk__window_slot(dog, batch->manner);
    const struct lk__item *first = &batch->items.each[0];
    const struct lk__command command = { .script = batch->first->renewal, .keys = first->keys, .args = first->args };
    int64_t lasts_us = dog->options->command_timeout_ms * 1000;
    struct lk__date deadline = lk__conn_until(&batch->at->lanes[batch->at->underway.lane], now_us, lasts_us).date;
    struct lk__sent sent = { .id = first->id,
                             .lease_ms = first->lease_ms,
                             .deadline_us = deadline.us,
                             .parts = first->parts,
                             .epoch = deadline.epoch,
                             .items = batch->items.count > 1 ? &batch->items : NULL };
    inflight->lease = batch->first;
    inflight->count = batch->items.count;
    return lk__window_send(dog, batch->at, inflight, &command, &sent);
}

/* The renewal is under way. */
static void sent(struct lk__lease *lease)
{
    lease->lease_ms = lease->wanted_ms;
    lease->requested = lease->asked;
    lease->inflight = true;
    lk__lease_ref(lease);
}

/*
 * Nothing was sent. It goes when a connection comes up; one to a node of several is made because something is to be sent there,
 * so there it is tried again.
 */
static void not_sent(struct lk__watchdog *dog, struct lk__lease *lease, int code, int64_t believed_us, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    atomic_store(&lease->valid_until_us, believed_us);
    lk__quorum_follow(dog, lease);
    lease->unsent = code == ENOTCONN;
    dog->unsent |= lease->unsent;
    bool comes_up = lease->unsent && dog->node->cluster == NULL;
    send_again(lease, comes_up ? LK__NEVER : lk__window_retryat(dog, now_us));
}

static void send_renewals(struct lk__watchdog *dog, struct batch *batch, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    if (batch->first == NULL)
        return;
    *batch->last = NULL;
    int rc = send_batch(dog, batch, now_us), i = 0;
    for (struct lk__lease *lease = batch->first; lease != NULL; lease = lease->together, i++) {
        lease->unsent = false;
        batch->at->underway.unsent |= rc == ENOTCONN;
        if (rc == 0)
            sent(lease);
        else
            not_sent(dog, lease, rc, batch->believed_us[i], now_us);
        lk__lease_schedule(dog, lease);
    }
}

/* --- what is due ------------------------------------------------------------------------------------------------- */

/*
 * Is the renewal due, or nearly so? A tenth of the time between two renewals does not matter, and those within it are
 * renewed together: the server has much less work with them so.
 */
static bool is_nearly_due(const struct lk__lease *lease, int64_t now_us)
{
    int64_t early_us =
        (atomic_load(&lease->valid_until_us) - lease->renew_us) / 20; /* that was two thirds of a lease */
    return lease->renew_us <= now_us || (lease->renew_us != LK__NEVER && lease->renew_us - early_us <= now_us);
}

static struct lk__node *node_of(const struct lk__watchdog *dog, const struct lk__lease *lease)
{
    return lk__node_for(dog->node, &lease->release.command, lease->manner == LK__BY_ASKING);
}

/*
 * The first lease that is ready and may be sent; NULL: too many are under way. One whose node of several does not keep up
 * is passed over, with so many behind it.
 */
static struct lk__link *first_ready(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__link *link = lk__window_isempty(&dog->window) ? NULL : lk__list_first(&dog->ready);
    for (int i = 0; link != NULL && i < PASS; link = lk__list_next(&dog->ready, link), i++)
        if (!lk__window_isfull(dog, node_of(dog, LK__CONTAINER(link, struct lk__lease, queue))))
            return link;
        else if (dog->node->cluster == NULL)
            break;
    return NULL;
}

/* The lease at `link`, and others behind it that may go with it. Returns how much work that is. */
static int gather(struct lk__watchdog *dog, struct batch *batch, struct lk__link *link, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__link *next;
    const struct lk__lease *first = LK__CONTAINER(link, struct lk__lease, queue);
    batch->first = NULL;
    batch->last = &batch->first;
    batch->parts = 0;
    batch->items.count = 0;
    batch->manner = LK__BY_SHA1;
    batch->at = node_of(dog, first);
    batch->single = first->alone || first->renewal->batch == NULL || lk__node_batch(dog->node) == 1;
    for (int i = 0; link != NULL && i < (batch->single ? 1 : SEARCH); link = next, i++) {
        struct lk__lease *lease = LK__CONTAINER(link, struct lk__lease, queue);
        next = lk__list_next(&dog->ready, link);
        if (lease->renewal != first->renewal || lease->alone != first->alone || !lk__lease_goodat(dog, lease, now_us))
            continue; /* one that is lost now is ready no more */
        if (lease->inflight || !is_nearly_due(lease, now_us)) {
            lk__lease_unready(dog, lease);
            lk__lease_schedule(dog, lease);
        } else if (!add_renewal(dog, batch, lease, now_us)) {
            break;
        }
    }
    return batch->single ? SINGLE : 1 + (int)batch->items.count;
}

/* May another line of what is wrong with renewals be written? */
static bool may_warn(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    enum { PAUSE_US = 10000000 };
    if (dog->warned_us != 0 && now_us < dog->warned_us + PAUSE_US)
        return false;
    dog->warned_us = now_us;
    return true;
}

static void warn_if_alone(struct lk__watchdog *dog, const struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    if (may_warn(dog, now_us))
        lk__log(
            LK_LOG_WARNING,
            "%s: fewer than %d replicas (wait_replicas) acknowledged its renewal, so it does not count; if that goes "
            "on, the lease will be lost",
            lease->name, dog->options->wait_replicas);
}

/*
 * The holder of a lease whose renewal cannot be answered in time, however fast, is told now. Behind others that wait for
 * those under way it takes as many round trips more.
 */
static void warn_if_too_late(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t trip_us = lk__window_fastest(dog), takes_us = trip_us;
    if (trip_us == 0 || lease->state == LK__AT_RISK)
        return;
    if (dog->window.leases > 0 && lk__window_isfull(dog, node_of(dog, lease)))
        takes_us += trip_us * (int64_t)(dog->ready_count / dog->window.leases);
    if (now_us + takes_us < atomic_load(&lease->valid_until_us))
        return;
    if (may_warn(dog, now_us))
        lk__log(LK_LOG_WARNING,
                "%s: its renewal takes longer than what is left of the lease: the server answers after %lld ms, and %u "
                "leases are to be renewed before; take longer leases (lease_ms), or fewer at once",
                lease->name, (long long)(trip_us / 1000), (unsigned)dog->ready_count);
    lk__lease_setstate(dog, lease, LK__AT_RISK);
}

/* Tell, once, that it is held for too long. */
static void warn_of_hold(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    lease->long_us = LK__NEVER;
    if (lk__linepause_over(&dog->held_long, now_us))
        lk__log(LK_LOG_WARNING, "%s: held for more than %s", lease->name,
                lk__time_text(dog->options->warn_hold_ms).text);
    dog->notify(dog->arg, lease, LK_EVENT_LONG_HOLD);
}

/*
 * Serve leases whose timer came. A renewal that finds too many under way waits for one of them to be over; the lease's
 * timer is then that of its risk and its loss, so that these are told in time meanwhile.
 */
static void serve_due(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__timer *timer;
    for (int i = 0; i < PASS && (timer = lk__heap_first(&dog->heap)) != NULL && timer->due_us <= now_us; i++) {
        struct lk__lease *lease = LK__CONTAINER(timer, struct lk__lease, release.timer);
        bool good = lk__lease_goodat(dog, lease, now_us);
        if (good && lease->risk_us <= now_us)
            lk__lease_setstate(dog, lease, LK__AT_RISK);
        if (good && lease->long_us <= now_us)
            warn_of_hold(dog, lease, now_us);
        if (good && lease->renew_us <= now_us && !lk__listed(&lease->queue)) {
            warn_if_too_late(dog, lease, now_us);
            lk__lease_ready(dog, lease);
        }
        lk__lease_schedule(dog, lease);
    }
}

/* Beside one that is due, others that are nearly so, if these are many. */
static void serve_nearly_due(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__timer *timer;
    size_t due = dog->ready_count;
    while (due > 0 && dog->ready_count < LK__BATCH_MAX && (timer = lk__heap_first(&dog->heap)) != NULL) {
        struct lk__lease *lease = LK__CONTAINER(timer, struct lk__lease, release.timer);
        if (lease->inflight || lk__listed(&lease->queue) || !lk__lease_isheld(lease) || !is_nearly_due(lease, now_us))
            break;
        lk__lease_ready(dog, lease);
        lk__lease_schedule(dog, lease);
    }
    while (dog->ready_count > due && dog->ready_count < BATCH_LEAST) {
        struct lk__lease *lease = LK__CONTAINER(dog->ready.prev, struct lk__lease, queue);
        lk__lease_unready(dog, lease);
        lk__lease_schedule(dog, lease);
    }
}

bool lk__renewal_serve(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct batch batch;
    serve_due(dog, now_us);
    serve_nearly_due(dog, now_us);
    int left = PASS;
    struct lk__link *first;
    while (left > 0 && (first = first_ready(dog)) != NULL) {
        left -= gather(dog, &batch, first, now_us);
        send_renewals(dog, &batch, now_us);
    }
    return left <= 0;
}

/* Is another server to know of the lease than the one that said last that it is held? */
static bool has_moved(struct lk__watchdog *dog, const struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    unsigned epoch = lk__lease_iswhole(lease) ? 0 : node_of(dog, lease)->underway.epoch;
    return epoch != 0 && lease->epoch != 0 && epoch != lease->epoch;
}

/* The new server is told of a release that the watchdog remembers. */
static void release_again(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    if (now_us >= lease->release.end_us || !has_moved(dog, lease))
        return;
    lease->epoch = node_of(dog, lease)->underway.epoch;
    lease->release.unawaited = true;
    lk__outbox_add(dog, &lease->release, lease->release.end_us);
}

static void release_all_again(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    for (struct lk__link *l = lk__list_first(&dog->released); l != NULL; l = lk__list_next(&dog->released, l))
        release_again(dog, LK__CONTAINER(l, struct lk__lease, all), now_us);
}

void lk__renewal_servemoved(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    dog->unsent = false;
    release_all_again(dog, now_us);
    for (struct lk__link *l = lk__list_first(&dog->leases), *next; l != NULL; l = next) {
        struct lk__lease *lease = LK__CONTAINER(l, struct lk__lease, all);
        next = lk__list_next(&dog->leases, l); /* one that is lost now leaves the list */
        bool moved = has_moved(dog, lease);
        if ((!lease->unsent && !moved) || lease->ownerless || !lk__lease_goodat(dog, lease, now_us))
            continue;
        if (moved)
            lk__lease_recheck(lease, now_us);
        if (lease->unsent)
            lease->renew_us = now_us;
        lease->unsent = false;
        lk__lease_schedule(dog, lease);
    }
}

/* --- what was given back ------------------------------------------------------------------------------------------ */

enum { RELEASED_MAX = 4000 };

/* The oldest release, taken off the list, if it is over or one too many; or NULL. */
static struct lk__lease *oldest_over(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__link *link = lk__list_first(&dog->released);
    struct lk__lease *lease = link != NULL ? LK__CONTAINER(link, struct lk__lease, all) : NULL;
    if (lease == NULL || (now_us < lease->release.end_us && dog->released_count <= RELEASED_MAX))
        return NULL;
    lk__list_remove(&lease->all);
    dog->released_count--;
    return lease;
}

bool lk__lease_forgetreleased(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__lease *lease = oldest_over(dog, now_us);
    if (lease == NULL)
        return false;
    lk__mu_unlock(&dog->mu);
    lk__lease_unref(lease);
    lk__mu_lock(&dog->mu);
    return true;
}

void lk__lease_remember(struct lk__lease *lease, unsigned epoch, int64_t end_us)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    lease->epoch = epoch;
    if (!dog->stopping && !lease->release.pending) {
        lease->release.end_us = end_us;
        lk__list_append(&dog->released, &lease->all);
        dog->released_count++;
        lk__lease_ref(lease);
        release_again(dog, lease, lk__now_us()); /* that server may have been left meanwhile */
    }
    struct lk__lease *forgotten = oldest_over(dog, 0);
    lk__mu_unlock(&dog->mu);
    if (forgotten != NULL)
        lk__lease_unref(forgotten);
}

/* --- answers --------------------------------------------------------------------------------------------------- */

static bool is_renewal(const struct lk__inflight *inflight, enum lk__verdict verdict)
{
    return inflight->request.judged.ruling == LK__ANSWER &&
           (verdict == LK__DONE || verdict == LK__GONE || verdict == LK__LATE);
}

/*
 * What is left of a lease whose renewal is answered now, in millionths of it. A third had passed when it was due, or counts
 * as passed: what was handed over, or is set anew by its holder, is renewed at once.
 */
static int64_t margin_of(const struct lk__lease *lease, int64_t now_us)
{
    int64_t until_us = atomic_load(&lease->valid_until_us), third_us = until_us - lease->risk_us;
    return third_us > 0 ? (until_us - now_us) * 1000000 / (3 * third_us) : 0;
}

/* A renewal was answered. */
static void renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, struct lk__lease *lease,
                    enum lk__verdict verdict, int64_t now_us)
{
    const struct lk__request *request = &inflight->request;
    int64_t lease_ms = lease->flight_ms;
    int64_t until_us = lk__lease_validuntil(lease, request->sent_us, lease_ms);

    if (verdict == LK__LATE) { /* the server's clock moved; it is known again now */
        send_again(lease, now_us);
        return;
    }
    if (!lk__lease_goodat(dog, lease, now_us)) {
        if (verdict == LK__DONE && lease->state == LK__LOST) /* too late: the lease is lost here */
            lk__outbox_add(dog, &lease->release, now_us + lease_ms * 1000);
        return;
    }
    if (verdict == LK__GONE) {
        lk__lease_loseit(dog, lease, lease->by_id ? LK_REASON_RELEASED : LK_REASON_GONE);
        /* the next master may know the wait before the grant: a place of nobody would delay those behind it */
        if (lease->epoch != 0 && lease->epoch != request->epoch && !lease->by_id)
            lk__outbox_addunawaited(dog, &lease->release, now_us + lease_ms * 1000);
        return;
    }
    lease->alone = lease->lingers = lease->doubted = lease->recheck = false;
    lease->epoch = request->epoch;
    lease->longer_s = 0;
    LK__PROBE3(renew, lease->name, lease->id, atomic_load(&lease->valid_until_us) - now_us);
    atomic_fetch_add(&lease->renewals, 1);
    if (lease->risk_us != LK__NEVER)
        lk__histogram_add(&dog->margins, lk__histogram_shares, margin_of(lease, now_us));
    atomic_store(&lease->valid_until_us, until_us);
    if (lk__lease_capped(lease, lease->lease_ms, now_us) < lease->lease_ms && !lease->ownerless)
        lease->reason = LK_REASON_MAX_HOLD;
    lk__lease_renewat(lease, next_renewal(lease, request->sent_us, lease_ms));
    if (lease->asked != lease->requested)
        lease->renew_us = now_us; /* a caller asked for another lease meanwhile */
    if (request->epoch < lk__request_node(request)->underway.epoch)
        lk__lease_recheck(lease, now_us); /* a server that is left answered late */
    lk__lease_setstate(dog, lease, LK__HELD);
    lk__quorum_follow(dog, lease);
    lk__lease_answer(dog, lease, lease->requested, 0);
}

/*
 * The server renewed a lease, and too few replicas have that: its validity stays as it was. If it is lost now, the hold
 * that is left at the server is released.
 */
static void not_acknowledged(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    if (lk__lease_goodat(dog, lease, now_us)) {
        lease->lingers = true;
        renewal_failed(dog, lease, EIO, lk__window_retryat(dog, now_us));
        warn_if_alone(dog, lease, now_us);
    } else if (lease->state == LK__LOST) {
        lk__outbox_add(dog, &lease->release, now_us + (int64_t)lease->flight_ms * 1000);
    }
}

/* A renewal was never answered. */
static void not_answered(struct lk__watchdog *dog, const struct lk__inflight *inflight, struct lk__lease *lease,
                         int64_t now_us)
{
    const struct lk__request *request = &inflight->request;
    int state = atomic_load(&request->state);
    if (state != LK__UNSENT)
        lk__lease_duplicatesuntil(lease, now_us, request->sent_us + 2 * dog->options->command_timeout_ms * 1000,
                                  lease->flight_ms);
    else if (now_us >= lease->duplicates_until_us)
        lease->requested = lease->answered; /* nothing was */
    if (state == LK__GARBLED)
        lk__lease_answer(dog, lease, lease->requested, EPROTO);
    send_again(lease, lk__inflight_againat(dog, inflight, now_us));
}

/* A renewal was refused, or answered with what its script never answers. */
static void not_renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, struct lk__lease *lease,
                        int64_t now_us)
{
    const struct lk__judged *judged = &inflight->request.judged;
    if (judged->ruling == LK__AGAIN) {
        lease->manner = inflight->request.manner;
        lease->renew_us = lk__inflight_againat(dog, inflight, now_us);
    } else if (judged->ruling == LK__REFUSED && inflight->count > 1) {
        lease->alone = true; /* one of them may have failed for all */
        lease->renew_us = now_us;
    } else if (judged->wrong_type) {
        lk__lease_loseit(dog, lease, LK_REASON_GONE);
    } else {
        renewal_failed(dog, lease, judged->ruling == LK__ANSWER ? EPROTO : judged->code, lk__window_retryat(dog, now_us));
    }
}

static void over(struct lk__watchdog *dog, const struct lk__inflight *inflight, struct lk__lease *lease,
                 enum lk__verdict verdict, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    bool answered = atomic_load(&inflight->request.state) == LK__ANSWERED, good = is_renewal(inflight, verdict);
    lease->inflight = false;
    if (good && verdict == LK__DONE && lk__inflight_isalone(dog, inflight))
        not_acknowledged(dog, lease, now_us);
    else if (good)
        renewed(dog, inflight, lease, verdict, now_us);
    else if (lk__lease_goodat(dog, lease, now_us))
        (answered ? not_renewed : not_answered)(dog, inflight, lease, now_us);
    lk__lease_schedule(dog, lease);
}

void lk__renewal_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    unsigned n = 0;
    for (struct lk__lease *lease = inflight->lease; lease != NULL; lease = lease->together, n++)
        over(dog, inflight, lease, lk__inflight_verdict(inflight, n), now_us);
}

void lk__renewal_drop(struct lk__lease *lease)
{
    for (struct lk__lease *next; lease != NULL; lease = next) {
        next = lease->together;
        lk__lease_unref(lease);
    }
}

/* --- requests that set a lease again, between its grant and its end ----------------------------------------------- */

/*
 * Guards: dog->mu, what lease.h marks so. Renewals are renewal.c's; here is what all such requests have in common, and
 * what an owner says of its own.
 */

int64_t lk__lease_capped(const struct lk__lease *lease, int64_t lease_ms, int64_t now_us)
{
    assert(lk__mu_held(&lease->dog->mu));
    if (lease->cap_us != LK__NEVER && (lease->cap_us - now_us) / 1000 < lease_ms)
        lease_ms = (lease->cap_us - now_us) / 1000;
    return lease_ms;
}

void lk__lease_duplicatesuntil(struct lk__lease *lease, int64_t now_us, int64_t until_us, int64_t lease_ms)
{
    assert(lk__mu_held(&lease->dog->mu));
    if (now_us >= lease->duplicates_until_us || lease_ms < lease->duplicates_lease_ms)
        lease->duplicates_lease_ms = (int)lease_ms;
    if (until_us > lease->duplicates_until_us)
        lease->duplicates_until_us = until_us;
}

void lk__lease_believeless(struct lk__lease *lease, int64_t now_us, int64_t lease_ms)
{
    assert(lk__mu_held(&lease->dog->mu));
    int64_t shorter_us = lk__lease_validuntil(lease, now_us, lease_ms);
    if (shorter_us < atomic_load(&lease->valid_until_us)) {
        int there_s = (int)(lk__lease_believedthere(lease) / 1000000) + 1;
        lease->longer_s = there_s > lease->longer_s ? there_s : lease->longer_s;
        atomic_store(&lease->valid_until_us, shorter_us);
    }
    lk__quorum_follow(lease->dog, lease);
}

/* --- what its owner does -------------------------------------------------------------------------------------- */

/*
 * Requests that may meet at the server all ask for the same lease, so that it does not matter which comes last. So a
 * request of the owner asks for the lease of the last request, or in doubt for less; another wish waits.
 */
int64_t lk__lease_begincall(struct lk__lease *lease)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    int64_t now_us = lk__now_us(), lease_ms = lk__lease_capped(lease, lease->lease_ms, now_us);
    if (now_us < lease->duplicates_until_us && lease->duplicates_lease_ms < lease_ms)
        lease_ms = lease->duplicates_lease_ms;
    if (lease_ms < 1)
        lease_ms = 1; /* PEXPIRE with less deletes the key */
    lease->call_lease_ms = (int)lease_ms;
    if (lk__lease_isheld(lease)) {
        lk__lease_believeless(lease, now_us, lease_ms);
        lk__lease_schedule(dog, lease);
    }
    lk__mu_unlock(&dog->mu);
    return lease_ms;
}

void lk__lease_endcall(struct lk__lease *lease, bool unsure, int64_t sent_us)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    int64_t now_us = lk__now_us(), lease_ms = lease->call_lease_ms;
    int64_t until_us = lk__lease_validuntil(lease, sent_us, lease_ms);
    bool held = lk__lease_goodat(dog, lease, now_us);
    lease->call_lease_ms = 0;
    if (sent_us != 0)
        lease->longer_s = 0;
    if (unsure)
        lk__lease_duplicatesuntil(lease, now_us, now_us + 2 * dog->options->command_timeout_ms * 1000, lease_ms);
    if (held && sent_us != 0 && dog->options->wait_replicas == 0 && until_us > atomic_load(&lease->valid_until_us))
        atomic_store(&lease->valid_until_us, until_us);
    if (held && lease->put_off) {
        lease->renew_us = now_us;
        lk__watchdog_wake(dog);
    }
    lease->put_off = false;
    lk__lease_schedule(dog, lease);
    lk__mu_unlock(&dog->mu);
}

void lk__lease_expectduplicates(struct lk__lease *lease, int64_t lease_ms)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    int64_t now_us = lk__now_us();
    lk__lease_duplicatesuntil(lease, now_us, now_us + 2 * dog->options->command_timeout_ms * 1000, lease_ms);
    lk__mu_unlock(&dog->mu);
}

void lk__lease_shrink(struct lk__lease *lease, int parts)
{
    lk__watchdog_lock(lease->dog);
    lease->parts = (unsigned short)parts;
    lk__mu_unlock(&lease->dog->mu);
}

int lk__lease_renew(struct lk__lease *lease, int64_t lease_ms, int64_t until_us)
{
    struct lk__watchdog *dog = lease->dog;
    if (lk__lease_iswhole(lease))
        return lk__quorum_renew(lease, lease_ms, until_us);
    lk__watchdog_lock(dog);
    int rc = ESTALE;
    if (lk__lease_goodat(dog, lease, lk__now_us())) {
        unsigned mine = ++lease->asked;
        lease->wanted_ms = (int)lease_ms;
        lease->recheck = false;
        lease->renew_us = 0;
        lk__lease_schedule(dog, lease);
        lk__watchdog_wake(dog);
        while ((int)(lease->answered - mine) < 0 && !dog->stopping && lk__lease_awaitrenewed(dog, &until_us))
            ;
        if ((int)(lease->answered - mine) >= 0)
            rc = lease->result;
        else if (dog->stopping)
            rc = ECANCELED;
        else
            rc = (int)(lease->requested - mine) >= 0 ? EIO : ENOTCONN;
    }
    lk__mu_unlock(&dog->mu);
    return rc;
}

bool lk__lease_issettled(struct lk__lease *lease)
{
    lk__watchdog_lock(lease->dog);
    bool settled = !lk__lease_isheld(lease) || (lease->renew_us == LK__NEVER && !lease->inflight);
    lk__mu_unlock(&lease->dog->mu);
    return settled;
}

int lk__lease_settle(struct lk__lease *lease, int64_t until_us)
{
    lk__watchdog_lock(lease->dog);
    int64_t lease_ms = lease->wanted_ms;
    lk__mu_unlock(&lease->dog->mu);
    return lk__lease_renew(lease, lease_ms, until_us);
}
