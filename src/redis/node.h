/* SPDX-License-Identifier: MIT */
/*
 * node.h - a server node: all that a client has to do with one server
 *
 * The rooms above name a node and a lane of it, and a request knows its connection. A node has three lanes, each a
 * connection of its own: a slow command does not hold up a renewal, and a connection that subscribed answers no commands.
 * With wait_replicas there is a fourth one, as what stands behind a WAIT is not even read: see answers.c.
 *
 * They have one node, which is the server, or the way into a cluster. Who sends a command asks that one each time which
 * node it goes to.
 */
#ifndef LK__NODE_H
#define LK__NODE_H

#include "redis/cluster.h"

/*
 * In the order in which they are brought up: leases end, callers wait, waiters poll. The last one is for grants that
 * replicas are to acknowledge, and is there only if they are; so are renewals then, on theirs.
 */
enum lk__lane { LK__LANE_RENEWALS, LK__LANE_COMMANDS, LK__LANE_MESSAGES, LK__LANE_GRANTS, LK__LANES };

/* Requests of a lane that may be under way at once, a power of two; one is kept for an ECHO. */
enum { LK__REQUESTS_MAX = 1024 };

/* Requests of the watchdog on a lane of a node: its own, under its mutex. */
struct lk__flight {
    struct lk__link requests; /* the oldest first */
    size_t bytes;
    unsigned count;
};

/* What it has under way with a node. */
struct lk__underway {
    struct lk__flight own, beside;    /* on the lane for renewals, and on the one of the callers */
    enum lk__lane lane;               /* where the next one goes */
    bool unsent;                      /* some renewal found neither lane up */
    unsigned long long connects_seen; /* the watchdog's thread only */
    unsigned epoch;                   /* of the server that the lane for renewals is up to, or was; 0: none yet */
};

struct lk__node {
    struct lk__server server;
    struct lk__conn lanes[LK__LANES];
    int lane_count;              /* of those that are there */
    struct lk__cluster *cluster; /* NULL: it is a server by itself; else one of its nodes, or the way to them */
    struct lk__underway underway;
    atomic_ullong taught;  /* of a quorum: by which connection for commands it was sent the text of an acquire; see ballot.c */
    atomic_ullong absence; /* that the log was told of: how often the lane for commands had come up by then, and 1 */
};

/* Is it the way into a cluster, and not one of its nodes? */
static inline bool lk__node_isway(const struct lk__node *node)
{
    return node->cluster != NULL && node->server.doubt == NULL;
}

/* The node that a command goes to; `asking`: as the last ASK said. */
static inline struct lk__node *lk__node_for(struct lk__node *way, const struct lk__command *command, bool asking)
{
    return way->cluster == NULL ? way : lk__cluster_node(way->cluster, command, asking);
}

static inline struct lk__node *lk__node_forkey(struct lk__node *way, const char *key, size_t length)
{
    return way->cluster == NULL ? way : lk__cluster_nodeforkey(way->cluster, key, length);
}

/* Which one of a cluster it is, from 1 on, and 0 for a server by itself; and whose epoch that is. */
enum { LK__EPOCHS_BITS = 20 };

static inline unsigned lk__node_numberof(unsigned epoch)
{
    return epoch >> LK__EPOCHS_BITS;
}

static inline unsigned lk__node_number(const struct lk__node *node)
{
    return lk__node_numberof(node->server.first_epoch);
}

/* The n-th of all nodes behind `way`, NULL: there are no more. */
static inline struct lk__node *lk__node_nth(struct lk__node *way, unsigned n)
{
    if (way->cluster != NULL)
        return lk__cluster_nth(way->cluster, n);
    return n == 0 ? way : NULL;
}

/*
 * A node decides how messages are published and heard, of Redisson's channels as of our own: a server by itself has plain
 * ones, as Redisson has there. Scripts and the hub take the commands for it from here.
 */
static inline const struct lk__pubsub *lk__node_pubsub(const struct lk__node *node)
{
    return &lk__pubsub[node->server.pubsub];
}

/*
 * A node also decides how many keys a script may have that are of several objects: a server by itself takes any. In a
 * cluster they would have to be of one slot, and so it is one.
 */
static inline unsigned lk__node_batch(const struct lk__node *node)
{
    return node->cluster == NULL ? LK__BATCH_MAX : 1;
}

/* Takes what `options` holds, on success only. Nothing is brought up before it is wanted. 0 or ENOMEM. */
int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options);
void lk__node_destroy(struct lk__node *node); /* its lanes are closed, and no thread uses them */

/*
 * Write where it is, as lk__options_print(), and take what the server there told: NULL, or the caller's to free. For any thread:
 * a cluster's node may become that of another address meanwhile, so the two are read together.
 */
struct lk__survey *lk__node_survey(struct lk__node *node, char *where, size_t size);

/*
 * A thread of its own serves this lane, and looks at it when `wake_fd`, an eventfd, says so. `message`: NULL, or
 * hears what answers no request. Before the lane is wanted.
 */
void lk__node_own(struct lk__node *node, enum lk__lane lane, int wake_fd, lk__message_t *message, void *arg);
void lk__node_close(struct lk__node *node, enum lk__lane lane);
/*
 * lk__conn_serve() of that lane, which is brought up while it is down; one of a cluster's node is when something is sent
 * on it. `extra` are three at most.
 */
void lk__node_serve(struct lk__node *node, enum lk__lane lane, struct pollfd *extra, int extra_count, int64_t until_us);

/* Where a request was sent last. */
static inline struct lk__node *lk__request_node(const struct lk__request *request)
{
    return LK__CONTAINER(request->conn->server, struct lk__node, server);
}

static inline void lk__node_want(struct lk__node *node, enum lk__lane lane)
{
    if (!lk__node_isway(node))
        lk__conn_want(&node->lanes[lane]);
}

static inline unsigned long long lk__node_connects(struct lk__node *node, enum lk__lane lane)
{
    return atomic_load(&node->lanes[lane].connects);
}

/*
 * There is no connection for commands, and somebody is about to tell the log. True for the first of all who come until
 * there is one again.
 */
static inline bool lk__node_tellaway(struct lk__node *node)
{
    unsigned long long absence = lk__node_connects(node, LK__LANE_COMMANDS) + 1;
    return atomic_exchange(&node->absence, absence) != absence;
}

/* Of all that waited for an answer since the beginning. */
struct lk__nodestats {
    unsigned long long connects; /* of the lane for commands */
    unsigned long long round_trips, reloads;
};
struct lk__nodestats lk__node_stats(struct lk__node *node); /* of the way into a cluster: of all its nodes */

#endif
