/* SPDX-License-Identifier: MIT */
/*
 * late_copies_test.c - copies of an ask come late, when its hold is already renewed otherwise, or lost
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

enum { COMMAND_MS = 1500, LEASE_MS = 8000 };

static struct proxy *p;
static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    p = proxy_begin(w);
    orders = world_mutex(w, proxy_client(p, "lease=8s&command_timeout=1500ms"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* from now on the server knows the scripts */
    assert_lk(0, lk_mutex_unlock(orders));
}

/* The server has a longer lease than its holder believes in, which looks first: what passes meanwhile is known. */
static void assert_longer_at_the_server(struct world *w)
{
    int64_t remaining_ms, began_ms = now_ms();
    assert_lk(0, lk_mutex_remaining(orders, &remaining_ms));
    int64_t left_ms = world_pttl(w, "orders");
    assert_true(left_ms + (now_ms() - began_ms) > remaining_ms);
}

/* Held by the second copy of an ask, while the first is still on its way. */
static void lock_with_a_copy_on_its_way(void)
{
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    assert_lk(0, lk_mutex_lock(orders));
}

/* The lease at the server never is shorter than what its holder believes: others would come in. */
static void a_copy_does_not_shorten_an_extended_lease(struct world *w)
{
    open_orders(w);
    lock_with_a_copy_on_its_way();
    int rc = lk_mutex_extend(orders, 3 * LEASE_MS);
    proxy_release(p);
    sleep_ms(100);
    assert_true(rc == 0 || rc == EIO || rc == ENOTCONN); /* it may have to wait until no copy can come */
    assert_longer_at_the_server(w);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Likewise with a copy of what was locked a second time. */
static void a_copy_of_a_nested_lock_does_not_either(struct world *w)
{
    open_orders(w);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders)); /* the server knows this script, too */
    assert_lk(0, lk_mutex_unlock(orders));
    lock_with_a_copy_on_its_way();
    int rc = lk_mutex_extend(orders, 3 * LEASE_MS);
    proxy_release(p);
    sleep_ms(100);
    assert_true(rc == 0 || rc == EIO || rc == ENOTCONN);
    assert_longer_at_the_server(w);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A hold that was lost is not there again because of a copy, for a lease that nobody would end. */
static void a_copy_does_not_bring_back_a_lost_hold(struct world *w)
{
    open_orders(w);
    lock_with_a_copy_on_its_way();
    world_int(w, "DEL orders");
    assert_lk(ESTALE, lk_mutex_check(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    proxy_release(p);
    sleep_ms(100);
    eventually(!world_exists(w, "orders"), 2 * COMMAND_MS); /* a lease is much longer */
}

/*
 * A connection that came up slowly knows the server's clock badly, so its requests have a late deadline. A copy that
 * takes the mutex is given back long before that: nobody else gets the mutex meanwhile.
 */
static void a_copy_of_a_slow_connection_is_given_back_soon(struct world *w)
{
    enum { SHORT_MS = 200, SLOW_MS = 2000 };
    p = proxy_begin(w);
    lk_mutex_t *rival = world_mutex(w, world_client(w, "lease=20s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(rival));
    proxy_delay(p, SLOW_MS);
    orders = world_mutex(w, proxy_client(p, "lease=20s&command_timeout=200ms&connect_timeout=10s"), "orders", NULL);
    proxy_delay(p, 0);
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    assert_lk(EIO, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_unlock(rival));
    sleep_ms(SHORT_MS / 2); /* the first release is there by then */
    proxy_release(p);
    eventually(world_exists(w, "orders"), SHORT_MS);
    eventually(!world_exists(w, "orders"), 2 * SHORT_MS);
    sleep_ms(2 * SLOW_MS); /* a close before the deadline returns EIO */
}

int main(void)
{
    return world_run(a_copy_does_not_shorten_an_extended_lease, a_copy_of_a_nested_lock_does_not_either,
                     a_copy_does_not_bring_back_a_lost_hold, a_copy_of_a_slow_connection_is_given_back_soon);
}
