/* SPDX-License-Identifier: MIT */
/*
 * news.h - what a client tells of one of its holds, counted
 */
#ifndef TESTS_NEWS_H
#define TESTS_NEWS_H

#include "world.h"

/* Reached with atomic builtins, by way of news(). */
struct news {
    const char *name; /* of the object, as the test gave it */
    int count[LK_EVENT_LOST + 1];
    int reason, kind; /* of the last event */
};

/* Count the events of `name` from now on, until the client is closed. */
void news_listen(struct news *n, lk_client_t *client, const char *name);
struct news *news_of(struct world *w, lk_client_t *client, const char *name); /* in memory of the world */

/* How many of this type have come: LK_EVENT_... */
int news(const struct news *n, int type);

/* Of the last one: LK_REASON_... */
int news_reason(const struct news *n);
int news_kind(const struct news *n); /* LK_KIND_... */

#endif
