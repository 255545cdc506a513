/* SPDX-License-Identifier: MIT */
/* clocks.h - do the clocks of servers that replace each other agree? */
#ifndef LK__CLOCKS_H
#define LK__CLOCKS_H

#include "redis/master.h"

/* By so much two differ at least; negative: the second one is behind. */
int64_t lk__clocks_differ(const struct lk__ahead *one, const struct lk__ahead *other);

/* `there_us` was read there between these two moments here. */
static inline struct lk__ahead lk__clocks_ahead(int64_t before_us, int64_t after_us, int64_t there_us)
{
    return (struct lk__ahead){ there_us - after_us, there_us - before_us };
}

/*
 * The master was found, and `stream` goes there: compare the clocks of those that may become the next one, the other
 * addresses or the master's replicas, as far as they answer soon. What differs by more than clock_skew is a warning in the
 * log; with strict=yes it is ENOTSUP, with words. 0; ECANCELED, ENOMEM as lk__reach().
 */
int lk__clocks_compare(const struct lk__search *search, struct lk__stream *stream, const struct lk__ahead *master,
                       char *errmsg, size_t size);

/*
 * The same of all nodes of a cluster, masters and replicas, as one at `host` tells of them in `nodes`, the answer to CLUSTER
 * NODES: each with those that are furthest ahead and behind.
 */
int lk__clocks_comparenodes(const struct lk__search *search, const char *nodes, const char *host, char *errmsg,
                            size_t size);

#endif
