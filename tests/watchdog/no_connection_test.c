/* SPDX-License-Identifier: MIT */
/*
 * no_connection_test.c - the watchdog cannot have a connection of its own: the callers' carries its renewals
 *
 * labels: threads memory
 * simulated: yes
 */
#include "client/client.h"
#include "news.h"

enum { LEASE_MS = 2400 };

static lk_client_t *client;
static lk_mutex_t *orders;
static struct news orders_news;

static void open_full(struct world *w)
{
    world_int(w, "DBSIZE"); /* the test's own connection is there */
    client = world_client(w, "lease=2400ms&command_timeout=780ms");
    world_redis(w, "CONFIG SET maxclients %d", (int)world_counter(w, "connected_clients"));
    news_listen(&orders_news, client, "orders");
    orders = world_mutex(w, client, "orders", NULL);
}

static void close_full(struct world *w)
{
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, world_holds(w, "orders") + 1);
    world_redis(w, "CONFIG SET maxclients 1000");
    world_close(w, client);
}

/* The server takes no more clients after this one: what it grants is held on, and nobody is alarmed. */
static void a_hold_is_renewed(struct world *w)
{
    int64_t left_ms;
    open_full(w);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < 3; i++) {
        sleep_ms(LEASE_MS / 2);
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    }
    assert_lk(0, lk_mutex_check(orders));
    assert_int_equal(0, news(&orders_news, LK_EVENT_LOST));
    assert_lk(0, lk_mutex_extend(orders, 3 * LEASE_MS));
    assert_true(world_pttl(w, "orders") > LEASE_MS);
    close_full(w);
}

/* Renewals go to the own connection as soon as there is one. */
static void the_own_connection_is_used_when_there_is_one(struct world *w)
{
    int64_t left_ms;
    open_full(w);
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(LEASE_MS);
    world_redis(w, "CONFIG SET maxclients 1000");
    eventually(lk__conn_isup(&client->node.lanes[LK__LANE_RENEWALS]), 5000);
    unsigned long long before = atomic_load(&client->node.lanes[LK__LANE_RENEWALS].round_trips);
    eventually(atomic_load(&client->node.lanes[LK__LANE_RENEWALS].round_trips) > before, 5000);
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_int_equal(0, news(&orders_news, LK_EVENT_LOST));
    close_full(w);
}

static int lock_in_a_loop(void *arg)
{
    lk_mutex_t *m = arg;
    int rc = 0;
    for (int64_t until_ms = now_ms() + LEASE_MS * 3 / 2; rc == 0 && now_ms() < until_ms;) {
        rc = lk_mutex_lock(m);
        if (rc == 0)
            rc = lk_mutex_unlock(m);
    }
    return rc;
}

/* Beside callers who read and write the same connection all the time. */
static void callers_and_renewals_share_it(struct world *w)
{
    enum { BUSY = 3 };
    static const char *const names[BUSY] = { "a", "b", "c" };
    struct worker workers[BUSY];
    lk_mutex_t *busy[BUSY];
    int64_t left_ms;
    open_full(w);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < BUSY; i++) {
        busy[i] = world_mutex(w, client, names[i], NULL);
        worker_start(&workers[i], lock_in_a_loop, busy[i]);
    }
    for (int i = 0; i < BUSY; i++) {
        assert_int_equal(0, worker_join(&workers[i]));
        world_close(w, busy[i]);
    }
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_int_equal(0, news(&orders_news, LK_EVENT_LOST));
    close_full(w);
}

int main(void)
{
    return world_run(a_hold_is_renewed, the_own_connection_is_used_when_there_is_one, callers_and_renewals_share_it);
}
