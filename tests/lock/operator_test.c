/* SPDX-License-Identifier: MIT */
/*
 * operator_test.c - looking at a mutex from outside, and taking it away
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_mutex_t *orders, *same_name;

static void open_both(struct world *w, const char *options)
{
    orders = world_mutex(w, world_client(w, options), "orders", NULL);
    same_name = world_mutex(w, world_client(w, options), "orders", NULL);
}

/* "Who has it, for how long, who waits?" is the first question of every operator. */
static void info_tells_what_the_server_knows(struct world *w)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    struct worker waiter;
    uint64_t token;
    open_both(w, "");
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(0, info.held);
    assert_int_equal(1, info.recoverable);
    assert_int_equal(0, info.waiters);
    assert_true(info.token == 0);
    assert_string_equal("", info.holder);

    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    worker_start(&waiter, lock_and_unlock, same_name);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_info(same_name, &info)); /* not only to the holder's process */
    assert_int_equal(1, info.held);
    assert_int_equal(2, info.holds);
    assert_int_equal(1, info.waiters);
    assert_true(info.token == token);
    assert_between(info.remaining_ms, 20000, 30000);
    assert_string_equal(world_owner(w, "orders"), info.holder);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(0, info.held);
    assert_true(info.token > token); /* the last one granted */
}

/* Holders of other kinds are shown as well: Java's, and ones that somebody left without a lease. */
static void info_tells_of_foreign_holders(struct world *w)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    open_both(w, "");
    world_redis(w, "HSET orders 0f8fad5b-d9cb-469f-a165-70867728950e:57 3");
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(1, info.held);
    assert_int_equal(3, info.holds);
    assert_true(info.remaining_ms == -1);
    assert_string_equal("0f8fad5b-d9cb-469f-a165-70867728950e:57", info.holder);
    world_redis(w, "DEL orders");
    world_redis(w, "SET orders text");
    assert_lk(EPROTO, lk_mutex_info(orders, &info));
    assert_lk(EPROTO, lk_mutex_trylock(orders));
    assert_lk(EPROTO, lk_mutex_lock(orders));
    assert_string_equal("text", world_str(w, "GET orders"));
    world_redis(w, "DEL orders");
    info.size = 0;
    assert_lk(EINVAL, lk_mutex_info(orders, &info));
    assert_lk(EINVAL, lk_mutex_info(orders, NULL));
}

/* The robbed holder is told; that is the price of the one call that breaks the promise. */
static void forceunlock_robs_the_holder(struct world *w)
{
    uint64_t token, later;
    int64_t left_ms;
    open_both(w, "lease=3s");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_false(world_exists(w, "orders"));
    assert_lk(0, lk_mutex_lock(same_name));
    assert_lk(0, lk_mutex_token(same_name, &later));
    assert_true(later > token);
    eventually(lk_mutex_remaining(orders, &left_ms) == ESTALE, 3000); /* at its next renewal */
    assert_lk(ESTALE, lk_mutex_check(orders));
    assert_lk(ESTALE, lk_mutex_lock(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_check(same_name));
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* Unlocking what was taken away is no success, even before the holder had any chance to know. */
static void unlocking_right_after_the_robbery_is_estale(struct world *w)
{
    open_both(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* Waiters are served by the robbery as by an unlock; a free mutex can be "unlocked" by force, too. */
static void forceunlock_serves_the_first_waiter(struct world *w)
{
    struct worker waiter;
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_mutex_forceunlock(orders));
    world_redis(w, "HSET orders forgotten:1 1"); /* without a lease: only force ends it */
    worker_start(&waiter, lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
}

/* A hash of the application is no mutex: nobody waits for it, nobody deletes it, nobody reads all of it. */
static void a_hash_of_the_application_is_no_mutex(struct world *w)
{
    static const char *const make[] = {
        "for i = 1, 2000 do redis.call('HSET', KEYS[1], 'f' .. i, i) end",
        "for i = 1, 2000 do redis.call('HSET', KEYS[1], 'user:' .. i, i) end",
        "redis.call('HSET', KEYS[1], 'colour', 'red', 'size', 7)",
        "redis.call('HSET', KEYS[1], 'size', 7)",
    };
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    open_both(w, "");
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        world_redis(w, "EVAL %s 1 orders", make[i]);
        int64_t fields = world_int(w, "HLEN orders");
        assert_lk(EPROTO, lk_mutex_trylock(orders));
        assert_non_null(strstr(lk_errortext(), "no lock"));
        assert_lk(EPROTO, lk_mutex_lockfor(orders, 3000));
        assert_lk(EPROTO, lk_mutex_info(orders, &info));
        assert_lk(EPROTO, lk_mutex_forceunlock(orders));
        assert_non_null(strstr(lk_errortext(), "no lock"));
        assert_int_equal(fields, world_int(w, "HLEN orders"));
        assert_int_equal(-1, world_pttl(w, "orders"));
        assert_int_equal(0, world_queued(w, "orders"));
        world_redis(w, "DEL orders");
    }
    /* one that ends by itself looks held, but is not deleted either */
    world_redis(w, "HSET orders colour red size 7");
    world_redis(w, "PEXPIRE orders 60000");
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(EPROTO, lk_mutex_forceunlock(orders));
    assert_int_equal(2, world_int(w, "HLEN orders"));
    assert_int_equal(0, world_commands(w, "hkeys") + world_commands(w, "hgetall"));
    world_redis(w, "DEL orders");
}

/* What took it with two fields is one all the same: Redisson's read-write lock, or two of a race in Java. */
static void a_lock_with_two_fields_is_unlocked_by_force(struct world *w)
{
    open_both(w, "");
    world_redis(w, "HSET orders mode read 0f8fad5b-d9cb-469f-a165-70867728950e:57 1");
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_forceunlock(orders));
    assert_false(world_exists(w, "orders"));
}

int main(void)
{
    return world_run(a_hash_of_the_application_is_no_mutex, a_lock_with_two_fields_is_unlocked_by_force,
                     info_tells_what_the_server_knows, info_tells_of_foreign_holders, forceunlock_robs_the_holder,
                     unlocking_right_after_the_robbery_is_estale, forceunlock_serves_the_first_waiter);
}
