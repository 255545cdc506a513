/* SPDX-License-Identifier: MIT */
/*
 * objects.c - see objects.h
 */
#include "objects.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[KINDS] = {
    "mutex",    "fair",  "robust",  "fixed",  "capped", "forced",  "striped", "buffer",    "rwlock",
    "counting", "grown", "passing", "leased", "byid",   "resized", "removed", "anonymous", "latch",
    "alone",    "barrier", "once",
};

const char *kind_name(enum kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind] : "none";
}

void object_name(char *name, size_t room, uint32_t object, uint32_t instance)
{
    if (kind_of(object) == STRIPED) /* as lk_stripes_init() names them */
        snprintf(name, room, "soak:%s:%u", kind_name(STRIPED), index_of(object));
    else
        snprintf(name, room, "soak:%s:%u:%u", kind_name(kind_of(object)), index_of(object), instance);
}

int object_named(const char *name, uint32_t *object, uint32_t *instance)
{
    char kind[16];
    unsigned index, number = 0;
    const char *begin = strstr(name, "soak:");
    if (begin == NULL || sscanf(begin, "soak:%15[a-z]:%u:%u", kind, &index, &number) < 2 || index >= INDEX_MAX)
        return -1;
    for (unsigned i = 0; i < KINDS; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            *object = object_of((enum kind)i, index);
            *instance = number;
            return 0;
        }
    return -1;
}
