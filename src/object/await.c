/* SPDX-License-Identifier: MIT */
/*
 * await.c - waiting for something that all are told at once by a broadcast
 *
 *   look ── judged: that is it ──► the end
 *    ▲  └── judged: not yet ──► join the broadcast, once; park ── message, poll due, limit ──┐
 *    └───────────────────────────────────────────────────────────────────────────────────┘
 *
 * The first look needs no subscription. The thread looks again once it has subscribed, and again when the server
 * has confirmed that, so nothing falls between two looks. Threads that wait for one object look together, see
 * look.c. A message is a hint to look.
 */
#include "object/await.h"

void lk__await_begin(struct lk__await *await)
{
    lk__object_addwaiting(await->op.object, 1);
    lk__parker_init(&await->parker);
    await->subscriber.parker = &await->parker;
    await->began_us = lk__now_us();
}

void lk__await_join(struct lk__await *await)
{
    if (await->joined)
        return;
    await->joined = true;
    atomic_fetch_add(&await->op.object->client->hub.waiters, 1);
    await->unsubscribed = !lk__broadcast_join(await->broadcast, &await->subscriber);
    await->joined_us = lk__now_us();
}

void lk__await_end(struct lk__await *await)
{
    if (await->joined) {
        lk__broadcast_leave(await->broadcast, &await->subscriber);
        atomic_fetch_sub(&await->op.object->client->hub.waiters, 1);
    }
    lk__parker_destroy(&await->parker);
    if (!await->over) /* nobody else looks at this waiter any more */
        lk__object_addwaiting(await->op.object, -1);
}

void lk__await_count(const struct lk__await *await)
{
    lk__object_acquired(await->op.object, await->began_us, await->joined);
}

void lk__await_letgo(struct lk__await *await)
{
    assert(lk__mu_held(&await->broadcast->mu));
    if (!await->over)
        lk__object_addwaiting(await->op.object, -1);
    await->over = true;
}

void lk__await_counts(struct lk__await *await)
{
    assert(lk__mu_held(&await->broadcast->mu));
    if (await->over)
        lk__object_addwaiting(await->op.object, 1);
    await->over = false;
}

void lk__await_isknown(struct lk__await *await)
{
    await->known = true;
    await->judged = lk__looks_begun(await->broadcast);
    await->came_us = lk__now_us();
    await->joined_us = 0;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/*
 * Say once that there is nobody to ask; the words are there from the call that failed. Of a server that is away one line
 * tells for all who wait, until it is there again.
 */
static void warn_of_wait(struct lk__await *await)
{
    lk_client_t *client = await->op.object->client;
    struct lk__node *node = lk__object_node(await->op.object);
    int64_t warn_ms = client->options->warn_wait_ms, now_us = lk__now_us();
    if (await->told || warn_ms < 0 || now_us - await->began_us <= warn_ms * 1000)
        return;
    await->told = true;
    bool up = lk__conn_isup(&node->lanes[LK__LANE_COMMANDS]);
    if (up ? lk__linepause_over(&client->waited, now_us) : lk__node_tellaway(node))
        lk__log(LK_LOG_WARNING, "waiting for more than %s; %s", lk__time_text(warn_ms).text, lk_errortext());
}

void lk__await_failed(struct lk__await *await, int code)
{
    await->last_error = code;
    warn_of_wait(await);
}

/* Which look tells what is to be known now: how it is after the call, the subscription, or the limit; else any new one. */
static uint64_t look_for(struct lk__await *await)
{
    int64_t since_us = await->joined_us != 0 ? await->joined_us : await->limit_us;
    if (await->judged == 0)
        since_us = await->began_us;
    else if (await->joined_us == 0 && lk__now_us() < await->limit_us)
        return await->judged + 1;
    await->joined_us = 0;
    return lk__looks_after(await->broadcast, since_us);
}

void lk__await_takeword(struct lk__await *await)
{
    char word = lk__broadcast_take(await->broadcast, &await->subscriber);
    if (word != 0)
        await->word = word;
}

static int look(struct lk__await *await)
{
    struct lk__sight sight;
    lk__await_takeword(await);
    int rc = lk__looks_see(&await->op, await->broadcast, await->scene, &await->subscriber, look_for(await), &sight);
    await->judged = sight.number;
    await->came_us = sight.came_us;
    await->last_error = 0;
    if (lk__await_maypass(rc)) {
        lk__await_failed(await, rc);
        return EAGAIN;
    }
    return rc != 0 ? rc : await->judge(await, &sight.seen);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/*
 * 80 to 120 per cent of the poll ceiling, or of the back-off of one without messages, after the last look, so that clients
 * that began together do not ask together.
 */
static int64_t next_poll(struct lk__await *await)
{
    const struct lk__options *options = await->op.object->client->options;
    if (await->unsubscribed)
        await->pause_ms = lk__backoff(await->pause_ms, LK__BACKOFF_MIN_MS, options->poll_ms);
    int64_t poll_us = (await->unsubscribed ? await->pause_ms : options->poll_ms) * 1000;
    poll_us = poll_us * 4 / 5 + (int64_t)lk__random_below((uint64_t)poll_us * 2 / 5 + 1);
    int64_t next_us = lk__lesser(await->came_us + poll_us, await->limit_us);
    return await->soon_us != 0 ? lk__lesser(next_us, await->soon_us) : next_us;
}

/* The thread was cancelled while it was parked. */
static void abandon(void *arg)
{
    struct lk__await *await = arg;
    if (await->unwind != NULL)
        await->unwind(await);
    lk__await_end(await);
    lk__op_leave(&await->op, 0);
}

void lk__await_park(struct lk__await *await, int64_t until_us)
{
    pthread_cleanup_push(abandon, await);
    struct lk__hub *hub = &await->op.object->client->hub;
    const struct lk__entry *channel = &await->broadcast->subscription.entry;
    struct lk__node *at = lk__node_forkey(hub->node, channel->key, channel->length);
    lk__conn_listen(&at->lanes[LK__LANE_MESSAGES], &await->parker, until_us, await->op.api.cancel_state);
    pthread_cleanup_pop(0);
}

/* Sleep until a message or the next poll, and a pause longer, however many messages come. */
static void await_news(struct lk__await *await)
{
    const lk_client_t *client = await->op.object->client;
    int64_t until_us = next_poll(await);
    while (lk__now_us() < until_us && !lk__looks_news(await->broadcast, await->judged) && !lk__client_isclosed(client))
        lk__await_park(await, until_us);
    until_us = lk__lesser(lk__looks_next(await->broadcast, await->judged), await->limit_us);
    while (lk__now_us() < until_us && !lk__client_isclosed(client))
        lk__await_park(await, until_us);
}

int lk__await_outoftime(const struct lk__await *await)
{
    const struct lk__object *object = await->op.object;
    if (await->last_error == 0)
        return lk__fail(ETIMEDOUT, "%s: %s within the time", object->what, await->wish);
    if (await->last_error == EIO)
        return lk__fail(ENOTCONN, "%s: the server did not answer within the time", object->what);
    return await->last_error; /* with the words of the call that failed */
}

/* Before the next look. */
static void rest(struct lk__await *await)
{
    if (!await->joined)
        lk__await_join(await);
    else if (!await->at_once)
        await_news(await);
    await->at_once = false;
}

int lk__await_run(struct lk__await *await)
{
    const struct lk__object *object = await->op.object;
    for (;;) {
        int rc = await->known ? EAGAIN : look(await);
        await->known = false;
        if (rc == 0 && await->joined && await->word == 0)
            lk__hub_doubt(&object->client->hub); /* a message should have told */
        if (rc != EAGAIN)
            return rc;
        if (await->came_us >= await->limit_us)
            return lk__await_outoftime(await);
        rest(await);
        if (lk__client_isclosed(object->client))
            return lk__fail(ECANCELED, "%s: the client was closed", object->what);
    }
}
