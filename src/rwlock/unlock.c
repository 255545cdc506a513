/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a read-write lock back, one level or all, and going from writing to reading
 *
 * Whatever comes back, the caller holds one level less.
 */
#include "rwlock/rwlock.h"

#include <limits.h>

int lk_rwlock_unlock(lk_rwlock_t *rw)
{
    struct lk__op op;
    int rc = lk__op_enter(&op, LK__HANDLE(rw), &lk__rwlock_kind);
    if (rc == ECANCELED && lk__handle_isinherited(LK__HANDLE(rw)))
        return lk__fail(EPERM, "%s: held by another process, not by this one", lk__handle_name(LK__HANDLE(rw)));
    if (rc != 0)
        return rc;
    struct lk__object *object = op.object;
    struct lk__hold *hold = lk__object_hold(object, op.self->owner);
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by this thread", object->what);
    } else if ((int64_t)hold->reads + hold->holds > 1) {
        rc = lk__op_hold(&op, &hold);
        --*(hold->reads > 0 ? &hold->reads : &hold->holds);
    } else {
        rc = lk__object_release(object, hold); /* the room that makes goes to those who wait */
        lk__object_drophold(object, hold);
        op.self->holds--;
    }
    return lk__op_leave(&op, rc);
}

/* Ask the server once. 0 and its answer. */
static int send_downgrade(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
                          struct lk__answer *answer)
{
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = command,
                             .sent = { .id = hold->id,
                                       .lease_ms = lk__watchdog_begincall(hold->dog, hold),
                                       .flags = hold->owner_died ? LK__SENT_UNREPAIRED : 0 } };
    int64_t confirmed_us = 0;
    int rc = lk__call_run(&call);
    if (rc == 0 && !lk__rwlock_downgrade_read(call.reply, answer))
        rc = lk__call_garbled(object->what);
    if (rc == 0 && answer->verdict == LK__DONE)
        confirmed_us = call.sent_us;
    lk__watchdog_endcall(hold->dog, hold, call.repeated, confirmed_us);
    return rc;
}

/* 0 and the answer; LATE: nothing was done. */
static int ask_for_downgrade(const struct lk__op *op, struct lk__hold *hold, struct lk__answer *answer)
{
    const struct lk__rwlockblock *block = lk__rwlock_block(op->object);
    const struct lk__rwlock_downgrade_args args = { .claim_ms = block->release.claim_ms,
                                                    .flags = block->release.flags };
    const struct lk__command command = { .script = &lk__lua_rwlock_downgrade, .keys = &block->keys, .args = &args };
    int rc = 0;
    answer->verdict = LK__LATE;
    for (int attempt = 0; attempt < 2 && answer->verdict == LK__LATE && rc == 0; attempt++)
        rc = send_downgrade(op->object, hold, &command, answer); /* once more: the clock moved, and is known now */
    return rc;
}

static int downgrade(const struct lk__op *op, struct lk__hold *hold)
{
    struct lk__object *object = op->object;
    struct lk__answer answer;
    int rc = ask_for_downgrade(op, hold, &answer);
    if (rc == ENOTCONN || rc == ENOSPC || rc == ENOMEM)
        return rc;
    if (rc == 0 && answer.verdict == LK__LATE)
        return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                        object->what);
    if (rc == 0 && answer.verdict == LK__GONE) {
        lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
        return lk__gone(object);
    }
    /* Also when the outcome is unknown: others may be reading, so nobody may go on writing. */
    hold->reads += hold->holds;
    hold->holds = 0;
    if (rc == 0)
        hold->owner_died = false; /* the mark on the server has it from now on */
    if (rc == 0 && !lk__watchdog_good(hold->dog, hold, NULL))
        return lk__gone(object);
    return rc;
}

int lk_rwlock_downgrade(lk_rwlock_t *rw)
{
    struct lk__op op;
    struct lk__hold *hold;
    int rc = lk__op_enter(&op, LK__HANDLE(rw), &lk__rwlock_kind);
    if (rc != 0)
        return rc;
    rc = lk__op_hold(&op, &hold);
    if (rc == 0 && !lk__rwlock_iswriter(hold))
        rc = lk__fail(EPERM, "%s: not held by this thread for writing", op.object->what);
    if (rc == 0 && hold->reads > INT_MAX - hold->holds)
        rc = lk__fail(EAGAIN, "%s: held too many times", op.object->what);
    if (rc == 0)
        rc = downgrade(&op, hold);
    return lk__op_leave(&op, rc);
}
