/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a mutex back, one level or all
 *
 * Whatever comes back, the caller holds one level less.
 */
#include "lock/mutex.h"

/* Ask the server once. 0 and its answer. */
static int send_nest(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
                     struct lk__answer *answer)
{
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = command,
                             .sent = { .id = hold->id, .lease_ms = lk__watchdog_begincall(hold->dog, hold) } };
    int64_t confirmed_us = 0;
    int rc = lk__call_run(&call);
    if (rc == 0 && !lk__lock_nest_read(call.reply, answer))
        rc = lk__call_garbled(object->what);
    if (rc == 0 && answer->verdict == LK__DONE)
        confirmed_us = call.sent_us;
    lk__watchdog_endcall(hold->dog, hold, call.repeated, confirmed_us);
    return rc;
}

int lk__mutex_nest(const struct lk__op *op, struct lk__hold *hold, int holds)
{
    struct lk__object *object = op->object;
    const struct lk__lock_nest_args args = { .holds = holds };
    const struct lk__command command = { .script = &lk__lua_lock_nest,
                                         .keys = &lk__mutex_block(lk__mutex_of(op))->keys,
                                         .args = &args };
    struct lk__answer answer = { .verdict = LK__LATE };
    int rc = 0;
    for (int attempt = 0; attempt < 2 && answer.verdict == LK__LATE && rc == 0; attempt++)
        rc = send_nest(object, hold, &command, &answer); /* again after a deadline: the clock moved, and is known now */
    if (rc != 0)
        return rc;
    if (answer.verdict == LK__LATE)
        return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                        object->what);
    if (answer.verdict == LK__GONE)
        lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
    return lk__watchdog_good(hold->dog, hold, NULL) ? 0 : lk__gone(object);
}

static int unlock_inner(const struct lk__op *op, struct lk__hold *hold)
{
    int rc = lk__op_hold(op, &hold);
    hold->holds--;
    if (rc != 0 || lk__mutex_attr(op)->nested_local)
        return rc;
    return lk__mutex_nest(op, hold, hold->holds);
}

int lk_mutex_unlock(lk_mutex_t *m)
{
    struct lk__op op;
    int rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc == ECANCELED && lk__handle_isinherited(LK__HANDLE(m)))
        return lk__fail(EPERM, "%s: held by another process, not by this one", lk__handle_name(LK__HANDLE(m)));
    if (rc != 0)
        return rc;
    struct lk__object *object = op.object;
    struct lk__hold *hold = lk__object_hold(object, op.self->owner);
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by this thread", object->what);
    } else if (hold->holds > 1) {
        rc = unlock_inner(&op, hold);
    } else {
        rc = lk__object_release(object, hold); /* the server frees it, or hands it to the first waiter */
        lk__object_drophold(object, hold);
        op.self->holds--;
    }
    return lk__op_leave(&op, rc);
}
