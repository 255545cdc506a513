/* SPDX-License-Identifier: MIT */
/*
 * keys.h - which keys and channels belong to a name
 *
 * A name without braces becomes the hash tag itself: `PREFIX:{NAME}`. A name that has its own {tag} is
 * appended as it is behind a second colon: `PREFIX::NAME`. So `a` and `{a}` never meet, and all keys
 * of one object share a slot.
 *
 * Redisson's own keys follow Redisson's rule instead, `PREFIX:NAME` for a name with a brace. There `a`
 * and `{a}` do meet: they count their tokens together, which still strictly increase for each, and hear
 * each other's wake-ups, which are hints.
 */
#ifndef LK__REDIS_KEYS_H
#define LK__REDIS_KEYS_H

#include "base/base.h"

/* Longest key: a name, a prefix such as "latchkey:robust:permits", colons, braces and a NUL. */
#define LK__KEY_MAX (LK_NAME_MAX + 64)

/*
 * What is wrong with `name`, as words that follow "the name ..."; NULL: nothing. A full name (prefix
 * included) must have 1 to LK_NAME_MAX bytes, no NUL (given by `length` against strlen), must not begin
 * with "latchkey:" or "redisson_", and may have braces only as exactly one non-empty {tag}: the text
 * between the first `{` and the first `}` after it, no other brace.
 */
const char *lk__name_flaw(const char *name, size_t length);

/* 0, or EINVAL with words that quote the name and say its flaw. */
int lk__name_check(const char *name, size_t length);

/* Write `name` as it may stand in a line of text, cut to fit: what is no printable ASCII becomes '?'. */
void lk__name_print(char *text, size_t size, const char *name, size_t length);

/* In front of a channel of Redisson's: the channel beside it, see java.lua. */
#define LK__BESIDE "latchkey:client:"

/* Write "PREFIX:{NAME}" or "PREFIX::NAME" for a checked name; returns its length. */
size_t lk__key_ours(char key[LK__KEY_MAX], const char *prefix, const char *name);

/* Bytes that such a key, or one as Redisson has it, takes at most. */
size_t lk__key_room(const char *prefix, const char *name);

/* Write "PREFIX:{NAME}" or, with a brace in it, "PREFIX:NAME", as Redisson does. */
size_t lk__key_redisson(char key[LK__KEY_MAX], const char *prefix, const char *name);

#endif
