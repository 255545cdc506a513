/* SPDX-License-Identifier: MIT */
/*
 * node.c - a server node: the server, and a connection for each kind of traffic
 */
#include "redis/node.h"

static const struct {
    const char *what;
    unsigned capacity;
} traffic[LK__LANES] = {
    [LK__LANE_RENEWALS] = { "watchdog", LK__RENEWALS_LEAST },
    [LK__LANE_COMMANDS] = { "command", LK__COMMANDS_MAX },
    [LK__LANE_MESSAGES] = { "subscription", 0 },
};

int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options)
{
    node->server = (struct lk__server){ .options = *options, .pubsub = LK__PUBSUB_PLAIN };
    for (int lane = 0; lane < LK__LANES; lane++) {
        struct lk__conn *conn = &node->lanes[lane];
        int rc = lk__conn_init(conn, connector, &node->server, traffic[lane].what, traffic[lane].capacity);
        if (rc != 0) {
            while (lane-- > 0)
                lk__conn_destroy(&node->lanes[lane]);
            return rc;
        }
        conn->rank = lane;
    }
    node->lanes[LK__LANE_COMMANDS].inspect = true;
    *options = (struct lk__options){ 0 };
    return 0;
}

void lk__node_destroy(struct lk__node *node)
{
    for (int lane = 0; lane < LK__LANES; lane++)
        lk__conn_destroy(&node->lanes[lane]);
    lk__options_clear(&node->server.options);
}

void lk__node_own(struct lk__node *node, enum lk__lane lane, int wake_fd,
                  void (*message)(void *arg, unsigned long long connects, const struct lk__reply *reply), void *arg)
{
    struct lk__conn *conn = &node->lanes[lane];
    conn->owner_wake_fd = wake_fd;
    conn->message = message;
    conn->arg = arg;
}

struct lk__nodestats lk__node_stats(const struct lk__node *node)
{
    struct lk__nodestats stats = { .connects = atomic_load(&node->lanes[LK__LANE_COMMANDS].connects) };
    for (int lane = 0; lane < LK__LANES; lane++) {
        stats.round_trips += atomic_load(&node->lanes[lane].round_trips);
        stats.reloads += atomic_load(&node->lanes[lane].reloads);
    }
    return stats;
}
