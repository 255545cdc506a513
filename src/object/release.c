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
    lk__hold_given(hold);
    struct lk__call call = { .node = lk__object_node(object),
                             .what = object->what,
                             .command = &hold->release,
                             .sent = lk__hold_torelease(hold) };
    int rc = lk__call_run(&call);
    *repeated = call.repeated;
    if (rc == 0 && !lk__answer_read(hold->release.script, call.reply, answer))
        rc = lk__call_garbled(object->what);
    return rc;
}

int lk__object_release(struct lk__object *object, struct lk__hold *hold)
{
    struct lk__watchdog *dog = hold->dog;
    struct lk__answer answer;
    bool repeated;
    int64_t end_us = lk__hold_endsby(hold);
    if (!lk__watchdog_end(dog, hold))
        return lk__gone(object);
    lk__histogram_add(&object->client->stats[hold->kind].hold, lk__now_us() - hold->began_us);
    int rc = send_it(object, hold, &answer, &repeated);
    if (rc != 0) {
        lk__watchdog_sweep(dog, hold, hold->ask_duplicates_until_us, end_us);
        lk__error_settles(end_us);
        return rc;
    }
    lk__watchdog_sweepduplicates(dog, hold, answer.server_us);
    if (answer.verdict == LK__DONE || repeated) /* a copy of this release may have done it */
        return 0;
    lk__watchdog_wasgone(dog, hold);
    return lk__gone(object);
}
