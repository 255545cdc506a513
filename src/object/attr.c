/* SPDX-License-Identifier: MIT */
/* attr.c - what the attributes of all primitives have in common: a size in front, and leases */
#include "object/handle.h"

#include <string.h>

/* No version will have larger attributes: a larger size was never set by a program, and nothing after it is read. */
#define SIZE_SANE ((size_t)512)

int lk__attr_take(void *attr, size_t known, const void *given, size_t least, const char *what)
{
    const unsigned char *bytes = given;
    size_t size;
    if (given == NULL)
        return 0;
    memcpy(&size, given, sizeof size);
    if (size < least || size > SIZE_SANE)
        return lk__fail(EINVAL, "%s attributes without a size: begin with its LK_..._INIT", what);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return lk__fail(EINVAL, "a %s attribute that this version of the library does not know", what);
    memcpy(attr, given, size < known ? size : known);
    memcpy(attr, &known, sizeof known); /* the copy is whole, and no longer than that */
    return 0;
}

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
