/* SPDX-License-Identifier: MIT */
/* pattern.c - which names are meant, in the words of Redis: bytes, whatever the locale */
#include "inspect/inspect.h"

/* The byte after a backslash, or at `*at`, which is moved to its last one. */
static unsigned char byte_at(const char **at)
{
    if (**at == '\\' && (*at)[1] != '\0')
        (*at)++;
    return (unsigned char)**at;
}

/* Behind "[": is the byte one of these? `*at` is moved behind the "]", or to the end of a pattern that has none. */
static bool is_among(const char **at, unsigned char byte)
{
    bool inverted = **at == '^', found = false;
    if (inverted)
        (*at)++;
    for (; **at != '\0' && **at != ']'; (*at)++) {
        unsigned char from = byte_at(at), to = from;
        if ((*at)[1] == '-' && (*at)[2] != '\0' && (*at)[2] != ']') {
            *at += 2;
            to = byte_at(at);
        }
        found |= from <= to ? byte >= from && byte <= to : byte >= to && byte <= from;
    }
    if (**at == ']')
        (*at)++;
    return found != inverted;
}

/* Does the byte fit what is at `*at`, no star? That is moved behind it. */
static bool fits_one(const char **at, unsigned char byte)
{
    if (**at == '[') {
        (*at)++;
        return is_among(at, byte);
    }
    bool any = **at == '?', same = byte_at(at) == byte;
    (*at)++;
    return any || same;
}

/* The last star is tried with more and more bytes, which is enough: an earlier one never has to be tried anew. */
bool lk__pattern_fits(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern != '\0' && fits_one(&pattern, (unsigned char)*name)) {
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
