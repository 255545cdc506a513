/* SPDX-License-Identifier: MIT */
/*
 * barrier.h - the barrier
 *
 * object.c   keys, channel and attributes
 * wait.c     coming to a round, and waiting for the others
 * inspect.c  reset, info
 */
#ifndef LK__BARRIER_H
#define LK__BARRIER_H

#include "barrier/scripts.h"
#include "object/await.h"
#include "object/calls.h"
#include "object/idempotent.h"
#include "object/keys.h"

#include <latchkey/barrier.h>

/* What commands of it point into. */
struct lk__barrierblock {
    struct lk__block block;
    struct lk__barrier_keys keys;
    struct lk__barrier_leave_args leave; /* the channel of all who wait */
};

struct lk__barrier {
    struct lk__object object;
    struct lk__broadcast broadcast;
    int64_t present; /* under broadcast->mu: the latest round known here; those before it are over */
    struct lk__slots slots;
};

static inline struct lk__barrier *lk__barrier_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__barrier, object);
}

static inline const struct lk__barrierblock *lk__barrier_block(const struct lk__object *object)
{
    return LK__CONTAINER(object->block, struct lk__barrierblock, block);
}

extern const struct lk__kind lk__barrier_kind;

/* Begin a wait; then lk__op_leave(). `parties`: how many this handle says. */
int lk__barrier_enter(struct lk__op *op, lk_barrier_t *b, int64_t limit_us, unsigned *parties);

#endif
