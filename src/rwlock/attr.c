/* SPDX-License-Identifier: MIT */
/* attr.c - attributes of a read-write lock: which go */
#include "rwlock/rwlock.h"

#include <string.h>

enum { LEASE_MIN_MS = 100 };

/* Attributes of an older header are shorter, and the rest is default; those of a newer one may say no more. */
static int complete(lk_rwlockattr_t *attr, const lk_rwlockattr_t *given)
{
    const unsigned char *bytes = (const unsigned char *)given;
    size_t size = given->size;
    if (size < offsetof(lk_rwlockattr_t, prefer) + sizeof given->prefer)
        return lk__fail(EINVAL, "read-write lock attributes without a size: begin with LK_RWLOCKATTR_INIT");
    for (size_t i = sizeof *attr; i < size && i < 4096; i++)
        if (bytes[i] != 0)
            return lk__fail(EINVAL, "a read-write lock attribute that this version of the library does not know");
    memcpy(attr, given, size < sizeof *attr ? size : sizeof *attr);
    return 0;
}

int lk__rwlockattr_check(void *checked, const void *given)
{
    lk_rwlockattr_t *attr = checked;
    int rc = given != NULL ? complete(attr, given) : 0;
    if (rc != 0)
        return rc;
    if (attr->prefer < LK_RWLOCK_PREFER_FAIR || attr->prefer > LK_RWLOCK_PREFER_WRITER)
        return lk__fail(EINVAL, "prefer is %d: LK_RWLOCK_PREFER_FAIR, _READER and _WRITER are 0 to 2", attr->prefer);
    if ((attr->robust | 1) != 1 || (attr->fixed | 1) != 1)
        return lk__fail(EINVAL, "read-write lock attributes: robust and fixed are 0 or 1");
    if (attr->lease_ms != 0 && (attr->lease_ms < LEASE_MIN_MS || attr->lease_ms > LK__LEASE_MAX_MS))
        return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)attr->lease_ms,
                        LEASE_MIN_MS);
    if (attr->max_hold_ms != 0 && attr->max_hold_ms < LEASE_MIN_MS)
        return lk__fail(EINVAL, "max_hold_ms is %lld: at least %d, or 0 for no limit", (long long)attr->max_hold_ms,
                        LEASE_MIN_MS);
    return 0;
}
