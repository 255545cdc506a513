/* SPDX-License-Identifier: MIT */
/* inspect.c - what the server knows of a condition: info */
#include "cond/cond.h"

static void tell_info(lk_condinfo_t *info, const struct lk__cond_info_reply *reply)
{
    lk_condinfo_t found = { .waiters = (unsigned)reply->waiters, .woken = (unsigned)reply->woken };
    if (strlen(reply->found) > 3)
        strncpy(found.mutex, reply->found + 3, sizeof found.mutex - 1);
    lk__sized_write(info, &found, sizeof found);
}

static int read_info(const struct lk__op *op, lk_condinfo_t *info)
{
    struct lk__condpair *pair;
    struct lk__condbuf buf;
    struct lk__cond_info_reply reply;
    int rc = lk__condpair_found(lk__cond_of(op), NULL, &pair);
    if (rc != 0)
        return rc;
    const struct lk__command command = lk__cond_command(pair, &lk__lua_cond_info, NULL);
    rc = lk__object_ask(op->object, &command, NULL, lk__condbuf_reply(&buf));
    if (rc == 0) {
        lk__cond_info_read(&buf.reply, &reply);
        tell_info(info, &reply);
    }
    lk__condpair_unref(pair);
    return rc;
}

LK__INFO_CALL(cond, mutex)
