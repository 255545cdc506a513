/* SPDX-License-Identifier: MIT */
/*
 * stripes.h - n mutexes under one name
 *
 * set.c   making and ending a set       key.c   the stripe of a key
 * any.c   taking whichever is free
 */
#ifndef LK__STRIPES_H
#define LK__STRIPES_H

#include "lock/mutex.h"

#include <latchkey/stripes.h>

/* In one piece of memory, with the names behind it. */
struct lk__stripes {
    struct lk__stripeset set;
    lk_mutexattr_t attr;
    const char *name; /* of the set */
    lk_mutex_t mutexes[];
};

/* What is behind `s`: 0, EINVAL or ECANCELED, with an error text. `function`: the public call. */
int lk__stripes_get(const char *function, const lk_stripes_t *s, struct lk__stripes **stripes);

#endif
