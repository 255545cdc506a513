/* SPDX-License-Identifier: MIT */
/*
 * crowd.c - all threads of a client that wait for one latch, behind one subscription
 *
 * Guards: crowd->mu who waits, and what came in for them. Order: after hub->mu and client->mu, before a
 * parker's. The hub is never called under it, as it calls us under its own.
 */
#include "latch/latch.h"

#include <string.h>

/* Under crowd->mu. */
static void wake_all(struct lk__crowd *crowd, char word)
{
    for (struct lk__link *l = lk__list_first(&crowd->places); l != NULL; l = lk__list_next(&crowd->places, l)) {
        struct lk__standing *place = LK__CONTAINER(l, struct lk__standing, link);
        if (word != 0)
            place->word = word;
        lk__parker_signal(place->parker, LK__WOKEN);
    }
}

/* On the hub's thread, under hub->mu. NULL, after a (re)subscription: something may have been missed. */
static void heard(struct lk__ear *ear, const char *payload)
{
    struct lk__crowd *crowd = LK__CONTAINER(ear, struct lk__crowd, ear);
    bool known = payload != NULL && (strcmp(payload, "0") == 0 || strcmp(payload, "1") == 0);
    pthread_mutex_lock(&crowd->mu);
    wake_all(crowd, known ? payload[0] : 0);
    pthread_mutex_unlock(&crowd->mu);
}

void lk__crowd_init(struct lk__crowd *crowd, lk_client_t *client, const char *channel)
{
    *crowd = (struct lk__crowd){ .client = client };
    crowd->ear.entry.key = channel;
    crowd->ear.entry.length = strlen(channel);
    crowd->ear.heard = heard;
    lk__list_init(&crowd->places);
    pthread_mutex_init(&crowd->mu, NULL);
}

void lk__crowd_destroy(struct lk__crowd *crowd)
{
    assert(lk__list_empty(&crowd->places));
    pthread_mutex_destroy(&crowd->mu);
}

void lk__crowd_stop(struct lk__crowd *crowd)
{
    pthread_mutex_lock(&crowd->mu);
    bool listening = crowd->listening;
    crowd->listening = false;
    pthread_mutex_unlock(&crowd->mu);
    if (listening)
        lk__hub_unlisten(&crowd->client->hub, &crowd->ear);
}

void lk__crowd_wake(struct lk__crowd *crowd)
{
    pthread_mutex_lock(&crowd->mu);
    wake_all(crowd, 0);
    pthread_mutex_unlock(&crowd->mu);
}

/* Have the channel heard, from the first wait on. Who comes while the first one is at it may be told too early
   that somebody listens: it is woken when that is so, and polls until then. */
static bool listen_here(struct lk__crowd *crowd)
{
    struct lk__hub *hub = &crowd->client->hub;
    if (crowd->client->options->no_pubsub)
        return false;
    pthread_mutex_lock(&crowd->mu);
    bool first = !crowd->listening;
    crowd->listening = true;
    pthread_mutex_unlock(&crowd->mu);
    if (first && lk__hub_listen(hub, &crowd->ear) != 0) {
        pthread_mutex_lock(&crowd->mu);
        crowd->listening = false; /* the next one tries again */
        pthread_mutex_unlock(&crowd->mu);
        return false;
    }
    return !lk__hub_isdeaf(hub, &crowd->ear);
}

bool lk__crowd_join(struct lk__crowd *crowd, struct lk__standing *place, struct lk__parker *parker)
{
    pthread_mutex_lock(&crowd->mu);
    place->parker = parker;
    lk__list_append(&crowd->places, &place->link);
    pthread_mutex_unlock(&crowd->mu);
    return listen_here(crowd);
}

void lk__crowd_leave(struct lk__crowd *crowd, struct lk__standing *place)
{
    pthread_mutex_lock(&crowd->mu);
    lk__list_remove(&place->link);
    pthread_mutex_unlock(&crowd->mu);
}

char lk__crowd_take(struct lk__crowd *crowd, struct lk__standing *place)
{
    pthread_mutex_lock(&crowd->mu);
    char word = place->word;
    place->word = 0;
    pthread_mutex_unlock(&crowd->mu);
    return word;
}
