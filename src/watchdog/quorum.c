/* SPDX-License-Identifier: MIT */
/*
 * quorum.c - a lease that several servers have: good as long as a majority of them is sure to have it
 *
 *   part 1  |===========|                  With three parts the whole is good until the second of them may end: up to
 *   part 2  |=================|            then two of three servers refuse everybody else, and so nobody else has a
 *   part 3  |==============|               majority.
 *   whole   |==============|
 *
 * Guards: dog->mu, all of it. The whole has no renewal of its own; whatever becomes of a part, the whole follows at once.
 *
 * The hard case: a part whose server did not answer when the whole was taken. It may have it, and may not: it is renewed,
 * counts from the first answer on, and is given back with the others in any case.
 */
#include "watchdog/watchdog.h"

#include <latchkey/events.h>

#include <string.h>

/* --- a whole is as good as its parts; all under dog->mu --------------------------------------------------------------- */

/* Until when a majority is; 0: there is none. */
static int64_t good_until(const struct lk__quorum *quorum)
{
    int64_t ends_us[LK__QUORUM_MAX]; /* the latest first */
    unsigned good = 0, majority = lk__majority_of(quorum->count);
    for (unsigned i = 0; i < quorum->count; i++) {
        const struct lk__lease *part = quorum->parts[i];
        if (!lk__lease_isheld(part) || part->doubted)
            continue;
        int64_t end_us = atomic_load(&part->valid_until_us);
        unsigned at = good++;
        for (; at > 0 && ends_us[at - 1] < end_us; at--)
            ends_us[at] = ends_us[at - 1];
        ends_us[at] = end_us;
    }
    return good >= majority ? ends_us[majority - 1] : 0;
}

/* The whole is good until then. As of any lease, the last third alarms. */
static void set_validity(struct lk__watchdog *dog, struct lk__lease *whole, int64_t until_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t third_us = (int64_t)whole->lease_ms * 1000 / 3, before_us = atomic_load(&whole->valid_until_us);
    atomic_store(&whole->valid_until_us, until_us);
    bool ends = whole->fixed || whole->ownerless || whole->reason == LK_REASON_MAX_HOLD;
    whole->risk_us = ends ? LK__NEVER : until_us - third_us;
    if (until_us > before_us)
        atomic_fetch_add(&whole->renewals, 1);
    if (whole->risk_us > lk__now_us())
        lk__lease_setstate(dog, whole, LK__HELD);
    lk__lease_schedule(dog, whole);
}

static void follow(struct lk__watchdog *dog, struct lk__lease *whole, int reason)
{
    assert(lk__mu_held(&dog->mu));
    int64_t until_us = good_until(whole->quorum);
    if (until_us > 0)
        set_validity(dog, whole, until_us);
    else
        lk__lease_loseit(dog, whole, whole->reason != LK_REASON_NONE ? whole->reason : reason);
}

static void follow_part(struct lk__watchdog *dog, struct lk__lease *part)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__lease *whole = part->quorum->whole;
    if (whole == NULL || whole == part || !lk__lease_isheld(whole))
        return;
    if (part->reason == LK_REASON_MAX_HOLD && whole->reason == LK_REASON_NONE)
        whole->reason = part->reason;
    follow(dog, whole, part->reason != LK_REASON_NONE ? part->reason : LK_REASON_EXPIRED);
}

void lk__quorum_taken(struct lk__lease *whole)
{
    struct lk__watchdog *dog = whole->dog;
    lk__watchdog_lock(dog);
    if (lk__lease_isheld(whole))
        follow(dog, whole, LK_REASON_EXPIRED);
    lk__mu_unlock(&dog->mu);
}

/* A part of a whole that is lost. Its server may have it for the rest of its time. */
static void drop_part(struct lk__watchdog *dog, struct lk__lease *part)
{
    assert(lk__mu_held(&dog->mu));
    if (!lk__lease_isheld(part))
        return;
    lk__lease_unready(dog, part);
    part->state = LK__OVER;
    part->renew_us = LK__NEVER;
    atomic_store(&part->valid_until_us, 0);
    lk__list_remove(&part->all);
    lk__lease_schedule(dog, part);
    lk__lease_answer(dog, part, part->asked, ESTALE);
    lk__outbox_add(dog, &part->release, lk__lease_endsthere(part));
}

static void drop_parts(struct lk__watchdog *dog, struct lk__lease *whole)
{
    assert(lk__mu_held(&dog->mu));
    if (!lk__lease_iswhole(whole))
        return;
    for (unsigned i = 0; i < whole->quorum->count; i++)
        drop_part(dog, whole->quorum->parts[i]);
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

static void free_one(struct lk__lease *lease)
{
    struct lk__quorum *quorum = lease->quorum;
    if (lk__lease_iswhole(lease)) {
        lk__watchdog_lock(lease->dog);
        quorum->whole = NULL;
        lk__mu_unlock(&lease->dog->mu);
        for (unsigned i = 0; i < quorum->count; i++) {
            lk__lease_end(quorum->parts[i], NULL);
            lk__lease_unref(quorum->parts[i]);
        }
    }
    if (atomic_fetch_sub(&quorum->refs, 1) == 1)
        lk__free(quorum);
}

static const struct lk__quorumrole role = { .follow = follow_part, .lost = drop_parts, .free = free_one };

static struct lk__lease *make_part(struct lk__lease *whole)
{
    struct lk__lease *part = lk__lease_new(whole->dog, 0, LK__OWNER_ID);
    if (part == NULL)
        return NULL;
    part->quorum = whole->quorum;
    atomic_fetch_add(&part->quorum->refs, 1);
    part->name = whole->name;
    part->owner = whole->owner;
    part->release.block = lk__block_ref(whole->release.block);
    return part;
}

int lk__quorum_make(struct lk__lease *whole, unsigned count)
{
    struct lk__quorum *quorum = lk__alloc(sizeof *quorum);
    if (quorum == NULL)
        return lk__fail(ENOMEM, "out of memory for a hold");
    quorum->role = &role;
    quorum->refs = 1;
    quorum->whole = whole;
    whole->quorum = quorum;
    for (; quorum->count < count; quorum->count++) {
        quorum->parts[quorum->count] = make_part(whole);
        if (quorum->parts[quorum->count] == NULL)
            return ENOMEM;
    }
    return 0;
}

/* --- what its owner does ------------------------------------------------------------------------------------------------ */

int64_t lk__quorum_endsby(struct lk__lease *whole)
{
    const struct lk__quorum *quorum = whole->quorum;
    int64_t last_us = 0;
    lk__watchdog_lock(whole->dog);
    for (unsigned i = 0; i < quorum->count; i++) {
        int64_t end_us = lk__lease_isheld(quorum->parts[i]) ? lk__lease_endsthere(quorum->parts[i]) : 0;
        last_us = end_us > last_us ? end_us : last_us;
    }
    lk__mu_unlock(&whole->dog->mu);
    return last_us;
}

/* A call that waits for renewals of the parts. */
struct call {
    struct lk__quorum *quorum;
    unsigned mine[LK__QUORUM_MAX]; /* which renewal of each part; 0: none */
};

static void ask_parts(struct lk__watchdog *dog, struct call *call, int64_t lease_ms)
{
    assert(lk__mu_held(&dog->mu));
    for (unsigned i = 0; i < call->quorum->count; i++) {
        struct lk__lease *part = call->quorum->parts[i];
        call->mine[i] = 0;
        if (!lk__lease_isheld(part))
            continue;
        call->mine[i] = ++part->asked;
        part->wanted_ms = (int)lease_ms;
        part->renew_us = 0;
        lk__lease_schedule(dog, part);
    }
    lk__watchdog_wake(dog);
}

/* How many were renewed; `*open`: how many may yet be. */
static unsigned count_renewed(const struct call *call, unsigned *open)
{
    unsigned renewed = 0;
    *open = 0;
    for (unsigned i = 0; i < call->quorum->count; i++) {
        const struct lk__lease *part = call->quorum->parts[i];
        bool answered = (int)(part->answered - call->mine[i]) >= 0;
        if (call->mine[i] == 0)
            continue;
        *open += !answered;
        renewed += answered && part->result == 0 && lk__lease_isheld(part);
    }
    return renewed;
}

int lk__quorum_renew(struct lk__lease *whole, int64_t lease_ms, int64_t until_us)
{
    struct lk__watchdog *dog = whole->dog;
    struct call call = { .quorum = whole->quorum };
    unsigned renewed = 0, open, majority = lk__majority_of(whole->quorum->count);
    int rc = ESTALE;
    lk__watchdog_lock(dog);
    if (lk__lease_goodat(dog, whole, lk__now_us())) {
        ask_parts(dog, &call, lease_ms);
        whole->lease_ms = whole->wanted_ms = (int)lease_ms;
        while ((renewed = count_renewed(&call, &open)) < majority && renewed + open >= majority && !dog->stopping &&
               lk__lease_awaitrenewed(dog, &until_us))
            ;
        bool good = lk__lease_goodat(dog, whole, lk__now_us());
        rc = renewed >= majority ? 0 : !good ? ESTALE : dog->stopping ? ECANCELED : EIO;
        if (good)
            follow(dog, whole, LK_REASON_EXPIRED);
    }
    lk__mu_unlock(&dog->mu);
    return rc;
}
