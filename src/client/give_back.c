/* SPDX-License-Identifier: MIT */
/*
 * give_back.c - what a client still holds when it closes: released in pipelines, each answer awaited
 *
 * This needs no memory: the requests of a pipeline are on the stack. What they bring no answer for goes on through the
 * outbox, by the watchdog's own connection: a thread that stands still in the middle of the answers takes the one of the
 * callers with it.
 */
#include "client/client.h"

enum { BATCH = 4 /* on a stack that may be small */ };

/* One release of a pipeline. */
struct leaving {
    struct lk__lease *lease;
    struct lk__call call;
    struct lk__ongoing ongoing;
};

static void send_release(lk_client_t *client, struct leaving *leaving, int64_t marked_until_us, int64_t until_us)
{
    const struct lk__outboxentry *release = &leaving->lease->release;
    if (leaving->lease->holder != NULL)
        lk__hold_given(leaving->lease->holder);
    leaving->call = (struct lk__call){ .node = &client->node,
                                       .what = "close",
                                       .command = &release->command,
                                       .sent = lk__outboxentry_sent(release),
                                       .end_us = until_us,
                                       .by_steps = true,
                                       .only_once = true,
                                       .at_once = true,
                                       .marked_until_us = marked_until_us };
    lk__call_begin(&leaving->ongoing, &leaving->call);
}

/* True: the server said that there is nothing to release any more. */
static bool await_release(struct leaving *leaving)
{
    const struct lk__call *call = &leaving->call;
    if (lk__call_end(&leaving->ongoing) != 0)
        return false;
    lk__lease_released(leaving->lease, (struct lk__date){ call->answer.server_us, call->epoch });
    return true;
}

/* The release was not confirmed: unless the server refuses it, the watchdog sends it until it is, or until that stops. */
static bool leave_to_outbox(lk_client_t *client, const struct leaving *leaving)
{
    if (leaving->ongoing.request.judged.ruling == LK__REFUSED)
        return false;
    lk__outbox_send(&client->dog, &leaving->lease->release, LK__NEVER);
    return true;
}

/* Its thread died holding something robust: it ends with its lease, because a release would tell nobody of the death. */
static bool is_of_the_dead(struct lk__lease *lease)
{
    const struct lk__hold *hold = lease->holder;
    return hold != NULL && hold->robust && hold->holds > 0 && lk__lease_isownerless(lease);
}

/* Send releases in one pipeline, then await their answers. `more` is set if some are left. */
static bool release_some(lk_client_t *client, int64_t until_us, bool *more)
{
    struct leaving batch[BATCH];
    struct lk__lease *lease = NULL;
    bool clean = true;
    int count = 0;
    while (count < BATCH && (lease = lk__watchdog_anylease(&client->dog)) != NULL) {
        int64_t marked_until_us = lease->holder != NULL ? lk__hold_marked(lease->holder) : 0;
        if (lk__lease_end(lease, NULL) && !is_of_the_dead(lease) && lease->release.command.script != NULL) {
            batch[count].lease = lease;
            send_release(client, &batch[count++], marked_until_us, until_us);
        } else {
            lk__lease_unref(lease); /* the parts of a whole one are given back */
        }
    }
    *more = lease != NULL;
    for (int i = 0; i < count; i++) {
        clean &= await_release(&batch[i]) || leave_to_outbox(client, &batch[i]);
        lk__lease_unref(batch[i].lease);
    }
    return clean;
}

bool lk__client_giveback(lk_client_t *client, int64_t until_us)
{
    bool clean = true, more;
    do
        clean &= release_some(client, until_us, &more);
    while (more);
    lk__outbox_settle(&client->dog, until_us);
    return clean;
}
