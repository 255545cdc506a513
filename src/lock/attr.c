/* SPDX-License-Identifier: MIT */
/* attr.c - attributes of a mutex: which go, and which go together */
#include "lock/lock.h"

#include <string.h>

enum { LEASE_MIN_MS = 100 };

/* An attribute struct of another version of the header: shorter is filled up, longer must say nothing more. */
static int take_over(lk_mutexattr_t *attr, const lk_mutexattr_t *given)
{
    size_t size = given->size;
    if (size < offsetof(lk_mutexattr_t, type) + sizeof given->type)
        return lk__fail(EINVAL, "mutex attributes without a size: begin with LK_MUTEXATTR_INIT");
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *attr; i < size && i < 4096; i++)
        if (bytes[i] != 0)
            return lk__fail(EINVAL, "a mutex attribute that this version of the library does not know");
    memcpy(attr, given, size < sizeof *attr ? size : sizeof *attr);
    return 0;
}

static bool is_flag(int value)
{
    return value == 0 || value == 1;
}

int lk__mutexattr_check(void *checked, const void *given)
{
    lk_mutexattr_t *attr = checked;
    if (given == NULL)
        return 0;
    int rc = take_over(attr, given);
    if (rc != 0)
        return rc;
    if (attr->type < LK_MUTEX_RECURSIVE || attr->type > LK_MUTEX_NORMAL)
        return lk__fail(EINVAL, "mutex type %d: LK_MUTEX_RECURSIVE, _ERRORCHECK and _NORMAL are 0 to 2", attr->type);
    if (!is_flag(attr->fair) || !is_flag(attr->robust) || !is_flag(attr->fixed) || !is_flag(attr->nested_local))
        return lk__fail(EINVAL, "mutex attributes: fair, robust, fixed and nested_local are 0 or 1");
    if (attr->lease_ms != 0 && (attr->lease_ms < LEASE_MIN_MS || attr->lease_ms > LK__LEASE_MAX_MS))
        return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)attr->lease_ms,
                        LEASE_MIN_MS);
    if (attr->max_hold_ms != 0 && attr->max_hold_ms < LEASE_MIN_MS)
        return lk__fail(EINVAL, "max_hold_ms is %lld: at least %d, or 0 for no limit", (long long)attr->max_hold_ms,
                        LEASE_MIN_MS);
    if (attr->min_hold_ms < 0 || attr->min_hold_ms > LK__LEASE_MAX_MS)
        return lk__fail(EINVAL, "min_hold_ms is %lld: at least 0, at most a day", (long long)attr->min_hold_ms);
    if (attr->max_hold_ms != 0 && attr->min_hold_ms > attr->max_hold_ms)
        return lk__fail(EINVAL, "min_hold_ms is above max_hold_ms");
    return 0;
}
