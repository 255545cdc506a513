/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - giving a read-write lock back, one level or all, and going from writing to reading
 *
 * Whatever comes back, the caller holds one level less.
 */
#include "rwlock/rwlock.h"

#include <limits.h>

/* The answer of the call just made: { verdict, server us }, or EPROTO. */
static int read_verdict(const struct lk__object *object, const struct lk__hold *hold, int64_t *verdict)
{
    const struct lk__reply *reply = hold->call->reply;
    if (!lk__reply_integers(reply, 2))
        return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    *verdict = reply->values[0].number;
    return 0;
}

int lk_rwlock_unlock(lk_rwlock_t *rw)
{
    struct lk__frame frame;
    int rc = lk__rwlock_enter(rw, &frame);
    if (rc == ECANCELED && lk__shell_isforeign(lk__rwlock_shell(rw)))
        return lk__fail(EPERM, "%s: held by another process, not by this one", lk__shell_name(lk__rwlock_shell(rw)));
    if (rc != 0)
        return rc;
    struct lk__object *object = frame.object;
    struct lk__hold *hold = lk__object_hold(object, frame.self->owner);
    if (hold == NULL) {
        rc = lk__fail(EPERM, "%s: not held by this thread", object->what);
    } else if ((int64_t)hold->reads + hold->holds > 1) {
        rc = lk__frame_hold(&frame, &hold);
        --*(hold->reads > 0 ? &hold->reads : &hold->holds);
    } else {
        rc = lk__give(object, hold); /* the room that makes goes to those who wait */
        lk__object_drophold(object, hold);
        frame.self->holds--;
    }
    return lk__frame_leave(&frame, rc);
}

/* Ask the server once. 0: it counts as a reader from now on. */
static int send_downgrade(struct lk__object *object, struct lk__hold *hold, int64_t *verdict)
{
    int64_t confirmed_us = 0;
    bool unsure;
    lk__command_fill(&hold->nest, LK__DOWN_LEASE, lk__watchdog_begincall(hold->dog, hold));
    lk__command_fill(&hold->nest, LK__DOWN_UNREPAIRED, hold->owner_died);
    int rc = lk__call(&object->client->conn, object->what, &hold->nest, LK__DOWN_DEADLINE, true, &hold->call, &unsure);
    if (rc == 0)
        rc = read_verdict(object, hold, verdict);
    if (rc == 0) {
        lk__conn_clock(&object->client->conn, hold->call->sent_us, hold->call->reply->values[1].number);
        confirmed_us = *verdict == 1 ? hold->call->sent_us : 0;
    }
    lk__watchdog_endcall(hold->dog, hold, unsure, confirmed_us);
    return rc;
}

static int downgrade(struct lk__object *object, struct lk__hold *hold)
{
    int64_t verdict = -1;
    int rc = 0;
    for (int attempt = 0; attempt < 2 && verdict < 0 && rc == 0; attempt++)
        rc = send_downgrade(object, hold, &verdict); /* again after a deadline: the clock moved, and is known now */
    if (rc == ENOTCONN || rc == ENOSPC || rc == ENOMEM)
        return rc;
    if (rc == 0 && verdict < 0)
        return lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                        object->what);
    if (rc == 0 && verdict == 0) {
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
    struct lk__frame frame;
    struct lk__hold *hold;
    int rc = lk__rwlock_enter(rw, &frame);
    if (rc != 0)
        return rc;
    rc = lk__frame_hold(&frame, &hold);
    if (rc == 0 && !lk__rwlock_iswriter(hold))
        rc = lk__fail(EPERM, "%s: not held by this thread for writing", frame.object->what);
    if (rc == 0 && hold->reads > INT_MAX - hold->holds)
        rc = lk__fail(EAGAIN, "%s: held too many times", frame.object->what);
    if (rc == 0)
        rc = downgrade(frame.object, hold);
    return lk__frame_leave(&frame, rc);
}
