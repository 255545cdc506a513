/* SPDX-License-Identifier: MIT */
/*
 * redisson_test.c - processes that run Redisson and this library exclude and wake each other
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

#define JAVA "0f8fad5b-d9cb-469f-a165-70867728950e:57"
#define CHANNEL "redisson_lock__channel:{orders}"

static lk_client_t *client;
static lk_mutex_t *orders;
static int64_t got_ms;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
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

/* What Redisson's unlock says on its channel. */
static void expect_message(struct world *w)
{
    const char *message = world_message(w, 5000);
    assert_non_null(message);
    assert_string_equal("0", message);
}

static int lock_and_note(void *arg)
{
    int rc = lk_mutex_lock(arg);
    got_ms = now_ms();
    return rc != 0 ? rc : lk_mutex_unlock(arg);
}

/* What a Java process holds is held: nothing here touches it. */
static void a_java_holder_is_respected(struct world *w)
{
    open_orders(w, "");
    java_locks(w, 60000);
    java_locks(w, 60000);
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 100));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_string_equal(JAVA, world_owner(w, "orders"));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_between(world_pttl(w, "orders"), 50000, 60000);
    java_unlocks(w);
    assert_lk(0, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A Java process sees a hash with one field, its count and a time to live, as it expects. */
static void java_sees_our_hold(struct world *w)
{
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_string_equal("hash", world_str(w, "TYPE orders"));
    assert_int_equal(1, world_int(w, "HLEN orders"));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_between(world_pttl(w, "orders"), 1, 30000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Java's unlock is a message on Redisson's channel; who asked for it does not wait for the next poll. */
static void javas_unlock_wakes_us(struct world *w)
{
    struct worker waiter;
    world_allow(w, "redisson_lock_token:*"); /* has no TTL: Java would count on from 1 */
    open_orders(w, "redisson=yes&lease=20s&poll=5s");
    java_locks(w, 60000);
    worker_start(&waiter, lock_and_note, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 1, 5000);
    int64_t unlocked_ms = now_ms();
    java_unlocks(w);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(got_ms - unlocked_ms, 0, 1000 + SLACK_MS);
    assert_int_equal(-1, world_pttl(w, "redisson_lock_token:{orders}"));
    world_close(w, client);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_lock__channel:*") == 0, 2000);
}

/* And ours wakes Java, whatever options we were opened with. */
static void our_unlock_is_published_for_java(struct world *w)
{
    open_orders(w, "");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lock_and_unlock(orders));
    assert_null(world_message(w, 50)); /* not yet free */
    assert_lk(0, lk_mutex_unlock(orders));
    expect_message(w);
    assert_null(world_message(w, 50));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(orders));
    expect_message(w);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

/* The fenced lock's counter is shared: our tokens continue after the largest of either side. */
static void tokens_continue_after_javas(struct world *w)
{
    uint64_t token;
    open_orders(w, "");
    world_redis(w, "SET redisson_lock_token:{orders} 4000000000000000");
    world_allow(w, "redisson_lock_token:*");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    assert_true(token == 4000000000000001);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(4000000000000002, world_int(w, "INCR redisson_lock_token:{orders}"));
    assert_int_equal(-1, world_pttl(w, "redisson_lock_token:{orders}")); /* Java's key stays without end */
}

/* Who has fewer turns in so many releases starves; what they take in time is the machine's affair. */
enum { TURNS = 40, RELEASES = 200 * TURNS };

struct loop {
    lk_mutex_t mutex;
    struct gate stop;
};

static int lock_again_and_again(void *arg)
{
    struct loop *loop = arg;
    int rc = 0;
    while (rc == 0 && !gate_is_open(&loop->stop)) {
        rc = lk_mutex_lock(&loop->mutex);
        sleep_ms(3); /* so that it is rarely free by itself */
        if (rc == 0)
            rc = lk_mutex_unlock(&loop->mutex);
    }
    return rc;
}

/* What Redisson does when it hears of an unlock: try, and later unlock and publish. */
static bool java_tries(struct world *w)
{
    static const char take[] = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end "
                               "redis.call('HSET', KEYS[1], ARGV[1], 1) return redis.call('PEXPIRE', KEYS[1], 30000)";
    if (world_int(w, "EVAL %s 1 orders 0f8fad5b-d9cb-469f-a165-70867728950e:57", take) != 1)
        return false;
    world_redis(w, "DEL orders");
    world_redis(w, "PUBLISH " CHANNEL " 0");
    return true;
}

/* Two C processes' worth of threads never let go, and Java comes to its turn all the same: plain or fair. */
static void java_gets_its_turn(struct world *w)
{
    static const lk_mutexattr_t kinds[] = { LK_MUTEXATTR_INIT, { .size = sizeof(lk_mutexattr_t), .fair = 1 } };
    world_allow(w, "redisson_lock_token:*");
    world_subscribe(w, CHANNEL);
    for (int k = 0; k < 2; k++) {
        struct loop loops[2] = { 0 };
        struct worker workers[2];
        lk_client_t *clients[2];
        int turns = 0;
        int64_t began = world_commands(w, "hdel");
        for (int i = 0; i < 2; i++) {
            clients[i] = world_client(w, "redisson=yes&lease=20s");
            assert_lk(0, lk_mutex_init(&loops[i].mutex, clients[i], "orders", &kinds[k]));
            worker_start(&workers[i], lock_again_and_again, &loops[i]);
        }
        while (turns < TURNS && world_commands(w, "hdel") < began + RELEASES)
            if (world_message(w, 1000) != NULL) {
                sleep_ms(5); /* Java is not as quick as a test */
                turns += java_tries(w);
            }
        for (int i = 0; i < 2; i++)
            gate_open(&loops[i].stop);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(0, worker_join(&workers[i]));
            assert_lk(0, lk_mutex_destroy(&loops[i].mutex));
            world_close(w, clients[i]);
        }
        assert_int_equal(TURNS, turns);
    }
}

/* Who is alone among ours would have it again each time before Java could ask: Java has a turn all the same, if it listens. */
static void java_has_turns_beside_one_of_ours(struct world *w)
{
    enum { RELEASES_MAX = 1000, ENOUGH = 5 };
    int turns = 0;
    open_orders(w, "redisson=yes");
    world_allow(w, "redisson_lock_token:*");
    for (int i = 0; i < 100; i++) {
        assert_lk(0, lk_mutex_trylock(orders));
        assert_lk(0, lk_mutex_unlock(orders));
    }
    world_subscribe(w, CHANNEL);
    for (int i = 0; i < RELEASES_MAX && turns < ENOUGH; i++) {
        assert_lk(0, lock_and_unlock(orders));
        turns += lk_mutex_trylock(orders) == EBUSY || lk_mutex_unlock(orders) != 0;
    }
    assert_int_equal(ENOUGH, turns);
    assert_int_not_equal(-1, world_pttl(w, "latchkey:alive:mutex:{orders}")); /* it has an end */
    assert_lk(0, lock_and_unlock(orders));
}

static int64_t listeners(struct world *w, const char *channel)
{
    return world_int(w, "EVAL %s 1 %s", "return redis.call('PUBSUB', 'NUMSUB', KEYS[1])[2]", channel);
}

/*
 * Without Java, processes of this library leave no turn to it: they hear its channel, too, but are not taken for it,
 * neither those that wait nor those that once did.
 */
static void no_turn_is_left_to_nobody(struct world *w)
{
    enum { CLIENTS = 3, MANY = 400 };
    struct loop loops[CLIENTS] = { 0 };
    struct worker workers[CLIENTS];
    lk_client_t *clients[CLIENTS];
    int64_t turns = 0;
    world_allow(w, "redisson_lock_token:*");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = world_client(w, "redisson=yes&lease=20s");
        assert_lk(0, lk_mutex_init(&loops[i].mutex, clients[i], "orders", NULL));
        worker_start(&workers[i], lock_again_and_again, &loops[i]);
    }
    eventually(listeners(w, CHANNEL) == CLIENTS && listeners(w, "latchkey:client:" CHANNEL) == CLIENTS, 10000);
    sleep_ms(50); /* a turn that began before ends, and goes with the next release */
    eventually(*world_str(w, "HGET latchkey:alive:mutex:{orders} java") == '\0', 5000);
    int64_t began = world_commands(w, "hdel");
    for (int64_t until_ms = now_ms() + 20000; world_commands(w, "hdel") < began + MANY && now_ms() < until_ms;) {
        turns += strcmp("", world_str(w, "HGET latchkey:alive:mutex:{orders} java")) != 0;
        if (world_commands(w, "hdel") > began + MANY / 2 && !gate_is_open(&loops[0].stop))
            gate_open(&loops[0].stop); /* from now on it only listens */
    }
    int64_t releases = world_commands(w, "hdel") - began;
    for (int i = 0; i < CLIENTS; i++)
        gate_open(&loops[i].stop);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(0, worker_join(&workers[i]));
        assert_lk(0, lk_mutex_destroy(&loops[i].mutex));
        world_close(w, clients[i]);
    }
    eventually(listeners(w, "latchkey:client:" CHANNEL) == 0, 2000);
    assert_true(releases >= MANY);
    assert_int_equal(0, turns);
}

/* A turn is noted beside those who wait. Without one there is none; the holder's own place is from an ask it repeated. */
static void a_turn_without_waiters_leaves_nothing(struct world *w)
{
    static const char line_up[] = "local id = redis.call('HKEYS', KEYS[1])[1] redis.call('ZADD', KEYS[2], 1, id) "
                                  "redis.call('HSET', KEYS[3], string.sub(id, 1, 32), '9000000000000 5000 3000 0') "
                                  "redis.call('PEXPIRE', KEYS[2], 60000) redis.call('PEXPIRE', KEYS[3], 60000)";
    open_orders(w, "redisson=yes");
    world_allow(w, "redisson_lock_token:*");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "EVAL %s 3 orders latchkey:queue:mutex:{orders} latchkey:alive:mutex:{orders}", line_up);
    world_redis(w, "SET redisson_lock_token:{orders} 3999999999999999"); /* the sixteenth is next */
    assert_lk(0, lk_mutex_unlock(orders));
    expect_message(w);
    assert_false(world_exists(w, "orders"));
    assert_false(world_exists(w, "latchkey:queue:mutex:{orders}"));
    assert_false(world_exists(w, "latchkey:alive:mutex:{orders}"));
}

/* An unlock within min_hold_ms makes the lease shorter than its waiters know: they are told, here and in Java. */
static void a_shorter_lease_is_told(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    struct worker waiter;
    attr.min_hold_ms = 400;
    lk_client_t *a = world_client(w, "lease=20s&poll=10s");
    lk_client_t *b = world_client(w, "lease=20s&poll=10s");
    lk_mutex_t *kept = world_mutex(w, a, "orders", &attr);
    lk_mutex_t *wanted = world_mutex(w, b, "orders", NULL);
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_mutex_lock(kept));
    worker_start(&waiter, lock_and_note, wanted);
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:*") == 1, 5000);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(kept));
    expect_message(w);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 400 + 2 * SLACK_MS); /* and not a poll ceiling later */
    attr.min_hold_ms = 0;
    assert_lk(0, lk_mutex_lock(wanted));
    while (world_message(w, 50) != NULL)
        ;
    assert_lk(0, lk_mutex_extend(wanted, 1000));
    expect_message(w);
    assert_lk(0, lk_mutex_unlock(wanted));
}

int main(void)
{
    return world_run(a_java_holder_is_respected, java_sees_our_hold, javas_unlock_wakes_us,
                     our_unlock_is_published_for_java, tokens_continue_after_javas, java_gets_its_turn,
                     java_has_turns_beside_one_of_ours, no_turn_is_left_to_nobody,
                     a_turn_without_waiters_leaves_nothing, a_shorter_lease_is_told);
}
