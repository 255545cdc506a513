/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a mutex back, one level or all
 *
 * Whatever comes back, the caller holds one level less.
 */
#include "lock/lock.h"

/* Ask the server once. 0 and what it says: 1 set, 0 there is no such hold, -1 past its deadline. */
static int send_nest(struct lk__object *object, struct lk__hold *hold, int holds, int64_t *verdict)
{
    struct lk__conn *conn = &object->client->conn;
    int64_t confirmed_us = 0;
    bool unsure;
    lk__command_fill(&hold->nest, LK__NEST_HOLDS, holds);
    lk__command_fill(&hold->nest, LK__NEST_LEASE, lk__watchdog_begincall(hold->dog, hold));
    int rc = lk__call(conn, object->what, &hold->nest, LK__NEST_DEADLINE, true, &hold->call, &unsure);
    if (rc == 0 && !lk__reply_integers(hold->call->reply, 2))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    if (rc == 0) {
        *verdict = hold->call->reply->values[0].number;
        lk__conn_clock(conn, hold->call->sent_us, hold->call->reply->values[1].number);
        confirmed_us = *verdict == 1 ? hold->call->sent_us : 0;
    }
    lk__watchdog_endcall(hold->dog, hold, unsure, confirmed_us);
    return rc;
}

int lk__mutex_nest(const struct lk__frame *frame, struct lk__hold *hold, int holds)
{
    struct lk__object *object = frame->object;
    int64_t verdict = -1;
    int rc = 0;
    for (int attempt = 0; attempt < 2 && verdict < 0 && rc == 0; attempt++)
        rc = send_nest(object, hold, holds, &verdict); /* again after a deadline: the clock moved, and is known now */
    if (rc != 0)
        return rc;
    if (verdict < 0)
        return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                        object->what);
    if (verdict == 0)
        lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
    return lk__watchdog_good(hold->dog, hold, NULL) ? 0 : lk__gone(object);
}

static int unlock_inner(const struct lk__frame *frame, struct lk__hold *hold)
{
    int rc = lk__frame_hold(frame, &hold);
    hold->holds--;
    if (rc != 0 || lk__mutex_attr(frame)->nested_local)
        return rc;
    return lk__mutex_nest(frame, hold, hold->holds);
}

int lk_mutex_unlock(lk_mutex_t *m)
{
    struct lk__frame frame;
    int rc = lk__mutex_enter(m, &frame);
    if (rc == ECANCELED && lk__shell_isforeign(lk__mutex_shell(m)))
        return lk__fail(EPERM, "%s: held by another process, not by this one", lk__shell_name(lk__mutex_shell(m)));
    if (rc != 0)
        return rc;
    struct lk__object *object = frame.object;
    struct lk__hold *hold = lk__object_hold(object, frame.self->owner);
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by this thread", object->what);
    } else if (hold->holds > 1) {
        rc = unlock_inner(&frame, hold);
    } else {
        rc = lk__give(object, hold); /* the server frees it, or hands it to the first waiter */
        lk__object_drophold(object, hold);
        frame.self->holds--;
    }
    return lk__frame_leave(&frame, rc);
}
