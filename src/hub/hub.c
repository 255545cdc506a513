/* SPDX-License-Identifier: MIT */
/*
 * hub.c - one subscription connection and the thread that owns it
 *
 * Guards: hub->mu the subscriptions and the lists. Order: after an object's mu, before the connection's and a
 * parker's. on_message() is called under it, so that lk__hub_unsubscribe() can promise that none is called after.
 *
 * Who parks for a message may read the connection in the thread's place; so answers are counted under hub->mu, and what
 * follows from them is done by the thread.
 *
 * Each command has one answer, in order; messages come in between. A confirmation names its channel, an error
 * does not, so commands are counted.
 *
 * The hard case: silence. A dead peer of a subscription looks like a channel on which nothing happens; so the
 * thread pings now and then, and ends a connection that does not answer. It need not ping often, as waiters ask:
 * who finds out so what no message told says that the connection is in doubt, and then it is pinged at once.
 *
 * Another hard case: a proxy that ends each connection that subscribes. After a few of them all subscriptions are
 * refused, and tried again seldom.
 */
#include "hub/hub.h"

#include <hiredis/hiredis.h>
#include <string.h>
#include <unistd.h>

enum { PING_MS = 10000, CUTS_MAX = 5, CUTS_PAUSES = 10 };

/* A channel without subscribers, to be unsubscribed from. */
struct pending_unsubscribe {
    struct lk__link link;
    char channel[];
};

void lk__subscription_init(struct lk__subscription *subscription, const char *channel,
                           void (*on_message)(struct lk__subscription *subscription, const char *payload))
{
    *subscription = (struct lk__subscription){ .on_message = on_message };
    subscription->entry.key = channel;
    subscription->entry.length = (unsigned)strlen(channel);
}

static struct lk__subscription *subscription_of(struct lk__hub *hub, const char *channel)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__entry *entry = lk__map_find(&hub->subscriptions, 0, channel, strlen(channel));
    return entry == NULL ? NULL : LK__CONTAINER(entry, struct lk__subscription, entry);
}

/* Another subscription to the same channel, or NULL. */
static struct lk__subscription *next_of(struct lk__subscription *subscription)
{
    struct lk__entry *entry = subscription->entry.next;
    while (entry != NULL && strcmp(entry->key, subscription->entry.key) != 0)
        entry = entry->next;
    return entry == NULL ? NULL : LK__CONTAINER(entry, struct lk__subscription, entry);
}

/* --- states; all under hub->mu -------------------------------------------------------------------------------- */

static void set_state(struct lk__hub *hub, struct lk__subscription *subscription, enum lk__subscription_state state)
{
    assert(lk__mu_held(&hub->mu));
    subscription->state = state;
    lk__list_remove(&subscription->order);
    if (state == LK__SUBSCRIPTION_NEW || state == LK__SUBSCRIPTION_ASKED)
        lk__list_append(state == LK__SUBSCRIPTION_NEW ? &hub->fresh : &hub->asked, &subscription->order);
}

static void renew(struct lk__entry *entry, void *arg)
{
    set_state(arg, LK__CONTAINER(entry, struct lk__subscription, entry), LK__SUBSCRIPTION_NEW);
}

static void refuse_all(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__link *link;
    while ((link = lk__list_first(&hub->fresh)) != NULL) {
        struct lk__subscription *subscription = LK__CONTAINER(link, struct lk__subscription, order);
        set_state(hub, subscription, LK__SUBSCRIPTION_REFUSED);
        subscription->on_message(subscription, NULL);
    }
}

static bool is_muted(const struct lk__hub *hub)
{
    return hub->cuts >= CUTS_MAX;
}

/* --- sending: on the hub's thread -------------------------------------------------------------------------- */

/* Send one command. One that cannot be sent now is sent when the connection is back. */
static int post(struct lk__hub *hub, int argc, const char *const args[])
{
    assert(lk__mu_held(&hub->mu));
    const char *argv[2] = { args[0], argc > 1 ? args[1] : NULL };
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    if (length < 0)
        return ENOMEM;
    int rc = lk__node_post(hub->node, hub->connects, bytes, (size_t)length);
    hub->questions += rc == 0;
    redisFreeCommand(bytes);
    return rc;
}

static void back_off(struct lk__hub *hub)
{
    const struct lk__options *options = hub->options;
    hub->pause_us = hub->pause_us == 0 ? options->retry_min_ms * 1000 : 2 * hub->pause_us;
    if (hub->pause_us > options->retry_max_ms * 1000)
        hub->pause_us = options->retry_max_ms * 1000;
    hub->again_us = lk__now_us() + hub->pause_us;
}

/* The server or a proxy ended the last connection while a SUBSCRIBE was unanswered. */
static void count_cut(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    if (++hub->cuts == CUTS_MAX)
        lk__log(LK_LOG_WARNING,
                "the server or a proxy ends each connection that subscribes, waiters poll instead (pubsub=no "
                "does without)");
    if (is_muted(hub))
        hub->again_us = lk__now_us() + CUTS_PAUSES * hub->options->retry_max_ms * 1000;
}

static void forget_unsubscribes(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__link *link;
    while ((link = lk__list_first(&hub->leaving)) != NULL) {
        lk__list_remove(link);
        lk__free(LK__CONTAINER(link, struct pending_unsubscribe, link));
    }
}

/* The server forgot our subscriptions with the connection. */
static void reconnected(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    if (!lk__list_empty(&hub->asked) && !hub->given_up)
        count_cut(hub);
    lk__map_each(&hub->subscriptions, renew, hub);
    forget_unsubscribes(hub);
    hub->heard_us = lk__now_us();
    hub->pinged_us = 0;
    hub->questions = hub->answers = 0;
    hub->given_up = false;
}

static void send_unsubscribes(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    const struct lk__pubsub *words = lk__node_pubsub(hub->node);
    struct lk__link *link;
    while ((link = lk__list_first(&hub->leaving)) != NULL) {
        struct pending_unsubscribe *leaving = LK__CONTAINER(link, struct pending_unsubscribe, link);
        if (subscription_of(hub, leaving->channel) == NULL &&
            post(hub, 2, (const char *const[]){ words->unsubscribe, leaving->channel }) != 0)
            break;
        lk__list_remove(link);
        lk__free(leaving);
    }
}

/* Send what is due. Returns when to call again, if it is too early for new subscriptions. */
static int64_t say_what_is_new(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    const struct lk__pubsub *words = lk__node_pubsub(hub->node);
    struct lk__link *link;
    send_unsubscribes(hub);
    if (lk__now_us() < hub->again_us) {
        if (is_muted(hub))
            refuse_all(hub);
        return hub->again_us;
    }
    if (is_muted(hub) && hub->again_us != 0)
        lk__map_each(&hub->subscriptions, renew, hub); /* once more */
    hub->again_us = 0;
    while ((link = lk__list_first(&hub->fresh)) != NULL) {
        struct lk__subscription *subscription = LK__CONTAINER(link, struct lk__subscription, order);
        if (post(hub, 2, (const char *const[]){ words->subscribe, subscription->entry.key }) != 0)
            break;
        subscription->question = hub->questions;
        set_state(hub, subscription, LK__SUBSCRIPTION_ASKED);
    }
    return LK__NEVER;
}

/* When the connection, from which nothing came since, is pinged. */
static int64_t ping_at(const struct lk__hub *hub)
{
    int64_t silent_ms = atomic_load(&hub->waiters) > 0 ? hub->ping_ms : PING_MS;
    int64_t due_us = hub->heard_us + silent_ms * 1000, doubted_us = atomic_load(&hub->doubted_us);
    return doubted_us > hub->heard_us && doubted_us < due_us ? doubted_us : due_us;
}

/* Ping a silent connection, or end one that did not answer. Returns when to call again. */
static int64_t watch_silence(struct lk__hub *hub)
{
    const struct lk__options *options = hub->options;
    int64_t now_us = lk__now_us(), command_us = options->command_timeout_ms * 1000;
    int64_t ping_us = ping_at(hub);
    if (!lk__node_isup(hub->node, LK__LANE_MESSAGES))
        return LK__NEVER;
    if (hub->pinged_us > hub->heard_us) {
        if (now_us < hub->pinged_us + command_us)
            return hub->pinged_us + command_us;
        hub->given_up = true;
        lk__node_reset(hub->node, LK__LANE_MESSAGES, "the subscription connection did not answer a ping");
        return LK__NEVER;
    }
    if (now_us < ping_us)
        return ping_us;
    hub->pinged_us = now_us;
    lk__mu_lock(&hub->mu);
    post(hub, 1, (const char *const[]){ "PING" });
    lk__mu_unlock(&hub->mu);
    return now_us + command_us;
}

/* --- reading: on the hub's thread, or one in lk__hub_park() ----------------------------------------------------- */

/* A subscription that was withdrawn and made anew may be confirmed twice, and looks twice. */
static void confirmed(struct lk__hub *hub, const char *channel)
{
    assert(lk__mu_held(&hub->mu));
    hub->cuts = 0;
    hub->pause_us = 0;
    for (struct lk__subscription *subscription = subscription_of(hub, channel); subscription != NULL;
         subscription = next_of(subscription))
        if (subscription->state == LK__SUBSCRIPTION_ASKED || subscription->state == LK__SUBSCRIPTION_OPEN) {
            set_state(hub, subscription, LK__SUBSCRIPTION_OPEN);
            subscription->on_message(subscription, NULL);
        }
}

/* The command of this number was answered with an error. */
static void refused(struct lk__hub *hub, uint64_t question, const struct lk__reply *reply)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__link *link = lk__list_first(&hub->asked);
    while (link != NULL && LK__CONTAINER(link, struct lk__subscription, order)->question != question)
        link = lk__list_next(&hub->asked, link);
    if (link == NULL)
        return; /* a ping, or a subscription that was withdrawn */
    struct lk__subscription *subscription = LK__CONTAINER(link, struct lk__subscription, order);
    char says[LK__ERRMSG_MAX];
    bool passes;
    lk__reply_error(reply, &passes);
    set_state(hub, subscription, passes ? LK__SUBSCRIPTION_NEW : LK__SUBSCRIPTION_REFUSED);
    if (passes) {
        back_off(hub);
        lk__eventfd_set(hub->wake_fd); /* the thread may not be the one that reads */
        return;
    }
    lk__options_quote(hub->options, lk__reply_text(reply, 0), says, sizeof says);
    lk__log(LK_LOG_WARNING, "the server refuses a subscription, waiters poll instead: %s", says);
    subscription->on_message(subscription, NULL);
}

static void deliver(struct lk__hub *hub, const struct lk__reply *message)
{
    assert(lk__mu_held(&hub->mu));
    atomic_fetch_add(&hub->messages, 1);
    for (struct lk__subscription *subscription = subscription_of(hub, lk__reply_text(message, 1)); subscription != NULL;
         subscription = next_of(subscription))
        subscription->on_message(subscription, lk__reply_text(message, 2));
}

/* An answer; its place says which command it answers. */
static void answered(struct lk__hub *hub, const struct lk__reply *reply)
{
    assert(lk__mu_held(&hub->mu));
    if (hub->answers == hub->questions)
        return; /* an answer of the connection before, or to no command */
    hub->answers++;
    lk__node_serves(hub->node);
    if (reply->type == LK__ERROR)
        refused(hub, hub->answers, reply);
    else if (strcmp(lk__reply_text(reply, 0), lk__node_pubsub(hub->node)->confirmed) == 0)
        confirmed(hub, lk__reply_text(reply, 1));
}

/* What a connection brought that is gone is dropped: its answers have no question, and who waits asks again. */
static void on_reply(void *arg, unsigned long long connects, const struct lk__reply *reply)
{
    struct lk__hub *hub = arg;
    bool is_message =
        reply->type == LK__ARRAY && strcmp(lk__reply_text(reply, 0), lk__node_pubsub(hub->node)->message) == 0;
    lk__mu_lock(&hub->mu);
    if (connects == hub->connects) {
        hub->heard_us = lk__now_us();
        if (is_message)
            deliver(hub, reply);
        else
            answered(hub, reply);
    }
    lk__mu_unlock(&hub->mu);
}

static void *run(void *arg)
{
    struct lk__hub *hub = arg;
    for (;;) {
        int64_t again_us = LK__NEVER;
        lk__mu_lock(&hub->mu);
        bool stopping = hub->stopping, expects;
        if (lk__node_connects(hub->node, LK__LANE_MESSAGES) != hub->connects) {
            hub->connects = lk__node_connects(hub->node, LK__LANE_MESSAGES);
            reconnected(hub);
        }
        if (!stopping)
            again_us = say_what_is_new(hub);
        lk__mu_unlock(&hub->mu);
        if (stopping)
            return NULL;
        int64_t until_us = watch_silence(hub);
        lk__mu_lock(&hub->mu);
        expects = hub->answers < hub->questions;
        lk__mu_unlock(&hub->mu);
        struct pollfd extra = { hub->wake_fd, POLLIN, 0 };
        lk__node_serve(hub->node, LK__LANE_MESSAGES, &extra, 1, until_us < again_us ? until_us : again_us, expects);
        if (extra.revents != 0)
            lk__eventfd_clear(hub->wake_fd);
    }
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

int lk__hub_init(struct lk__hub *hub, struct lk__node *node, int64_t ping_ms)
{
    *hub = (struct lk__hub){ .node = node, .options = &node->server.options };
    hub->ping_ms = ping_ms < PING_MS ? ping_ms : PING_MS;
    hub->wake_fd = lk__eventfd_open();
    if (hub->wake_fd < 0)
        return lk__fail(ENOMEM, "no descriptor left for a client");
    lk__node_own(node, LK__LANE_MESSAGES, hub->wake_fd, on_reply, hub);
    lk__mu_init(&hub->mu, LK__MU_HUB);
    lk__list_init(&hub->fresh);
    lk__list_init(&hub->asked);
    lk__list_init(&hub->leaving);
    return 0;
}

void lk__hub_stop(struct lk__hub *hub)
{
    lk__mu_lock(&hub->mu);
    bool started = hub->started;
    hub->stopping = true;
    lk__mu_unlock(&hub->mu);
    lk__eventfd_set(hub->wake_fd);
    if (started)
        pthread_join(hub->thread, NULL);
    lk__node_close(hub->node, LK__LANE_MESSAGES);
    lk__mu_lock(&hub->mu);
    forget_unsubscribes(hub);
    lk__mu_unlock(&hub->mu);
}

void lk__hub_destroy(struct lk__hub *hub)
{
    lk__map_free(&hub->subscriptions);
    lk__mu_destroy(&hub->mu);
    lk__fd_close(hub->wake_fd);
}

static int start(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    if (hub->started || hub->stopping)
        return 0;
    int rc = lk__thread_start(&hub->thread, "lk-hub", run, hub);
    if (rc != 0)
        return rc;
    hub->started = true;
    lk__node_want(hub->node, LK__LANE_MESSAGES);
    return 0;
}

int lk__hub_subscribe(struct lk__hub *hub, struct lk__subscription *subscription)
{
    lk__mu_lock(&hub->mu);
    int rc = start(hub);
    if (rc == 0) {
        set_state(hub, subscription, LK__SUBSCRIPTION_NEW);
        lk__map_insert(&hub->subscriptions, &subscription->entry);
        lk__eventfd_set(hub->wake_fd);
    }
    lk__mu_unlock(&hub->mu);
    return rc;
}

void lk__hub_unsubscribe(struct lk__hub *hub, struct lk__subscription *subscription)
{
    size_t length = strlen(subscription->entry.key);
    struct pending_unsubscribe *leaving = lk__alloc(sizeof *leaving + length + 1);
    lk__mu_lock(&hub->mu);
    lk__map_remove(&hub->subscriptions, &subscription->entry);
    lk__list_remove(&subscription->order);
    if (leaving != NULL && !hub->stopping) { /* without memory it is heard in vain until the next connection */
        memcpy(leaving->channel, subscription->entry.key, length + 1);
        lk__list_append(&hub->leaving, &leaving->link);
        leaving = NULL;
        lk__eventfd_set(hub->wake_fd);
    }
    lk__mu_unlock(&hub->mu);
    lk__free(leaving);
}

void lk__hub_doubt(struct lk__hub *hub)
{
    atomic_store(&hub->doubted_us, lk__now_us());
    lk__eventfd_set(hub->wake_fd);
}

bool lk__hub_isrefused(struct lk__hub *hub, struct lk__subscription *subscription)
{
    lk__mu_lock(&hub->mu);
    bool unsubscribed = subscription->state == LK__SUBSCRIPTION_REFUSED;
    lk__mu_unlock(&hub->mu);
    return unsubscribed;
}

bool lk__hub_isopen(struct lk__hub *hub, struct lk__subscription *subscription)
{
    lk__mu_lock(&hub->mu);
    bool open = subscription->state == LK__SUBSCRIPTION_OPEN;
    lk__mu_unlock(&hub->mu);
    return open;
}
