/* SPDX-License-Identifier: MIT */
/*
 * say.c - what the hub sends: subscriptions, pings
 *
 * The hard case: silence. A dead peer of a subscription looks like a channel on which nothing happens; so the
 * thread pings now and then, and ends a connection that does not answer. It need not ping often, as waiters ask:
 * who finds out so what no message told says that the connection is in doubt, and then it is pinged at once.
 *
 * Another hard case: a proxy that ends each connection that subscribes. After a few of them all subscriptions are
 * refused, and tried again seldom.
 */
#include "hub/hub_inside.h"

#include <hiredis/hiredis.h>

enum { CUTS_MAX = 5, CUTS_PAUSES = 10 };

struct renewal {
    struct lk__hub *hub;
    struct lk__line *line;
};

static void renew(struct lk__entry *entry, void *arg)
{
    struct renewal *renewal = arg;
    struct lk__subscription *subscription = LK__CONTAINER(entry, struct lk__subscription, entry);
    if (subscription->line == renewal->line)
        lk__hub_setstate(renewal->hub, subscription, LK__SUBSCRIPTION_NEW);
}

/* All subscriptions of a line are to be asked for. */
static void renew_all(struct lk__hub *hub, struct lk__line *line)
{
    assert(lk__mu_held(&hub->mu));
    struct renewal renewal = { hub, line };
    lk__map_each(&hub->subscriptions, renew, &renewal);
}

static void refuse(struct lk__hub *hub, struct lk__subscription *subscription)
{
    assert(lk__mu_held(&hub->mu));
    lk__hub_setstate(hub, subscription, LK__SUBSCRIPTION_REFUSED);
    subscription->on_message(subscription, NULL);
}

static bool is_muted(const struct lk__line *line)
{
    return line->cuts >= CUTS_MAX;
}

/* Send one command. One that cannot be sent now is sent when the connection is back. */
static int post(struct lk__hub *hub, struct lk__line *line, int argc, const char *const args[])
{
    assert(lk__mu_held(&hub->mu));
    const char *argv[2] = { args[0], argc > 1 ? args[1] : NULL };
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    if (length < 0)
        return ENOMEM;
    int rc = lk__conn_post(&line->node->lanes[LK__LANE_MESSAGES], line->connects, bytes, (size_t)length);
    line->questions += rc == 0;
    redisFreeCommand(bytes);
    return rc;
}

/* The server or a proxy ended the last connection while a SUBSCRIBE was unanswered. */
static void count_cut(struct lk__hub *hub, struct lk__line *line)
{
    assert(lk__mu_held(&hub->mu));
    if (++line->cuts == CUTS_MAX)
        lk__log(LK_LOG_WARNING,
                "the server or a proxy ends each connection that subscribes, waiters poll instead (pubsub=no "
                "does without)");
    if (is_muted(line))
        line->again_us = lk__now_us() + CUTS_PAUSES * hub->options->retry_max_ms * 1000;
}

/* Those among them of that line, or all: NULL. */
static void forget(struct lk__link *list, const struct lk__line *line)
{
    struct lk__link *next;
    for (struct lk__link *link = lk__list_first(list); link != NULL; link = next) {
        struct lk__leaving *leaving = LK__CONTAINER(link, struct lk__leaving, link);
        next = lk__list_next(list, link);
        if (line != NULL && leaving->line != line)
            continue;
        lk__list_remove(link);
        lk__free(leaving);
    }
}

void lk__hub_forgetleaving(struct lk__hub *hub, const struct lk__line *line)
{
    assert(lk__mu_held(&hub->mu));
    forget(&hub->leaving, line);
    forget(&hub->left, line);
}

static bool is_asking(const struct lk__hub *hub, const struct lk__line *line)
{
    assert(lk__mu_held(&hub->mu));
    for (struct lk__link *l = lk__list_first(&hub->asked); l != NULL; l = lk__list_next(&hub->asked, l))
        if (LK__CONTAINER(l, struct lk__subscription, order)->line == line)
            return true;
    return false;
}

void lk__hub_reconnected(struct lk__hub *hub, struct lk__line *line)
{
    assert(lk__mu_held(&hub->mu));
    if (is_asking(hub, line) && !line->given_up)
        count_cut(hub, line);
    renew_all(hub, line);
    lk__hub_forgetleaving(hub, line);
    line->heard_us = lk__now_us();
    line->pinged_us = 0;
    line->questions = line->answers = 0;
    line->given_up = false;
}

/* One that cannot be said now is forgotten with the connection. */
static void say_leaving(struct lk__hub *hub, struct lk__leaving *leaving)
{
    assert(lk__mu_held(&hub->mu));
    const struct lk__pubsub *words = lk__node_pubsub(hub->node);
    bool wanted = lk__hub_find(hub, leaving->channel) != NULL;
    if (!wanted && post(hub, leaving->line, 2, (const char *const[]){ words->unsubscribe, leaving->channel }) != 0)
        return;
    lk__list_remove(&leaving->link);
    leaving->question = leaving->line->questions;
    if (wanted || hub->node->cluster == NULL)
        lk__free(leaving);
    else
        lk__list_append(&hub->left, &leaving->link);
}

static void send_unsubscribes(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__link *next;
    for (struct lk__link *link = lk__list_first(&hub->leaving); link != NULL; link = next) {
        next = lk__list_next(&hub->leaving, link);
        say_leaving(hub, LK__CONTAINER(link, struct lk__leaving, link));
    }
}

/* One that is to be asked for. Returns when to call again, LK__NEVER: it was, or is with the next connection. */
static int64_t say_one(struct lk__hub *hub, struct lk__subscription *subscription, int64_t now_us)
{
    assert(lk__mu_held(&hub->mu));
    if (now_us < subscription->again_us)
        return subscription->again_us;
    struct lk__line *line = subscription->line = lk__hub_linefor(hub, subscription);
    subscription->again_us = 0;
    if (now_us < line->again_us) {
        if (is_muted(line))
            refuse(hub, subscription);
        return line->again_us;
    }
    lk__node_want(line->node, LK__LANE_MESSAGES);
    if (post(hub, line, 2, (const char *const[]){ lk__node_pubsub(hub->node)->subscribe, subscription->entry.key }) !=
        0)
        return LK__NEVER;
    subscription->question = line->questions;
    lk__hub_setstate(hub, subscription, LK__SUBSCRIPTION_ASKED);
    return LK__NEVER;
}

int64_t lk__hub_say(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__link *next;
    int64_t now_us = lk__now_us(), look_us = LK__NEVER;
    send_unsubscribes(hub);
    for (struct lk__line *line = NULL; (line = lk__hub_nextline(hub, line)) != NULL;) {
        if (now_us < line->again_us)
            continue;
        if (is_muted(line) && line->again_us != 0)
            renew_all(hub, line); /* once more */
        line->again_us = 0;
    }
    for (struct lk__link *link = lk__list_first(&hub->fresh); link != NULL; link = next) {
        next = lk__list_next(&hub->fresh, link);
        int64_t again_us = say_one(hub, LK__CONTAINER(link, struct lk__subscription, order), now_us);
        look_us = again_us < look_us ? again_us : look_us;
    }
    return look_us;
}

/* When the connection, from which nothing came since, is pinged. */
static int64_t ping_at(const struct lk__hub *hub, const struct lk__line *line)
{
    int64_t due_us = line->heard_us + LK__HUB_PING_MS * INT64_C(1000), doubted_us = atomic_load(&hub->doubted_us);
    return doubted_us > line->heard_us && doubted_us < due_us ? doubted_us : due_us;
}

int64_t lk__hub_watch(struct lk__hub *hub, struct lk__line *line)
{
    const struct lk__options *options = hub->options;
    int64_t now_us = lk__now_us(), command_us = options->command_timeout_ms * 1000;
    int64_t ping_us = ping_at(hub, line);
    if (!lk__conn_isup(&line->node->lanes[LK__LANE_MESSAGES]))
        return LK__NEVER;
    if (line->pinged_us > line->heard_us) {
        if (now_us < line->pinged_us + command_us)
            return line->pinged_us + command_us;
        line->given_up = true;
        lk__conn_reset(&line->node->lanes[LK__LANE_MESSAGES], line->connects,
                       "the subscription connection did not answer a ping");
        return LK__NEVER;
    }
    if (now_us < ping_us)
        return ping_us;
    line->pinged_us = now_us;
    lk__mu_lock(&hub->mu);
    post(hub, line, 1, (const char *const[]){ "PING" });
    lk__mu_unlock(&hub->mu);
    return now_us + command_us;
}
