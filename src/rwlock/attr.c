/* SPDX-License-Identifier: MIT */
/* attr.c - attributes of a read-write lock, checked */
#include "rwlock/rwlock.h"

int lk__rwlockattr_check(void *checked, const void *given)
{
    lk_rwlockattr_t *attr = checked;
    size_t least = LK__THROUGH(lk_rwlockattr_t, prefer);
    int rc = lk__sized_read(attr, sizeof *attr, given, least, "lk_rwlockattr_t");
    if (rc != 0)
        return rc;
    if (attr->prefer < LK_RWLOCK_PREFER_FAIR || attr->prefer > LK_RWLOCK_PREFER_PHASE_FAIR)
        return lk__fail(EINVAL, "prefer is %d: LK_RWLOCK_PREFER_FAIR, _READER, _WRITER and _PHASE_FAIR are 0 to 3",
                        attr->prefer);
    if ((attr->robust | 1) != 1 || (attr->fixed | 1) != 1 || (attr->nonreentrant | 1) != 1)
        return lk__fail(EINVAL, "read-write lock attributes: robust, fixed and nonreentrant are 0 or 1");
    if (attr->lk_room != 0)
        return lk__fail(EINVAL, "read-write lock attributes: lk_room is zero");
    return lk__attr_leases(attr->lease_ms, attr->max_hold_ms);
}
