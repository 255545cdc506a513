/* SPDX-License-Identifier: MIT */
/*
 * redisson_test.c - an RCountDownLatch of the same name is the same latch; Java is played by the commands it sends
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

#define CHANNEL "redisson_countdownlatch__channel__{gate}"

enum { SOON_MS = 3000 }; /* polls are 4 s apart at least */
enum { GRACE_MS = 100 }; /* for so long the last message is awaited of a count that is gone */

static lk_client_t *client;
static lk_latch_t *gate;

static void open_gate(struct world *w, const char *options)
{
    client = world_client(w, options);
    gate = world_latch(w, client, "gate");
}

/* countDown(): one script of Redisson's, so nobody sees it half done. */
static void java_counts_down(struct world *w)
{
    world_redis(w, "EVAL %s 2 gate %s",
                "local left = redis.call('decr', KEYS[1]) if left <= 0 then redis.call('del', KEYS[1]) end "
                "if left == 0 then redis.call('publish', KEYS[2], '0') end",
                CHANNEL);
}

static void java_sets(struct world *w, int count)
{
    world_redis(w, "SET gate %d", count);
    world_redis(w, "PUBLISH " CHANNEL " 1");
}

/* It looks, subscribes, and looks again: from then on it is woken. */
static void start_waiting(struct worker *waiter, struct world *w)
{
    int64_t looks = world_commands(w, "evalsha");
    bool listens = world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 1;
    worker_start(waiter, await_latch, gate);
    eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 1, 5000);
    eventually(world_commands(w, "evalsha") >= looks + (listens ? 1 : 2), 5000);
    sleep_ms(50);
}

/* With and without redisson=yes, Java's last countdown wakes us by its message. */
static void javas_zero_wakes_us(struct world *w)
{
    static const char *const options[] = { "lease=20s&poll=5s", "lease=20s&poll=5s&redisson=yes" };
    for (int i = 0; i < 2; i++) {
        open_gate(w, options[i]);
        for (int round = 0; round < 10; round++) {
            struct worker waiter;
            unsigned count;
            java_sets(w, 2);
            assert_lk(0, lk_latch_getcount(gate, &count));
            assert_int_equal(2, count);
            assert_lk(EEXIST, lk_latch_trysetcount(gate, 1));
            start_waiting(&waiter, w);
            java_counts_down(w);
            int64_t counted_ms = now_ms();
            java_counts_down(w);
            assert_int_equal(0, worker_join(&waiter));
            assert_between(now_ms() - counted_ms, 0, SOON_MS);
        }
        world_close(w, client);
        eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 0, 2000);
    }
}

/* Plain commands, one by one, are as good. */
static void plain_commands_wake_us(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    java_sets(w, 1);
    start_waiting(&waiter, w);
    assert_int_equal(0, world_int(w, "DECR gate"));
    world_redis(w, "DEL gate");
    int64_t counted_ms = now_ms();
    world_redis(w, "PUBLISH " CHANNEL " 0");
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - counted_ms, 0, SOON_MS);
}

/* What we do is published as Java would: 0 at zero, 1 for a new count and for a deletion. */
static void ours_is_published_for_java(struct world *w)
{
    open_gate(w, "");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    assert_string_equal("1", world_message(w, 5000));
    assert_string_equal("string", world_str(w, "TYPE gate"));
    assert_int_equal(-1, world_pttl(w, "gate"));
    assert_lk(EEXIST, lk_latch_trysetcount(gate, 2));
    assert_lk(0, lk_latch_countdown(gate));
    assert_null(world_message(w, 50)); /* not yet */
    assert_lk(0, lk_latch_countdown(gate));
    assert_string_equal("0", world_message(w, 5000));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_null(world_message(w, 50));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_string_equal("1", world_message(w, 5000));
    assert_lk(0, lk_latch_delete(gate));
    assert_string_equal("1", world_message(w, 5000));
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_null(world_message(w, 50));
}

/* The braces of this channel are added even to a name that has some. */
static void a_tag_does_not_change_the_channel(struct world *w)
{
    open_gate(w, "");
    lk_latch_t *tagged = world_latch(w, client, "{tag}gate");
    world_subscribe(w, "redisson_countdownlatch__channel__{{tag}gate}");
    assert_lk(0, lk_latch_trysetcount(tagged, 1));
    assert_string_equal("1", world_message(w, 5000));
    assert_lk(0, lk_latch_countdown(tagged));
    assert_string_equal("0", world_message(w, 5000));
}

/* A 1 of when the count was set may be read when it has opened already; what counts is the 0 that follows. */
static void a_late_message_is_no_deletion(struct world *w)
{
    static const char *const options[] = { "lease=20s&poll=5s", "lease=20s&poll=5s&redisson=yes" };
    for (int i = 0; i < 2; i++) {
        struct worker waiter;
        int64_t took_ms;
        int code;
        open_gate(w, options[i]);
        do { /* once more where the 0 came late: who waits has no patience for that */
            java_sets(w, 1);
            start_waiting(&waiter, w);
            int64_t began_ms = now_ms();
            world_redis(w, "DEL gate");
            world_redis(w, "PUBLISH " CHANNEL " 1");
            sleep_ms(10);
            world_redis(w, "PUBLISH " CHANNEL " 1");
            sleep_ms(10);
            world_redis(w, "PUBLISH " CHANNEL " 0");
            took_ms = now_ms() - began_ms;
            code = worker_join(&waiter);
        } while (code != 0 && took_ms >= GRACE_MS);
        assert_lk(0, code);
        world_close(w, client);
        eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 0, 2000);
    }
}

/* Java's delete leaves no mark; its message says what became of the count. */
static void javas_deletion_is_told(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    java_sets(w, 1);
    start_waiting(&waiter, w);
    world_redis(w, "DEL gate");
    world_redis(w, "PUBLISH " CHANNEL " 1");
    assert_int_equal(ECANCELED, worker_join(&waiter));
}

/* With redisson=yes an absent count is zero, as it is in Java; a deletion by us still is one. */
static void with_redisson_an_absent_one_is_open(struct world *w)
{
    struct worker waiter;
    open_gate(w, "poll=200ms&redisson=yes");
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_latch_waitfor(gate, 0));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    java_sets(w, 1);
    start_waiting(&waiter, w);
    world_redis(w, "DEL gate");
    assert_int_equal(0, worker_join(&waiter));
    java_sets(w, 1);
    start_waiting(&waiter, w);
    assert_lk(0, lk_latch_delete(gate));
    assert_int_equal(ECANCELED, worker_join(&waiter));
}

/* A count of 0 or below, which Java can leave for a moment, is an open latch. */
static void a_count_of_zero_is_open(struct world *w)
{
    unsigned count;
    open_gate(w, "");
    for (int i = 0; i < 2; i++) {
        world_redis(w, "SET gate %d", -i);
        assert_lk(0, lk_latch_wait(gate));
        assert_lk(0, lk_latch_getcount(gate, &count));
        assert_int_equal(0, count);
        assert_lk(0, lk_latch_countdown(gate)); /* tidies up */
        assert_false(world_exists(w, "gate"));
        assert_lk(0, lk_latch_wait(gate));
    }
}

int main(void)
{
    return world_run(javas_zero_wakes_us, plain_commands_wake_us, ours_is_published_for_java,
                     a_tag_does_not_change_the_channel, a_late_message_is_no_deletion, javas_deletion_is_told,
                     with_redisson_an_absent_one_is_open, a_count_of_zero_is_open);
}
