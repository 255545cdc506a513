/* SPDX-License-Identifier: MIT */
/*
 * hub.c - connections that subscribe, and the thread that owns them
 *
 * Guards: hub->mu the subscriptions and the lists. Order: after an object's mu, before the connection's and a
 * parker's. on_message() is called under it, so that lk__hub_unsubscribe() can promise that none is called after.
 *
 * A thread that parks for a message reads the connection, see read.c. So answers are counted under hub->mu, and the hub's
 * thread does what follows from them.
 *
 * In a cluster each channel is heard at the node of its slot, by a line of its own. When the slot moves, the node says
 * SUNSUBSCRIBE of itself, or MOVED; the subscription then goes where the map says, and its holder is told to look.
 */
#include "hub/hub_inside.h"

#include <string.h>

enum { AWAY_US = 5000000 /* so often a node that is away is called where nobody waits for its messages */ };

struct use {
    const struct lk__line *line;
    bool found;
};

static void find_use(struct lk__entry *entry, void *arg)
{
    struct use *use = arg;
    use->found |= LK__CONTAINER(entry, struct lk__subscription, entry)->line == use->line;
}

/*
 * Lines of a cluster that are down, and that somebody hears: an attempt that failed is followed by another one, at once if
 * anybody waits for messages. Returns when to call again.
 */
static int64_t call_again(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    int64_t now_us = lk__now_us(), look_us = LK__NEVER;
    for (struct lk__line *line = NULL; (line = lk__hub_nextline(hub, line)) != NULL;) {
        struct use use = { .line = line };
        if (hub->node->cluster == NULL || lk__conn_isup(&line->node->lanes[LK__LANE_MESSAGES]))
            continue;
        lk__map_each(&hub->subscriptions, find_use, &use);
        if (!use.found)
            continue;
        if (atomic_load(&hub->waiters) > 0 || now_us >= line->called_us + AWAY_US) {
            line->called_us = now_us;
            lk__node_want(line->node, LK__LANE_MESSAGES);
        }
        if (line->called_us + AWAY_US < look_us)
            look_us = line->called_us + AWAY_US;
    }
    return look_us;
}

/* Connections that are new, and what is to be said on all. Returns when to call again. */
static int64_t say_all(struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    for (struct lk__line *line = NULL; (line = lk__hub_nextline(hub, line)) != NULL;)
        if (lk__node_connects(line->node, LK__LANE_MESSAGES) != line->connects) {
            line->connects = lk__node_connects(line->node, LK__LANE_MESSAGES);
            lk__hub_reconnected(hub, line);
        }
    lk__hub_followmap(hub);
    int64_t said_us = lk__hub_say(hub), call_us = call_again(hub);
    return said_us < call_us ? said_us : call_us;
}

static void *run(void *arg)
{
    struct lk__hub *hub = arg;
    for (;;) {
        int64_t until_us = LK__NEVER;
        lk__mu_lock(&hub->mu);
        bool stopping = hub->stopping;
        if (!stopping)
            until_us = say_all(hub);
        lk__mu_unlock(&hub->mu);
        if (stopping)
            return NULL;
        for (struct lk__line *line = NULL; (line = lk__hub_nextline(hub, line)) != NULL;) {
            int64_t look_us = lk__hub_watch(hub, line);
            until_us = look_us < until_us ? look_us : until_us;
        }
        struct pollfd extra = { hub->wake_fd, POLLIN, 0 };
        lk__node_serve(hub->node, LK__LANE_MESSAGES, &extra, 1, until_us);
        if (extra.revents != 0)
            lk__eventfd_clear(hub->wake_fd);
    }
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

static void free_lines(struct lk__hub *hub)
{
    if (hub->lines != &hub->only)
        lk__free(hub->lines);
}

int lk__hub_init(struct lk__hub *hub, struct lk__node *node)
{
    *hub = (struct lk__hub){ .node = node, .options = &node->server.options, .line_count = 1 };
    hub->lines = &hub->only;
    if (node->cluster != NULL) {
        hub->line_count = LK__NODES_MAX + 1;
        hub->lines = lk__alloc(hub->line_count * sizeof *hub->lines);
        if (hub->lines == NULL)
            return lk__fail(ENOMEM, "out of memory for a client");
    } else {
        hub->only.node = node;
    }
    hub->wake_fd = lk__eventfd_open();
    if (hub->wake_fd < 0) {
        free_lines(hub);
        return lk__fail(ENOMEM, "no descriptor left for a client");
    }
    lk__node_own(node, LK__LANE_MESSAGES, hub->wake_fd, lk__hub_hear, hub);
    lk__mu_init(&hub->mu, LK__MU_HUB);
    lk__list_init(&hub->fresh);
    lk__list_init(&hub->asked);
    lk__list_init(&hub->leaving);
    lk__list_init(&hub->left);
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
    lk__hub_forgetleaving(hub, NULL);
    lk__mu_unlock(&hub->mu);
}

void lk__hub_destroy(struct lk__hub *hub)
{
    lk__map_free(&hub->subscriptions);
    lk__mu_destroy(&hub->mu);
    lk__fd_close(hub->wake_fd);
    free_lines(hub);
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
        subscription->line = NULL;
        subscription->again_us = 0;
        lk__hub_setstate(hub, subscription, LK__SUBSCRIPTION_NEW);
        lk__map_insert(&hub->subscriptions, &subscription->entry);
        lk__eventfd_set(hub->wake_fd);
    }
    lk__mu_unlock(&hub->mu);
    return rc;
}

/* While the line is down nothing is subscribed to there, nor will be by the next connection. */
static void leave_channel(struct lk__hub *hub, const struct lk__subscription *subscription,
                          struct lk__leaving **leaving)
{
    assert(lk__mu_held(&hub->mu));
    struct lk__line *line = subscription->line != NULL ? subscription->line : lk__hub_linefor(hub, subscription);
    if (*leaving == NULL || hub->stopping || !lk__conn_isup(&line->node->lanes[LK__LANE_MESSAGES]))
        return;
    memcpy((*leaving)->channel, subscription->entry.key, subscription->entry.length + 1);
    (*leaving)->line = line;
    lk__list_append(&hub->leaving, &(*leaving)->link);
    *leaving = NULL;
    lk__eventfd_set(hub->wake_fd);
}

void lk__hub_unsubscribe(struct lk__hub *hub, struct lk__subscription *subscription)
{
    /* without memory it is heard in vain until the next connection */
    struct lk__leaving *leaving = lk__alloc(sizeof *leaving + subscription->entry.length + 1);
    lk__mu_lock(&hub->mu);
    lk__map_remove(&hub->subscriptions, &subscription->entry);
    lk__list_remove(&subscription->order);
    leave_channel(hub, subscription, &leaving);
    lk__mu_unlock(&hub->mu);
    lk__free(leaving);
}

void lk__hub_doubt(struct lk__hub *hub)
{
    atomic_store(&hub->doubted_us, lk__now_us());
    lk__eventfd_set(hub->wake_fd);
}
