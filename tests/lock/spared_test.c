/* SPDX-License-Identifier: MIT */
/*
 * spared_test.c - what the scripts of a mutex are not sent and do not do when nothing speaks for it
 *
 * labels: memory
 * simulated: yes
 */
#include "world.h"

static lk_mutex_t *orders;

static void pair(void)
{
    assert_lk(0, lock_and_unlock(orders));
}

/* What the server reads for a pair, without what now and then comes beside it. */
static int64_t bytes_of_a_pair(struct world *w)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        int64_t before = world_counter(w, "total_net_input_bytes");
        pair();
        int64_t bytes = world_counter(w, "total_net_input_bytes") - before;
        least = bytes < least ? bytes : least;
    }
    return least;
}

/* Nobody has to know of a client that waits for nothing whether it hears messages: its calls are as short as others'. */
static void a_pair_of_who_does_not_listen_is_short(struct world *w)
{
    struct worker waiter;
    lk_client_t *client = world_client(w, "");
    orders = world_mutex(w, client, "orders", NULL);
    pair();
    int64_t deaf = bytes_of_a_pair(w);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, orders);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, worker_join(&waiter));
    int64_t listening = bytes_of_a_pair(w);
    assert_between(deaf - listening, -8, 8); /* numbers of requests get longer */
}

/* A waiter whose client is gone without a word is tried once, and then loses its place. */
static void a_dead_waiter_is_tried_once(struct world *w)
{
    static const char sign[] = "local time = redis.call('TIME') "
                               "redis.call('ZADD', KEYS[1], 5, ARGV[1]) redis.call('PEXPIRE', KEYS[1], 60000) "
                               "redis.call('HSET', KEYS[2], string.sub(ARGV[1], 1, 32), time[1] * 1000 + 5000 .. ' 5000 3000 0') "
                               "return redis.call('PEXPIRE', KEYS[2], 60000)";
    orders = world_mutex(w, world_client(w, ""), "orders", NULL);
    pair();
    assert_int_equal(1, world_int(w, "EVAL %s 2 latchkey:queue:mutex:{orders} latchkey:alive:mutex:{orders} %s", sign,
                                  "dddddddddddddddddddddddddddddddd:1:1"));
    int64_t before = world_commands(w, "publish"), taken = world_commands(w, "hset");
    pair();
    assert_int_equal(2, world_commands(w, "publish") - before); /* to it, and on Redisson's channel */
    assert_int_equal(2, world_commands(w, "hset") - taken);     /* for ours and for it */
    assert_int_equal(0, world_queued(w, "orders"));
    assert_false(world_exists(w, "orders"));
}

/* A number above 10^14 has no digits in the short answer of most asks. */
static void a_lease_for_ages_is_waited_for(struct world *w)
{
    orders = world_mutex(w, world_client(w, ""), "orders", NULL);
    for (int i = 0; i < 2; i++) { /* not listening, then listening */
        assert_int_equal(1, world_int(w, "HSET orders dddddddddddddddddddddddddddddddd:1:1 1"));
        assert_int_equal(1, world_int(w, "PEXPIRE orders 4000000000000000"));
        assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 300));
        assert_int_equal(1, world_int(w, "DEL orders"));
    }
    pair();
}

int main(void)
{
    return world_run(a_pair_of_who_does_not_listen_is_short, a_dead_waiter_is_tried_once,
                     a_lease_for_ages_is_waited_for);
}
