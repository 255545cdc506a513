/* SPDX-License-Identifier: MIT */
/*
 * redisson.h - waiters that Redisson's messages wake
 */
#ifndef LK__OBJECT_REDISSON_H
#define LK__OBJECT_REDISSON_H

#include "client/client.h"

/* With redisson=yes an object subscribes to Redisson's channel of its name, and a message is a hint for the first of its waiters. */
struct lk__redissonwake {
    lk_client_t *client;
    struct lk__subscription subscription;
    struct lk__subscription beside; /* the second channel, see redisson.lua */
    struct lk__mu mu;               /* after hub->mu, before waiters->mu */
    struct lk__link waiters;        /* under mu */
    bool listening;                 /* under mu */
};

/*
 * Make one, or NULL for a client without redisson=yes. `channel` and `beside` live as long. False: ENOMEM. Stopping and
 * freeing accept NULL.
 */
bool lk__redissonwake_make(struct lk__redissonwake **redisson, lk_client_t *client, const char *channel,
                           const char *beside);
void lk__redissonwake_stop(struct lk__redissonwake *redisson); /* unsubscribes; before the hub ends */
void lk__redissonwake_free(struct lk__redissonwake *redisson);

void lk__redissonwake_join(struct lk__redissonwake *redisson, struct lk__waiter *waiter);
void lk__redissonwake_leave(struct lk__redissonwake *redisson, struct lk__waiter *waiter);

#endif
