/* SPDX-License-Identifier: MIT */
/*
 * node.c - a server node: the server, and a connection for each kind of traffic
 */
#include "redis/node.h"

static const struct {
    const char *what;
    unsigned places;
} traffic[LK__LANES] = {
    [LK__LANE_RENEWALS] = { "watchdog", LK__RENEWALS_MAX },
    [LK__LANE_COMMANDS] = { "command", LK__COMMANDS_MAX },
    [LK__LANE_MESSAGES] = { "subscription", 0 },
};

int lk__node_init(struct lk__node *node, struct lk__connector *connector, struct lk__options *options)
{
    node->server = (struct lk__server){ .options = *options };
    for (int lane = 0; lane < LK__LANES; lane++) {
        struct lk__conn *conn = &node->lanes[lane];
        int rc = lk__conn_init(conn, connector, &node->server, traffic[lane].what, traffic[lane].places);
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
                  void (*message)(void *arg, const struct lk__reply *reply), void *arg)
{
    struct lk__conn *conn = &node->lanes[lane];
    conn->owner_wake_fd = wake_fd;
    conn->message = message;
    conn->arg = arg;
}

/* --- any lane ----------------------------------------------------------------------------------------------- */

void lk__node_want(struct lk__node *node, enum lk__lane lane)
{
    lk__conn_want(&node->lanes[lane]);
}

void lk__node_close(struct lk__node *node, enum lk__lane lane)
{
    lk__conn_close(&node->lanes[lane]);
}

void lk__node_reset(struct lk__node *node, enum lk__lane lane, const char *why)
{
    lk__conn_reset(&node->lanes[lane], why);
}

bool lk__node_isup(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_isup(&node->lanes[lane]);
}

unsigned lk__node_failures(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_failures(&node->lanes[lane]);
}

unsigned long long lk__node_connects(struct lk__node *node, enum lk__lane lane)
{
    return atomic_load(&node->lanes[lane].connects);
}

int lk__node_send(struct lk__node *node, enum lk__lane lane, struct lk__request *request,
                  const struct lk__command *command, const struct lk__sent *sent, bool eval)
{
    struct lk__conn *conn = &node->lanes[lane];
    int rc = lk__conn_send(conn, request, command, sent, eval);
    if (rc == ESTALE) {
        struct lk__sent redated = *sent;
        int64_t now_us = lk__now_us();
        if (lk__sent_redate(&redated, lk__conn_until(conn, now_us, 0).date, now_us))
            rc = lk__conn_send(conn, request, command, &redated, eval);
    }
    return rc == ESTALE ? ENOTCONN : rc;
}

void lk__node_abandon(struct lk__node *node, enum lk__lane lane, struct lk__request *request)
{
    lk__conn_abandon(&node->lanes[lane], request);
}

void lk__node_serve(struct lk__node *node, enum lk__lane lane, struct pollfd *extra, int extra_count, int64_t until_us)
{
    lk__conn_serve(&node->lanes[lane], extra, extra_count, until_us);
}

struct lk__until lk__node_until(struct lk__node *node, enum lk__lane lane, int64_t now_us, int64_t lasts_us)
{
    return lk__conn_until(&node->lanes[lane], now_us, lasts_us);
}

unsigned lk__node_epoch(struct lk__node *node, enum lk__lane lane)
{
    return lk__conn_until(&node->lanes[lane], 0, 0).date.epoch;
}

/* --- commands ----------------------------------------------------------------------------------------------- */

bool lk__node_await(struct lk__node *node, struct lk__request *request, int64_t until_us)
{
    return lk__conn_await(&node->lanes[LK__LANE_COMMANDS], request, until_us);
}

void lk__node_look(struct lk__node *node, struct lk__request *request)
{
    lk__conn_look(&node->lanes[LK__LANE_COMMANDS], request);
}

int lk__node_awaitup(struct lk__node *node, struct lk__parker *parker, unsigned failures, int64_t until_us)
{
    return lk__conn_awaitup(&node->lanes[LK__LANE_COMMANDS], parker, failures, until_us);
}

int lk__node_awaitopen(struct lk__node *node, struct lk__parker *parker, unsigned failures, int64_t until_us,
                       int cancel_state)
{
    return lk__conn_awaitopen(&node->lanes[LK__LANE_COMMANDS], parker, failures, until_us, cancel_state);
}

int64_t lk__node_ended(struct lk__node *node)
{
    return lk__conn_ended(&node->lanes[LK__LANE_COMMANDS]);
}

int lk__node_lasterror(struct lk__node *node, char *errmsg, size_t size)
{
    return lk__conn_lasterror(&node->lanes[LK__LANE_COMMANDS], errmsg, size);
}

/* --- messages ----------------------------------------------------------------------------------------------- */

int lk__node_post(struct lk__node *node, unsigned long long connects, const char *bytes, size_t length)
{
    return lk__conn_post(&node->lanes[LK__LANE_MESSAGES], connects, bytes, length);
}

void lk__node_serves(struct lk__node *node)
{
    lk__conn_serves(&node->lanes[LK__LANE_MESSAGES]);
}

/* --- statistics --------------------------------------------------------------------------------------------- */

struct lk__nodestats lk__node_stats(const struct lk__node *node)
{
    struct lk__nodestats stats = { .connects = atomic_load(&node->lanes[LK__LANE_COMMANDS].connects) };
    for (int lane = 0; lane < LK__LANES; lane++) {
        stats.round_trips += atomic_load(&node->lanes[lane].round_trips);
        stats.reloads += atomic_load(&node->lanes[lane].reloads);
    }
    return stats;
}
