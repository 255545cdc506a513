/* SPDX-License-Identifier: MIT */
/*
 * stalled_server_test.c - a server that stops answering delays calls by what was promised, and no more
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

enum { COMMAND_MS = 400 };

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

/* A wait outlasts a stall that is longer than a command may take, whether it had begun before or begins in it. */
static void a_wait_outlasts_a_stall(struct world *w)
{
    struct worker early, late;
    open_orders(w, "lease=5s&command_timeout=400ms&poll=300ms");
    world_redis(w, "HSET orders somebody:1 1");
    worker_start(&early, lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    world_stop_server(w);
    worker_start(&late, lock_and_unlock, orders);
    sleep_ms(3 * COMMAND_MS);
    world_cont_server(w);
    world_redis(w, "DEL orders");
    int64_t began_ms = now_ms();
    assert_int_equal(0, worker_join(&early));
    assert_int_equal(0, worker_join(&late));
    assert_between(now_ms() - began_ms, 0, 3000);
    assert_int_equal(0, world_queued(w, "orders"));
}

/* A limit holds against a stalled server too: it and one command timeout. What was sent is not called "not held". */
static void a_limit_holds_in_a_stall(struct world *w)
{
    open_orders(w, "lease=5s&command_timeout=400ms");
    world_stop_server(w);
    for (int i = 0; i < 3; i++) {
        static const int64_t limits_ms[] = { 1, 100, 600 };
        int64_t began_ms = now_ms();
        int code = lk_mutex_lockfor(orders, limits_ms[i]);
        assert_true(code == EIO || code == ENOTCONN);
        assert_between(now_ms() - began_ms, 0, limits_ms[i] + COMMAND_MS + SLACK_MS);
        assert_lk(EPERM, lk_mutex_unlock(orders));
    }
    world_cont_server(w);
    /* What the server did late is undone by the library, long before any lease ends. */
    assert_lk(0, lk_mutex_lockfor(orders, 3000));
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(!world_exists(w, "orders"), 2000);
    sleep_ms(3 * COMMAND_MS); /* until no copy of a request can come any more, and the library knows it */
}

/* An unlock nobody confirmed is EIO, takes one command timeout, and is finished in the background. */
static void an_unlock_in_a_stall_is_finished_later(struct world *w)
{
    open_orders(w, "lease=20s&command_timeout=400ms");
    assert_lk(0, lk_mutex_lock(orders));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    int code = lk_mutex_unlock(orders);
    assert_true(code == EIO || code == ENOTCONN);
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
    assert_lk(EPERM, lk_mutex_unlock(orders));
    world_cont_server(w);
    eventually(!world_exists(w, "orders"), 3000);
}

/* A program that wants to end ends, and is told that something ends with its lease instead. */
static void a_close_in_a_stall_returns_in_time(struct world *w)
{
    open_orders(w, "lease=2s&command_timeout=400ms");
    assert_lk(0, lk_mutex_lock(orders));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_lk(EIO, close_by_hand(w, client));
    assert_between(now_ms() - began_ms, 0, 2 * COMMAND_MS + SLACK_MS);
    world_close(w, orders);
    world_cont_server(w);
    eventually(!world_exists(w, "orders"), 2000 + SLACK_MS);
}

/* Questions about one's own hold need no server. */
static void a_holder_knows_in_a_stall(struct world *w)
{
    uint64_t token;
    int64_t left_ms, began_ms;
    open_orders(w, "lease=2s");
    assert_lk(0, lk_mutex_lock(orders));
    world_stop_server(w);
    began_ms = now_ms();
    assert_lk(0, lk_mutex_token(orders, &token));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(now_ms() - began_ms, 0, SLACK_MS);
    eventually(lk_mutex_remaining(orders, &left_ms) == ESTALE, 2000 + SLACK_MS);
    assert_lk(ESTALE, lk_mutex_token(orders, &token));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    world_cont_server(w);
}

int main(void)
{
    return world_run(a_wait_outlasts_a_stall, a_limit_holds_in_a_stall, an_unlock_in_a_stall_is_finished_later,
                     a_close_in_a_stall_returns_in_time, a_holder_knows_in_a_stall);
}
