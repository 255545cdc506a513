/* SPDX-License-Identifier: MIT */
/*
 * master.h - where is the master now? Places to try, one after another
 *
 * Options name one place, several, or Sentinels who know it. A connection comes up at the first place where a master
 * answers; what is a replica, or does not answer, is no failure as long as there is a next one.
 */
#ifndef LK__MASTER_H
#define LK__MASTER_H

#include "redis/sentinels.h"

/* One attempt to bring a connection up, by the connector's thread. */
struct lk__search {
    struct lk__connector *connector;
    struct lk__server *server;
    const struct lk__address *place; /* to be tried now; NULL: the unix socket */
    int64_t place_until_us;          /* its share of the time */
    int64_t until_us;
    unsigned tried;
    int cancel_fd;
};

void lk__search_begin(struct lk__search *search, struct lk__connector *connector, struct lk__server *server);
/* 0: here. ENOENT: that were all. With words: why there is none. ECANCELED. */
int lk__search_next(struct lk__search *search, char *errmsg, size_t size);
void lk__search_found(const struct lk__search *search); /* the master was there */

#endif
