/* SPDX-License-Identifier: MIT */
/*
 * give_back.c - what a client still holds when it closes: released in pipelines, each answer awaited
 *
 * This needs no memory: the requests of a pipeline are on the stack.
 */
#include "client/client.h"

enum { BATCH = 32, AGAIN = 4 };

/* One release of a pipeline. */
struct leaving {
    struct lk__lease *lease;
    struct lk__request request;
    struct lk__node *at;
    bool said, unknown;     /* an answer came; the server does not know the script */
    bool elsewhere, asking; /* it is not the one to ask; the other one is to be told so */
    struct lk__answer answer;
};

/* Under a connection's mu: keep of the answer what counts for a release. */
static void take_answer(struct lk__request *request, const struct lk__reply *reply)
{
    struct leaving *leaving = LK__CONTAINER(request, struct leaving, request);
    leaving->said = lk__answer_read(leaving->lease->release.command.script, reply, &leaving->answer);
    leaving->unknown = lk__reply_is(reply, "NOSCRIPT");
    leaving->elsewhere = reply->type == LK__ERROR && leaving->at->cluster != NULL &&
                         lk__cluster_redirect(leaving->at->cluster, leaving->at, reply, &leaving->asking);
}

/* False: nothing was sent. */
static bool send_release(lk_client_t *client, struct leaving *leaving, struct lk__parker *parker, bool eval)
{
    const struct lk__outboxentry *release = &leaving->lease->release;
    leaving->request = (struct lk__request){ .parker = parker, .take = take_answer, .asking = leaving->asking };
    leaving->at = lk__node_for(&client->node, &release->command, leaving->asking);
    if (leaving->lease->holder != NULL)
        lk__hold_given(leaving->lease->holder);
    struct lk__sent sent = lk__outboxentry_sent(release);
    return lk__node_send(leaving->at, LK__LANE_COMMANDS, &leaving->request, &release->command, &sent, eval) == 0;
}

/* True: it was answered. */
static bool await_answer(struct leaving *leaving, int64_t until_us)
{
    struct lk__request *request = &leaving->request;
    while (atomic_load(&request->state) == LK__INFLIGHT && lk__now_us() < until_us)
        lk__node_await(leaving->at, LK__LANE_COMMANDS, request, until_us);
    bool answered = atomic_load(&request->state) == LK__ANSWERED;
    lk__node_abandon(leaving->at, LK__LANE_COMMANDS, request);
    return answered;
}

static bool await_release(lk_client_t *client, struct leaving *leaving, struct lk__parker *parker, int64_t until_us)
{
    bool answered = await_answer(leaving, until_us);
    for (int i = 0; answered && (leaving->unknown || leaving->elsewhere) && i < AGAIN; i++)
        answered = send_release(client, leaving, parker, true) && await_answer(leaving, until_us);
    if (!answered || !leaving->said)
        return false;
    lk__lease_released(leaving->lease, (struct lk__date){ leaving->answer.server_us, leaving->request.epoch });
    return true;
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
        bool good = lk__lease_end(lease);
        leaving->lease = lease;
        leaving->asking = false;
        if (good && send_release(client, leaving, &parker, false)) {
            count++;
        } else {
            clean = clean && !good;
            lk__lease_unref(lease);
        }
    }
    *more = lease != NULL;
    for (int i = 0; i < count; i++) {
        clean &= await_release(client, &batch[i], &parker, until_us);
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
    return clean;
}
