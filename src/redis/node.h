/* SPDX-License-Identifier: MIT */
/*
 * node.h - a server node: all that a client has to do with one server
 *
 * The rooms above name nodes and never a connection. A node has three lanes, each a connection of its own: a slow
 * command does not hold up a renewal, and a connection that subscribed answers no commands.
 */
#ifndef LK__NODE_H
#define LK__NODE_H

#include "redis/connection.h"

/* In the order in which they are brought up: leases end, callers wait, waiters poll. */
enum lk__lane { LK__LANE_RENEWALS, LK__LANE_COMMANDS, LK__LANE_MESSAGES, LK__LANES };

/* Requests of a lane that may be under way at once, powers of two; one is kept for an ECHO. */
enum { LK__RENEWALS_LEAST = 64, LK__RENEWALS_MAX = 4096, LK__COMMANDS_MAX = 1024 };

struct lk__node {
    struct lk__server server;
    struct lk__conn lanes[LK__LANES];
};

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
 * cluster they would have to be of one slot, and so it would be one.
 */
static inline unsigned lk__node_batch(const struct lk__node *node)
{
    (void)node;
    return LK__BATCH_MAX;
}

/* Takes what `options` holds, on success only. Nothing is brought up before it is wanted. 0 or ENOMEM. */
int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options);
void lk__node_destroy(struct lk__node *node); /* its lanes are closed, and no thread uses them */

/*
 * A thread of its own serves this lane, and looks at it when `wake_fd`, an eventfd, says so. `message`: NULL, or
 * hears what answers no request. Before the lane is wanted.
 */
void lk__node_own(struct lk__node *node, enum lk__lane lane, int wake_fd,
                  void (*message)(void *arg, unsigned long long connects, const struct lk__reply *reply), void *arg);

/* Each of these is what lk__conn_...() of that lane says. */

static inline void lk__node_want(struct lk__node *node, enum lk__lane lane)
{
    lk__conn_want(&node->lanes[lane]);
}

static inline int lk__node_reserve(struct lk__node *node, enum lk__lane lane, unsigned capacity)
{
    return lk__conn_reserve(&node->lanes[lane], capacity);
}

static inline void lk__node_close(struct lk__node *node, enum lk__lane lane)
{
    lk__conn_close(&node->lanes[lane]);
}

static inline void lk__node_reset(struct lk__node *node, enum lk__lane lane, const char *why)
{
    lk__conn_reset(&node->lanes[lane], why);
}

static inline bool lk__node_isup(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_isup(&node->lanes[lane]);
}

static inline unsigned lk__node_failures(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_failures(&node->lanes[lane]);
}

static inline unsigned long long lk__node_connects(struct lk__node *node, enum lk__lane lane)
{
    return atomic_load(&node->lanes[lane].connects);
}

static inline int lk__node_send(struct lk__node *node, enum lk__lane lane, struct lk__request *request,
                                const struct lk__command *command, const struct lk__sent *sent, bool eval)
{
    return lk__conn_send(&node->lanes[lane], request, command, sent, eval);
}

static inline void lk__node_abandon(struct lk__node *node, enum lk__lane lane, struct lk__request *request)
{
    lk__conn_abandon(&node->lanes[lane], request);
}

static inline void lk__node_serve(struct lk__node *node, enum lk__lane lane, struct pollfd *extra, int extra_count,
                                  int64_t until_us, bool expects)
{
    lk__conn_serve(&node->lanes[lane], extra, extra_count, until_us, expects);
}

static inline struct lk__until lk__node_until(struct lk__node *node, enum lk__lane lane, int64_t now_us,
                                              int64_t lasts_us)
{
    return lk__conn_until(&node->lanes[lane], now_us, lasts_us);
}

/* Of the server that this lane last went to. */
static inline unsigned lk__node_epoch(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_until(&node->lanes[lane], 0, 0).date.epoch;
}

/* The same of the lane for commands, which has no thread of its own. */

static inline bool lk__node_await(struct lk__node *node, struct lk__request *request, int64_t until_us)
{
    return lk__conn_await(&node->lanes[LK__LANE_COMMANDS], request, until_us);
}

static inline void lk__node_look(struct lk__node *node, struct lk__request *request)
{
    lk__conn_look(&node->lanes[LK__LANE_COMMANDS], request);
}

static inline int lk__node_awaitup(struct lk__node *node, struct lk__parker *parker, unsigned failures,
                                   int64_t until_us)
{
    return lk__conn_awaitup(&node->lanes[LK__LANE_COMMANDS], parker, failures, until_us);
}

static inline int lk__node_awaitopen(struct lk__node *node, struct lk__parker *parker, unsigned failures,
                                     int64_t until_us, int cancel_state)
{
    return lk__conn_awaitopen(&node->lanes[LK__LANE_COMMANDS], parker, failures, until_us, cancel_state);
}

static inline int64_t lk__node_ended(struct lk__node *node)
{
    return lk__conn_ended(&node->lanes[LK__LANE_COMMANDS]);
}

static inline int lk__node_lasterror(struct lk__node *node, char *errmsg, size_t size)
{
    return lk__conn_lasterror(&node->lanes[LK__LANE_COMMANDS], errmsg, size);
}

/* The same of the lane for messages. */

static inline int lk__node_post(struct lk__node *node, unsigned long long connects, const char *bytes, size_t length)
{
    return lk__conn_post(&node->lanes[LK__LANE_MESSAGES], connects, bytes, length);
}

static inline void lk__node_serves(struct lk__node *node)
{
    lk__conn_serves(&node->lanes[LK__LANE_MESSAGES]);
}

static inline unsigned lk__node_listen(struct lk__node *node, struct lk__parker *parker, int64_t until_us,
                                       int cancel_state)
{
    return lk__conn_listen(&node->lanes[LK__LANE_MESSAGES], parker, until_us, cancel_state);
}

/* Of all that waited for an answer since the beginning. */
struct lk__nodestats {
    unsigned long long connects; /* of the lane for commands */
    unsigned long long round_trips, reloads;
};
struct lk__nodestats lk__node_stats(const struct lk__node *node);

#endif
