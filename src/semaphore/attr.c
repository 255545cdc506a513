/* SPDX-License-Identifier: MIT */
/* attr.c - attributes and values of a semaphore: which go, and which go together */
#include "semaphore/semaphore.h"

#include <string.h>

enum { LEASE_MIN_MS = 100 };

/* An attribute struct of another version of the header: shorter is filled up, longer must say nothing more. */
static int take_over(lk_semattr_t *attr, const lk_semattr_t *given)
{
    size_t size = given->size;
    if (size < offsetof(lk_semattr_t, leased) + sizeof given->leased)
        return lk__fail(EINVAL, "semaphore attributes without a size: begin with LK_SEMATTR_INIT");
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *attr; i < size && i < 4096; i++)
        if (bytes[i] != 0)
            return lk__fail(EINVAL, "a semaphore attribute that this version of the library does not know");
    memcpy(attr, given, size < sizeof *attr ? size : sizeof *attr);
    return 0;
}

int lk__semattr_check(void *checked, const void *given)
{
    lk_semattr_t *attr = checked;
    if (given == NULL)
        return 0;
    int rc = take_over(attr, given);
    if (rc != 0)
        return rc;
    if (attr->leased != 0 && attr->leased != 1)
        return lk__fail(EINVAL, "semaphore attributes: leased is 0 or 1");
    if (!attr->leased && (attr->lease_ms != 0 || attr->max_hold_ms != 0))
        return lk__fail(EINVAL, "semaphore attributes: lease_ms and max_hold_ms are for leased ones");
    if (attr->lease_ms != 0 && (attr->lease_ms < LEASE_MIN_MS || attr->lease_ms > LK__LEASE_MAX_MS))
        return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)attr->lease_ms,
                        LEASE_MIN_MS);
    if (attr->max_hold_ms != 0 && attr->max_hold_ms < LEASE_MIN_MS)
        return lk__fail(EINVAL, "max_hold_ms is %lld: at least %d, or 0 for no limit", (long long)attr->max_hold_ms,
                        LEASE_MIN_MS);
    return 0;
}

int lk__sem_valuecheck(const lk_semattr_t *attr, uintptr_t value)
{
    uintptr_t most = attr != NULL && attr->leased ? LK_SEM_PERMITS_MAX : LK_SEM_VALUE_MAX;
    if (value <= most)
        return 0;
    return lk__fail(EINVAL, "a semaphore of %llu permits: at most %llu", (unsigned long long)value,
                    (unsigned long long)most);
}
