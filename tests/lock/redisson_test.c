/*
 * SPDX-License-Identifier: MIT
 *
 * redisson_test.c - processes that run Redisson and this library exclude and wake each other
 *
 * labels: threads memory
 */
#include "world.h"

#define JAVA "0f8fad5b-d9cb-469f-a165-70867728950e:57"
#define CHANNEL "redisson_lock__channel:{orders}"

static lk_client_t *client;
static lk_mutex_t orders;
static int64_t got_ms;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
}

static void close_orders(void)
{
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_client_close(client));
}

/* As an RLock leaves it: one field, UUID:THREAD, with the hold count. */
static void java_locks(struct world *w, int64_t lease_ms)
{
    world_redis(w, "HINCRBY orders " JAVA " 1");
    world_redis(w, "PEXPIRE orders %lld", (long long)lease_ms);
}

static void java_unlocks(struct world *w)
{
    world_redis(w, "DEL orders");
    world_redis(w, "PUBLISH " CHANNEL " 0");
}

static int lock_and_unlock(void *arg)
{
    int rc = lk_mutex_lock(arg);
    got_ms = now_ms();
    return rc != 0 ? rc : lk_mutex_unlock(arg);
}

/* What a Java process holds is held: nothing here touches it. */
static void a_java_holder_is_respected(void **state)
{
    struct world *w = *state;
    open_orders(w, "");
    java_locks(w, 60000);
    java_locks(w, 60000);
    assert_lk(EBUSY, lk_mutex_trylock(&orders));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(&orders, 100));
    assert_lk(EPERM, lk_mutex_unlock(&orders));
    assert_string_equal(JAVA, world_owner(w, "orders"));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_between(world_pttl(w, "orders"), 50000, 60000);
    java_unlocks(w);
    assert_lk(0, lk_mutex_trylock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    close_orders();
}

/* A Java process sees a hash with one field, its count and a time to live, as it expects. */
static void java_sees_our_hold(void **state)
{
    struct world *w = *state;
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_string_equal("hash", world_str(w, "TYPE orders"));
    assert_int_equal(1, world_int(w, "HLEN orders"));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_between(world_pttl(w, "orders"), 1, 30000);
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    close_orders();
}

/* Java's unlock is a message on Redisson's channel; who asked for it does not wait for the next poll. */
static void javas_unlock_wakes_us(void **state)
{
    struct world *w = *state;
    struct worker waiter;
    world_allow(w, "redisson_lock_token:*"); /* has no TTL: Java would count on from 1 */
    open_orders(w, "redisson=yes&lease=20s&poll=5s");
    java_locks(w, 60000);
    worker_start(&waiter, lock_and_unlock, &orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 1, 5000);
    int64_t unlocked_ms = now_ms();
    java_unlocks(w);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(got_ms - unlocked_ms, 0, 1000);
    assert_int_equal(-1, world_pttl(w, "redisson_lock_token:{orders}"));
    close_orders();
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_lock__channel:*") == 0, 2000);
}

/* And ours wakes Java, whatever options we were opened with. */
static void our_unlock_is_published_for_java(void **state)
{
    struct world *w = *state;
    open_orders(w, "");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_null(world_message(w, 50)); /* not yet free */
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_string_equal("0", world_message(w, 1000));
    assert_null(world_message(w, 50));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_forceunlock(&orders));
    assert_string_equal("0", world_message(w, 1000));
    assert_lk(ESTALE, lk_mutex_unlock(&orders));
    close_orders();
}

/* The fenced lock's counter is shared: our tokens continue after the largest of either side. */
static void tokens_continue_after_javas(void **state)
{
    struct world *w = *state;
    uint64_t token;
    open_orders(w, "");
    world_redis(w, "SET redisson_lock_token:{orders} 4000000000000000");
    world_allow(w, "redisson_lock_token:*");
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_token(&orders, &token));
    assert_true(token == 4000000000000001);
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_int_equal(4000000000000002, world_int(w, "INCR redisson_lock_token:{orders}"));
    assert_int_equal(-1, world_pttl(w, "redisson_lock_token:{orders}")); /* Java's key stays without end */
    close_orders();
}

/* With C waiters always queued, the mutex is left to Java now and then. */
static void java_gets_its_turn(void **state)
{
    struct world *w = *state;
    lk_client_t *second;
    lk_mutex_t same_name;
    int seen = 0;
    world_allow(w, "redisson_lock_token:*");
    open_orders(w, "redisson=yes&lease=20s&poll=5s");
    second = world_client(w, "redisson=yes&lease=20s&poll=5s");
    assert_lk(0, lk_mutex_init(&same_name, second, "orders", NULL));
    world_subscribe(w, CHANNEL);
    for (int i = 0; i < 200; i++) {
        struct worker waiter;
        assert_lk(0, lk_mutex_lock(&orders));
        worker_start(&waiter, lock_and_unlock, &same_name);
        eventually(world_queued(w, "orders") == 1, 5000);
        assert_lk(0, lk_mutex_unlock(&orders));
        assert_int_equal(0, worker_join(&waiter));
        if (world_message(w, 0) != NULL)
            seen++;
        while (world_message(w, 0) != NULL)
            seen++;
    }
    assert_true(seen > 200); /* each round's last unlock, and some hand-overs */
    assert_lk(0, lk_mutex_destroy(&same_name));
    assert_lk(0, lk_client_close(second));
    close_orders();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_java_holder_is_respected),  world_test(java_sees_our_hold),
        world_test(javas_unlock_wakes_us),       world_test(our_unlock_is_published_for_java),
        world_test(tokens_continue_after_javas), world_test(java_gets_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
