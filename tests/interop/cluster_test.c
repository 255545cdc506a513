/* SPDX-License-Identifier: MIT */
/*
 * cluster_test.c - in a cluster Java and C exclude and wake each other on every node, also after a slot has moved
 *
 * Leases and polls are so long that nobody who missed a message would come within the time allowed.
 *
 * seconds: 20
 * processors: 3
 */
#include "cluster.h"
#include "java.h"

#include <stdio.h>

#define PATIENT "redisson=yes&lease=60s&poll=30s"

/* Java is slower than a test, and both may wait for a processor. */
#define WAKES_WITHIN_MS (1000 + 4 * SLACK_MS)

static int64_t got_ms;

static int lock_and_note(void *mutex)
{
    int rc = lk_mutex_lock(mutex);
    got_ms = now_ms();
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

static int64_t listeners(struct cluster *c, int node, const char *kind, const char *name)
{
    char channel[96];
    snprintf(channel, sizeof channel, "redisson_%s:{%s}", kind, name);
    return cluster_int(c, node, "EVAL %s 0 %s", "return redis.call('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2]", channel);
}

/* It tries once more behind its subscription: from then on it needs a message. */
static void java_waits(struct cluster *c, struct java *java, int node, const char *name)
{
    java_tell(java, 'a', "lock %s -1", name);
    eventually(listeners(c, node, "lock__channel", name) >= 1, 20000);
    sleep_ms(300);
    assert_string_equal("", java_says(java, 'a', 0));
}

static void we_wake_java(struct world *w, struct cluster *c, struct java *java, int node, const char *name)
{
    lk_client_t *client = cluster_client(c, PATIENT);
    lk_mutex_t *orders = world_mutex(w, client, name, NULL);
    assert_lk(0, lk_mutex_lock(orders));
    java_waits(c, java, node, name);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(orders));
    assert_string_equal("ok", java_says(java, 'a', 15000));
    assert_between(now_ms() - began_ms, 0, WAKES_WITHIN_MS);
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_string_equal("ok", java_does(java, 'a', "unlock %s", name));
    world_close(w, client);
}

static void java_wakes_us(struct world *w, struct cluster *c, struct java *java, int node, const char *name)
{
    lk_client_t *client = cluster_client(c, PATIENT);
    lk_mutex_t *orders = world_mutex(w, client, name, NULL);
    struct worker waiter;
    assert_string_equal("ok", java_does(java, 'a', "lock %s 60000", name));
    worker_start(&waiter, lock_and_note, orders);
    eventually(cluster_queued(c, node, name) == 1 && listeners(c, node, "lock__channel", name) >= 1, 10000);
    sleep_ms(100);
    int64_t began_ms = now_ms();
    assert_string_equal("ok", java_does(java, 'a', "unlock %s", name));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(got_ms - began_ms, 0, WAKES_WITHIN_MS);
    world_close(w, client);
}

static void both_on_every_node(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    struct java *java = java_join(c, 60000);
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        const char *name = cluster_name(c, node, "orders");
        java_wakes_us(w, c, java, node, name);
        we_wake_java(w, c, java, node, name);
    }
}

/* Who holds and who waits is of either side; what moved is found by both. */
static void both_after_a_move(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    struct java *java = java_join(c, 60000);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *orders = world_mutex(w, cluster_client(c, PATIENT), name, NULL);
    assert_string_equal("ok", java_does(java, 'a', "lock %s 60000", name));
    cluster_move(c, cluster_slot(c, name), 0, 1);
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_string_equal("ok", java_does(java, 'a', "unlock %s", name));
    assert_lk(0, lk_mutex_lockfor(orders, 10000));
    assert_lk(0, lk_mutex_unlock(orders));
    java_wakes_us(w, c, java, 1, name);
}

int main(void)
{
    java_begin();
    return world_run(both_on_every_node, both_after_a_move);
}
