/* SPDX-License-Identifier: MIT */
/*
 * hear.c - what the hub hears: messages, and answers to what it sent
 *
 * Each command has one answer, in order; messages come in between. A confirmation names its channel, an error
 * does not, so commands are counted.
 */
#include "hub/hub_inside.h"

#include <string.h>

static void back_off(const struct lk__options *options, struct lk__line *line)
{
    line->pause_us = line->pause_us == 0 ? options->retry_min_ms * 1000 : 2 * line->pause_us;
    if (line->pause_us > options->retry_max_ms * 1000)
        line->pause_us = options->retry_max_ms * 1000;
    line->again_us = lk__now_us() + line->pause_us;
}

/* A subscription that was withdrawn and made anew may be confirmed twice, and looks twice. */
static void confirmed(struct lk__hub *hub, struct lk__line *line, const char *channel)
{
    assert(lk__mu_held(&hub->mu));
    line->cuts = 0;
    line->pause_us = 0;
    for (struct lk__subscription *subscription = lk__hub_find(hub, channel); subscription != NULL;
         subscription = lk__subscription_next(subscription))
        if (subscription->line == line &&
            (subscription->state == LK__SUBSCRIPTION_ASKED || subscription->state == LK__SUBSCRIPTION_OPEN)) {
            lk__hub_setstate(hub, subscription, LK__SUBSCRIPTION_OPEN);
            subscription->on_message(subscription, NULL);
        }
}

/* The subscription that was asked for with the command of this number, or NULL. */
static struct lk__subscription *asked_with(struct lk__hub *hub, const struct lk__line *line, uint64_t question)
{
    assert(lk__mu_held(&hub->mu));
    for (struct lk__link *l = lk__list_first(&hub->asked); l != NULL; l = lk__list_next(&hub->asked, l)) {
        struct lk__subscription *subscription = LK__CONTAINER(l, struct lk__subscription, order);
        if (subscription->line == line && subscription->question == question)
            return subscription;
    }
    return NULL;
}

/* The command of this number was answered with an error. */
static void refused(struct lk__hub *hub, struct lk__line *line, uint64_t question, const struct lk__reply *reply)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__subscription *subscription = asked_with(hub, line, question);
    if (subscription == NULL)
        return; /* a ping, or a subscription that was withdrawn */
    char says[LK__ERRMSG_MAX];
    struct lk__judged judged = lk__judge_error(line->node, reply);
    if (judged.elsewhere) {
        lk__hub_move(hub, subscription);
        return;
    }
    bool passes = judged.ruling == LK__PASSES;
    lk__hub_setstate(hub, subscription, passes ? LK__SUBSCRIPTION_NEW : LK__SUBSCRIPTION_REFUSED);
    if (passes) {
        back_off(hub->options, line);
        lk__eventfd_set(hub->wake_fd); /* the thread may not be the one that reads */
        return;
    }
    lk__secret_hide(hub->options->password, lk__reply_text(reply, 0), says, sizeof says);
    lk__log(LK_LOG_WARNING, "the server refuses a subscription, waiters poll instead: %s", says);
    subscription->on_message(subscription, NULL);
}

static void deliver(struct lk__hub *hub, const struct lk__reply *message)
{
    assert(lk__mu_held(&hub->mu));
    atomic_fetch_add(&hub->messages, 1);
    for (struct lk__subscription *subscription = lk__hub_find(hub, lk__reply_text(message, 1)); subscription != NULL;
         subscription = lk__subscription_next(subscription))
        subscription->on_message(subscription, lk__reply_text(message, 2));
}

/* The channel whose UNSUBSCRIBE has this number, or NULL. */
static struct lk__leaving *left_with(struct lk__hub *hub, const struct lk__line *line, uint64_t question)
{
    assert(lk__mu_held(&hub->mu));
    for (struct lk__link *l = lk__list_first(&hub->left); l != NULL; l = lk__list_next(&hub->left, l)) {
        struct lk__leaving *leaving = LK__CONTAINER(l, struct lk__leaving, link);
        if (leaving->line == line && leaving->question == question)
            return leaving;
    }
    return NULL;
}

/* A slot went elsewhere, and the server ends the subscriptions there of itself. */
static void dropped(struct lk__hub *hub, struct lk__line *line, const char *channel)
{
    assert(lk__mu_held(&hub->mu));
    bool any = false;
    for (struct lk__subscription *subscription = lk__hub_find(hub, channel); subscription != NULL;
         subscription = lk__subscription_next(subscription))
        if (subscription->line == line && subscription->state == LK__SUBSCRIPTION_OPEN) {
            any = true;
            lk__hub_move(hub, subscription);
        }
    if (any)
        lk__cluster_doubt(line->node->cluster, false);
}

/* The channel that this question was about; NULL: it was about none, or that was forgotten. */
static const char *channel_of(struct lk__hub *hub, const struct lk__line *line, uint64_t question)
{
    assert(lk__mu_held(&hub->mu));
    const struct lk__leaving *leaving = left_with(hub, line, question);
    const struct lk__subscription *asked = asked_with(hub, line, question);
    return leaving != NULL ? leaving->channel : asked != NULL ? asked->entry.key : NULL;
}

/*
 * Is it what a node of a cluster says unasked, or once more? When a slot goes elsewhere as its channel is left, the node ends
 * the subscription of itself, which counts as the answer to SUNSUBSCRIBE; the answer then follows, and is MOVED, for a slot
 * that the next question has nothing to do with, or that went elsewhere for that one, too. Where that is not to be told, the
 * connection is made anew.
 */
static bool take_unasked(struct lk__hub *hub, struct lk__line *line, const struct lk__reply *reply)
{
    assert(lk__mu_held(&hub->mu));
    const char *channel = channel_of(hub, line, line->answers + 1);
    unsigned slot;
    char host[256];
    int port;
    if (strcmp(lk__reply_text(reply, 0), "sunsubscribe") == 0) {
        if (left_with(hub, line, line->answers + 1) != NULL && strcmp(channel, lk__reply_text(reply, 1)) == 0)
            return false;
        dropped(hub, line, lk__reply_text(reply, 1));
        return true;
    }
    if (reply->type != LK__ERROR || !lk__told_redirect(lk__reply_text(reply, 0), &slot, host, &port))
        return false;
    if (channel == NULL)
        lk__conn_reset(&line->node->lanes[LK__LANE_MESSAGES], line->connects,
                       "a channel was left as its slot went elsewhere");
    return channel == NULL || lk__slot_of(channel, strlen(channel)) != slot;
}

/* What a channel was left with is answered. */
static void left(struct lk__hub *hub, const struct lk__line *line, uint64_t question)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__leaving *leaving = left_with(hub, line, question);
    if (leaving == NULL)
        return;
    lk__list_remove(&leaving->link);
    lk__free(leaving);
}

/* An answer; its place says which command it answers. */
static void answered(struct lk__hub *hub, struct lk__line *line, const struct lk__reply *reply)
{
    assert(lk__mu_held(&hub->mu));
    if (line->node->cluster != NULL && take_unasked(hub, line, reply))
        return;
    if (line->answers == line->questions)
        return; /* an answer of the connection before, or to no command */
    line->answers++;
    lk__conn_serves(&line->node->lanes[LK__LANE_MESSAGES]);
    left(hub, line, line->answers);
    if (reply->type == LK__ERROR)
        refused(hub, line, line->answers, reply);
    else if (strcmp(lk__reply_text(reply, 0), lk__node_pubsub(hub->node)->confirmed) == 0)
        confirmed(hub, line, lk__reply_text(reply, 1));
}

void lk__hub_hear(void *arg, unsigned long long connects, unsigned epoch, const struct lk__reply *reply)
{
    struct lk__hub *hub = arg;
    struct lk__line *line = hub->node->cluster == NULL ? &hub->only : &hub->lines[lk__node_numberof(epoch)];
    bool is_message =
        reply->type == LK__ARRAY && strcmp(lk__reply_text(reply, 0), lk__node_pubsub(hub->node)->message) == 0;
    lk__mu_lock(&hub->mu);
    if (line->node != NULL && connects == line->connects) {
        line->heard_us = lk__now_us();
        hub->message_epoch = epoch;
        if (is_message)
            deliver(hub, reply);
        else
            answered(hub, line, reply);
    }
    lk__mu_unlock(&hub->mu);
}
