/* SPDX-License-Identifier: MIT */
/*
 * cond.h - the condition variable
 *
 * wait.c    waiting, with a limit or without     object.c   the table of the kind, its attributes
 * signal.c  waking one or all                    inspect.c  what the server knows of it
 * pair.c    a condition with a mutex: the keys of both, and what the server says of them
 *
 * A waiter stands in the queue of the condition, and is moved to that of the mutex by a signal; there it is a waiter of the
 * mutex as any other, and whoever gives the mutex back makes it the owner. It is one acquire all the time, whose ask
 * (wait.lua) finds where it stands. So a condition stands on the mutex, above it, and the mutex knows nothing of it.
 */
#ifndef LK__COND_H
#define LK__COND_H

#include "cond/scripts.h"
#include "lock/mutex.h"

#include <latchkey/cond.h>

/* Keys that have to do with the condition alone. */
struct lk__condblock {
    struct lk__block block;
    const char *name, *record, *waiting, *calive, *moved;
};

/* A condition with a mutex: never changes. */
struct lk__condpair {
    struct lk__block block;
    struct lk__cond_keys keys;
    const char *mine;                 /* "<letters of the mutex' settings> <its key>", as the record has it */
    struct lk__cond_leave_args leave; /* `flags` are those of all commands */
};

struct lk__cond {
    struct lk__object object;
    struct lk__condpair *pair; /* under object.mu, a reference: the last one that was used; NULL: none yet */
};

static inline struct lk__cond *lk__cond_of(const struct lk__op *op)
{
    return LK__CONTAINER(op->object, struct lk__cond, object);
}

static inline const lk_condattr_t *lk__cond_attr(const struct lk__op *op)
{
    return op->attr;
}

static inline struct lk__command lk__cond_command(const struct lk__condpair *pair, const struct lk__script *script,
                                                  const void *args)
{
    return (struct lk__command){ .script = script, .keys = &pair->keys, .args = args };
}

extern const struct lk__kind lk__cond_kind;

/* A reply with the name of a mutex. */
struct lk__condbuf {
    struct lk__reply reply;
    struct lk__value values[LK__REPLYBUF_VALUES];
    char text[LK__KEY_MAX + 64];
};

static inline struct lk__reply *lk__condbuf_reply(struct lk__condbuf *buf)
{
    return lk__reply_in(&buf->reply, buf->values, LK__REPLYBUF_VALUES, buf->text, sizeof buf->text);
}

/* --- pair.c ------------------------------------------------------------------------------------------------------- */

/*
 * The condition with that mutex, with a reference. 0 · EINVAL they cannot go together, or threads of this client wait
 * with another one · ENOMEM; with an error text.
 */
int lk__condpair_with(struct lk__cond *cond, const struct lk__mutex *mutex, struct lk__condpair **pair);
/* The condition with the mutex of this record; NULL: with the last one that was used, or none. As _with(); EPROTO: it is no record. */
int lk__condpair_found(struct lk__cond *cond, const char *record, struct lk__condpair **pair);

static inline void lk__condpair_unref(struct lk__condpair *pair)
{
    lk__block_unref(pair != NULL ? &pair->block : NULL);
}

#endif
