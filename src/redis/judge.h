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

struct lk__judged {
    enum lk__ruling ruling;
    int code;               /* of PASSES and REFUSED: what the request ends with, if that is its end */
    bool elsewhere;         /* of AGAIN and PASSES: another node has the key */
    bool half;              /* of PASSES and REFUSED: a part may have been done */
    bool scattered;         /* of PASSES: the cluster moves some of its keys */
    bool wrong_type;        /* of REFUSED: a key is of another type */
    bool no_master;         /* of PASSES: the server became a replica */
};

/* So often in a row a request may be told to go elsewhere. Then the ruling is PASSES, as for a node not met yet. */
enum { LK__HOPS_MAX = 5 };

/* Judge `reply`. Keeps in the request how it goes next, and how often it was told to go elsewhere. Takes no lock of a connection. */
struct lk__judged lk__judge(struct lk__request *request, const struct lk__reply *reply);

/*
 * Judge a request by the copy of its answer. Its connection is made anew if the server is no master any more, because that finds
 * the master. Not under the lock of a connection.
 */
struct lk__judged lk__request_judge(struct lk__request *request);
/* Have the connection made anew if the ruling says that the server is no master: after lk__judge(), which cannot do so. */
void lk__request_leavereplica(const struct lk__request *request, const struct lk__judged *judged);

/* Set the error text of a ruling, with the key where access rules do not cover it. Returns the ruling's code. */
int lk__judged_fail(const struct lk__judged *judged, const char *what, const struct lk__command *command,
                    const struct lk__reply *reply);

#endif
