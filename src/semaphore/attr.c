/* SPDX-License-Identifier: MIT */
/* attr.c - attributes and values of a semaphore, checked one by one and together */
#include "semaphore/semaphore.h"

int lk__semattr_check(void *checked, const void *given)
{
    lk_semattr_t *attr = checked;
    size_t least = LK__THROUGH(lk_semattr_t, leased);
    int rc = lk__sized_read(attr, sizeof *attr, given, least, "semaphore attributes");
    if (rc != 0)
        return rc;
    if (attr->leased != 0 && attr->leased != 1)
        return lk__fail(EINVAL, "semaphore attributes: leased is 0 or 1");
    if (!attr->leased && (attr->lease_ms != 0 || attr->max_hold_ms != 0))
        return lk__fail(EINVAL, "semaphore attributes: lease_ms and max_hold_ms are for leased ones");
    return lk__attr_leases(attr->lease_ms, attr->max_hold_ms);
}

int lk__sem_valuecheck(const lk_semattr_t *attr, uintptr_t value)
{
    uintptr_t most = attr != NULL && attr->leased ? LK_SEM_PERMITS_MAX : LK_SEM_VALUE_MAX;
    if (value <= most)
        return 0;
    return lk__fail(EINVAL, "a semaphore of %llu permits: at most %llu", (unsigned long long)value,
                    (unsigned long long)most);
}
