/* SPDX-License-Identifier: MIT */
/*
 * once.h - what is done once
 *
 * object.c  keys, channel and attributes,   end.c      completing a run, giving it up
 *           questions of the runner         inspect.c  result, reset, info
 * begin.c   beginning a run, or waiting
 */
#ifndef LK__ONCE_H
#define LK__ONCE_H

#include "object/await.h"
#include "object/calls.h"
#include "object/keys.h"
#include "once/scripts.h"

#include <latchkey/once.h>

/* What commands of it point into. */
struct lk__onceblock {
    struct lk__block block;
    struct lk__once_keys keys;
    struct lk__once_fail_args fail; /* the channel of all who wait */
};

struct lk__once {
    struct lk__object object;
    struct lk__broadcast broadcast;
    atomic_bool beginning; /* one of the threads that wait asks whether it may run it now */
};

static inline struct lk__once *lk__once_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__once, object);
}

static inline const struct lk__onceblock *lk__once_block(const struct lk__object *object)
{
    return LK__CONTAINER(object->block, struct lk__onceblock, block);
}

extern const struct lk__kind lk__once_kind;

#endif
