/* SPDX-License-Identifier: MIT */
/* inspect.c - calls that need no hold: info, queue, forceunlock */
#include "lock/mutex.h"

#include <string.h>

int lk_mutex_forceunlock(lk_mutex_t *m)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    struct lk__mutexblock *block = lk__mutex_block(lk__mutex_of(&op));
    const struct lk__lock_force_args args = { .channel = block->release.channel, .flags = block->release.flags };
    const struct lk__command command = lk__object_command(op.object, &lk__lua_lock_force, &args);
    return lk__op_leave(&op, lk__force(op.object, &command, &verdict));
}

static void tell_info(lk_mutexinfo_t *info, const struct lk__lock_info_reply *reply)
{
    lk_mutexinfo_t found = { .held = reply->verdict == LK__TAKEN,
                             .token = (uint64_t)reply->token,
                             .waiters = (unsigned)reply->waiters,
                             .recoverable = reply->recoverable == 1 };
    if (found.held) {
        found.remaining_ms = reply->left_ms;
        found.holds = (unsigned)reply->holds;
        strncpy(found.holder, reply->holder, sizeof found.holder - 1);
    }
    lk__sized_write(info, &found, sizeof found);
}

static int read_info(const struct lk__op *op, lk_mutexinfo_t *info)
{
    const struct lk__command command = lk__object_command(op->object, &lk__lua_lock_info, NULL);
    struct lk__lock_info_reply reply;
    struct lk__replybuf buf;
    int rc = lk__object_ask(op->object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc == 0) {
        lk__lock_info_read(&buf.reply, &reply);
        tell_info(info, &reply);
    }
    return rc;
}

LK__INFO_CALL(mutex, holder)

LK__QUEUE_CALL(mutex)
