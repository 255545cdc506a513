/* SPDX-License-Identifier: MIT */
/*
 * judge.h - what a server's answer means for the request that it answers: the one place that tells errors apart
 */
#ifndef LK__JUDGE_H
#define LK__JUDGE_H

#include "redis/node.h"

/* So often in a row a request may be told to go elsewhere. Then the ruling is PASSES, as for a node not met yet. */
enum { LK__HOPS_MAX = 5 };

enum { LK__SAYS_MAX = 192 /* of an error's words, room enough */ };

/* Its answer is judged when it comes, and copied into `reply`; each may be NULL. `parker`: where its thread waits. */
void lk__request_init(struct lk__request *request, struct lk__parker *parker, struct lk__reply *reply);

/* What an error of `at` means, also of a subscription. A cluster's map follows it. Takes no lock of a connection. */
struct lk__judged lk__judge_error(struct lk__node *at, const struct lk__reply *error);

/*
 * The take() of all requests: judge the answer. Keeps in the request what it means, how it goes next, and how often it
 * was told to go elsewhere. Takes no lock of a connection.
 */
void lk__request_take(struct lk__request *request, const struct lk__reply *reply);

/*
 * What became of a request that is in flight no longer, to be called once. Its connection is made anew if the server is
 * no master any more, because that finds the master. Not under the lock of a connection.
 */
const struct lk__judged *lk__request_over(struct lk__request *request);

/* Set the error text of a ruling, with the key where access rules do not cover it. Returns the ruling's code. */
int lk__judged_fail(const struct lk__judged *judged, const char *what, const struct lk__command *command,
                    const char *says);

#endif
