/* SPDX-License-Identifier: MIT */
/*
 * redisson.c - waiters that Redisson's messages wake
 *
 * Guards: redisson->mu the list of waiters. Order: after hub->mu, before waiters->mu.
 */
#include "object/redisson.h"

/* NULL, after a (re)subscription, counts as a message, as one may have been missed. */
static void on_message(struct lk__subscription *subscription, const char *payload)
{
    struct lk__redissonwake *redisson = LK__CONTAINER(subscription, struct lk__redissonwake, subscription);
    assert(lk__mu_held(&redisson->client->hub.mu));
    (void)payload;
    lk__mu_lock(&redisson->mu);
    for (struct lk__link *l = lk__list_first(&redisson->waiters); l != NULL; l = lk__list_next(&redisson->waiters, l)) {
        lk__waiter_hint(&redisson->client->waiters, LK__CONTAINER(l, struct lk__waiter, hint));
        if (!redisson->everybody)
            break;
    }
    lk__mu_unlock(&redisson->mu);
}

/* The second subscription only counts as a receiver. */
static void ignore(struct lk__subscription *subscription, const char *payload)
{
    (void)subscription;
    (void)payload;
}

void lk__redissonwake_init(struct lk__redissonwake *redisson, lk_client_t *client, const char *channel,
                           const char *beside, bool everybody)
{
    *redisson = (struct lk__redissonwake){ .client = client, .everybody = everybody };
    lk__subscription_init(&redisson->subscription, channel, on_message);
    lk__subscription_init(&redisson->beside, beside, ignore);
    lk__list_init(&redisson->waiters);
    lk__mu_init(&redisson->mu, LK__MU_REDISSON);
}

void lk__redissonwake_destroy(struct lk__redissonwake *redisson)
{
    lk__mu_destroy(&redisson->mu);
}

/* The second subscription begins last and ends first: missing, a turn may be left to nobody; left over, Redisson has none. */
static int listen_here(struct lk__redissonwake *redisson)
{
    struct lk__hub *hub = &redisson->client->hub;
    int rc = lk__hub_subscribe(hub, &redisson->subscription);
    if (rc == 0 && lk__hub_subscribe(hub, &redisson->beside) != 0) {
        lk__hub_unsubscribe(hub, &redisson->subscription);
        rc = ENOMEM;
    }
    return rc;
}

static void fall_silent(struct lk__redissonwake *redisson)
{
    struct lk__hub *hub = &redisson->client->hub;
    lk__hub_unsubscribe(hub, &redisson->beside);
    lk__hub_unsubscribe(hub, &redisson->subscription);
}

void lk__redissonwake_stop(struct lk__redissonwake *redisson)
{
    lk__mu_lock(&redisson->mu);
    bool listening = redisson->listening;
    redisson->listening = false;
    lk__mu_unlock(&redisson->mu);
    if (listening)
        fall_silent(redisson);
}

void lk__redissonwake_join(struct lk__redissonwake *redisson, struct lk__waiter *waiter)
{
    const struct lk__options *options = redisson->client->options;
    if (!options->redisson || options->no_pubsub)
        return;
    lk__mu_lock(&redisson->mu);
    bool first = !redisson->listening;
    redisson->listening = true;
    lk__list_append(&redisson->waiters, &waiter->hint);
    lk__mu_unlock(&redisson->mu);
    if (first && listen_here(redisson) != 0) {
        lk__mu_lock(&redisson->mu);
        redisson->listening = false; /* waiters poll, until the next one tries again */
        lk__mu_unlock(&redisson->mu);
    }
}

void lk__redissonwake_leave(struct lk__redissonwake *redisson, struct lk__waiter *waiter)
{
    lk__mu_lock(&redisson->mu);
    lk__list_remove(&waiter->hint);
    lk__mu_unlock(&redisson->mu);
}
