/* SPDX-License-Identifier: MIT */
/*
 * node.c - a server node: the server, and a connection for each kind of traffic
 */
#include "redis/node.h"

static const struct {
    const char *what;
    unsigned capacity;
} traffic[LK__LANES] = {
    [LK__LANE_RENEWALS] = { "watchdog", LK__REQUESTS_MAX },
    [LK__LANE_COMMANDS] = { "command", LK__REQUESTS_MAX },
    [LK__LANE_MESSAGES] = { "subscription", 0 },
    [LK__LANE_GRANTS] = { "grants", LK__REQUESTS_MAX },
};

static void move(struct lk__server *server, unsigned epoch)
{
    struct lk__node *node = LK__CONTAINER(server, struct lk__node, server);
    for (int lane = 0; lane < node->lane_count; lane++)
        lk__conn_leave(&node->lanes[lane], epoch, "another server is the master now");
}

int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options)
{
    node->server = (struct lk__server){ .options = *options, .pubsub = LK__PUBSUB_PLAIN, .move = move };
    node->cluster = NULL;
    node->underway = (struct lk__underway){ 0 };
    node->absence = node->taught = 0;
    lk__list_init(&node->underway.own.requests);
    lk__list_init(&node->underway.beside.requests);
    node->lane_count = options->wait_replicas > 0 ? LK__LANES : LK__LANE_GRANTS;
    for (int lane = 0; lane < node->lane_count; lane++) {
        struct lk__conn *conn = &node->lanes[lane];
        int rc = lk__conn_init(conn, connector, &node->server, traffic[lane].what, traffic[lane].capacity);
        if (rc != 0) {
            while (lane-- > 0)
                lk__conn_destroy(&node->lanes[lane]);
            return rc;
        }
        conn->rank = lane;
        if (lane == LK__LANE_RENEWALS || lane == LK__LANE_GRANTS)
            conn->replicas = options->wait_replicas;
    }
    node->lanes[LK__LANE_COMMANDS].inspect = true;
    *options = (struct lk__options){ 0 };
    int rc = lk__connector_watch(connector, &node->server);
    if (rc != 0)
        lk__node_destroy(node);
    return rc;
}

void lk__node_destroy(struct lk__node *node)
{
    for (int lane = 0; lane < node->lane_count; lane++)
        lk__conn_destroy(&node->lanes[lane]);
    for (int peer = 0; peer < LK__PEERS; peer++) {
        lk__free(node->server.found[peer].user);
        lk__wipe(node->server.found[peer].password);
    }
    lk__survey_free(node->server.told);
    lk__options_clear(&node->server.options);
}

struct lk__survey *lk__node_survey(struct lk__node *node, char *where, size_t size)
{
    struct lk__connector *connector = node->lanes[0].connector;
    lk__mu_lock(&connector->mu);
    lk__options_print(&node->server.options, where, size);
    struct lk__survey *told = node->server.told;
    node->server.told = NULL;
    lk__mu_unlock(&connector->mu);
    return told;
}
