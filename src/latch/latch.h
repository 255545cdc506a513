/* SPDX-License-Identifier: MIT */
/*
 * latch.h - the countdown latch
 *
 * object.c  keys, channel and attributes
 * count.c   set, count down, look, delete
 * wait.c    waiting until it opens
 */
#ifndef LK__LATCH_H
#define LK__LATCH_H

#include "latch/scripts.h"
#include "object/anonymous.h"
#include "object/await.h"
#include "object/calls.h"
#include "object/idempotent.h"
#include "object/keys.h"

#include <latchkey/latch.h>

/* What the server knows of a latch. */
struct lk__latchstate {
    int64_t count;        /* -1: there is none */
    bool opened, deleted; /* how the last count ended; neither: not known */
    bool since;           /* who comes now is not to see that end: there was a new count since, or it was removed */
    int64_t serial;       /* serial of that end; 0: not known */
};

/* --- object.c --------------------------------------------------------------------------------------------------- */

/* What commands of a latch point into. */
struct lk__latchblock {
    struct lk__block block;
    struct lk__latch_keys keys;
    const char *channel; /* Redisson's */
};

struct lk__latch {
    struct lk__object object;
    struct lk__latchblock *block;
    struct lk__broadcast broadcast;
    struct lk__slots slots;
    struct lk__presence presence; /* of an anonymous one */
};

static inline struct lk__latch *lk__latch_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__latch, object);
}

static inline const lk_latchattr_t *lk__latch_attr(const struct lk__op *op)
{
    return op->attr;
}

/* For its scripts, as far as they are the same for all. */
static inline unsigned lk__latch_flags(const struct lk__op *op)
{
    return op->object->traits.anonymous ? LK__LATCH_ANONYMOUS : 0U;
}

extern const struct lk__kind lk__latch_kind;

/* Begin a public call; then lk__op_leave(). */
int lk__latch_enter(struct lk__op *op, lk_latch_t *l, int64_t limit_us);
/* An anonymous one is used by this client, or that begins. 0 · ESTALE: that was lost · why it could not begin. */
int lk__latch_use(const struct lk__op *op);

/* --- count.c ---------------------------------------------------------------------------------------------------- */

/* What its looks see: a struct lk__latchstate. */
extern const struct lk__scene lk__latch_scene;

static inline const struct lk__latchstate *lk__latch_state(const union lk__seen *seen)
{
    return (const struct lk__latchstate *)(const void *)seen;
}

#endif
