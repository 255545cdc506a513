/* SPDX-License-Identifier: MIT */
/*
 * keys.c - names of objects and the keys made of them
 */
#include "redis/keys.h"

#include <stdio.h>
#include <string.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

/* No braces, or one '{', something, one '}'. Braces cut a key's hash tag: any other use of them would
   spread the keys of one object over several slots. */
static bool braces_fit(const char *name)
{
    const char *opening = strchr(name, '{'), *closing = strchr(name, '}');
    if (opening == NULL && closing == NULL)
        return true;
    if (opening == NULL || closing == NULL || closing <= opening + 1)
        return false;
    return strchr(opening + 1, '{') == NULL && strchr(closing + 1, '}') == NULL;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

const char *lk__name_flaw(const char *name, size_t length)
{
    if (length == 0)
        return "is empty";
    if (length > LK_NAME_MAX)
        return "is longer than " QUOTE(LK_NAME_MAX) " bytes, prefix included";
    if (memchr(name, '\0', length) != NULL)
        return "has a NUL in it";
    if (begins_with(name, "latchkey:") || begins_with(name, "redisson_"))
        return "begins with latchkey: or redisson_, which keys of the library do";
    if (!braces_fit(name))
        return "may have braces only as one {tag} that is not empty";
    return NULL;
}

int lk__name_check(const char *name, size_t length)
{
    char quoted[64];
    const char *flaw = lk__name_flaw(name, length);
    if (flaw == NULL)
        return 0;
    lk__name_print(quoted, sizeof quoted, name, length);
    return lk__fail(EINVAL, "the name \"%s\" %s", quoted, flaw);
}

void lk__name_print(char *text, size_t size, const char *name, size_t length)
{
    if (length >= size)
        length = size - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(name[i] >= ' ' && name[i] <= '~' ? name[i] : '?');
    text[length] = '\0';
}

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
