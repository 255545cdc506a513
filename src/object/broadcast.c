/* SPDX-License-Identifier: MIT */
/*
 * broadcast.c - all threads of a client that wait for one object, behind one subscription
 *
 * Guards: broadcast->mu the waiting threads, and their messages. Order: after hub->mu and client->mu, before a
 * parker's. The hub is never called under it, as it calls us under its own.
 */
#include "object/broadcast.h"

#include <string.h>

static void wake_all(struct lk__broadcast *broadcast, char word)
{
    assert(lk__mu_held(&broadcast->mu));
    for (struct lk__link *l = lk__list_first(&broadcast->subscribers); l != NULL;
         l = lk__list_next(&broadcast->subscribers, l)) {
        struct lk__subscriber *subscriber = LK__CONTAINER(l, struct lk__subscriber, link);
        if (word != 0)
            subscriber->word = word;
        lk__parker_signal(subscriber->parker, LK__WOKEN);
    }
}

void lk__broadcast_wakeall(struct lk__broadcast *broadcast)
{
    wake_all(broadcast, 0);
}

void lk__broadcast_wakefollowers(struct lk__broadcast *broadcast)
{
    assert(lk__mu_held(&broadcast->mu));
    for (struct lk__link *l = lk__list_first(&broadcast->looks.followers); l != NULL;
         l = lk__list_next(&broadcast->looks.followers, l))
        lk__parker_signal(LK__CONTAINER(l, struct lk__subscriber, following)->parker, LK__WOKEN);
}

/* NULL, after a (re)subscription: something may have been missed. */
static void on_message(struct lk__subscription *subscription, const char *payload)
{
    struct lk__broadcast *broadcast = LK__CONTAINER(subscription, struct lk__broadcast, subscription);
    assert(lk__mu_held(&broadcast->client->hub.mu));
    bool known = payload != NULL && (strcmp(payload, "0") == 0 || strcmp(payload, "1") == 0);
    lk__mu_lock(&broadcast->mu);
    broadcast->looks.wanted = broadcast->looks.begun + 1;
    wake_all(broadcast, known ? payload[0] : 0);
    lk__mu_unlock(&broadcast->mu);
}

void lk__broadcast_init(struct lk__broadcast *broadcast, lk_client_t *client, const char *channel)
{
    *broadcast = (struct lk__broadcast){ .client = client };
    lk__subscription_init(&broadcast->subscription, channel, on_message);
    lk__list_init(&broadcast->subscribers);
    lk__list_init(&broadcast->looks.followers);
    lk__mu_init(&broadcast->mu, LK__MU_BROADCAST);
}

void lk__broadcast_destroy(struct lk__broadcast *broadcast)
{
    assert(lk__list_empty(&broadcast->subscribers) && lk__list_empty(&broadcast->looks.followers));
    lk__mu_destroy(&broadcast->mu);
}

void lk__broadcast_stop(struct lk__broadcast *broadcast)
{
    lk__mu_lock(&broadcast->mu);
    bool listening = broadcast->listening;
    broadcast->listening = false;
    lk__mu_unlock(&broadcast->mu);
    if (listening)
        lk__hub_unsubscribe(&broadcast->client->hub, &broadcast->subscription);
}

void lk__broadcast_wake(struct lk__broadcast *broadcast)
{
    lk__mu_lock(&broadcast->mu);
    wake_all(broadcast, 0);
    lk__broadcast_wakefollowers(broadcast);
    lk__mu_unlock(&broadcast->mu);
}

/* Subscribe to the channel, on the first wait. A thread that comes meanwhile may be told too early that there are
   messages: it is woken when the subscription stands, and polls until then. */
static bool listen_here(struct lk__broadcast *broadcast)
{
    struct lk__hub *hub = &broadcast->client->hub;
    if (broadcast->client->options->no_pubsub)
        return false;
    lk__mu_lock(&broadcast->mu);
    bool first = !broadcast->listening;
    broadcast->listening = true;
    lk__mu_unlock(&broadcast->mu);
    if (first && lk__hub_subscribe(hub, &broadcast->subscription) != 0) {
        lk__mu_lock(&broadcast->mu);
        broadcast->listening = false; /* the next wait tries again */
        lk__mu_unlock(&broadcast->mu);
        return false;
    }
    return !lk__hub_isrefused(hub, &broadcast->subscription);
}

bool lk__broadcast_join(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber)
{
    lk__mu_lock(&broadcast->mu);
    lk__list_append(&broadcast->subscribers, &subscriber->link);
    lk__mu_unlock(&broadcast->mu);
    return listen_here(broadcast);
}

void lk__broadcast_leave(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber)
{
    lk__mu_lock(&broadcast->mu);
    lk__list_remove(&subscriber->link);
    lk__mu_unlock(&broadcast->mu);
}

char lk__broadcast_take(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber)
{
    lk__mu_lock(&broadcast->mu);
    char word = subscriber->word;
    subscriber->word = 0;
    lk__mu_unlock(&broadcast->mu);
    return word;
}
