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

/* Something came in for it. Under waiters->mu. */
static void wake(struct lk__waiter *waiter)
{
    atomic_store(&waiter->told, true);
    lk__parker_signal(&waiter->parker, LK__WOKEN);
}

static void hint_entry(struct lk__entry *entry, void *arg)
{
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    if (waiter->leader != NULL)
        return; /* the leader asks */
    if (arg != NULL && waiter->ear != arg)
        return; /* it hears by another one */
    waiter->hinted = true;
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
        waiter->hinted = true;
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

/* --- the channels of a client where messages are sharded: one for each hash tag ----------------------------------- */

/*
 * Guards: waiters->mu which there are, and who uses them. The hub is never called under it, as it calls us under its own.
 *
 * A script can tell those alone who listen at its own slot: so the channel has the tag of the object's keys. All objects
 * with a tag share it. It stays for a while after its last waiter, as who waited once does so again.
 */

enum { UNUSED_US = 60000000 };

/* The hash tag of a key, or all of it: what shard() of a script makes of its first key. */
static const char *tag_of(const struct lk__command *command, size_t *length)
{
    const char *key = lk__command_key(command, length), *open = strchr(key, '{');
    const char *close = open != NULL ? strchr(open, '}') : NULL;
    if (close == NULL)
        return key;
    *length = (size_t)(close - open) - 1;
    return open + 1;
}

/* "latchkey:client:<id>:{<tag>}" behind the ear, and the tag once more. */
static struct lk__ear *make_ear(struct lk__waiters *waiters, const char *tag, size_t length)
{
    size_t size = sizeof waiters->channel + length + 4;
    struct lk__ear *ear = lk__alloc(sizeof *ear + size + length + 1);
    if (ear == NULL)
        return NULL;
    char *channel = (char *)(ear + 1), *copy = channel + size;
    snprintf(channel, size, "%s:{%.*s}", waiters->channel, (int)length, tag);
    memcpy(copy, tag, length);
    ear->waiters = waiters;
    ear->entry.key = copy;
    ear->entry.length = (unsigned)length;
    lk__subscription_init(&ear->subscription, channel, lk__ear_onmessage);
    return ear;
}

struct lk__ear *lk__ear_join(struct lk__waiters *waiters, struct lk__waiter *waiter)
{
    size_t length;
    const char *tag = tag_of(&waiter->ask, &length);
    lk__mu_lock(&waiters->mu);
    if (waiter->ear == NULL) {
        struct lk__entry *entry = lk__map_find(&waiters->ears, 0, tag, length);
        struct lk__ear *ear =
            entry != NULL ? LK__CONTAINER(entry, struct lk__ear, entry) : make_ear(waiters, tag, length);
        if (ear != NULL && entry == NULL)
            lk__map_insert(&waiters->ears, &ear->entry);
        if (ear != NULL)
            ear->users++;
        waiter->ear = ear;
    }
    lk__mu_unlock(&waiters->mu);
    return waiter->ear;
}

struct sweep {
    int64_t before_us;
    struct lk__ear *found;
};

static void find_unused(struct lk__entry *entry, void *arg)
{
    struct sweep *sweep = arg;
    struct lk__ear *ear = LK__CONTAINER(entry, struct lk__ear, entry);
    if (ear->users == 0 && ear->unused_us < sweep->before_us)
        sweep->found = ear;
}

void lk__ear_leave(struct lk__waiters *waiters, struct lk__waiter *waiter)
{
    struct sweep sweep = { lk__now_us() - UNUSED_US, NULL };
    lk__mu_lock(&waiters->mu);
    struct lk__ear *ear = waiter->ear;
    waiter->ear = NULL;
    if (ear != NULL && ear != &waiters->ear && --ear->users == 0) {
        ear->unused_us = lk__now_us();
        lk__map_each(&waiters->ears, find_unused, &sweep);
        if (sweep.found != NULL)
            lk__map_remove(&waiters->ears, &sweep.found->entry);
    }
    lk__mu_unlock(&waiters->mu);
    if (sweep.found == NULL)
        return;
    if (atomic_load(&sweep.found->listening))
        lk__hub_unsubscribe(waiters->hub, &sweep.found->subscription);
    lk__free(sweep.found);
}

/* --- waiters of a client behind one of them: its place in the queue is good for all of them ----------------------- */

/*
 * Guards: waiters->mu who follows whom. A leader is no follower.
 *
 * A waiter that finds another one of its client at the end of the queue takes no place of its own, if both may have the
 * object together. It keeps the other one's arrival number, and does not ask by itself. When the leader is granted, all
 * followers ask, with that number, so they come in before all who came after the leader. When the leader gives up, one of
 * them takes its place: the last one, which is likely to wait longest. A leader that is not heard of, as its thread is in a
 * signal handler, say, loses its followers to the first of them that notices.
 */

static struct lk__waiter *follower_at(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk__waiter, following);
}

void lk__waiter_stopfollowing(struct lk__waiter *waiter)
{
    if (waiter->leader == NULL)
        return;
    lk__list_remove(&waiter->following);
    waiter->leader = NULL;
}

void lk__waiter_follow(struct lk__waiters *waiters, struct lk__waiter *waiter, const char *id, int64_t now_us)
{
    lk__mu_lock(&waiters->mu);
    struct lk__entry *entry = lk__map_find(&waiters->by_id, 0, id, strlen(id));
    struct lk__waiter *leader = entry != NULL ? LK__CONTAINER(entry, struct lk__waiter, entry) : NULL;
    lk__waiter_stopfollowing(waiter);
    if (leader == NULL || leader == waiter || leader->leader != NULL || leader->granted.server_us != 0) {
        waiter->hinted = true; /* it has left the queue, or is about to */
        atomic_store(&waiter->told, true);
    } else {
        if (leader->heard_us == 0)
            leader->heard_us = now_us;
        waiter->leader = leader;
        lk__list_append(&leader->followers, &waiter->following);
    }
    lk__mu_unlock(&waiters->mu);
}

void lk__waiter_bringin(struct lk__waiter *leader)
{
    for (struct lk__link *l; (l = lk__list_first(&leader->followers)) != NULL;) {
        struct lk__waiter *follower = follower_at(l);
        lk__waiter_stopfollowing(follower);
        follower->hinted = true;
        wake(follower);
    }
}

/* All who follow `leader` follow `waiter`, which is one of them, from now on. */
static void succeed(struct lk__waiter *leader, struct lk__waiter *waiter, int64_t now_us)
{
    lk__waiter_stopfollowing(waiter);
    waiter->heard_us = now_us;
    for (struct lk__link *l; (l = lk__list_first(&leader->followers)) != NULL;) {
        struct lk__waiter *follower = follower_at(l);
        lk__list_remove(l);
        lk__list_append(&waiter->followers, l);
        follower->leader = waiter;
    }
}

void lk__waiter_handon(struct lk__waiter *leader, int64_t now_us)
{
    struct lk__link *last = lk__list_last(&leader->followers);
    if (last == NULL)
        return;
    struct lk__waiter *follower = follower_at(last);
    succeed(leader, follower, now_us);
    follower->hinted = true;
    wake(follower);
}

bool lk__waiter_isled(struct lk__waiters *waiters, struct lk__waiter *waiter, int64_t now_us, int64_t silence_us)
{
    lk__mu_lock(&waiters->mu);
    struct lk__waiter *leader = waiter->leader;
    if (leader != NULL && now_us - leader->heard_us > silence_us)
        succeed(leader, waiter, now_us);
    bool led = waiter->leader != NULL;
    lk__mu_unlock(&waiters->mu);
    return led;
}

/* --- what a client asks of those who hand something over to it ---------------------------------------------------- */

/*
 * How long a client is to count as alive after each ask, and how long a claim has to last for it. Both follow from its own
 * options, and a client that hands over may have others. So they travel with each ask, as text.
 *
 * A waiter asks again before 0.4 of Lw is over, and its client counts as alive for half of Lw. A claim makes that end with the
 * claim, so Lw is at most 5/3 of a claim. So a client whose waiters ask in time is never taken for dead.
 */

enum { LIVENESS_MAX_MS = 20000, CLAIM_MIN_MS = 3000 };

/* Lw, as poll asks for it. */
static int64_t wished_liveness(const struct lk__options *options)
{
    int64_t polls_ms = 3 * options->poll_ms;
    return lk__greater(options->no_pubsub ? polls_ms : lk__lesser(polls_ms, LIVENESS_MAX_MS), LK__LIVENESS_MIN_MS);
}

/* `leased`: see lk__terms_set(). Of a claim clock_skew is not trusted. */
static int64_t claim_of(const struct lk__options *options, bool leased)
{
    int64_t claim_ms = lk__greater(2 * options->command_timeout_ms, LK__SKEWS_MIN * options->clock_skew_ms);
    claim_ms = lk__greater(lk__greater(claim_ms, CLAIM_MIN_MS), wished_liveness(options) * 3 / 5);
    return leased ? lk__lesser(claim_ms, options->lease_ms) : claim_ms;
}

int64_t lk__handover_lasts(const struct lk__options *options, bool leased)
{
    return wished_liveness(options) / 2 + claim_of(options, leased);
}

void lk__terms_set(struct lk__terms *terms, const struct lk__options *options, bool leased)
{
    int64_t wished_ms = wished_liveness(options);
    long long alive_ms = wished_ms / 2, claim_ms = claim_of(options, leased);
    long long quiet_ms = lk__lesser(claim_ms, LK__QUIET_CLAIM_MS);
    /* a claim of one that receives no messages is short, and says nothing */
    terms->liveness_ms = options->no_pubsub ? wished_ms : lk__lesser(wished_ms, claim_ms * 5 / 3);
    snprintf(terms->texts[0], sizeof terms->texts[0], "%lld %lld 0", alive_ms, claim_ms);
    snprintf(terms->texts[1], sizeof terms->texts[1], "%lld %lld 1", alive_ms, quiet_ms);
}
