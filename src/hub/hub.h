/* SPDX-License-Identifier: MIT */
/*
 * hub.h - the subscriptions of a client: channels, and who is called for their messages
 *
 * A message is only ever a hint: the subscriber checks what it says. After each (re)subscription, and when a
 * subscription is refused, on_message() is called with NULL: messages may have been missed.
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
    struct lk__entry entry;            /* under hub->mu; key = channel, which two subscriptions may share */
    struct lk__link order;             /* under hub->mu: in hub->fresh while NEW, in hub->asked while ASKED */
    enum lk__subscription_state state; /* under hub->mu */
    uint64_t question;                 /* under hub->mu: while ASKED, the number of its SUBSCRIBE on the connection */
    struct lk__line *line;             /* under hub->mu: where it is asked for, or was; NULL: nowhere yet */
    int64_t again_us;                  /* under hub->mu: of one that was sent elsewhere: when it is asked for anew */
    /* Runs on the hub's thread, or one in lk__hub_park(), under hub->mu: must not block and not call the hub. */
    void (*on_message)(struct lk__subscription *subscription, const char *payload);
};

/* A node's connection for messages. All under hub->mu, but for what is said to be the thread's. */
struct lk__line {
    struct lk__node *_Atomic node; /* never changes; NULL: nothing was asked there yet. Also without hub->mu */
    bool given_up;                 /* thread only: it ended the connection, as it was silent */
    int64_t pinged_us;             /* thread only */
    int64_t called_us;             /* thread only: when a connection was last asked for again, of a node of several */
    _Atomic int64_t heard_us;      /* when something last came */
    unsigned long long connects;   /* the number of the connection that the next two belong to */
    uint64_t questions, answers;   /* commands sent, answers read */
    int64_t pause_us, again_us;    /* back-off after a refusal that passes; no subscription is asked for before */
    int cuts;                      /* connections in a row that ended when a SUBSCRIBE was sent */
};

struct lk__hub {
    struct lk__mu mu;
    struct lk__node *node;  /* the server, or the way to it */
    struct lk__line only;   /* of a server by itself */
    struct lk__line *lines; /* by the numbers of nodes: that one, or those of a cluster */
    unsigned line_count;
    struct lk__map subscriptions; /* under mu, by channel */
    struct lk__link fresh;        /* under mu: to be subscribed to */
    struct lk__link asked;        /* under mu: subscriptions sent, in order */
    struct lk__link leaving;      /* under mu: channels to be unsubscribed ... */
    struct lk__link left;         /* under mu: ... and those where a cluster's node was told so */
    bool started, stopping;       /* under mu */
    int wake_fd;
    pthread_t thread;
    const struct lk__options *options;
    atomic_int waiters;         /* threads that wait for messages */
    _Atomic int64_t doubted_us; /* when somebody found out by asking what no message had told; 0: never */
    unsigned version_seen;      /* thread only: of a cluster's map */
    unsigned message_epoch;     /* under mu: of the server that sent what is handed out now */
    atomic_ullong messages;
};

int lk__hub_init(struct lk__hub *hub, struct lk__node *node);
void lk__hub_stop(struct lk__hub *hub);
void lk__hub_destroy(struct lk__hub *hub);

/* A subscription to be: of `channel`, which lives as long. */
void lk__subscription_init(struct lk__subscription *subscription, const char *channel,
                           void (*on_message)(struct lk__subscription *subscription, const char *payload));

/*
 * Subscribe to the channel subscription->entry.key; the first call starts the thread. The subscription is the
 * hub's until lk__hub_unsubscribe() returned. 0, or ENOMEM: there will be no messages, poll instead.
 */
int lk__hub_subscribe(struct lk__hub *hub, struct lk__subscription *subscription);
void lk__hub_unsubscribe(struct lk__hub *hub, struct lk__subscription *subscription);

/* Within lk__subscription's on_message(): the epoch of the server that sent the message. */
static inline unsigned lk__hub_messageepoch(const struct lk__hub *hub)
{
    assert(lk__mu_held(&hub->mu));
    return hub->message_epoch;
}

/*
 * A waiter found out by asking what a message should have told: the connection is pinged now, unless something has been
 * heard since. A message that is only late costs that one ping.
 */
void lk__hub_doubt(struct lk__hub *hub);

/* True when the server refused the subscription: there will be no messages. */
bool lk__hub_isrefused(struct lk__hub *hub, struct lk__subscription *subscription);
/* True when the server confirmed the subscription of the present connection. */
bool lk__hub_isopen(struct lk__hub *hub, struct lk__subscription *subscription);

#endif
