/* SPDX-License-Identifier: MIT */
/*
 * extend_test.c - setting a lease while the connection fails: the shorter one of what may be true counts
 *
 * labels: threads memory
 */
#include "proxy.h"

enum { COMMAND_MS = 200 };

static struct proxy *p;
static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    p = proxy_begin(w);
    client = proxy_client(p, "lease=2s&command_timeout=200ms");
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_extend(orders, 2000)); /* the watchdog's connection is up, its script is known */
}

static int64_t remaining(void)
{
    int64_t left_ms;
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    return left_ms;
}

/* The outcome is unknown: the validity is that of the shorter lease, and what the server has is no less. */
static void an_answer_is_lost(struct world *w)
{
    open_orders(w);
    proxy_once(p, PROXY_DROP_REPLY, 1, "orders");
    int64_t began_ms = now_ms();
    assert_lk(EIO, lk_mutex_extend(orders, 900));
    assert_between(now_ms() - began_ms, COMMAND_MS - 1, COMMAND_MS + SLACK_MS);
    assert_between(remaining(), 1, 900);
    int64_t left_ms = world_pttl(w, "orders"); /* asked first: asking takes time */
    assert_between(remaining(), 1, left_ms + 1);
    sleep_ms(1500); /* renewed with the lease that was asked for */
    assert_between(remaining(), 100, 900);
    assert_between(world_pttl(w, "orders"), 100, 900);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A longer lease whose request is still on its way must not come after the shorter one that followed it. */
static void a_copy_comes_late(struct world *w)
{
    open_orders(w);
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    int rc = lk_mutex_extend(orders, 5000); /* again on a new connection: it is the same request */
    assert_true(rc == 0 || rc == EIO);
    rc = lk_mutex_extend(orders, 700);
    assert_true(rc == 0 || rc == EIO || rc == ENOTCONN);
    proxy_release(p);
    sleep_ms(5 * COMMAND_MS);
    assert_between(remaining(), 1, 700);
    assert_between(world_pttl(w, "orders"), 1, 700);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Without a server nothing is sent, and the hold goes on as long as it has. */
static void there_is_no_server(struct world *w)
{
    open_orders(w);
    proxy_refuse(p, true);
    proxy_cut(p);
    sleep_ms(50);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_mutex_extend(orders, 5000));
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
    assert_between(remaining(), 1, 2000);
    proxy_refuse(p, false);
    eventually(world_pttl(w, "orders") > 3000, 3000); /* the renewals know it */
    assert_lk(0, lk_mutex_unlock(orders));
}

static int extend(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(orders);
    return rc != 0 ? rc : lk_mutex_extend(orders, 3000);
}

/* Its client is closed meanwhile. */
static void the_client_is_closed(struct world *w)
{
    struct worker worker;
    open_orders(w);
    assert_lk(0, lk_mutex_unlock(orders));
    proxy_delay(p, 60);
    worker_start(&worker, extend, NULL);
    eventually(world_exists(w, "orders"), 2000);
    sleep_ms(80); /* the lock is answered; the new lease is on its way */
    int64_t began_ms = now_ms();
    int rc = close_by_hand(w, client);
    assert_between(now_ms() - began_ms, 0, 3 * COMMAND_MS + SLACK_MS);
    assert_true(rc == 0 || rc == EIO);
    rc = worker_join(&worker);
    assert_true(rc == 0 || rc == ECANCELED || rc == EIO || rc == ENOTCONN);
    world_close(w, orders);
    proxy_end(p);
    eventually(!world_exists(w, "orders"), 4000);
}

int main(void)
{
    return world_run(an_answer_is_lost, a_copy_comes_late, there_is_no_server, the_client_is_closed);
}
