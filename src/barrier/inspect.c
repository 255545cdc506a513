/* SPDX-License-Identifier: MIT */
/* inspect.c - beginning anew, and who waits at a barrier */
#include "barrier/barrier.h"

#include <string.h>

int lk_barrier_reset(lk_barrier_t *b)
{
    struct lk__op op;
    enum lk__verdict verdict;
    int rc = lk__op_enter(&op, LK__HANDLE(b), &lk__barrier_kind);
    if (rc != 0)
        return rc;
    const struct lk__barrier_reset_args args = { .channel = lk__barrier_block(op.object)->leave.channel };
    struct lk__idempotent reset = { .command = lk__object_command(op.object, &lk__lua_barrier_reset, &args) };
    return lk__op_leave(&op, lk__idempotent(&op, &lk__barrier_of(&op)->slots, &reset, &verdict));
}

static int read_info(const struct lk__op *op, lk_barrierinfo_t *info)
{
    const struct lk__object *object = op->object;
    const struct lk__command command = lk__object_command(object, &lk__lua_barrier_info, NULL);
    struct lk__replybuf buf;
    struct lk__barrier_info_reply reply;
    int rc = lk__object_ask(object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc != 0)
        return rc;
    lk__barrier_info_read(&buf.reply, &reply);
    lk_barrierinfo_t found = { 0 };
    if (reply.verdict == LK__DONE) {
        found.parties = (unsigned)reply.parties_wanted;
        found.arrived = (unsigned)reply.arrived;
        found.broken = reply.broken == 1;
        found.generation = (uint64_t)reply.generation;
        strncpy(found.missing, reply.missing, sizeof found.missing - 1);
    }
    lk__sized_write(info, &found, sizeof found);
    return 0;
}

LK__INFO_CALL(barrier, missing)
