/* SPDX-License-Identifier: MIT */
/*
 * ears.c - the channels of a client where messages are sharded: one for each hash tag
 *
 * Guards: waiters->mu which there are, and who uses them. The hub is never called under it, as it calls us under its own.
 *
 * A script can tell those alone who listen at its own slot: so the channel has the tag of the object's keys. All objects
 * with a tag share it. It stays for a while after its last waiter, as who waited once does so again.
 */
#include "acquire/acquire.h"

#include <stdio.h>
#include <string.h>

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
    if (sweep.found->listening)
        lk__hub_unsubscribe(waiters->hub, &sweep.found->subscription);
    lk__free(sweep.found);
}
