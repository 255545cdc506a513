/* SPDX-License-Identifier: MIT */
/*
 * sentinels.h - what Redis Sentinels say of where the master is
 *
 * Each Sentinel of the options is asked once when it is reached: which address the master has, and the number of the
 * failover that gave it to it (its configuration epoch). From then on it is heard: it publishes when that changes, and is
 * asked again. What was said with the highest number holds, so that a Sentinel that is cut off from the others leads
 * nobody back. If no master is there, all are asked anew, and then a place counts that most of them say. Those that are
 * not in the options are not learned of: they may be out of reach, and nobody trusts them yet.
 *
 * All of it is for the connector's thread alone.
 */
#ifndef LK__SENTINELS_H
#define LK__SENTINELS_H

#include "redis/connection.h"

struct lk__sentinels;

int lk__sentinels_new(struct lk__sentinels **sentinels, struct lk__connector *connector, struct lk__server *server);
void lk__sentinels_free(struct lk__sentinels *sentinels);

/* Readable when the connector is stopped, or a Sentinel says something: look again where the master is. */
int lk__sentinels_newsfd(const struct lk__sentinels *sentinels);
/* To be set when the connector's thread is to leave lk__sentinels_watch(). */
int lk__sentinels_wakefd(const struct lk__sentinels *sentinels);

/* A search begins. */
void lk__sentinels_search(struct lk__sentinels *sentinels);
/*
 * Where the master is, as far as is known and was not told in this search: `place` is good until the next call. Asks those
 * who may know more. With words ENOTCONN or what their refusal is if nobody knows, ECANCELED.
 */
int lk__sentinels_next(struct lk__sentinels *sentinels, int64_t until_us, const struct lk__address **place,
                       char *errmsg, size_t size);
void lk__sentinels_found(struct lk__sentinels *sentinels); /* the master is where that told */
bool lk__sentinels_agree(const struct lk__sentinels *sentinels); /* all of them say that place */

/*
 * Hear what they say until `until_us`, or the wake-up; those that are down are tried anew meanwhile. When the master is
 * elsewhere, all connections are made anew.
 */
void lk__sentinels_watch(struct lk__sentinels *sentinels, int64_t until_us);

#endif
