/* SPDX-License-Identifier: MIT */
/* name.h - which names an object may have: the rules come from cluster slots and from the library's own keys */
#ifndef LK__CONFIG_NAME_H
#define LK__CONFIG_NAME_H

#include "base/base.h"

/*
 * What is wrong with `name`, as words that follow "the name ..."; NULL: nothing. A full name (prefix
 * included) must have 1 to LK_NAME_MAX bytes, no NUL (given by `length` against strlen), must not begin
 * with "latchkey:" or "redisson_", and may have braces only as exactly one non-empty {tag}: the text
 * between the first `{` and the first `}` after it, no other brace.
 */
const char *lk__name_flaw(const char *name, size_t length);

/* 0, or EINVAL with an error text that quotes the name and says its flaw. */
int lk__name_check(const char *name, size_t length);

/* Write `name` as it may stand in a line of text, cut to fit; other characters than printable ASCII become '?'. */
void lk__name_print(char *text, size_t size, const char *name, size_t length);

#endif
