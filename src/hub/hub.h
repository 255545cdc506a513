/* SPDX-License-Identifier: MIT */
/*
 * hub.h - the ear of a client: channels, and who hears them
 *
 * A message is only ever a hint: what it says is checked by who hears it. After each (re)subscription, and
 * when it is refused, a listener hears NULL: messages may have been missed, look for yourself.
 */
#ifndef LK__HUB_H
#define LK__HUB_H

#include "redis/redis.h"

enum lk__subscription_state {
    LK__SUBSCRIPTION_NEW,
    LK__SUBSCRIPTION_ASKED,
    LK__SUBSCRIPTION_OPEN,
    LK__SUBSCRIPTION_REFUSED
};

struct lk__subscription {
    struct lk__entry entry;            /* under hub->mu; key = channel, which two ears may share for a moment */
    struct lk__link order;             /* under hub->mu: in hub->fresh while NEW, in hub->asked while ASKED */
    enum lk__subscription_state state; /* under hub->mu */
    uint64_t question;                 /* under hub->mu: while ASKED, which of the connection's questions that was */
    /* Runs on the hub's thread under hub->mu: must not block and not call the hub. */
    void (*on_message)(struct lk__subscription *subscription, const char *payload);
};

struct lk__hub {
    struct lk__mu mu;
    struct lk__node *node;
    struct lk__map subscriptions; /* under mu, by channel */
    struct lk__link fresh;        /* under mu: to be subscribed to */
    struct lk__link asked;        /* under mu: subscriptions sent, in order */
    struct lk__link leaving;      /* under mu: channels to be unsubscribed */
    bool started, stopping;       /* under mu */
    int wake_fd;
    pthread_t thread;
    const struct lk__options *options;
    atomic_int waiters; /* who would notice silence; pings are frequent while there are any */
    /* thread only */
    unsigned long long connects; /* which connection that was, of which the next three tell */
    uint64_t questions, answers; /* sent, come */
    int64_t heard_us, pinged_us;
    bool given_up;              /* by us, as it was silent */
    int64_t pause_us, again_us; /* back-off after a refusal that passes; no subscription is asked for before */
    int cuts;                   /* connections in a row that ended when they were asked to subscribe */
    atomic_ullong messages;
};

int lk__hub_init(struct lk__hub *hub, struct lk__node *node);
void lk__hub_stop(struct lk__hub *hub);
void lk__hub_destroy(struct lk__hub *hub);

/*
 * Subscribe to the channel ear->entry.key; starts the thread on the first call. The ear stays with the
 * hub until lk__hub_unsubscribe() returned. 0, or ENOMEM: not heard, poll instead.
 */
int lk__hub_subscribe(struct lk__hub *hub, struct lk__subscription *subscription);
void lk__hub_unsubscribe(struct lk__hub *hub, struct lk__subscription *subscription);

/* True when the server refused the subscription: nothing will be heard. */
bool lk__hub_isrefused(struct lk__hub *hub, struct lk__subscription *subscription);
/* True when the server confirmed the subscription of the present connection. */
bool lk__hub_isopen(struct lk__hub *hub, struct lk__subscription *subscription);

#endif
