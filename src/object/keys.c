/* SPDX-License-Identifier: MIT */
/*
 * keys.c - the keys made of a name
 */
#include "object/keys.h"

#include <stdio.h>
#include <string.h>

/* Returns the length of the whole. */
static size_t join(char key[LK__KEY_MAX], const char *prefix, const char *opening, const char *name,
                   const char *closing)
{
    int length = snprintf(key, LK__KEY_MAX, "%s%s%s%s", prefix, opening, name, closing);
    assert(length > 0 && length < LK__KEY_MAX);
    return (size_t)length;
}

size_t lk__key_room(const char *prefix, const char *name)
{
    return strlen(prefix) + strlen(name) + sizeof ":{}";
}

size_t lk__key_ours(char key[LK__KEY_MAX], const char *prefix, const char *name)
{
    if (strchr(name, '{') != NULL)
        return join(key, prefix, "::", name, "");
    return join(key, prefix, ":{", name, "}");
}

size_t lk__key_redisson(char key[LK__KEY_MAX], const char *prefix, const char *name)
{
    if (strchr(name, '{') != NULL)
        return join(key, prefix, ":", name, "");
    return join(key, prefix, ":{", name, "}");
}
