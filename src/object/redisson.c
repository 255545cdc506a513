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
    struct lk__link *first = lk__list_first(&redisson->waiters);
    if (first != NULL)
        lk__waiter_hint(&redisson->client->waiters, LK__CONTAINER(first, struct lk__waiter, hint));
    lk__mu_unlock(&redisson->mu);
}

/* The second subscription only counts as a receiver. */
static void ignore(struct lk__subscription *subscription, const char *payload)
{
    (void)subscription;
    (void)payload;
}

static void init(struct lk__redissonwake *redisson, lk_client_t *client, const char *channel, const char *beside)
{
    *redisson = (struct lk__redissonwake){ .client = client };
    lk__subscription_init(&redisson->subscription, channel, on_message);
    lk__subscription_init(&redisson->beside, beside, ignore);
    lk__list_init(&redisson->waiters);
    lk__mu_init(&redisson->mu, LK__MU_REDISSON);
}

bool lk__redissonwake_make(struct lk__redissonwake **redisson, lk_client_t *client, const char *channel,
                           const char *beside)
{
    *redisson = NULL;
    if (!client->options->redisson)
        return true;
    *redisson = lk__alloc(sizeof **redisson);
    if (*redisson == NULL)
        return false;
    init(*redisson, client, channel, beside);
    return true;
}

void lk__redissonwake_free(struct lk__redissonwake *redisson)
{
    if (redisson != NULL)
        lk__mu_destroy(&redisson->mu);
    lk__free(redisson);
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
    if (redisson == NULL)
        return;
    lk__mu_lock(&redisson->mu);
    bool listening = redisson->listening;
    redisson->listening = false;
    lk__mu_unlock(&redisson->mu);
    if (listening)
        fall_silent(redisson);
}

void lk__redissonwake_join(struct lk__redissonwake *redisson, struct lk__waiter *waiter)
{
    if (redisson->client->options->no_pubsub)
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
