/* SPDX-License-Identifier: MIT */
/*
 * requests.c - requests that set a lease again, between its grant and its end
 *
 * Guards: dog->mu, what lease.h marks so. Renewals are renewal.c's; here is what all such requests have in common, and
 * what an owner says of its own.
 */
#include "watchdog/watchdog.h"

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
    int64_t shorter_us = now_us + lease_ms * 1000 - lk__guard_us(lease_ms, lease->dog->options->clock_skew_ms);
    int64_t until_us = atomic_load(&lease->valid_until_us);
    if (shorter_us < until_us) {
        int64_t there_us = until_us + lk__guard_us(lease->lease_ms, lease->dog->options->clock_skew_ms);
        int there_s = (int)(there_us / 1000000) + 1;
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
    int64_t until_us = sent_us + lease_ms * 1000 - lk__guard_us(lease_ms, lease->dog->options->clock_skew_ms);
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
