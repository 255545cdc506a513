/* SPDX-License-Identifier: MIT */
/*
 * latch_test.c - the real Redisson and this library count and await one latch
 *
 * seconds: 6
 * processors: 3
 */
#include "java.h"

#define CHANNEL "redisson_countdownlatch__channel__{gate}"

/* Nobody who missed the message would come within that; Java's await() never would. */
#define OPENS_WITHIN_MS (1000 + 4 * SLACK_MS)

enum { ROUNDS = 5 };

static const char *const options[] = { "lease=20s&poll=10s", "lease=20s&poll=10s&redisson=yes" };

static int64_t listeners(struct world *w)
{
    return world_int(w, "EVAL %s 1 %s", "return redis.call('PUBSUB', 'NUMSUB', KEYS[1])[2]", CHANNEL);
}

static void start_waiting(struct worker *waiter, struct world *w, lk_latch_t *gate)
{
    worker_start(waiter, await_latch, gate);
    eventually(listeners(w) >= 1, 10000);
    sleep_ms(100);
}

static void java_awaits(struct world *w, struct java *java, char who)
{
    java_tell(java, who, "await gate");
    eventually(listeners(w) >= 1, 20000);
    sleep_ms(300);
    assert_string_equal("", java_says(java, who, 0));
}

static void java_counts_and_we_wait(struct world *w)
{
    struct java *java = java_open(w, 30000);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        struct worker waiter;
        unsigned count;
        lk_client_t *client = world_client(w, options[i % 2]);
        lk_latch_t *gate = world_latch(w, client, "gate");
        assert_string_equal("true", java_does(java, 'a', "setcount gate 2"));
        assert_lk(EEXIST, lk_latch_trysetcount(gate, 3));
        assert_lk(0, lk_latch_getcount(gate, &count));
        assert_int_equal(2, count);
        start_waiting(&waiter, w, gate);
        assert_string_equal("ok", java_does(java, 'a', "countdown gate"));
        int64_t began_ms = now_ms();
        assert_string_equal("ok", java_does(java, 'b', "countdown gate"));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, OPENS_WITHIN_MS);
        world_close(w, client);
    }
}

/* Two threads of Java wait. */
static void we_count_and_java_waits(struct world *w)
{
    struct java *java = java_open(w, 30000);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        lk_client_t *client = world_client(w, options[i % 2]);
        lk_latch_t *gate = world_latch(w, client, "gate");
        assert_lk(0, lk_latch_trysetcount(gate, 2));
        assert_string_equal("false", java_does(java, 'a', "setcount gate 3"));
        assert_string_equal("2", java_does(java, 'a', "count gate"));
        java_tell(java, 'b', "await gate");
        java_awaits(w, java, 'a');
        assert_lk(0, lk_latch_countdown(gate));
        int64_t began_ms = now_ms();
        assert_lk(0, lk_latch_countdown(gate));
        assert_string_equal("ok", java_says(java, 'a', 15000));
        assert_string_equal("ok", java_says(java, 'b', 15000));
        assert_between(now_ms() - began_ms, 0, OPENS_WITHIN_MS);
        world_close(w, client);
    }
}

/* Both count, and both wait. */
static void everybody_counts_and_waits(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_latch_t *gate = world_latch(w, world_client(w, options[1]), "gate");
    for (int i = 0; i < ROUNDS; i++) {
        struct worker waiter;
        assert_string_equal("true", java_does(java, 'a', "setcount gate 4"));
        java_awaits(w, java, 'a');
        start_waiting(&waiter, w, gate);
        for (int k = 0; k < 2; k++) {
            assert_lk(0, lk_latch_countdown(gate));
            assert_string_equal("ok", java_does(java, 'b', "countdown gate"));
        }
        assert_int_equal(0, worker_join(&waiter));
        assert_string_equal("ok", java_says(java, 'a', 15000));
        assert_string_equal("0", java_does(java, 'b', "count gate"));
        assert_lk(0, lk_latch_wait(gate));
    }
}

int main(void)
{
    java_begin();
    return world_run(java_counts_and_we_wait, we_count_and_java_waits, everybody_counts_and_waits);
}
