/* SPDX-License-Identifier: MIT */
/*
 * subscriptions.c - who subscribed to what, and what became of it
 *
 * Under hub->mu, but for those that take it.
 */
#include "hub/hub_inside.h"

#include <string.h>

enum { ELSEWHERE_US = 100000 };

void lk__subscription_init(struct lk__subscription *subscription, const char *channel,
                           void (*on_message)(struct lk__subscription *subscription, const char *payload))
{
    *subscription = (struct lk__subscription){ .on_message = on_message };
    subscription->entry.key = channel;
    subscription->entry.length = (unsigned)strlen(channel);
}

struct lk__subscription *lk__hub_find(struct lk__hub *hub, const char *channel)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__entry *entry = lk__map_find(&hub->subscriptions, 0, channel, strlen(channel));
    return entry == NULL ? NULL : LK__CONTAINER(entry, struct lk__subscription, entry);
}

struct lk__subscription *lk__subscription_next(struct lk__subscription *subscription)
{
    struct lk__entry *entry = subscription->entry.next;
    while (entry != NULL && strcmp(entry->key, subscription->entry.key) != 0)
        entry = entry->next;
    return entry == NULL ? NULL : LK__CONTAINER(entry, struct lk__subscription, entry);
}

/* --- lines --------------------------------------------------------------------------------------------------------- */

struct lk__line *lk__hub_linefor(struct lk__hub *hub, const struct lk__subscription *subscription)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__node *at = lk__node_forkey(hub->node, subscription->entry.key, subscription->entry.length);
    struct lk__line *line = &hub->lines[lk__node_number(at)];
    line->node = at;
    return line;
}

struct lk__line *lk__hub_nextline(struct lk__hub *hub, struct lk__line *line)
{
    for (line = line == NULL ? hub->lines : line + 1; line < hub->lines + hub->line_count; line++)
        if (line->node != NULL)
            return line;
    return NULL;
}

/* --- what becomes of subscriptions ---------------------------------------------------------------------------------- */

void lk__hub_setstate(struct lk__hub *hub, struct lk__subscription *subscription, enum lk__subscription_state state)
{
    assert(lk__mu_held(&hub->mu));
    subscription->state = state;
    lk__list_remove(&subscription->order);
    if (state == LK__SUBSCRIPTION_NEW || state == LK__SUBSCRIPTION_ASKED)
        lk__list_append(state == LK__SUBSCRIPTION_NEW ? &hub->fresh : &hub->asked, &subscription->order);
}

void lk__hub_move(struct lk__hub *hub, struct lk__subscription *subscription)
{
    assert(lk__mu_held(&hub->mu));
    lk__hub_setstate(hub, subscription, LK__SUBSCRIPTION_NEW);
    subscription->again_us =
        lk__now_us() + (lk__hub_linefor(hub, subscription) == subscription->line ? ELSEWHERE_US : 0);
    lk__eventfd_set(hub->wake_fd); /* the thread may not be the one that reads */
    subscription->on_message(subscription, NULL);
}

/* A connection that ended as its node had no slots is not made anew before something is said there. */
static void move_if_elsewhere(struct lk__entry *entry, void *arg)
{
    struct lk__hub *hub = arg;
    struct lk__subscription *subscription = LK__CONTAINER(entry, struct lk__subscription, entry);
    const struct lk__line *line = subscription->line;
    bool open = subscription->state == LK__SUBSCRIPTION_OPEN;
    if (line != NULL && (line != lk__hub_linefor(hub, subscription) ||
                         (open && !lk__conn_isup(&line->node->lanes[LK__LANE_MESSAGES]))))
        lk__hub_move(hub, subscription);
}

void lk__hub_followmap(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__cluster *cluster = hub->node->cluster;
    unsigned version = cluster != NULL ? lk__cluster_version(cluster) : 0;
    if (version != hub->version_seen)
        lk__map_each(&hub->subscriptions, move_if_elsewhere, hub);
    hub->version_seen = version;
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
