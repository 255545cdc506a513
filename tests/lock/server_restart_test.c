/* SPDX-License-Identifier: MIT */
/*
 * server_restart_test.c - the server is killed and comes back, with its data or without
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

/* A server that kept its data kept the hold: a restart shorter than the lease is not noticed. */
static void a_hold_survives_a_restart_that_kept_the_data(void)
{
    struct world *w = world_begin("--appendonly yes --appendfsync always");
    uint64_t token, later;
    open_orders(w, "lease=5s&command_timeout=1600ms");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    world_kill_server(w);
    world_restart_server(w);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_token(orders, &later));
    assert_true(token == later);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &later));
    assert_true(token < later);
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, client);
    world_end(w);
}

/* A server that forgot everything forgot the hold: its holder learns that, and does not just take it again. */
static void a_forgotten_hold_is_lost_and_not_made_anew(struct world *w)
{
    int64_t left_ms;
    uint64_t token, later;
    open_orders(w, "lease=3s");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    world_kill_server(w);
    world_restart_server(w);
    eventually(lk_mutex_remaining(orders, &left_ms) == ESTALE, 2000 + SLACK_MS); /* by its own renewal */
    assert_false(world_exists(w, "orders"));
    assert_lk(ESTALE, lk_mutex_check(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &later));
    assert_true(token < later); /* although the server knows nothing of the first */
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Asked at once after the restart, before any renewal, the library does not claim what it cannot know. */
static void an_unlock_after_the_restart_tells_the_loss(struct world *w)
{
    open_orders(w, "lease=20s&command_timeout=5s"); /* it is called again after two seconds at the latest */
    assert_lk(0, lk_mutex_lock(orders));
    world_kill_server(w);
    world_restart_server(w);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlock(orders));
}

/* Waiting goes on while the server is away and after it came back empty. */
static void a_waiter_waits_across_a_restart(struct world *w)
{
    struct worker waiter;
    open_orders(w, "lease=3s");
    world_redis(w, "HSET orders somebody:1 1");
    worker_start(&waiter, lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    world_kill_server(w);
    sleep_ms(300);
    world_restart_server(w);
    int64_t began_ms = now_ms();
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 2500 + SLACK_MS);
}

int main(void)
{
    int failed = plain_run(a_hold_survives_a_restart_that_kept_the_data);
    return failed + world_run(a_forgotten_hold_is_lost_and_not_made_anew, an_unlock_after_the_restart_tells_the_loss,
                              a_waiter_waits_across_a_restart);
}
