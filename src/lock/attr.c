/* SPDX-License-Identifier: MIT */
/* attr.c - attributes of a mutex, checked one by one and together */
#include "lock/mutex.h"

static bool is_flag(int value)
{
    return value == 0 || value == 1;
}

int lk__mutexattr_check(void *checked, const void *given)
{
    lk_mutexattr_t *attr = checked;
    size_t least = LK__THROUGH(lk_mutexattr_t, type);
    int rc = lk__sized_read(attr, sizeof *attr, given, least, "lk_mutexattr_t");
    if (rc != 0)
        return rc;
    if (attr->type < LK_MUTEX_RECURSIVE || attr->type > LK_MUTEX_NORMAL)
        return lk__fail(EINVAL, "mutex type %d: LK_MUTEX_RECURSIVE, _ERRORCHECK and _NORMAL are 0 to 2", attr->type);
    if (!is_flag(attr->fair) || !is_flag(attr->robust) || !is_flag(attr->fixed) || !is_flag(attr->nested_local))
        return lk__fail(EINVAL, "mutex attributes: fair, robust, fixed and nested_local are 0 or 1");
    if (attr->min_hold_ms < 0 || attr->min_hold_ms > LK__LEASE_MAX_MS)
        return lk__fail(EINVAL, "min_hold_ms is %lld: at least 0, at most a day", (long long)attr->min_hold_ms);
    if (attr->max_hold_ms != 0 && attr->min_hold_ms > attr->max_hold_ms)
        return lk__fail(EINVAL, "min_hold_ms is above max_hold_ms");
    return lk__attr_leases(attr->lease_ms, attr->max_hold_ms);
}
