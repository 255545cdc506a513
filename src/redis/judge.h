/* SPDX-License-Identifier: MIT */
/*
 * judge.h - what a server's answer means for the request that it answers: the one place that tells errors apart
 */
#ifndef LK__JUDGE_H
#define LK__JUDGE_H

#include "redis/node.h"

enum lk__ruling {
    LK__ANSWER, /* no error: its script says the rest */
    LK__AGAIN,  /* nothing was done: it is sent again at once, to where lk__node_for() says now */
    LK__PASSES, /* nothing was done, or a part: it is sent again after a pause */
    LK__REFUSED /* the same would be said again */
};

/* How a request names its script: by its SHA1, or by its text. ASKING stands before one that an ASK sent elsewhere. */
enum lk__manner { LK__BY_SHA1, LK__BY_TEXT, LK__BY_ASKING };

struct lk__judged {
    enum lk__ruling ruling;
    enum lk__manner manner; /* of AGAIN: how it goes */
    int code;               /* of PASSES and REFUSED: what the request ends with, if that is its end */
    bool elsewhere;         /* of AGAIN and PASSES: another node has the key */
    bool half;              /* of PASSES and REFUSED: a part may have been done */
    bool scattered;         /* of PASSES: the cluster moves some of its keys */
    bool wrong_type;        /* of REFUSED: a key is of another type */
    bool no_master;         /* of PASSES: the server became a replica */
};

/* So often in a row a request may be told to go elsewhere. Then the ruling is PASSES, as for a node not met yet. */
enum { LK__HOPS_MAX = 5 };

/*
 * `at` answered `request`, which went `as_text` or not. Keeps in the request how often it was told to go elsewhere, and
 * whether it is to go with ASKING. Takes no lock of a connection.
 */
struct lk__judged lk__judge(struct lk__node *at, struct lk__request *request, const struct lk__reply *reply, bool as_text);

/*
 * Judge a request by the copy of its answer. The lane is made anew if the server is no master any more, because that finds
 * the master. Not under the lock of a connection.
 */
struct lk__judged lk__node_judge(struct lk__node *at, enum lk__lane lane, struct lk__request *request, bool as_text);
/* Have the lane made anew if the ruling says that the server is no master: after lk__judge(), which cannot do so. */
void lk__node_leavereplica(struct lk__node *at, enum lk__lane lane, const struct lk__request *request,
                           const struct lk__judged *judged);

/* Set the error text of a ruling, with the key where access rules do not cover it. Returns the ruling's code. */
int lk__judged_fail(const struct lk__judged *judged, const char *what, const struct lk__command *command,
                    const struct lk__reply *reply);

#endif
