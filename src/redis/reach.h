/* SPDX-License-Identifier: MIT */
/* reach.h - a connection to one place, on which nothing was said yet */
#ifndef LK__REACH_H
#define LK__REACH_H

#include "redis/connection.h"

/*
 * By the connector's thread: to `address`, or to the unix socket of the options if that is NULL. It is resolved, connected,
 * and secured if there is TLS.
 *
 * Returns 0, or with words: ENOTCONN, EINVAL, EACCES, ENOMEM, ECANCELED. If the connector was stopped meanwhile, that is
 * ECANCELED, and neither `server` nor `address` may be touched any more.
 */
int lk__reach(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
              int64_t until_us, int cancel_fd, struct lk__stream **stream, char *errmsg, size_t size);

/* The server answered there: it is looked for there if the resolver fails, but where there are several. */
void lk__reach_remember(struct lk__server *server, const struct lk__stream *stream);

#endif
