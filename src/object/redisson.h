/* SPDX-License-Identifier: MIT */
/*
 * redisson.h - waiters that Redisson's messages wake
 */
#ifndef LK__OBJECT_REDISSON_H
#define LK__OBJECT_REDISSON_H

#include "client/client.h"

/* With redisson=yes an object subscribes to Redisson's channel of its name, and a message is a hint for its waiters. */
struct lk__redissonwake {
    lk_client_t *client;
    struct lk__subscription subscription;
    struct lk__subscription beside; /* the second channel, see redisson.lua */
    bool everybody;                 /* a message is a hint for all waiters, not for the first alone */
    struct lk__mu mu;               /* after hub->mu, before waiters->mu */
    struct lk__link waiters;        /* under mu */
    bool listening;                 /* under mu */
};

/* `channel` and `beside` live as long as the struct. */
void lk__redissonwake_init(struct lk__redissonwake *redisson, lk_client_t *client, const char *channel,
                           const char *beside, bool everybody);
void lk__redissonwake_destroy(struct lk__redissonwake *redisson);
void lk__redissonwake_stop(struct lk__redissonwake *redisson); /* unsubscribes; before the hub ends */
void lk__redissonwake_join(struct lk__redissonwake *redisson,
                           struct lk__waiter *waiter); /* harmless without redisson=yes */
void lk__redissonwake_leave(struct lk__redissonwake *redisson, struct lk__waiter *waiter);

#endif
