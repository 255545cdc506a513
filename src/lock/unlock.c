/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a mutex back, one level or all
 *
 * The hold ends here before its release is sent: a late answer then finds nobody who still believes in it.
 * Whatever comes back, the caller holds one level less.
 */
#include "lock/lock.h"

static int gone(const struct lk__object *object)
{
    return lk__fail(ESTALE, "%s: the lease was lost before this unlock; somebody else may hold it", object->what);
}

int lk__mutex_nest(const struct lk__frame *frame, struct lk__hold *hold, int holds)
{
    struct lk__object *object = frame->object;
    struct lk__conn *conn = &object->client->conn;
    for (int attempt = 0; attempt < 2; attempt++) {
        int64_t lease_ms = lk__watchdog_lease(hold->dog, hold);
        lk__command_fill(&hold->nest, LK__NEST_HOLDS, holds);
        lk__command_fill(&hold->nest, LK__NEST_LEASE, lease_ms);
        int rc = lk__call(conn, object->what, &hold->nest, LK__NEST_DEADLINE, true, &hold->call, NULL);
        if (rc != 0)
            return rc;
        const struct lk__request *request = hold->call;
        if (!lk__reply_integers(request->reply, 2))
            return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
        lk__conn_clock(conn, request->sent_us, request->reply->values[1].number);
        int64_t verdict = request->reply->values[0].number;
        if (verdict == 1) {
            lk__watchdog_confirm(hold->dog, hold, request->sent_us + lease_ms * 1000 - lk__guard_us(lease_ms));
            return lk__watchdog_good(hold->dog, hold, NULL) ? 0 : gone(object);
        }
        if (verdict == 0) {
            lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
            return gone(object);
        }
        /* past its deadline: the server's clock moved, and is known again now */
    }
    return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                    object->what);
}

/* The last level: the server frees it, or hands it to the first waiter. */
static int release(const struct lk__frame *frame, struct lk__hold *hold)
{
    struct lk__object *object = frame->object;
    struct lk__watchdog *dog = hold->dog;
    bool repeated;
    int64_t left_us = atomic_load(&hold->valid_until_us) - lk__now_us();
    if (!lk__watchdog_end(dog, hold))
        return gone(object);
    lk__histogram_add(&object->client->stats[LK_KIND_MUTEX].hold, lk__now_us() - hold->began_us);
    lk__command_fill(&hold->release, LK__RELEASE_KEEP, hold->keep_until_us);
    lk__command_fill(&hold->release, LK__RELEASE_UNREPAIRED, hold->owner_died);
    int rc = lk__call(&object->client->conn, object->what, &hold->release, -1, true, &hold->call, &repeated);
    if (rc != 0) { /* it goes on in the background, as long as there is something to release */
        lk__watchdog_sweep(dog, hold, hold->copies_us, lk__now_us() + left_us + lk__guard_us(hold->lease_ms));
        return rc;
    }
    const struct lk__reply *reply = hold->call->reply;
    if (!lk__reply_integers(reply, 2))
        return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    lk__watchdog_sweepcopies(dog, hold, reply->values[1].number);
    if (reply->values[0].number == 1 || repeated) /* a copy of this release may have done it */
        return 0;
    lk__watchdog_wasgone(dog, hold);
    return gone(object);
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
        rc = release(&frame, hold);
        lk__object_drophold(object, hold);
        frame.self->holds--;
    }
    return lk__frame_leave(&frame, rc);
}
