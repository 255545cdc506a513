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
enum { LK__RENEWALS_MAX = 64, LK__COMMANDS_MAX = 1024 };

struct lk__node {
    struct lk__server server;
    struct lk__conn lanes[LK__LANES];
};

/* Takes what `options` holds, on success only. Nothing is brought up before it is wanted. 0 or ENOMEM. */
int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options);
void lk__node_destroy(struct lk__node *node); /* its lanes are closed, and no thread uses them */

/*
 * A thread of its own serves this lane, and looks at it when `wake_fd`, an eventfd, says so. `message`: NULL, or
 * hears what answers no request. Before the lane is wanted.
 */
void lk__node_own(struct lk__node *node, enum lk__lane lane, int wake_fd,
                  void (*message)(void *arg, const struct lk__reply *reply), void *arg);

/* Each of these is what lk__conn_...() of that lane says. */
void lk__node_want(struct lk__node *node, enum lk__lane lane);
void lk__node_close(struct lk__node *node, enum lk__lane lane);
void lk__node_reset(struct lk__node *node, enum lk__lane lane, const char *why);
bool lk__node_isup(struct lk__node *node, enum lk__lane lane);
unsigned lk__node_failures(struct lk__node *node, enum lk__lane lane);
unsigned long long lk__node_connects(struct lk__node *node, enum lk__lane lane);
/* Dates of another epoch are said anew, if they can be; else it is as if the lane were down: ENOTCONN. */
int lk__node_send(struct lk__node *node, enum lk__lane lane, struct lk__request *request,
                  const struct lk__command *command, const struct lk__sent *sent, bool eval);
void lk__node_abandon(struct lk__node *node, enum lk__lane lane, struct lk__request *request);
void lk__node_serve(struct lk__node *node, enum lk__lane lane, struct pollfd *extra, int extra_count, int64_t until_us);

/* The same of the lane for commands, which has no thread of its own. */
bool lk__node_await(struct lk__node *node, struct lk__request *request, int64_t until_us);
void lk__node_look(struct lk__node *node, struct lk__request *request);
int lk__node_awaitup(struct lk__node *node, struct lk__parker *parker, unsigned failures, int64_t until_us);
int lk__node_awaitopen(struct lk__node *node, struct lk__parker *parker, unsigned failures, int64_t until_us,
                       int cancel_state);
int64_t lk__node_ended(struct lk__node *node);
int lk__node_lasterror(struct lk__node *node, char *errmsg, size_t size);

/* The same of the lane for messages. */
int lk__node_post(struct lk__node *node, unsigned long long connects, const char *bytes, size_t length);
void lk__node_serves(struct lk__node *node);

struct lk__until lk__node_until(struct lk__node *node, enum lk__lane lane, int64_t now_us, int64_t lasts_us);
unsigned lk__node_epoch(struct lk__node *node, enum lk__lane lane); /* of the server that this lane last went to */

/* Of all that waited for an answer since the beginning. */
struct lk__nodestats {
    unsigned long long connects; /* of the lane for commands */
    unsigned long long round_trips, reloads;
};
struct lk__nodestats lk__node_stats(const struct lk__node *node);

#endif
