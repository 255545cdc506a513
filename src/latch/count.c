/* SPDX-License-Identifier: MIT */
/* count.c - setting, lowering, reading and deleting the count of a latch */
#include "latch/latch.h"

#include <limits.h>
#include <string.h>

enum { COUNT_MAX = 1000000 };

/* Run a script that changes the latch. */
static int change(const struct lk__op *op, struct lk__idempotent *once, enum lk__verdict *verdict)
{
    struct lk__latch *latch = lk__latch_of(op);
    once->command.keys = &latch->block->keys;
    return lk__idempotent(op, &latch->slots, once, verdict);
}

static int check_count(const char *function, unsigned n)
{
    if (n == 0 || n > COUNT_MAX)
        return lk__fail(EINVAL, "%s: %u: at least 1, at most %d", function, n, COUNT_MAX);
    return 0;
}

static int set_count(const char *function, lk_latch_t *l, unsigned n, unsigned flags)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = check_count(function, n);
    if (rc == 0)
        rc = lk__latch_enter(&op, l, LK__NEVER);
    if (rc != 0)
        return rc;
    const struct lk__latch_set_args args = { .n = n,
                                             .ttl_ms = lk__latch_attr(&op)->ttl_ms,
                                             .channel = lk__latch_of(&op)->block->channel,
                                             .flags = flags | lk__latch_flags(&op) };
    struct lk__idempotent set = { .command = { .script = &lk__lua_latch_set, .args = &args } };
    rc = change(&op, &set, &verdict);
    if (rc == 0 && verdict == LK__PRESENT)
        rc = lk__fail(EEXIST, "%s: has a count already", op.object->what);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = lk__fail(ESTALE, "%s: is over, and an anonymous latch is not made anew", op.object->what);
    return lk__op_leave(&op, rc);
}

int lk_latch_trysetcount(lk_latch_t *l, unsigned n)
{
    return set_count(__func__, l, n, 0);
}

int lk_latch_setcount(lk_latch_t *l, unsigned n)
{
    return set_count(__func__, l, n, LK__LATCH_REPLACE);
}

/* The server does not know it. An anonymous one ends with its lease, maybe while its server is asked. */
static int absent(const struct lk__op *op)
{
    return op->object->traits.anonymous ? lk__anonymous_waited(op->object, &lk__latch_of(op)->presence, 0) : 0;
}

static int no_count(const struct lk__op *op)
{
    int rc = absent(op);
    return rc != 0 ? rc
                   : lk__fail(ENOENT, "%s: has no count: open already, deleted, or never set", op->object->what);
}

int lk_latch_countdown(lk_latch_t *l)
{
    return lk_latch_countdownby(l, 1);
}

int lk_latch_countdownby(lk_latch_t *l, unsigned n)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = check_count("lk_latch_countdownby", n);
    if (rc == 0)
        rc = lk__latch_enter(&op, l, LK__NEVER);
    if (rc != 0)
        return rc;
    const struct lk__latch_countdown_args args = { .by = n,
                                                   .channel = lk__latch_of(&op)->block->channel,
                                                   .flags = lk__latch_flags(&op) };
    struct lk__idempotent countdown = { .command = { .script = &lk__lua_latch_countdown, .args = &args },
                                        .args_size = sizeof args,
                                        .lasting = true };
    rc = change(&op, &countdown, &verdict);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = no_count(&op);
    return lk__op_leave(&op, rc);
}

int lk_latch_delete(lk_latch_t *l)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = lk__latch_enter(&op, l, LK__NEVER);
    if (rc != 0)
        return rc;
    const struct lk__latch_delete_args args = { .channel = lk__latch_of(&op)->block->channel,
                                                .flags = lk__latch_flags(&op) };
    struct lk__idempotent delete = { .command = { .script = &lk__lua_latch_delete, .args = &args } };
    rc = change(&op, &delete, &verdict);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = no_count(&op);
    return lk__op_leave(&op, rc);
}

/* --- looking --------------------------------------------------------------------------------------------------- */

/* How look.lua says that a count ended. */
enum { OPENED = 1, DELETED = 2 };

static int ask(const struct lk__op *op, struct lk__latchstate *state)
{
    const struct lk__object *object = op->object;
    const struct lk__command command = lk__object_command(object, &lk__lua_latch_look, NULL);
    struct lk__replybuf buf;
    struct lk__latch_look_reply seen;
    int rc = lk__object_ask(object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc != 0)
        return rc;
    lk__latch_look_read(&buf.reply, &seen);
    if (seen.left < 0 || seen.left > UINT_MAX)
        return lk__fail(EPROTO, "%s: the key holds something that is no count", object->what);
    *state = (struct lk__latchstate){ .count = seen.verdict == LK__ABSENT ? -1 : seen.left,
                                      .opened = seen.ended == OPENED,
                                      .deleted = seen.ended == DELETED,
                                      .serial = seen.serial,
                                      .since = seen.since == 1 };
    return seen.verdict == LK__ABSENT ? absent(op) : 0;
}

static int look(const struct lk__op *op, union lk__seen *seen)
{
    struct lk__latchstate state;
    int rc = lk__latch_use(op);
    if (rc == 0)
        rc = ask(op, &state);
    if (rc == 0)
        memcpy(seen, &state, sizeof state);
    return rc;
}

/* Has the count ended, or begun, between two looks? */
static bool differs(const union lk__seen *seen, const union lk__seen *before)
{
    const struct lk__latchstate *one = lk__latch_state(seen), *other = lk__latch_state(before);
    return (one->count > 0) != (other->count > 0) || one->serial != other->serial || one->deleted != other->deleted;
}

_Static_assert(sizeof(struct lk__latchstate) <= sizeof(union lk__seen), "what a look sees");

const struct lk__scene lk__latch_scene = { .look = look, .differs = differs };

/* One look, for a public function. */
static int look_once(lk_latch_t *l, struct lk__latchstate *state)
{
    struct lk__op op;
    int rc = lk__latch_enter(&op, l, LK__NEVER);
    if (rc != 0)
        return rc;
    rc = ask(&op, state);
    return lk__op_leave(&op, rc);
}

int lk_latch_getcount(lk_latch_t *l, unsigned *n)
{
    struct lk__latchstate state;
    if (n == NULL)
        return lk__fail(EINVAL, "lk_latch_getcount: nowhere to put the count");
    int rc = look_once(l, &state);
    if (rc == 0)
        *n = state.count > 0 ? (unsigned)state.count : 0;
    return rc;
}

int lk_latch_info(lk_latch_t *l, lk_latchinfo_t *info)
{
    struct lk__latchstate state;
    int rc = lk__sized_check(info, LK__THROUGH(lk_latchinfo_t, count), "lk_latchinfo_t");
    if (rc == 0)
        rc = look_once(l, &state);
    if (rc != 0)
        return rc;
    bool ended = state.count < 0 && !state.since;
    const lk_latchinfo_t found = { .set = state.count > 0,
                                   .opened = state.count == 0 || (ended && state.opened),
                                   .deleted = ended && state.deleted,
                                   .count = state.count > 0 ? (unsigned)state.count : 0 };
    lk__sized_write(info, &found, sizeof found);
    return 0;
}
