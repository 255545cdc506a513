/* SPDX-License-Identifier: MIT */
/* sentinel.h - what one Sentinel is asked, and what it answers */
#ifndef LK__SENTINEL_H
#define LK__SENTINEL_H

#include "redis/talk.h"

enum { LK__HOST_MAX = 255 };

/* Where somebody says that the master is. */
struct lk__word {
    char host[LK__HOST_MAX + 1];
    int port;      /* 0: nowhere */
    int64_t epoch; /* the number of the failover that brought it there */
};

/*
 * On a new connection: where is the master of the options' service? From then on the Sentinel tells when any of its masters
 * moves. 0, ENOMEM, or with words ECANCELED, ENOTCONN, EPROTO, EACCES. `refused`: it knows no such user, or another password.
 */
int lk__sentinel_ask(const struct lk__talk *talk, struct lk__word *says, bool *refused);

#endif
