/* SPDX-License-Identifier: MIT */
/* inspect.c - calls that need no hold: info, queue, forceunlock */
#include "rwlock/rwlock.h"

#include <string.h>

static void tell_info(lk_rwlockinfo_t *info, const struct lk__rwlock_info_reply *reply)
{
    lk_rwlockinfo_t found = { .token = (uint64_t)reply->token,
                              .waiters = (unsigned)reply->waiters,
                              .waiting_writers = (unsigned)reply->waiting_writers,
                              .recoverable = reply->recoverable == 1 };
    if (reply->verdict != LK__FREE) {
        found.mode = reply->readers > 0 ? LK_RWLOCK_READING : LK_RWLOCK_WRITING;
        found.readers = (unsigned)reply->readers;
        found.remaining_ms = reply->left_ms;
        strncpy(found.writer, reply->writer, sizeof found.writer - 1);
    }
    lk__sized_write(info, &found, sizeof found);
}

static int read_info(const struct lk__op *op, lk_rwlockinfo_t *info)
{
    const struct lk__command command = lk__object_command(op->object, &lk__lua_rwlock_info, NULL);
    struct lk__rwlock_info_reply reply;
    struct lk__replybuf buf;
    int rc = lk__object_ask(op->object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc == 0) {
        lk__rwlock_info_read(&buf.reply, &reply);
        tell_info(info, &reply);
    }
    return rc;
}

LK__INFO_CALL(rwlock, writer)

int lk_rwlock_forceunlock(lk_rwlock_t *rw)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = lk__op_enter(&op, LK__HANDLE(rw), &lk__rwlock_kind);
    if (rc != 0)
        return rc;
    struct lk__rwlockblock *block = lk__rwlock_block(op.object);
    const struct lk__rwlock_force_args args = { .flags = block->release.flags };
    const struct lk__command command = lk__object_command(op.object, &lk__lua_rwlock_force, &args);
    return lk__op_leave(&op, lk__force(op.object, &command, &verdict));
}

LK__QUEUE_CALL(rwlock)
