/* SPDX-License-Identifier: MIT */
/* attr.c - attributes and values of a semaphore, checked one by one and together */
#include "semaphore/semaphore.h"

int lk__semattr_check(void *checked, const void *given)
{
    lk_semattr_t *attr = checked;
    size_t least = LK__THROUGH(lk_semattr_t, leased);
    int rc = lk__sized_read(attr, sizeof *attr, given, least, "lk_semattr_t");
    if (rc != 0)
        return rc;
    if (attr->leased != 0 && attr->leased != 1)
        return lk__fail(EINVAL, "semaphore attributes: leased is 0 or 1");
    if (attr->anonymous != 0 && attr->anonymous != 1)
        return lk__fail(EINVAL, "semaphore attributes: anonymous is 0 or 1");
    if (attr->interruptible != 0 && attr->interruptible != 1)
        return lk__fail(EINVAL, "semaphore attributes: interruptible is 0 or 1");
    if (!attr->leased && (attr->lease_ms != 0 || attr->max_hold_ms != 0))
        return lk__fail(EINVAL, "semaphore attributes: lease_ms and max_hold_ms are for leased ones");
    if (attr->max > (attr->leased ? LK_SEM_PERMITS_MAX : LK_SEM_VALUE_MAX))
        return lk__fail(EINVAL, "semaphore attributes: max is %u, more than there can be", attr->max);
    return lk__attr_leases(attr->lease_ms, attr->max_hold_ms);
}

unsigned lk__semattr_most(const lk_semattr_t *attr)
{
    if (attr->max != 0)
        return attr->max;
    return attr->leased ? LK_SEM_PERMITS_MAX : LK_SEM_VALUE_MAX;
}

int lk__sem_valuecheck(const lk_semattr_t *attr, uintptr_t value)
{
    uintptr_t most = lk__semattr_most(attr);
    if (value <= most)
        return 0;
    return lk__fail(EINVAL, "a semaphore of %llu permits: at most %llu", (unsigned long long)value,
                    (unsigned long long)most);
}

void lk__sem_compare(const struct lk__semcall *call, int64_t total)
{
    if (total != 0 && call->value != 0 && !atomic_exchange(&call->sem->object.compared, true) && total != call->value)
        lk__log(LK_LOG_WARNING, "%s: has %lld permits in all, not the %lld that this program gives", call->what,
                (long long)total, (long long)call->value);
}
