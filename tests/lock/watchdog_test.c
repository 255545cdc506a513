/* SPDX-License-Identifier: MIT */
/*
 * watchdog_test.c - a held mutex is renewed until it is unlocked
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 15
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

static lk_client_t *client;
static int lease_ms; /* over TLS nothing is simulated, and a busy machine takes its time */

static void open_clients(struct world *w)
{
    lease_ms = getenv("LATCHKEY_TEST_TLS") != NULL ? 3600 : 1800;
    client = world_client(w, lease_ms > 1800 ? "lease=3600ms&command_timeout=1150ms" : "lease=1800ms&command_timeout=580ms");
}

/* Work may take longer than a lease: the holder need not know how long. */
static void a_hold_outlives_its_lease_by_far(struct world *w)
{
    int64_t left_ms;
    open_clients(w);
    int64_t until_ms = now_ms() + 2 * lease_ms;
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    for (; now_ms() < until_ms; sleep_ms(20)) {
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
        assert_between(left_ms, 1, lease_ms);
        assert_between(world_pttl(w, "orders"), 1, lease_ms);
        assert_lk(EBUSY, lk_mutex_trylock(same_name));
    }
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* One thread renews for all: many holds cost none of them its lease. */
static void many_holds_are_all_renewed(struct world *w)
{
    enum { MANY = 200 };
    static lk_mutex_t *many[MANY];
    char name[16];
    open_clients(w);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "order-%d", i);
        many[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(many[i]));
    }
    sleep_ms(lease_ms * 3 / 2);
    for (int i = 0; i < MANY; i++) {
        assert_lk(0, lk_mutex_check(many[i]));
        assert_lk(0, lk_mutex_unlock(many[i]));
        world_close(w, many[i]);
    }
}

/* A renewal must not bring back what was unlocked, nor touch the next holder. */
static void after_the_unlock_nothing_is_renewed(struct world *w)
{
    open_clients(w);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    for (int i = 0; i < 20; i++) { /* unlocks at many moments of the renewal's rhythm */
        assert_lk(0, lk_mutex_lock(orders));
        sleep_ms(i % 10 * lease_ms / 30);
        assert_lk(0, lk_mutex_unlock(orders));
        assert_false(world_exists(w, "orders"));
    }
    world_redis(w, "HSET orders somebody:1 1");
    world_redis(w, "PEXPIRE orders %d", lease_ms);
    sleep_ms(lease_ms / 2);
    assert_between(world_pttl(w, "orders"), -2, lease_ms / 2);
    eventually(!world_exists(w, "orders"), 2 * lease_ms);
}

/* A lease on the server that was lengthened, cut or made endless by somebody is put right. */
static void a_renewal_repairs_the_lease(struct world *w)
{
    open_clients(w);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "PERSIST orders");
    eventually(world_pttl(w, "orders") > 0, 2 * lease_ms);
    world_redis(w, "PEXPIRE orders 3600000");
    eventually(world_pttl(w, "orders") <= lease_ms, 2 * lease_ms);
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(a_hold_outlives_its_lease_by_far, many_holds_are_all_renewed, after_the_unlock_nothing_is_renewed,
                     a_renewal_repairs_the_lease);
}
