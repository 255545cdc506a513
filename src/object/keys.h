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
#ifndef LK__OBJECT_KEYS_H
#define LK__OBJECT_KEYS_H

#include "config/name.h"

/* Longest key: a name, a prefix such as "latchkey:robust:permits", colons, braces and a NUL. */
#define LK__KEY_MAX (LK_NAME_MAX + 64)

/* In front of a channel of Redisson's: the channel beside it, see redisson.lua. */
#define LK__BESIDE "latchkey:client:"

/* Write "PREFIX:{NAME}" or "PREFIX::NAME" for a checked name; returns its length. */
size_t lk__key_ours(char key[LK__KEY_MAX], const char *prefix, const char *name);

/* Bytes that such a key, or one as Redisson has it, takes at most. */
size_t lk__key_room(const char *prefix, const char *name);

/* Write "PREFIX:{NAME}" or, with a brace in it, "PREFIX:NAME", as Redisson does. */
size_t lk__key_redisson(char key[LK__KEY_MAX], const char *prefix, const char *name);

#endif
