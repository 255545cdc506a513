/* SPDX-License-Identifier: MIT */
/*
 * holds_test.c - each side sees what the other one holds, and can do nothing to it but by force
 *
 * seconds: 5
 * processors: 3
 */
#include "java.h"

#include <stdlib.h>
#include <string.h>

static lk_mutex_t *open_orders(struct world *w)
{
    world_allow(w, "redisson_lock_token:*");
    return world_mutex(w, world_client(w, "redisson=yes&lease=20s"), "orders", NULL);
}

static void java_respects_what_we_hold(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = open_orders(w);
    assert_string_equal("false", java_does(java, 'a', "locked orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_string_equal("true", java_does(java, 'a', "locked orders"));
    assert_string_equal("false", java_does(java, 'a', "mine orders"));
    assert_between(atoi(java_does(java, 'a', "left orders")), 1, 20000);
    assert_string_equal("false", java_does(java, 'a', "trylock orders 200 5000"));
    assert_string_equal("false", java_does(java, 'a', "tryfair orders"));
    assert_non_null(strstr(java_does(java, 'a', "unlock orders"), "error IllegalMonitorStateException"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_string_equal("true", java_does(java, 'a', "locked orders"));
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_string_equal("true", java_does(java, 'a', "trylock orders 0 5000"));
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
}

static void we_respect_what_java_holds(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = open_orders(w);
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    assert_string_equal("ok", java_does(java, 'a', "lock orders -1"));
    assert_string_equal("ok", java_does(java, 'a', "lock orders -1"));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 200));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(2, info.holds);
    assert_between(info.remaining_ms, 1, 30000);
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
    assert_lk(0, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A fair lock of Redisson's keeps the same hash, so that it is respected as well. */
static void we_respect_a_fair_lock(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = open_orders(w);
    assert_string_equal("true", java_does(java, 'a', "tryfair orders"));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_string_equal("true", java_does(java, 'a', "forceunlock orders"));
    assert_lk(0, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

static void either_side_takes_it_by_force(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = open_orders(w);
    assert_lk(0, lk_mutex_lock(orders));
    assert_string_equal("true", java_does(java, 'a', "forceunlock orders"));
    assert_lk(ESTALE, lk_mutex_check(orders));
    assert_string_equal("ok", java_does(java, 'a', "lock orders -1"));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_string_equal("true", java_does(java, 'a', "mine orders"));
    assert_lk(0, lk_mutex_forceunlock(orders));
    assert_string_equal("false", java_does(java, 'a', "mine orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_non_null(strstr(java_does(java, 'a', "unlock orders"), "error IllegalMonitorStateException"));
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Each token is above the last one, whoever had it; an RLock of that name has none and spends none. */
static void tokens_alternate_and_rise(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = open_orders(w);
    uint64_t last = 0, token;
    for (int i = 0; i < 10; i++) {
        token = strtoull(java_does(java, 'a', "token orders"), NULL, 10);
        assert_true(token > last);
        assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
        last = token;
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_token(orders, &token));
        assert_true(token > last);
        assert_lk(0, lk_mutex_unlock(orders));
        last = token;
        assert_string_equal("ok", java_does(java, 'b', "lock orders -1"));
        assert_string_equal("ok", java_does(java, 'b', "unlock orders"));
    }
}

static void permits_are_one_number(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_sem_t *pool = world_sem(w, world_client(w, "redisson=yes"), "pool", 0, NULL);
    unsigned taken;
    int value;
    world_allow(w, "pool");
    assert_string_equal("true", java_does(java, 'a', "set pool 3"));
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 7));
    assert_string_equal("false", java_does(java, 'a', "set pool 8"));
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    assert_string_equal("1", java_does(java, 'a', "permits pool"));
    assert_string_equal("false", java_does(java, 'a', "tryacquire pool 2"));
    assert_string_equal("true", java_does(java, 'a', "tryacquire pool 1"));
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_string_equal("ok", java_does(java, 'a', "release pool 2"));
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(2, value);
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_int_equal(2, taken);
    assert_string_equal("false", java_does(java, 'a', "tryacquire pool 1"));
    assert_lk(0, lk_sem_release(pool, 3));
    assert_string_equal("3", java_does(java, 'a', "permits pool"));
}

int main(void)
{
    java_begin();
    return world_run(java_respects_what_we_hold, we_respect_what_java_holds, we_respect_a_fair_lock,
                     either_side_takes_it_by_force, tokens_alternate_and_rise, permits_are_one_number);
}
