/* SPDX-License-Identifier: MIT */
/*
 * replaced_test.c - a count that is replaced, ends by itself, is deleted or lost, or opens unheard: an absent key is no open
 * latch
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

#include <string.h>

enum { TTL_MS = 20000, END_MS = 300 };

static lk_client_t *client;
static lk_latch_t *gate;

static void open_gate(struct world *w, const char *options, int64_t ttl_ms)
{
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    attr.ttl_ms = ttl_ms;
    client = world_client(w, options);
    gate = world_latchwith(w, client, "gate", &attr);
}

static int wait_for_it(void *latch)
{
    return lk_latch_waitfor(latch, 8000); /* what is missed fails, and does not hang */
}

static bool is_waiting(const struct worker *waiter)
{
    return pthread_tryjoin_np(waiter->thread, NULL) == EBUSY;
}

static void start_waiting(struct worker *waiter, struct world *w)
{
    int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
    worker_start(waiter, wait_for_it, gate);
    eventually(world_commands(w, "evalsha") + world_commands(w, "eval") >= before + 2, 5000);
    sleep_ms(20);
}

/* Whatever there was, also nothing: it is closed with the new count then. */
static void a_count_is_replaced(struct world *w)
{
    open_gate(w, "", 0);
    assert_lk(0, lk_latch_setcount(gate, 3));
    assert_int_equal(3, world_int(w, "GET gate"));
    assert_lk(EEXIST, lk_latch_trysetcount(gate, 5));
    assert_lk(0, lk_latch_setcount(gate, 5));
    assert_int_equal(5, world_int(w, "GET gate"));
    assert_lk(0, lk_latch_setcount(gate, 1));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_latch_setcount(gate, 2)); /* it opened before: that is forgotten */
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
    assert_lk(0, lk_latch_delete(gate));
    assert_lk(0, lk_latch_setcount(gate, 2)); /* likewise */
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
    assert_lk(EINVAL, lk_latch_setcount(gate, 0));
    assert_lk(EINVAL, lk_latch_setcount(gate, 1000001));
    assert_lk(EINVAL, lk_latch_setcount(NULL, 1));
    assert_int_equal(2, world_int(w, "GET gate"));
    world_redis(w, "DEL gate");
    world_redis(w, "HSET gate a 1");
    assert_lk(EPROTO, lk_latch_setcount(gate, 2));
    assert_int_equal(1, world_int(w, "HGET gate a"));
    world_redis(w, "DEL gate");
}

/* Who waits for the old count waits for the new one, larger or smaller, and is not woken for it. */
static void waiters_go_on_to_the_new_count(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s", 0);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    start_waiting(&waiter, w);
    world_subscribe(w, "redisson_countdownlatch__channel__{gate}");
    assert_lk(0, lk_latch_setcount(gate, 3));
    assert_null(world_message(w, 50));
    assert_lk(0, lk_latch_countdownby(gate, 2));
    sleep_ms(50);
    assert_true(is_waiting(&waiter));
    assert_lk(0, lk_latch_setcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_string_equal("0", world_message(w, 5000));
    assert_lk(0, worker_join(&waiter));
    assert_lk(0, lk_latch_setcount(gate, 1)); /* from none: Java's waiters are told that it closed */
    assert_string_equal("1", world_message(w, 5000));
    assert_lk(0, lk_latch_delete(gate));
}

/* Who waits as it opens, and looks only when it was deleted, was let through before. */
static void a_deleted_open_latch_lets_its_waiters_through(struct world *w)
{
    struct worker waiter;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    open_gate(w, "poll=500ms&pubsub=no", 0);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    start_waiting(&waiter, w);
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_delete(gate));
    assert_lk(0, lk_latch_info(gate, &info));
    assert_int_equal(0, info.set + info.opened + info.deleted);
    assert_lk(ENOENT, lk_latch_waitfor(gate, 50)); /* of the next run */
    assert_lk(0, worker_join(&waiter));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_between(world_pttl(w, "latchkey:opened:{gate}"), 1, 600000); /* for those who waited */
}

/* Nobody counted down: after a time the name is free again, and who waits is told. */
static void a_forgotten_count_ends(struct world *w)
{
    struct worker waiter;
    open_gate(w, "poll=100ms", TTL_MS);
    lk_latch_t *lasting = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    assert_between(world_pttl(w, "gate"), 1, TTL_MS);
    start_waiting(&waiter, w);
    assert_lk(0, lk_latch_countdown(lasting)); /* which leaves the end as it is */
    assert_between(world_pttl(w, "gate"), 1, TTL_MS);
    int64_t began_ms = now_ms();
    world_redis(w, "PEXPIRE gate %d", END_MS); /* most of its time later */
    assert_lk(ESTALE, worker_join(&waiter));
    assert_between(now_ms() - began_ms, END_MS - 20, END_MS + 220 + SLACK_MS);
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(ENOENT, lk_latch_waitfor(gate, 0));
    assert_lk(0, lk_latch_trysetcount(gate, 1)); /* not EEXIST */
    assert_lk(0, lk_latch_setcount(lasting, 1)); /* replaced with its end */
    assert_int_equal(-1, world_pttl(w, "gate"));
    assert_lk(0, lk_latch_setcount(gate, 1));
    assert_between(world_pttl(w, "gate"), 1, TTL_MS);
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_wait(gate)); /* it opened in time: as ever */
}

static void attributes_are_checked(struct world *w)
{
    static const int64_t odd[] = { -1, 1, 99, 367 * INT64_C(86400000), INT64_MAX };
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    lk_latch_t other;
    open_gate(w, "", 366 * INT64_C(86400000));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_true(world_pttl(w, "gate") > 365 * INT64_C(86400000));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        attr.ttl_ms = odd[i];
        assert_lk(EINVAL, lk_latch_init(&other, client, "gate", &attr));
        assert_non_null(strstr(lk_errortext(), "ttl_ms"));
    }
    attr.ttl_ms = 100;
    attr.appear = 2;
    assert_lk(EINVAL, lk_latch_init(&other, client, "gate", &attr));
    assert_lk(0, lk_latch_delete(gate));
}

/* Waiting for what nobody set would be waiting for ever, or not at all: it is an error. */
static void never_set_is_enoent(struct world *w)
{
    open_gate(w, "", 0);
    assert_lk(ENOENT, lk_latch_wait(gate));
    assert_lk(ENOENT, lk_latch_waitfor(gate, 1000));
    assert_string_equal("", world_keys(w));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_string_equal("latchkey:once:{gate}", world_keys(w)); /* copies of the two do not count later */
}

/* A late comer learns that it opened, as long as the mark is there. */
static void an_opened_one_is_open_for_ten_minutes(struct world *w)
{
    open_gate(w, "", 0);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_between(world_pttl(w, "latchkey:opened:{gate}"), 590000, 600000);
    assert_lk(0, lk_latch_wait(gate));
    world_redis(w, "DEL latchkey:opened:{gate}"); /* ten minutes later */
    assert_lk(ENOENT, lk_latch_wait(gate));
}

/* The server lost its data while we waited: to say "open" would start what must not start. */
static void lost_data_is_estale(struct world *w)
{
    static const char *const losses[] = { "FLUSHALL", "DEL gate", "CLIENT KILL TYPE pubsub" };
    static const char *const options[] = { "poll=200ms", "poll=200ms&pubsub=no" };
    for (int i = 0; i < 2; i++) {
        open_gate(w, options[i], 0);
        for (int k = 0; k < 2; k++) {
            struct worker waiter;
            assert_lk(0, lk_latch_trysetcount(gate, 1)); /* one opened before: its mark is not for this count */
            assert_lk(0, lk_latch_countdown(gate));
            assert_lk(0, lk_latch_trysetcount(gate, 2));
            start_waiting(&waiter, w);
            world_redis(w, losses[2]);
            world_redis(w, losses[k]);
            int64_t lost_ms = now_ms();
            assert_int_equal(ESTALE, worker_join(&waiter));
            assert_between(now_ms() - lost_ms, 0, 240 + 100 + SLACK_MS);
            assert_lk(ENOENT, lk_latch_wait(gate)); /* who did not see it cannot know that there was one */
            assert_lk(ENOENT, lk_latch_countdown(gate));
        }
        world_close(w, client);
    }
}

/* The server hears of the subscription late, and the latch opens before: the message finds nobody. */
static void an_opening_before_the_subscription_stands_is_seen(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker waiter;
    unsigned count;
    lk_latch_t *opened = world_latch(w, world_client(w, "lease=20s"), "gate");
    lk_latch_t *awaited = world_latch(w, proxy_client(p, "lease=20s&poll=10s"), "gate");
    assert_lk(0, lk_latch_trysetcount(opened, 1));
    assert_lk(0, lk_latch_getcount(awaited, &count)); /* from now on the server knows the script */

    proxy_once(p, PROXY_HOLD_REQUEST, 1, "*2\r\n$9\r\nSUBSCRIBE");
    int64_t looks = world_commands(w, "evalsha");
    worker_start(&waiter, wait_for_it, awaited);
    eventually(proxy_faults(p) == 1, 5000);
    eventually(world_commands(w, "evalsha") >= looks + 2, 5000); /* it looked for the last time */
    assert_lk(0, lk_latch_countdown(opened));
    int64_t began_ms = now_ms();
    proxy_release(p);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 3000); /* polls are 8 s apart at least */
}

int main(void)
{
    return world_run(a_count_is_replaced, waiters_go_on_to_the_new_count, a_deleted_open_latch_lets_its_waiters_through,
                     a_forgotten_count_ends, attributes_are_checked, never_set_is_enoent,
                     an_opened_one_is_open_for_ten_minutes, lost_data_is_estale,
                     an_opening_before_the_subscription_stands_is_seen);
}
