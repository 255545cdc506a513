/* SPDX-License-Identifier: MIT */
/*
 * redlock.h - a mutex that a majority of several servers grants
 *
 * lock.c    acquiring it: rounds until one succeeds      ballot.c   one question to all servers at once
 * round.c   one round: ask all, count, keep or give back release.c  giving it back
 * check.c   does it stand?                               inspect.c  calls that need no hold
 * object.c  the table of the kind, calls of a holder     attr.c     its attributes
 *
 * On each server it is a mutex, taken by the mutex' own scripts: they try, and never queue.
 */
#ifndef LK__REDLOCK_H
#define LK__REDLOCK_H

#include "lock/scripts.h"
#include "object/calls.h"
#include "object/keys.h"
#include "redlock/ballot.h"
#include "redlock/scripts.h"

#include <latchkey/redlock.h>

/* Keys and arguments of its commands, as far as they are the same in all of them. */
struct lk__redlockblock {
    struct lk__block block;
    struct lk__lock_keys keys;
    struct lk__lock_release_args release;
    struct lk__lock_renew_args renew;
    struct lk__redlock_keys fence;
};

static inline struct lk__redlockblock *lk__redlock_block(const struct lk__object *object)
{
    return LK__CONTAINER(object->block, struct lk__redlockblock, block);
}

static inline const lk_redlockattr_t *lk__redlock_attr(const struct lk__op *op)
{
    return op->attr;
}

/* A command of the mutex' scripts. */
static inline struct lk__command lk__redlock_command(const struct lk__object *object, const struct lk__script *script,
                                                     const void *args)
{
    return (struct lk__command){ .script = script, .keys = &lk__redlock_block(object)->keys, .args = args };
}

extern const struct lk__kind lk__redlock_kind;

int lk__redlockattr_check(void *attr, const void *given);
/* The lease of who does not say another one, and the longest that any hold of the name has; below 0: it may be any. */
int64_t lk__redlock_lease(const struct lk__op *op);
int64_t lk__redlock_longest(const struct lk__op *op);
/* EINVAL: such a lease would outlast the time after which a server that forgot it votes again. */
int lk__redlock_checklease(const struct lk__op *op, int64_t lease_ms);

/* --- round.c: one try ------------------------------------------------------------------------------------------------- */

/* What is asked for, the same in all rounds of a call. */
struct lk__plan {
    int64_t began_us;
    int64_t lease_ms, asked_ms; /* of the hold, and at first: a hold may not be as long as its lease */
    int64_t max_hold_ms;        /* 0: none */
    int64_t longest_ms;         /* a server that has not run for so long has no vote; 0: each has */
    int64_t node_timeout_ms;
    bool fixed, fenced;
    bool contended; /* told: a round failed */
};

/*
 * 0: held by the call's owner. EBUSY: somebody else has it, or nobody has a majority; ENOTCONN: too few servers answer; or
 * what else keeps a majority from it. Then what servers granted is given back in the background; with an error text.
 */
int lk__redlock_round(const struct lk__op *op, const struct lk__plan *plan);

/* --- release.c, check.c -------------------------------------------------------------------------------------------------- */

int lk__redlock_release(struct lk__object *object, struct lk__hold *hold);
int lk__redlock_askheld(const struct lk__op *op, struct lk__hold *hold);

#endif
