/* SPDX-License-Identifier: MIT */
/*
 * appear_test.c - who waits with `appear` may come before the count is set, and is not let through by another one
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 6
 */
#include "world.h"

#include <string.h>

#define CHANNEL "redisson_countdownlatch__channel__{gate}"

enum { SOON_MS = 3000 }; /* polls are 4 s apart at least */

static lk_client_t *client;
static lk_latch_t *gate, *awaited;

/* The waiter's client is another one. */
static void open_gate(struct world *w, const char *options)
{
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    attr.appear = 1;
    client = world_client(w, "");
    gate = world_latch(w, client, "gate");
    awaited = world_latchwith(w, world_client(w, options), "gate", &attr);
}

static int wait_for_it(void *latch)
{
    return lk_latch_waitfor(latch, 8000); /* what is missed fails, and does not hang */
}

static bool is_waiting(const struct worker *waiter)
{
    return pthread_tryjoin_np(waiter->thread, NULL) == EBUSY;
}

/* It has looked, subscribed, and looked again. */
static void start_waiting(struct worker *waiter, struct world *w)
{
    int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
    worker_start(waiter, wait_for_it, awaited);
    eventually(world_commands(w, "evalsha") + world_commands(w, "eval") >= before + 2, 5000);
    sleep_ms(50);
}

static void open_at_once(void)
{
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
}

/* It hears of the count and of its end: neither costs a poll. */
static void it_waits_for_a_count_and_then_for_its_end(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    assert_lk(ENOENT, lk_latch_waitfor(gate, 50)); /* without the attribute */
    start_waiting(&waiter, w);
    int64_t looks = world_commands(w, "evalsha");
    sleep_ms(500);
    assert_between(world_commands(w, "evalsha") - looks, 0, 1);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    assert_lk(0, lk_latch_countdown(gate));
    sleep_ms(100);
    assert_true(is_waiting(&waiter));
    int64_t began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, SOON_MS);
    assert_lk(0, lk_latch_waitfor(awaited, 0)); /* late, and it is open */
}

/* Set and opened between two looks: the mark tells. */
static void a_count_that_came_and_went_is_seen(struct world *w)
{
    struct worker waiter;
    open_gate(w, "poll=300ms&pubsub=no");
    for (int i = 0; i < 3; i++) {
        start_waiting(&waiter, w);
        open_at_once();
        if (i == 1)
            assert_lk(0, lk_latch_trysetcount(gate, 1)); /* the next one is not for this waiter */
        if (i == 2)
            assert_lk(0, lk_latch_delete(gate)); /* nor is that: it began before */
        assert_lk(0, worker_join(&waiter));
        if (i < 2)
            assert_lk(0, lk_latch_delete(gate));
    }
}

/* Of a run that is over: open it lets through, deleted it is as if it had never been. */
static void the_last_run_is_not_taken_for_this_one(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    open_at_once();
    assert_lk(0, lk_latch_waitfor(awaited, 50));
    assert_lk(0, lk_latch_delete(gate));
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_lk(ENOENT, lk_latch_waitfor(gate, 50));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(awaited, 50));
    assert_non_null(strstr(lk_errortext(), "was not given a count within the time"));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(awaited, 0));
    start_waiting(&waiter, w);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    sleep_ms(100);
    assert_true(is_waiting(&waiter));
    assert_lk(0, lk_latch_delete(gate)); /* now it is this waiter's */
    assert_lk(ECANCELED, worker_join(&waiter));
    assert_lk(ECANCELED, lk_latch_wait(gate));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(awaited, 50));
    start_waiting(&waiter, w);
    open_at_once();
    assert_lk(0, worker_join(&waiter));
}

/* One that had appeared and is lost is lost: the next one may be another run's. */
static void a_count_that_appeared_may_vanish(struct world *w)
{
    struct worker waiter;
    open_gate(w, "poll=100ms");
    start_waiting(&waiter, w);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    int64_t looks = world_commands(w, "evalsha");
    eventually(world_commands(w, "evalsha") > looks + 1, 5000);
    world_redis(w, "DEL gate");
    assert_lk(ESTALE, worker_join(&waiter));
}

/* Java leaves no mark: its message says that a count came and went. */
static void javas_latch_appears(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s&redisson=yes");
    for (int quick = 0; quick < 2; quick++) {
        start_waiting(&waiter, w);
        world_redis(w, "SET gate 1");
        world_redis(w, "PUBLISH " CHANNEL " 1");
        sleep_ms(quick ? 0 : 100);
        assert_int_equal(0, world_int(w, "DECR gate"));
        world_redis(w, "DEL gate");
        world_redis(w, "PUBLISH " CHANNEL " 0");
        int64_t began_ms = now_ms();
        assert_lk(0, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, SOON_MS);
    }
}

/* Closing and destroying treat it as any wait. */
static void close_ends_it(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    attr.appear = 1;
    awaited = world_latchwith(w, client, "gate", &attr);
    start_waiting(&waiter, w);
    assert_lk(EBUSY, lk_latch_destroy(awaited));
    assert_lk(0, close_by_hand(w, client));
    assert_lk(ECANCELED, worker_join(&waiter));
}

int main(void)
{
    return world_run(it_waits_for_a_count_and_then_for_its_end, a_count_that_came_and_went_is_seen,
                     the_last_run_is_not_taken_for_this_one, a_count_that_appeared_may_vanish, javas_latch_appears,
                     close_ends_it);
}
