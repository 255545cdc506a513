/* SPDX-License-Identifier: MIT */
/*
 * lease.c - a lease, from its making to its end
 *
 *              renewed                       validity over, gone
 *        .------------------.        .-----------------------------> LOST
 *        v                  |        |                                 |
 *   OVER --take--> HELD --overdue-> AT_RISK --end--> OVER <---end------'  (stays LOST, off all lists)
 *
 * Guards: dog->mu, what the header marks so. Order: after an object's mu, before the connection's.
 *
 * A lease is lost when its validity ends, by the local clock alone: no network is asked. The first to look, the
 * thread or a caller, decides that under dog->mu, and the loss is told exactly once.
 */
#include "watchdog/watchdog.h"

#include <latchkey/events.h>

#include <string.h>

/* --- how long a lease can be trusted ------------------------------------------------------------------------------ */

/* 1 %: clock rates differ by less. 2 ms: a timer may fire late. */
static int64_t guard_us(int64_t lasts_us, int64_t skew_ms)
{
    return lasts_us / 100 + 2000 + skew_ms * 1000;
}

/*
 * The promise: nobody else is granted it before. The server sets the lease after the request was sent, and keeps it for
 * `lasts_us` of its own time. These are at least lasts_us - lasts_us / 100 of ours. So it ends there no earlier than
 * that after `sent_us`; at a server that replaced it, `skew_ms` earlier. Who looks up to 2 ms late is in time.
 */
int64_t lk__valid_until(int64_t sent_us, int64_t lasts_us, int64_t skew_ms)
{
    return sent_us + lasts_us - guard_us(lasts_us, skew_ms);
}

int64_t lk__ended_by(int64_t until_us, int64_t lasts_us, int64_t skew_ms)
{
    return until_us + guard_us(lasts_us, skew_ms);
}

int64_t lk__lease_validuntil(const struct lk__lease *lease, int64_t sent_us, int64_t lease_ms)
{
    return lk__valid_until(sent_us, lease_ms * 1000, lease->dog->options->clock_skew_ms);
}

/* --- states; all under dog->mu ------------------------------------------------------------------------------ */

/* A renewal leaves two thirds of a lease: half of that, a third, may pass before anybody is alarmed. */
void lk__lease_renewat(struct lk__lease *lease, int64_t renew_us)
{
    assert(lk__mu_held(&lease->dog->mu));
    int64_t left_us = atomic_load(&lease->valid_until_us) - renew_us;
    lease->renew_us = renew_us;
    lease->risk_us = renew_us == LK__NEVER ? LK__NEVER : renew_us + left_us / 2;
}

void lk__lease_recheck(struct lk__lease *lease, int64_t now_us)
{
    enum { SPREAD_US = 100000 }; /* all clients do so at one time */
    int64_t due_us = now_us + (int64_t)lk__random_below(SPREAD_US);
    assert(lk__mu_held(&lease->dog->mu));
    lease->recheck |= lease->fixed && lease->renew_us == LK__NEVER && !lease->inflight;
    if (due_us < lease->renew_us)
        lease->renew_us = due_us;
}

void lk__lease_schedule(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    int64_t due_us = LK__NEVER;
    if (lease->release.pending) { /* the timer is in the outbox */
        assert(!lk__lease_isheld(lease));
        return;
    }
    if (lk__lease_isheld(lease)) {
        due_us = atomic_load(&lease->valid_until_us);
        if (lease->risk_us < due_us && lease->state == LK__HELD)
            due_us = lease->risk_us;
        if (lease->long_us < due_us)
            due_us = lease->long_us;
        if (lease->renew_us < due_us && !lease->inflight && !lk__listed(&lease->queue))
            due_us = lease->renew_us;
    }
    if (due_us == LK__NEVER)
        lk__heap_remove(&dog->heap, &lease->release.timer);
    else
        lk__heap_set(&dog->heap, &lease->release.timer, due_us);
}

void lk__lease_ready(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu) && lk__lease_isheld(lease));
    lk__list_append(&dog->ready, &lease->queue);
    dog->ready_count++;
}

void lk__lease_unready(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    dog->ready_count -= lk__listed(&lease->queue);
    lk__list_remove(&lease->queue);
}

void lk__lease_answer(struct lk__watchdog *dog, struct lk__lease *lease, unsigned upto, int result)
{
    assert(lk__mu_held(&dog->mu));
    if (upto == lease->answered)
        return;
    lease->result = (short)result;
    lease->answered = upto;
    pthread_cond_broadcast(&dog->renewed);
}

/* Put a lost lease that no thread will end on its holder's list, for the holder to drop. */
static void orphan_lost(struct lk__lease *lease)
{
    assert(lk__mu_held(&lease->dog->mu));
    bool left = lease->ownerless || lease->by_id;
    if (lease->state == LK__LOST && left && lease->orphans != NULL && !lk__listed(&lease->orphan))
        lk__list_append(lease->orphans, &lease->orphan);
}

/* The longest lease that a request may have asked for that is under way, or will be. */
static int64_t longest_ms(const struct lk__lease *lease)
{
    assert(lk__mu_held(&lease->dog->mu));
    int64_t longest_ms = lease->lease_ms > lease->wanted_ms ? lease->lease_ms : lease->wanted_ms;
    return lease->duplicates_lease_ms > longest_ms ? lease->duplicates_lease_ms : longest_ms;
}

void lk__lease_loseit(struct lk__watchdog *dog, struct lk__lease *lease, int reason)
{
    assert(lk__mu_held(&dog->mu));
    if (!lk__lease_isheld(lease))
        return;
    lk__lease_unready(dog, lease);
    lease->reason = (unsigned char)reason; /* first: who sees that it is lost reads why without a lock */
    lease->state = LK__LOST;
    lease->renew_us = LK__NEVER;
    atomic_store(&lease->valid_until_us, 0);
    lk__lease_schedule(dog, lease);
    lk__list_remove(&lease->all);
    lk__list_append(&dog->lost, &lease->all);
    orphan_lost(lease);
    bool part = lease->quorum != NULL && !lk__lease_iswhole(lease);
    bool outlives = part && lease->longer_s != 0 && reason != LK_REASON_GONE; /* it was to be shorter, and may not be */
    if (lease->lingers || outlives)
        lk__outbox_add(dog, &lease->release, lk__lease_endsthere(lease));
    if (reason != LK_REASON_RELEASED && !part) /* a permit given back elsewhere is no loss to report */
        lk__losses_add(dog, lease);
    lk__lease_answer(dog, lease, lease->asked, ESTALE);
    dog->notify(dog->arg, lease, LK_EVENT_LOST);
    lk__quorum_lost(dog, lease);
    lk__quorum_follow(dog, lease);
}

bool lk__lease_goodat(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    if (!lk__lease_isheld(lease))
        return false;
    if (now_us < atomic_load(&lease->valid_until_us))
        return true;
    lk__lease_loseit(dog, lease, lease->reason != LK_REASON_NONE ? lease->reason : LK_REASON_EXPIRED);
    return false;
}

void lk__lease_setstate(struct lk__watchdog *dog, struct lk__lease *lease, enum lk__lease_state state)
{
    assert(lk__mu_held(&dog->mu));
    if (lease->state == state)
        return;
    lease->state = state;
    dog->notify(dog->arg, lease, state == LK__AT_RISK ? LK_EVENT_AT_RISK : LK_EVENT_RECOVERED);
}

void lk__lease_orphan(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    lease->ownerless = true;
    lk__lease_renewat(lease, LK__NEVER);
    if (lk__lease_isheld(lease) && (lease->reason == LK_REASON_NONE || lease->reason == LK_REASON_MAX_HOLD))
        lease->reason = LK_REASON_THREAD_EXIT;
    orphan_lost(lease);
    lk__lease_schedule(dog, lease);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void free_lease(struct lk__outboxentry *entry)
{
    struct lk__lease *lease = LK__CONTAINER(entry, struct lk__lease, release);
    assert(!entry->pending && !entry->inflight && !lk__timer_isset(&entry->timer) && !lease->inflight);
    assert(!lk__listed(&lease->all) && !lk__listed(&lease->queue) && !lk__listed(&lease->orphan));
    lk__quorum_free(lease);
    lk__block_unref(entry->block);
    size_t size = lease->ahead + offsetof(struct lk__lease, id) + lease->id_size;
    lk__watchdog_free(lease->dog, (char *)lease - lease->ahead, size);
}

struct lk__lease *lk__lease_new(struct lk__watchdog *dog, size_t ahead, size_t id_size)
{
    if (lk__watchdog_start(dog) != 0)
        return NULL;
    size_t size = ahead + offsetof(struct lk__lease, id) + id_size;
    char *memory = lk__watchdog_alloc(dog, size);
    if (memory == NULL) {
        lk__fail(ENOMEM, "out of memory for a hold");
        return NULL;
    }
    struct lk__lease *lease = (void *)(memory + ahead);
    lease->dog = dog;
    lease->ahead = (unsigned short)ahead;
    lease->id_size = (unsigned char)id_size;
    lease->state = LK__OVER;
    lease->cap_us = lease->renew_us = lease->risk_us = lease->long_us = LK__NEVER;
    lease->release.refs = 1;
    lease->release.free = free_lease;
    lease->release.id = lease->id;
    return lease;
}

/* --- what its owner does -------------------------------------------------------------------------------------- */

bool lk__lease_take(struct lk__lease *lease, int64_t valid_until_us, int64_t first_us)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    bool orphans = lease->orphans != NULL && !lk__list_empty(lease->orphans);
    assert(!lease->release.pending);
    lease->state = LK__HELD;
    atomic_store(&lease->valid_until_us, valid_until_us);
    lk__lease_renewat(lease, first_us);
    if (lease->epoch != 0 && lease->epoch < dog->node->underway.epoch) /* of the way into a cluster that is 0 */
        lk__lease_recheck(lease, lk__now_us());
    if (dog->options->warn_hold_ms > 0 && lease->holder != NULL)
        lease->long_us = lk__now_us() + dog->options->warn_hold_ms * 1000;
    lk__list_append(&dog->leases, &lease->all);
    lk__lease_schedule(dog, lease);
    if (lease->release.timer.due_us < dog->asleep_us) {
        dog->asleep_us = lease->release.timer.due_us;
        lk__watchdog_wake(dog);
    }
    lk__mu_unlock(&dog->mu);
    return orphans;
}

void lk__lease_takesent(struct lk__lease *lease, int64_t sent_us)
{
    lk__lease_take(lease, lk__lease_validuntil(lease, sent_us, lease->lease_ms),
                   sent_us + (int64_t)lease->lease_ms * 1000 / 3);
}

bool lk__lease_isgood(struct lk__lease *lease, int64_t *remaining_us)
{
    struct lk__watchdog *dog = lease->dog;
    int64_t now_us = lk__now_us(), left_us = atomic_load(&lease->valid_until_us) - now_us;
    if (left_us <= 0) {
        lk__watchdog_lock(dog);
        left_us = lk__lease_goodat(dog, lease, now_us) ? atomic_load(&lease->valid_until_us) - now_us : 0;
        lk__mu_unlock(&dog->mu);
    }
    if (remaining_us != NULL)
        *remaining_us = left_us;
    return left_us > 0;
}

bool lk__lease_ranout(struct lk__lease *lease)
{
    struct lk__watchdog *dog = lease->dog;
    lk__mu_lock(&dog->mu);
    bool good = lk__lease_goodat(dog, lease, lk__now_us());
    bool ran_out = !good && lease->state == LK__LOST && lease->reason == LK_REASON_EXPIRED;
    lk__mu_unlock(&dog->mu);
    return ran_out;
}

bool lk__lease_isownerless(struct lk__lease *lease)
{
    lk__watchdog_lock(lease->dog);
    bool ownerless = lease->ownerless;
    lk__mu_unlock(&lease->dog->mu);
    return ownerless;
}

void lk__lease_lose(struct lk__lease *lease, int reason)
{
    lk__watchdog_lock(lease->dog);
    lk__lease_loseit(lease->dog, lease, reason);
    lk__mu_unlock(&lease->dog->mu);
}

void lk__lease_wasgone(struct lk__lease *lease)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    lease->reason = LK_REASON_GONE;
    lease->state = LK__LOST;
    dog->notify(dog->arg, lease, LK_EVENT_LOST);
    lk__mu_unlock(&dog->mu);
}

/* Under dog->mu, as whoever closes the client may end the lease meanwhile. */
void lk__lease_keep(struct lk__lease *lease, const struct lk__until *until)
{
    lk__watchdog_lock(lease->dog);
    if (lk__lease_isheld(lease))
        lk__until_extend(&lease->release.until, until);
    lk__mu_unlock(&lease->dog->mu);
}

void lk__lease_forget(struct lk__lease *lease)
{
    lk__watchdog_lock(lease->dog);
    lk__list_remove(&lease->orphan);
    lease->orphans = NULL;
    lk__mu_unlock(&lease->dog->mu);
}

bool lk__lease_end(struct lk__lease *lease, int64_t *ends_us)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    int64_t now_us = lk__now_us();
    if (ends_us != NULL)
        *ends_us = lk__lease_endsthere(lease);
    bool was_good = lk__lease_goodat(dog, lease, now_us);
    if (lease->state != LK__OVER) /* else it is given back, and may be remembered */
        lk__list_remove(&lease->all);
    atomic_store(&lease->valid_until_us, 0);
    lease->renew_us = LK__NEVER;
    lk__list_remove(&lease->orphan);
    lease->orphans = NULL; /* its holder may be freed */
    if (was_good) {
        lk__lease_unready(dog, lease);
        lease->state = LK__OVER;
    }
    lk__lease_schedule(dog, lease);
    lk__lease_answer(dog, lease, lease->asked, was_good ? EPERM : ESTALE);
    if (lease->state == LK__LOST && lease->release.past.date.us != 0) /* no release follows; a copy of the ask may */
        lk__outbox_add(dog, &lease->release,
                       now_us + (2 * dog->options->command_timeout_ms + longest_ms(lease)) * 1000);
    lk__mu_unlock(&dog->mu);
    return was_good;
}

void lk__lease_released(struct lk__lease *lease, struct lk__date date)
{
    struct lk__watchdog *dog = lease->dog;
    const struct lk__until *past = &lease->release.past;
    int64_t now_us = lk__now_us();
    if (!lk__is_servertime(date.us))
        date = past->date; /* the server's time is not known: not past it */
    if (lk__until_isover(past, date, now_us))
        return;
    lk__watchdog_lock(dog);
    lk__outbox_add(dog, &lease->release, now_us + lk__until_left(past, date, now_us) + longest_ms(lease) * 1000);
    lk__mu_unlock(&dog->mu);
}

int64_t lk__lease_believedthere(const struct lk__lease *lease)
{
    assert(lk__mu_held(&lease->dog->mu));
    return lk__ended_by(atomic_load(&lease->valid_until_us), lease->lease_ms * INT64_C(1000),
                        lease->dog->options->clock_skew_ms);
}

int64_t lk__lease_endsthere(const struct lk__lease *lease)
{
    const struct lk__options *options = lease->dog->options;
    assert(lk__mu_held(&lease->dog->mu));
    int64_t lasts_us = longest_ms(lease) * 1000, longer_us = lease->longer_s * INT64_C(1000000);
    int64_t known_us = atomic_load(&lease->valid_until_us), renewed_us = lk__now_us() + lasts_us;
    int64_t ends_us = lk__ended_by(renewed_us > known_us ? renewed_us : known_us, lasts_us, options->clock_skew_ms);
    return (longer_us > ends_us ? longer_us : ends_us) + options->command_timeout_ms * 1000;
}

int64_t lk__lease_endsby(struct lk__lease *lease)
{
    struct lk__watchdog *dog = lease->dog;
    lk__watchdog_lock(dog);
    int64_t ends_us = lk__lease_endsthere(lease);
    lk__mu_unlock(&dog->mu);
    return ends_us;
}

/* --- the log's lines of leases that were lost --------------------------------------------------------------------- */

/*
 * Guards: dog->mu the list of losses that are not logged. Many leases may be lost at one moment, and work for each of
 * them delays renewals of others: so each second has few lines, and one for the rest.
 */

enum { LINES_MAX = 8 }; /* losses that are logged one by one within a second */

static const char *words_of(int reason)
{
    switch (reason) {
    case LK_REASON_GONE:
        return "the server no longer knows it";
    case LK_REASON_THREAD_EXIT:
        return "its thread ended while holding it";
    case LK_REASON_MAX_HOLD:
        return "held as long as max_hold_ms allows";
    case LK_REASON_FIXED:
        return "its fixed lease ran out";
    default:
        return "no renewal succeeded in time";
    }
}

void lk__losses_add(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    if (lk__list_empty(&dog->losses.unlogged))
        lk__watchdog_wake(dog);
    lk__list_append(&dog->losses.unlogged, &lease->queue);
    lk__lease_ref(lease);
}

/* Log, when the second is over, how many losses it had beyond those with a line of their own. */
static void log_more(struct lk__losses *losses)
{
    if (losses->more > 0)
        lk__log(LK_LOG_WARNING, "%u more leases were lost", losses->more);
    losses->lines = losses->more = 0;
}

static void log_one(struct lk__losses *losses, const char *name, int reason, int64_t now_us)
{
    if (now_us >= losses->second_us) {
        log_more(losses);
        losses->second_us = now_us + 1000000;
    }
    if (losses->lines < LINES_MAX)
        lk__log(LK_LOG_WARNING, "%s: the lease was lost: %s", name, words_of(reason));
    losses->lines < LINES_MAX ? losses->lines++ : losses->more++;
}

void lk__losses_log(struct lk__watchdog *dog, int64_t now_us, bool last)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__losses *losses = &dog->losses;
    struct lk__link *link;
    while ((link = lk__list_first(&losses->unlogged)) != NULL) {
        struct lk__lease *lost = LK__CONTAINER(link, struct lk__lease, queue);
        int reason = lost->reason;
        lk__list_remove(link);
        lk__mu_unlock(&dog->mu);
        log_one(losses, lost->name, reason, now_us);
        lk__lease_unref(lost);
        lk__watchdog_locklast(dog);
    }
    if (losses->more > 0 && (last || now_us >= losses->second_us))
        log_more(losses);
}
