/* SPDX-License-Identifier: MIT */
/*
 * waiters.c - what comes in for the acquires of a client: grants, hints, the end of the client
 *
 * Guards: waiters->mu who waits, and what came in for them. Order: after hub->mu, before a parker's.
 *
 * A message for a waiter that left needs no answer: its release is sent by itself, or by the outbox.
 */
#include "acquire/acquire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what comes in ------------------------------------------------------------------------------------------ */

static void wake(struct lk__waiter *waiter)
{
    lk__parker_signal(&waiter->parker, LK__WOKEN);
}

/* It is to ask; a leader that rested does so no more. */
static void hint(struct lk__waiter *waiter)
{
    int64_t now_us = lk__now_us();
    waiter->hinted = true;
    if (waiter->heard_us > now_us)
        waiter->heard_us = now_us;
}

static void hint_entry(struct lk__entry *entry, void *arg)
{
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    if (waiter->leader != NULL)
        return; /* the leader asks */
    if (arg != NULL && waiter->ear != arg)
        return; /* it hears by another one */
    hint(waiter);
    wake(waiter);
}

/* The next number of a message, which must be above `least`; false when there is none. */
static bool next_number(const char **at, int64_t least, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    bool good = end != *at && errno == 0 && *number > least;
    *at = end;
    return good;
}

/* "<id> <server us> <lease ms> <token> <owner died>" */
static bool read_grant(const char *at, struct lk__grant *grant)
{
    int64_t token, died;
    bool good = next_number(&at, 0, &grant->server_us) && next_number(&at, 0, &grant->lease_ms) &&
                next_number(&at, 0, &token) && next_number(&at, -1, &died) && *at == '\0' &&
                lk__is_servertime(grant->server_us) && grant->lease_ms <= LK__LEASE_MAX_MS;
    if (good) {
        grant->token = (uint64_t)token;
        grant->owner_died = died != 0;
    }
    return good;
}

/* "G <id> <numbers of a grant>" or "F <id>"; whatever else is no message of ours. */
static void on_payload(struct lk__waiters *waiters, const char *payload)
{
    assert(lk__mu_held(&waiters->mu));
    if ((payload[0] != 'G' && payload[0] != 'F') || payload[1] != ' ')
        return;
    const char *id = payload + 2;
    size_t length = strcspn(id, " ");
    struct lk__entry *entry = lk__map_find(&waiters->by_id, 0, id, length);
    if (entry == NULL)
        return;
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    struct lk__grant grant = { .epoch = lk__hub_messageepoch(waiters->hub) };
    lk__waiter_stopfollowing(waiter); /* a copy of its ask took a place of its own */
    if (payload[0] == 'F') {
        hint(waiter);
    } else if (read_grant(id + length, &grant)) {
        waiter->granted = grant;
        lk__waiter_bringin(waiter);
    }
    wake(waiter);
}

/* `payload` NULL, after a (re)subscription: a message may have been missed. */
void lk__ear_onmessage(struct lk__subscription *subscription, const char *payload)
{
    struct lk__ear *ear = LK__CONTAINER(subscription, struct lk__ear, subscription);
    struct lk__waiters *waiters = ear->waiters;
    assert(lk__mu_held(&waiters->hub->mu));
    lk__mu_lock(&waiters->mu);
    if (payload == NULL)
        lk__map_each(&waiters->by_id, hint_entry, ear);
    else
        on_payload(waiters, payload);
    lk__mu_unlock(&waiters->mu);
}

void lk__waiter_hint(struct lk__waiters *waiters, struct lk__waiter *waiter)
{
    lk__mu_lock(&waiters->mu);
    hint_entry(&waiter->entry, NULL);
    lk__mu_unlock(&waiters->mu);
}

/* --- life ----------------------------------------------------------------------------------------------------- */

void lk__waiters_init(struct lk__waiters *waiters, const char *client_id, struct lk__node *node, struct lk__hub *hub,
                      const struct lk__options *options)
{
    *waiters = (struct lk__waiters){ .node = node, .hub = hub, .options = options };
    lk__mu_init(&waiters->mu, LK__MU_WAITERS);
    snprintf(waiters->channel, sizeof waiters->channel, "latchkey:client:%s", client_id);
    waiters->ear.waiters = waiters;
    lk__subscription_init(&waiters->ear.subscription, waiters->channel, lk__ear_onmessage);
}

static void cancel_entry(struct lk__entry *entry, void *arg)
{
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    (void)arg;
    waiter->cancelled = true;
    wake(waiter);
}

void lk__waiters_close(struct lk__waiters *waiters)
{
    lk__mu_lock(&waiters->mu);
    waiters->closed = true;
    lk__map_each(&waiters->by_id, cancel_entry, NULL);
    lk__mu_unlock(&waiters->mu);
}

static void find_any(struct lk__entry *entry, void *arg)
{
    *(struct lk__entry **)arg = entry;
}

void lk__waiters_destroy(struct lk__waiters *waiters)
{
    assert(waiters->by_id.count == 0);
    lk__map_free(&waiters->by_id);
    while (waiters->ears.count > 0) {
        struct lk__entry *entry = NULL;
        lk__map_each(&waiters->ears, find_any, &entry);
        lk__map_remove(&waiters->ears, entry);
        lk__free(LK__CONTAINER(entry, struct lk__ear, entry));
    }
    lk__map_free(&waiters->ears);
    lk__mu_destroy(&waiters->mu);
}
