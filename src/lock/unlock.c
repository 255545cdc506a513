/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a mutex back, one level or all
 *
 * Whatever comes back, the caller holds one level less.
 */
#include "lock/lock.h"

int lk__mutex_nest(const struct lk__frame *frame, struct lk__hold *hold, int holds)
{
    struct lk__object *object = frame->object;
    struct lk__conn *conn = &object->client->conn;
    for (int attempt = 0; attempt < 2; attempt++) {
        int64_t lease_ms = lk__watchdog_lease(hold->dog, hold);
        lk__command_fill(&hold->nest, LK__NEST_HOLDS, holds);
        lk__command_fill(&hold->nest, LK__NEST_LEASE, lease_ms);
        bool unsure;
        int rc = lk__call(conn, object->what, &hold->nest, LK__NEST_DEADLINE, true, &hold->call, &unsure);
        if (unsure)
            lk__watchdog_doubt(hold->dog, hold, lease_ms);
        if (rc != 0)
            return rc;
        const struct lk__request *request = hold->call;
        if (!lk__reply_integers(request->reply, 2))
            return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
        lk__conn_clock(conn, request->sent_us, request->reply->values[1].number);
        int64_t verdict = request->reply->values[0].number;
        if (verdict == 1) {
            lk__watchdog_confirm(hold->dog, hold, request->sent_us + lease_ms * 1000 - lk__guard_us(lease_ms));
            return lk__watchdog_good(hold->dog, hold, NULL) ? 0 : lk__gone(object);
        }
        if (verdict == 0) {
            lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
            return lk__gone(object);
        }
        /* past its deadline: the server's clock moved, and is known again now */
    }
    return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                    object->what);
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
        return lk__fail(EPERM, "%s: held by another process, not by this one", m->lk_name);
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
