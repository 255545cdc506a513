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

/* The length of the text of a spec; 0: it has no text of its own. */
static size_t write_text(char key[LK__KEY_MAX], const struct lk__keyspec *spec, const char *name)
{
    switch (spec->form) {
    case LK__KEY_OURS:
        return lk__key_ours(key, spec->prefix, name);
    case LK__KEY_REDISSON:
        return lk__key_redisson(key, spec->prefix, name);
    case LK__KEY_BRACED:
        return join(key, spec->prefix, "{", name, "}");
    default:
        return 0;
    }
}

static bool has(const struct lk__keyspec *spec, unsigned is)
{
    return spec->only == 0 || (spec->only & is) != 0;
}

size_t lk__keys_room(const struct lk__keyspec *specs, int count, const char *name, unsigned is)
{
    char key[LK__KEY_MAX];
    size_t room = 0;
    for (int i = 0; i < count; i++) {
        size_t length = has(&specs[i], is) ? write_text(key, &specs[i], name) : 0;
        room += length > 0 ? length + 1 : 0;
    }
    return room;
}

void lk__keys_write(const struct lk__keyspec *specs, int count, const char *name, unsigned is, void *block, char *at)
{
    char key[LK__KEY_MAX];
    const char *text = name;
    for (int i = 0; i < count; i++) {
        if (!has(&specs[i], is))
            continue;
        size_t length = write_text(key, &specs[i], name);
        if (length > 0) {
            text = memcpy(at, key, length + 1);
            at += length + 1;
        } else if (specs[i].form == LK__KEY_NAME) {
            text = name;
        }
        *(const char **)(void *)((char *)block + specs[i].at) = text;
    }
}
