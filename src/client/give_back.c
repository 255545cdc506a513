/* SPDX-License-Identifier: MIT */
/*
 * give_back.c - what a client still holds when it closes: released in pipelines, each answer awaited
 *
 * This needs no memory: the requests of a pipeline are on the stack. What they bring no answer for goes on through the
 * outbox, by the watchdog's own connection: a thread that stands still in the middle of the answers takes the one of the
 * callers with it.
 */
#include "client/client.h"

enum { BATCH = 8 /* on a stack that may be small */, AGAIN = 4 };

/* One release of a pipeline. */
struct leaving {
    struct lk__lease *lease;
    struct lk__request request;
    int64_t marked_until_us; /* as that of a call */
    struct lk__judged judged;
    bool said; /* its script answered */
    struct lk__answer answer;
};

/* Under a connection's mu: keep of the answer what counts for a release. */
static void take_answer(struct lk__request *request, const struct lk__reply *reply)
{
    struct leaving *leaving = LK__CONTAINER(request, struct leaving, request);
    leaving->judged = lk__judge(request, reply);
    leaving->said = lk__answer_read(leaving->lease->release.command.script, reply, &leaving->answer);
}

/* False: nothing was sent. */
static bool send_release(lk_client_t *client, struct leaving *leaving, struct lk__parker *parker)
{
    enum lk__manner manner = leaving->request.manner;
    const struct lk__outboxentry *release = &leaving->lease->release;
    if (release->command.script == NULL)
        return false;
    leaving->request = (struct lk__request){ .waiting.parker = parker, .take = take_answer, .manner = manner };
    struct lk__node *at = lk__node_for(&client->node, &release->command, manner == LK__BY_ASKING);
    if (leaving->lease->holder != NULL)
        lk__hold_given(leaving->lease->holder);
    struct lk__sent sent = lk__outboxentry_sent(release);
    return lk__conn_send(&at->lanes[LK__LANE_COMMANDS], &leaving->request, &release->command, &sent) == 0;
}

/* True: it was answered. */
static bool await_answer(struct leaving *leaving, int64_t until_us)
{
    struct lk__request *request = &leaving->request;
    do
        lk__request_await(request, until_us);
    while (atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us);
    bool answered = atomic_load(&request->state) == LK__ANSWERED;
    lk__request_abandon(request);
    return answered;
}

/* Once more, by itself and by steps. */
static bool release_by_steps(lk_client_t *client, struct leaving *leaving, int64_t until_us)
{
    const struct lk__outboxentry *release = &leaving->lease->release;
    struct lk__replybuf buf;
    struct lk__call call = { .node = &client->node,
                             .what = "close",
                             .command = &release->command,
                             .sent = lk__outboxentry_sent(release),
                             .end_us = until_us,
                             .by_steps = true,
                             .marked_until_us = leaving->marked_until_us,
                             .reply = lk__replybuf_reply(&buf) };
    leaving->said =
        lk__call_run(&call) == 0 && lk__answer_read(release->command.script, call.reply, &leaving->answer);
    leaving->request.epoch = call.sent.epoch;
    return leaving->said;
}

/* True: the server said that there is nothing to release any more. */
static bool await_release(lk_client_t *client, struct leaving *leaving, struct lk__parker *parker, int64_t until_us)
{
    bool answered = await_answer(leaving, until_us);
    for (int i = 0; answered && leaving->judged.ruling == LK__AGAIN && i < AGAIN; i++)
        answered = send_release(client, leaving, parker) && await_answer(leaving, until_us);
    if (answered && leaving->judged.scattered)
        answered = release_by_steps(client, leaving, until_us);
    if (!answered || !leaving->said)
        return false;
    lk__lease_released(leaving->lease, (struct lk__date){ leaving->answer.server_us, leaving->request.epoch });
    return true;
}

/* The release was not confirmed: unless the server refuses it, the watchdog sends it until it is, or until that stops. */
static bool leave_to_outbox(lk_client_t *client, const struct leaving *leaving)
{
    if (leaving->judged.ruling == LK__REFUSED)
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
    struct lk__parker parker;
    struct lk__lease *lease = NULL;
    bool clean = true;
    int count = 0;
    lk__parker_init(&parker);
    while (count < BATCH && (lease = lk__watchdog_anylease(&client->dog)) != NULL) {
        struct leaving *leaving = &batch[count];
        *leaving = (struct leaving){ .lease = lease };
        leaving->marked_until_us = lease->holder != NULL ? lk__hold_marked(lease->holder) : 0;
        bool good = lk__lease_end(lease, NULL) && !is_of_the_dead(lease);
        if (good && send_release(client, leaving, &parker)) {
            count++;
        } else {
            bool whole = lk__lease_iswhole(lease); /* its parts are given back */
            clean &= !good || whole || leave_to_outbox(client, leaving);
            lk__lease_unref(lease);
        }
    }
    *more = lease != NULL;
    for (int i = 0; i < count; i++) {
        clean &= await_release(client, &batch[i], &parker, until_us) || leave_to_outbox(client, &batch[i]);
        lk__lease_unref(batch[i].lease);
    }
    lk__parker_destroy(&parker);
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
