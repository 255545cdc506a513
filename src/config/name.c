/* SPDX-License-Identifier: MIT */
/* name.c - which names an object may have */
#include "config/name.h"

#include <string.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

/* No braces, or one '{', something, one '}'. Braces cut a key's hash tag: any other use of them would
   spread the keys of one object over several slots. */
static bool braces_fit(const char *name, size_t length)
{
    const char *opening = memchr(name, '{', length), *closing = memchr(name, '}', length), *end = name + length;
    if (opening == NULL && closing == NULL)
        return true;
    if (opening == NULL || closing == NULL || closing <= opening + 1)
        return false;
    return memchr(opening + 1, '{', (size_t)(end - opening - 1)) == NULL &&
           memchr(closing + 1, '}', (size_t)(end - closing - 1)) == NULL;
}

static bool begins_with(const char *text, size_t length, const char *start)
{
    return length >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

const char *lk__name_flaw(const char *name, size_t length)
{
    if (length == 0)
        return "is empty";
    if (length > LK_NAME_MAX)
        return "is longer than " QUOTE(LK_NAME_MAX) " bytes, prefix included";
    if (memchr(name, '\0', length) != NULL)
        return "has a NUL in it";
    if (begins_with(name, length, "latchkey:") || begins_with(name, length, "redisson_"))
        return "begins with latchkey: or redisson_, which keys of the library do";
    if (!braces_fit(name, length))
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
