/* SPDX-License-Identifier: MIT */
/* attr.c - what the attributes of several primitives have in common: leases */
#include "object/handle.h"

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
