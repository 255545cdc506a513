/* SPDX-License-Identifier: MIT */
/*
 * forging_test.c - what messages of somebody who may publish, and keys of somebody who may write, bring about
 *
 * docs/security.md says what a forger can do. These are its limits.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

static lk_client_t *client, *other;
static lk_mutex_t *orders, *same_orders;

static void open_both(struct world *w)
{
    client = world_client(w, "lease=4s&poll=1s");
    other = world_client(w, "lease=4s&poll=1s");
    orders = world_mutex(w, client, "orders", NULL);
    same_orders = world_mutex(w, other, "orders", NULL);
}

static int lock_for_a_second(void *arg)
{
    (void)arg;
    return lk_mutex_lockfor(same_orders, 1500);
}

/* The id of the waiter, as anybody who may read the queue finds it. */
static const char *waiter_of(struct world *w)
{
    static char id[128];
    eventually(world_queued(w, "orders") == 1, 5000);
    snprintf(id, sizeof id, "%s",
             world_str(w, "EVAL %s 0", "return redis.call('ZRANGE', 'latchkey:queue:mutex:{orders}', 0, 0)[1]"));
    return id;
}

static long long server_us(struct world *w)
{
    return world_int(w, "EVAL %s 0", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
}

static void publish(struct world *w, const char *id, const char *words)
{
    char channel[64];
    snprintf(channel, sizeof channel, "latchkey:client:%.32s", id);
    eventually(world_int(w, "PUBLISH %s %s", channel, words) == 1, 5000);
}

/* Without the id of a present attempt a message is nothing, or a reason to ask. */
static void words_without_the_id_grant_nothing(struct world *w)
{
    struct worker waiter;
    char words[256];
    open_both(w);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_for_a_second, NULL);
    const char *id = waiter_of(w);
    snprintf(words, sizeof words, "G %.*s9999 %lld 3000 99 0", (int)(strrchr(id, ':') - id) + 1, id, server_us(w));
    publish(w, id, words); /* another attempt of that thread */
    snprintf(words, sizeof words, "G %s %lld 3000 99", id, server_us(w));
    publish(w, id, words); /* a number is lacking */
    snprintf(words, sizeof words, "G %s 1000000 3000 99 0", id);
    publish(w, id, words); /* a grant of long ago */
    snprintf(words, sizeof words, "F %s", id);
    for (int i = 0; i < 50; i++)
        publish(w, id, words);
    assert_int_equal(ETIMEDOUT, worker_join(&waiter));
    assert_lk(0, lk_mutex_unlock(orders));
}

static struct gate forged;

static int believe_it(void *arg)
{
    int64_t ms;
    (void)arg;
    int rc = lk_mutex_lockfor(same_orders, 10000);
    if (rc != 0)
        return rc;
    gate_open(&forged);
    while (rc == 0) { /* the first renewal finds out */
        sleep_ms(5);
        rc = lk_mutex_remaining(same_orders, &ms);
    }
    int unlocked = lk_mutex_unlock(same_orders);
    return rc == ESTALE && unlocked == ESTALE ? 0 : 1;
}

/*
 * Who knows the id and may publish can make its waiter believe: until its first renewal, which comes after a third
 * of its lease, and at once when the message promises more than that lease. Here it promises a day.
 */
static void a_forged_grant_is_found_out_at_the_first_renewal(struct world *w)
{
    struct worker waiter;
    char words[256];
    open_both(w);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, believe_it, NULL);
    const char *id = waiter_of(w);
    int64_t began_ms = now_ms();
    for (int i = 0; i < 400 && !gate_is_open(&forged); i++) {
        snprintf(words, sizeof words, "G %s %lld 86400000 1 0", id, server_us(w)); /* a whole day */
        world_redis(w, "PUBLISH latchkey:client:%b %s", id, (size_t)32, words);
        sleep_ms(20);
    }
    assert_true(gate_is_open(&forged));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 4000 + 4 * SLACK_MS);
    assert_lk(0, lk_mutex_check(orders)); /* its hold never ended */
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(!world_exists(w, "orders"), 5000); /* the deceived one left its place behind: that costs one claim */
}

/* Who may write our keys can take a hold away; the holder finds out by itself. */
static void a_deleted_hold_is_found_out(struct world *w)
{
    int64_t ms;
    open_both(w);
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "DEL orders");
    assert_lk(0, lk_mutex_lock(same_orders)); /* two believe it now: that is what write access means */
    eventually(lk_mutex_remaining(orders, &ms) == ESTALE, 4000);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(same_orders));
}

int main(void)
{
    return world_run(words_without_the_id_grant_nothing, a_forged_grant_is_found_out_at_the_first_renewal,
                     a_deleted_hold_is_found_out);
}
