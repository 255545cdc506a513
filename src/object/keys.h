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

/* Write "PREFIX:{NAME}" or, with a brace in it, "PREFIX:NAME", as Redisson does. */
size_t lk__key_redisson(char key[LK__KEY_MAX], const char *prefix, const char *name);

/* Keys that not every object has: of a client with redisson=yes, of an anonymous object. */
enum { LK__IF_REDISSON = 1, LK__IF_ANONYMOUS = 2 };

/* Which key or channel a pointer of a block leads to. */
struct lk__keyspec {
    size_t at;          /* where in the block the pointer is */
    const char *prefix; /* in front of the name */
    enum lk__keyform {
        LK__KEY_NAME,     /* the name itself */
        LK__KEY_OURS,     /* as lk__key_ours() */
        LK__KEY_REDISSON, /* as lk__key_redisson() */
        LK__KEY_BRACED,   /* in braces even if the name has some: an exception of Redisson's to its own rule */
        LK__KEY_SAME      /* that of the one before */
    } form;
    unsigned char only; /* 0, or what the object has to be; others have NULL there */
};

/* Bytes that the texts of these take; `is`: what the object is. */
size_t lk__keys_room(const struct lk__keyspec *specs, int count, const char *name, unsigned is);
/* Write the texts to `at`, and into `block` where they are. The name stays as long as the block. */
void lk__keys_write(const struct lk__keyspec *specs, int count, const char *name, unsigned is, void *block, char *at);

#endif
