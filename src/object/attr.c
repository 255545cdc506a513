/* SPDX-License-Identifier: MIT */
/* attr.c - what a caller says of leases in attributes, and of one acquire, checked */
#include "object/acquire.h"

int lk__attr_leases(int64_t lease_ms, int64_t max_hold_ms)
{
    if (lease_ms != 0 && (lease_ms < LK__LEASE_MIN_MS || lease_ms > LK__LEASE_MAX_MS))
        return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)lease_ms,
                        LK__LEASE_MIN_MS);
    if (max_hold_ms != 0 && max_hold_ms < LK__LEASE_MIN_MS)
        return lk__fail(EINVAL, "max_hold_ms is %lld: at least %d, or 0 for no limit", (long long)max_hold_ms,
                        LK__LEASE_MIN_MS);
    return 0;
}

int lk__object_leasecheck(const struct lk__object *object, int64_t lease_ms)
{
    int64_t skew_ms = object->client->options->clock_skew_ms;
    if (lease_ms >= LK__SKEWS_MIN * skew_ms)
        return 0;
    return lk__fail(EINVAL, "%s: a lease of %lld ms: at least %d x clock_skew, %lld ms", object->what,
                    (long long)lease_ms, LK__SKEWS_MIN, (long long)(LK__SKEWS_MIN * skew_ms));
}

int lk__how_take(struct lk__how *how, const lk_how_t *given)
{
    lk_how_t taken = LK_HOW_INIT;
    int64_t limit_us = 0;
    int rc = lk__sized_read(&taken, sizeof taken, given, LK__THROUGH(lk_how_t, owner), "lk_how_t");
    if (rc == 0)
        rc = lk__attr_leases(taken.lease_ms, 0);
    if (rc == 0 && (taken.fixed < -1 || taken.fixed > 1))
        rc = lk__fail(EINVAL, "fixed is %d: 1 or -1, or 0 for what the attributes say", taken.fixed);
    if (rc == 0)
        rc = lk__deadline_in(taken.timeout_ms, &limit_us);
    *how = (struct lk__how){
        .limit_us = limit_us, .lease_ms = taken.lease_ms, .fixed = taken.fixed, .by = taken.owner
    };
    return rc;
}
