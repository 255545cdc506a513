/* SPDX-License-Identifier: MIT */
/*
 * hub_inside.h - what the files of the hub share; for nobody else
 */
#ifndef LK__HUB_INSIDE_H
#define LK__HUB_INSIDE_H

#include "hub/hub.h"

enum { LK__HUB_PING_MS = 10000 };

/* A channel without subscribers, to be unsubscribed from. In a cluster it stays until that is answered. */
struct lk__leaving {
    struct lk__link link; /* in hub->leaving, or hub->left once it was said */
    struct lk__line *line;
    uint64_t question; /* the number of its UNSUBSCRIBE on the connection */
    char channel[];
};

/* --- subscriptions.c: who subscribed to what; under hub->mu --------------------------------------------------- */

/* The first of those to this channel, or NULL. */
struct lk__subscription *lk__hub_find(struct lk__hub *hub, const char *channel);
/* Another subscription to the same channel, or NULL. */
struct lk__subscription *lk__subscription_next(struct lk__subscription *subscription);
void lk__hub_setstate(struct lk__hub *hub, struct lk__subscription *subscription, enum lk__subscription_state state);

/* Where its channel is to be heard. */
struct lk__line *lk__hub_linefor(struct lk__hub *hub, const struct lk__subscription *subscription);
/* The next line that is in use; begins with NULL, and ends with it. On the hub's thread, no lock is needed. */
struct lk__line *lk__hub_nextline(struct lk__hub *hub, struct lk__line *line);
/* Who has the channel's slot now, hears of it soon; meanwhile messages are missed, so its holder is to look. */
void lk__hub_move(struct lk__hub *hub, struct lk__subscription *subscription);
/* Of a cluster: has it another map? Then subscriptions move. */
void lk__hub_followmap(struct lk__hub *hub);

/* --- say.c: what is sent; on the hub's thread ----------------------------------------------------------------- */

/* Send what is due; under hub->mu. Returns when to call again, if it is too early for new subscriptions. */
int64_t lk__hub_say(struct lk__hub *hub);
/* The server forgot our subscriptions with the connection; under hub->mu. */
void lk__hub_reconnected(struct lk__hub *hub, struct lk__line *line);
/* Ping a silent connection, or end one that did not answer; without hub->mu. Returns when to call again. */
int64_t lk__hub_watch(struct lk__hub *hub, struct lk__line *line);
/* No channel of that line is to be unsubscribed from any more, or of any: NULL; under hub->mu, on any thread. */
void lk__hub_forgetleaving(struct lk__hub *hub, const struct lk__line *line);

/* --- hear.c: what comes; on the hub's thread, or one in lk__hub_park() ---------------------------------------- */

/* What a connection brought that is gone is dropped: its answers have no question, and who waits asks again. */
void lk__hub_hear(void *arg, unsigned long long connects, unsigned epoch, const struct lk__reply *reply);

#endif
