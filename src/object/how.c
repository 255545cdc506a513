/* SPDX-License-Identifier: MIT */
/* how.c - what a caller says of one acquire, checked */
#include "object/acquire.h"

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
