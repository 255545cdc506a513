/* SPDX-License-Identifier: MIT */
/*
 * sized.c - public structs that begin with their size, so that a program and a library of two versions fit
 *
 * A version adds fields at the end and changes none. The program says how large the struct was when it was compiled;
 * what one side does not know is not there for it. A field that the library reads does not go into the padding at the
 * end of an earlier version's struct, where an earlier library would not see that it is set.
 */
#include "base/base.h"

#include <string.h>

/* No version will have larger ones: a larger size was never set by a program, and nothing after it is touched. */
static const size_t READ_MAX = 512, WRITE_MAX = 2048;

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size); /* first in all of them */
    return size;
}

static int check(const void *given, size_t least, size_t most, const char *type)
{
    size_t size = size_of(given);
    if (size < least || size > most)
        return lk__fail(EINVAL, "%s with a size of %zu: begin with its LK_..._INIT", type, size);
    return 0;
}

int lk__sized_read(void *ours, size_t known, const void *given, size_t least, const char *type)
{
    if (given == NULL)
        return 0;
    int rc = check(given, least, READ_MAX, type);
    if (rc != 0)
        return rc;
    const unsigned char *bytes = given;
    size_t size = size_of(given);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return lk__fail(EINVAL, "%s: a field is set that this version of the library does not know", type);
    memcpy(ours, given, size < known ? size : known);
    memcpy(ours, &known, sizeof known); /* the copy is whole, and no longer than that */
    return 0;
}

int lk__sized_check(const void *given, size_t least, const char *type)
{
    return given == NULL ? lk__fail(EINVAL, "no %s was given", type) : check(given, least, WRITE_MAX, type);
}

void lk__sized_fill(void *given, size_t size, const void *ours, size_t known)
{
    memcpy(given, ours, size < known ? size : known);
    if (size > known)
        memset((unsigned char *)given + known, 0, size - known);
}

void lk__sized_write(void *given, const void *ours, size_t known)
{
    size_t size = size_of(given);
    lk__sized_fill(given, size, ours, known);
    memcpy(given, &size, sizeof size);
}
