/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - what is on a server, whoever put it there
 *
 * walk.c     goes through all keys        pattern.c  which names are meant
 * holders.c  who holds an object    who.c      who that is
 */
#ifndef LK__INSPECT_H
#define LK__INSPECT_H

#include "client/client.h"
#include "redis/call.h"

#include <latchkey/inspect.h>

/* Does a name fit a pattern, as Redis has them for KEYS? */
bool lk__pattern_fits(const char *pattern, const char *name);

#endif
