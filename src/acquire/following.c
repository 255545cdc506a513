/* SPDX-License-Identifier: MIT */
/*
 * following.c - waiters of a client behind one of them: its place in the queue is good for all of them
 *
 * Guards: waiters->mu who follows whom. A leader is no follower.
 *
 * A waiter that finds another one of its client at the end of the queue takes no place of its own, if both may have the
 * object together. It keeps the other one's arrival number, and does not ask by itself. When the leader is granted, all
 * followers ask, with that number, so they come in before all who came after the leader. When the leader gives up, one of
 * them takes its place: the last one, which is likely to wait longest. A leader that is not heard of, as its thread is in a
 * signal handler, say, loses its followers to the first of them that notices.
 */
#include "acquire/acquire.h"

#include <string.h>

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
        lk__parker_signal(&follower->parker, LK__WOKEN);
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
    lk__parker_signal(&follower->parker, LK__WOKEN);
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
