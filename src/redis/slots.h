/* SPDX-License-Identifier: MIT */
/* slots.h - in which slot of a cluster a key is */
#ifndef LK__SLOTS_H
#define LK__SLOTS_H

#include <stddef.h>

enum { LK__SLOTS = 16384 };

/* That of the text between its first brace and the first closing one behind it, if there is any; else of the whole key. */
unsigned lk__slot_of(const char *key, size_t length);

#endif
