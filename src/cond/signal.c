/* SPDX-License-Identifier: MIT */
/*
 * signal.c - wake one waiter of a condition, or all: they are moved to the queue of its mutex
 *
 * The keys of that mutex go with the command. A client that does not know them is told, and sends it again.
 */
#include "cond/cond.h"

enum { NAMES_MAX = 5 }; /* another one each time: they come and go faster than this client asks */

/* One command. PRESENT: `reply` says with which mutex they wait. */
static int send_it(const struct lk__op *op, const struct lk__condpair *pair, bool all, struct lk__condbuf *buf,
                   struct lk__cond_signal_reply *reply)
{
    const struct lk__cond_signal_args args = { .mine = pair->mine,
                                               .flags = pair->leave.flags | (all ? LK__COND_ALL : 0) };
    const struct lk__command command = lk__cond_command(pair, &lk__lua_cond_signal, &args);
    int rc = lk__object_ask(op->object, &command, NULL, lk__condbuf_reply(buf));
    if (rc == 0)
        lk__cond_signal_read(&buf->reply, reply);
    return rc;
}

/* With the mutex that the server names, if it names another one. */
static int wake_some(const struct lk__op *op, bool all, int64_t *left)
{
    struct lk__condbuf buf;
    struct lk__cond_signal_reply reply;
    const char *found = NULL;
    for (int i = 0; i < NAMES_MAX; i++) {
        struct lk__condpair *pair;
        int rc = lk__condpair_found(lk__cond_of(op), found, &pair);
        if (rc != 0)
            return rc;
        rc = send_it(op, pair, all, &buf, &reply);
        lk__condpair_unref(pair);
        *left = rc == 0 && reply.verdict == LK__DONE ? reply.left : 0;
        if (rc != 0 || reply.verdict == LK__DONE)
            return rc;
        found = reply.found;
    }
    return lk__fail(EINVAL, "%s: its waiters use several mutexes", op->object->what);
}

static int wake(lk_cond_t *c, bool all)
{
    struct lk__op op;
    int64_t left = 0;
    int rc = lk__op_enter(&op, LK__HANDLE(c), &lk__cond_kind);
    if (rc != 0)
        return rc;
    do
        rc = wake_some(&op, all, &left);
    while (rc == 0 && all && left > 0);
    return lk__op_leave(&op, rc);
}

int lk_cond_signal(lk_cond_t *c)
{
    return wake(c, false);
}

int lk_cond_broadcast(lk_cond_t *c)
{
    return wake(c, true);
}
