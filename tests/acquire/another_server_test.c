/* SPDX-License-Identifier: MIT */
/*
 * another_server_test.c - the connections of a client come up at another server than before
 *
 * Two servers are behind one address, which leads to the second one for whoever connects anew: as after a failover
 * that the network brings about. They know nothing of each other.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "client/client.h"
#include "proxy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=20s&poll=300ms&command_timeout=5s" /* a stall ends no connection */

static unsigned epoch_of(lk_client_t *client, enum lk__lane lane)
{
    return lk__conn_until(&client->node.lanes[lane], 0, 0).date.epoch;
}

/* As a release at that server would publish it, with a date of its clock. */
static void publish_grant(struct world *w, const char *waiter)
{
    char channel[64], grant[192];
    const char *time = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]";
    snprintf(channel, sizeof channel, "latchkey:client:%.32s", waiter);
    snprintf(grant, sizeof grant, "G %s %" PRId64 " 5000 4711 0", waiter, world_int(w, "EVAL %s 0", time));
    world_redis(w, "PUBLISH %s %s", channel, grant);
}

/* The subscription is at the second server, commands are at the first one: what the second one grants is a hint. */
static void a_grant_of_another_server_is_not_believed(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    world_redis(w, "PING"); /* its connection is there before the other world looks around */
    struct world *other = world_begin(NULL);
    struct worker waiter;
    char id[128];
    lk_client_t *client = proxy_client(p, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    world_redis(w, "HSET orders somebody:1 1");
    worker_start(&waiter, lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    snprintf(id, sizeof id, "%s", world_str(w, "ZRANGEBYSCORE latchkey:queue:mutex:{orders} -inf +inf LIMIT 0 1"));
    proxy_serve(p, other);
    world_killsubscriptions(w);
    eventually(world_elements(other, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    assert_int_equal(1, epoch_of(client, LK__LANE_COMMANDS));
    assert_int_equal(2, epoch_of(client, LK__LANE_MESSAGES));
    for (int i = 0; i < 5; i++) {
        publish_grant(other, id);
        sleep_ms(50);
    }
    assert_string_equal("somebody:1", world_owner(w, "orders"));
    assert_int_equal(1, world_queued(w, "orders")); /* it waits on */
    world_redis(w, "DEL orders");
    assert_int_equal(0, worker_join(&waiter));
    world_close(w, client);
    world_end(other);
}

/* A hold stands for what is left of its lease, wherever the connections are; who asks the server is told. */
static void a_hold_stands_until_the_server_is_asked(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    world_redis(w, "PING"); /* its connection is there before the other world looks around */
    struct world *other = world_begin(NULL);
    int64_t before_ms, after_ms;
    lk_client_t *client = proxy_client(p, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_remaining(orders, &before_ms));
    proxy_serve(p, other);
    proxy_cut(p);
    eventually(epoch_of(client, LK__LANE_RENEWALS) == 2, 5000);
    assert_lk(0, lk_mutex_remaining(orders, &after_ms));
    assert_between(before_ms - after_ms, 0, 5000);
    assert_lk(ESTALE, lk_mutex_check(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    world_redis(w, "DEL orders");
    world_close(w, client);
    world_end(other);
}

int main(void)
{
    return world_run(a_grant_of_another_server_is_not_believed, a_hold_stands_until_the_server_is_asked);
}
