/* SPDX-License-Identifier: MIT */
/*
 * release.c - giving back something that has a lease
 *
 * The hold ends here before its release is sent: a late answer then finds nobody who still believes in it.
 * Whatever comes back, it is no longer held by the caller. A release without a good answer goes on in the
 * background, as long as there may be something to release.
 */
#include "object/acquire.h"

int lk__gone(const struct lk__object *object)
{
    return lk__fail(ESTALE, "%s: the lease was lost before this; somebody else may hold it", object->what);
}

/* 0: the server answered whether there was something to release. */
static int send_it(struct lk__object *object, struct lk__hold *hold, struct lk__answer *answer, bool *repeated)
{
    const struct lk__outboxentry *release = &hold->lease->release;
    lk__hold_given(hold);
    struct lk__call call = {
        .node = lk__object_node(object),
        .what = object->what,
        .command = &release->command,
        .sent = lk__outboxentry_sent(release),
    };
    int rc = lk__call_run(&call);
    *repeated = call.repeated;
    if (rc == 0 && !lk__answer_read(release->command.script, call.reply, answer))
        rc = lk__call_garbled(object->what);
    return rc;
}

int lk__object_release(struct lk__object *object, struct lk__hold *hold)
{
    struct lk__lease *lease = hold->lease;
    struct lk__answer answer;
    bool repeated;
    int64_t end_us = lk__lease_endsby(lease);
    if (!lk__lease_end(lease))
        return lk__gone(object);
    lk__histogram_add(&object->client->stats[hold->kind].hold, lk__now_us() - hold->began_us);
    int rc = send_it(object, hold, &answer, &repeated);
    if (rc != 0) {
        lk__outbox_send(&object->client->dog, &lease->release, end_us);
        lk__error_settles(end_us);
        return rc;
    }
    lk__lease_released(lease, answer.server_us);
    if (answer.verdict == LK__DONE || repeated) /* a copy of this release may have done it */
        return 0;
    lk__lease_wasgone(lease);
    return lk__gone(object);
}
