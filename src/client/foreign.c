/* SPDX-License-Identifier: MIT */
/*
 * foreign.c - waiters that Redisson's messages wake
 *
 * Guards: foreign->mu who waits. Order: after hub->mu, before room->mu.
 */
#include "client/client.h"

#include <string.h>

/* NULL, after a (re)subscription, counts as a message: one may have been missed. */
static void heard(struct lk__ear *ear, const char *payload)
{
    struct lk__foreign *foreign = LK__CONTAINER(ear, struct lk__foreign, ear);
    (void)payload;
    pthread_mutex_lock(&foreign->mu);
    for (struct lk__link *l = lk__list_first(&foreign->waiters); l != NULL; l = lk__list_next(&foreign->waiters, l)) {
        lk__waiter_hint(&foreign->client->room, LK__CONTAINER(l, struct lk__waiter, hint));
        if (!foreign->everybody)
            break;
    }
    pthread_mutex_unlock(&foreign->mu);
}

/* To be counted is all that it is for. */
static void ignore(struct lk__ear *ear, const char *payload)
{
    (void)ear;
    (void)payload;
}

void lk__foreign_init(struct lk__foreign *foreign, lk_client_t *client, const char *channel, const char *beside,
                      bool everybody)
{
    *foreign = (struct lk__foreign){ .client = client, .everybody = everybody };
    foreign->ear.entry.key = channel;
    foreign->ear.entry.length = strlen(channel);
    foreign->ear.heard = heard;
    foreign->beside.entry.key = beside;
    foreign->beside.entry.length = strlen(beside);
    foreign->beside.heard = ignore;
    lk__list_init(&foreign->waiters);
    pthread_mutex_init(&foreign->mu, NULL);
}

void lk__foreign_destroy(struct lk__foreign *foreign)
{
    pthread_mutex_destroy(&foreign->mu);
}

/* Beside it last and no longer: counted too seldom, a turn is left to nobody; too often, Redisson has none. */
static int listen_here(struct lk__foreign *foreign)
{
    struct lk__hub *hub = &foreign->client->hub;
    int rc = lk__hub_listen(hub, &foreign->ear);
    if (rc == 0 && lk__hub_listen(hub, &foreign->beside) != 0) {
        lk__hub_unlisten(hub, &foreign->ear);
        rc = ENOMEM;
    }
    return rc;
}

static void fall_silent(struct lk__foreign *foreign)
{
    struct lk__hub *hub = &foreign->client->hub;
    lk__hub_unlisten(hub, &foreign->beside);
    lk__hub_unlisten(hub, &foreign->ear);
}

void lk__foreign_stop(struct lk__foreign *foreign)
{
    pthread_mutex_lock(&foreign->mu);
    bool listening = foreign->listening;
    foreign->listening = false;
    pthread_mutex_unlock(&foreign->mu);
    if (listening)
        fall_silent(foreign);
}

void lk__foreign_join(struct lk__foreign *foreign, struct lk__waiter *waiter)
{
    const struct lk__options *options = foreign->client->options;
    if (!options->redisson || options->no_pubsub)
        return;
    pthread_mutex_lock(&foreign->mu);
    bool first = !foreign->listening;
    foreign->listening = true;
    lk__list_append(&foreign->waiters, &waiter->hint);
    pthread_mutex_unlock(&foreign->mu);
    if (first && listen_here(foreign) != 0) {
        pthread_mutex_lock(&foreign->mu);
        foreign->listening = false; /* they poll, until the next one tries again */
        pthread_mutex_unlock(&foreign->mu);
    }
}

void lk__foreign_leave(struct lk__foreign *foreign, struct lk__waiter *waiter)
{
    pthread_mutex_lock(&foreign->mu);
    lk__list_remove(&waiter->hint);
    pthread_mutex_unlock(&foreign->mu);
}
