/* SPDX-License-Identifier: MIT */
/*
 * wait_test.c - everybody wakes at zero, by a message or by polling; nobody before, nobody late
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

static lk_client_t *client, *waiter_client;
static lk_latch_t *gate, *wanted;
static int64_t woke_ms;   /* when the waiter returned */
static int64_t waited_ms; /* how long it had been waiting when the count was zero */

enum { SOON_MS = 3000 }; /* where polls are 4 s apart at least */

static void open_both(struct world *w, const char *waiter_url)
{
    client = world_client(w, "");
    waiter_client = world_client_at(w, NULL, waiter_url);
    gate = world_latch(w, client, "gate");
    wanted = world_latch(w, waiter_client, "gate");
}

static int wait_for_it(void *arg)
{
    int rc = lk_latch_waitfor(arg, 8000); /* what is missed fails, and does not hang */
    woke_ms = now_ms();
    return rc;
}

/* Does a thread of this client, which has one latch, wait? */
static bool is_waiting(lk_client_t *waiting)
{
    char *json;
    assert_lk(0, lk_client_stats(waiting, &json));
    const char *latch = strstr(json, "\"gate\"");
    bool nobody = latch == NULL || strstr(latch, "\"waiting\": 0") != NULL;
    lk_free(json);
    return !nobody;
}

/* How long after the countdown does the waiter return, which waits with a poll ceiling of 5 s? */
static int64_t wake_after_ms(int64_t then_ms)
{
    struct worker waiter;
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    int64_t began_ms = now_ms();
    worker_start(&waiter, wait_for_it, wanted);
    sleep_ms(then_ms);
    int64_t counted_ms = now_ms();
    waited_ms = counted_ms - began_ms;
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, worker_join(&waiter));
    return woke_ms - counted_ms;
}

static void zero_wakes_long_before_the_poll(struct world *w)
{
    open_both(w, world_url(w, "lease=20s&poll=5s"));
    assert_between(wake_after_ms(200), 0, SOON_MS);
    for (int i = 0; i < 10; i++) /* at every stage of beginning to wait */
        assert_between(wake_after_ms(i / 3), -100, SOON_MS);
}

static void without_pubsub_polling_finds_it(struct world *w)
{
    open_both(w, world_url(w, "pubsub=no&poll=100ms"));
    assert_between(wake_after_ms(150), 0, 120 + SLACK_MS);
    assert_int_equal(0, world_commands(w, "subscribe"));
}

/* The first looks come soon after each other, however seldom the later ones. */
static void without_pubsub_it_is_found_soon(struct world *w)
{
    open_both(w, world_url(w, "lease=20s&pubsub=no&poll=5s"));
    int64_t after_ms = wake_after_ms(150);
    assert_between(after_ms, 0, 500 + 2 * (waited_ms - 150) + SLACK_MS); /* the pauses grow with the wait */
}

/* A user without rights on channels is no reason to fail, neither to wait nor to count down. */
static void a_user_without_channels_polls(struct world *w)
{
    char url[256];
    world_redis(w, "ACL SETUSER worker on >secret ~* +@all resetchannels");
    snprintf(url, sizeof url, "unix://worker:secret@%s?poll=100ms", w->socket);
    open_both(w, url);
    assert_between(wake_after_ms(150), 0, 120 + SLACK_MS);
    assert_lk(0, lk_latch_trysetcount(wanted, 1));
    assert_lk(0, lk_latch_countdown(wanted));
    assert_lk(0, lk_latch_wait(gate));
}

/* The message gets lost with its connection: at the latest the poll finds it. */
static void a_lost_message_costs_one_poll(struct world *w)
{
    struct worker waiter;
    open_both(w, world_url(w, "lease=20s&poll=1s"));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    worker_start(&waiter, wait_for_it, wanted);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch__channel__{gate}") == 1, 5000);
    int64_t counted_ms = now_ms();
    world_redis(w, "MULTI");
    world_redis(w, "CLIENT KILL TYPE pubsub");
    world_redis(w, "SET latchkey:opened:{gate} %s PX 600000", "opened 4000000000000000");
    world_redis(w, "DEL gate");
    world_redis(w, "EXEC");
    assert_int_equal(0, worker_join(&waiter));
    assert_between(woke_ms - counted_ms, 0, 1200 + SLACK_MS);
}

static int64_t scripts(struct world *w)
{
    return world_commands(w, "evalsha") + world_commands(w, "eval");
}

/* Nor does an opening pass unseen while a new count is set at once: who waited for the first one returns. */
static void a_new_count_hides_no_opening(struct world *w)
{
    struct worker waiter;
    open_both(w, world_url(w, "pubsub=no&poll=200ms"));
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_latch_trysetcount(gate, 1));
        int64_t before = scripts(w);
        worker_start(&waiter, wait_for_it, wanted);
        eventually(scripts(w) >= before + 2, 5000); /* it has looked once, though the script was not known */
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_trysetcount(gate, 1));
        assert_int_equal(0, worker_join(&waiter));
        assert_lk(ETIMEDOUT, lk_latch_waitfor(wanted, 0)); /* who comes now waits for the new one */
        assert_lk(0, lk_latch_delete(gate));
    }
}

/* The time given bounds the wait, on each clock, and is not cut short. */
static void a_wait_ends_with_its_time(struct world *w)
{
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
    struct timespec until, past = { 1, 0 };
    open_both(w, world_url(w, ""));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    int64_t began_ms = now_ms();
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 300));
    assert_between(now_ms() - began_ms, 299, 300 + SLACK_MS);
    for (int i = 0; i < 3; i++) {
        clock_gettime(clocks[i], &until);
        until.tv_sec += 1;
        began_ms = now_ms();
        assert_lk(ETIMEDOUT, lk_latch_clockwait(gate, clocks[i], &until));
        assert_between(now_ms() - began_ms, 998, 1000 + SLACK_MS);
    }
    assert_lk(ETIMEDOUT, lk_latch_timedwait(gate, &past));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 0));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_timedwait(gate, &past)); /* an open one is seen, however late it is */
    assert_lk(0, lk_latch_waitfor(gate, LK_FOREVER));
}

/* So many messages have come to this client. */
static bool has_heard(lk_client_t *listening, const char *messages)
{
    char *json;
    assert_lk(0, lk_client_stats(listening, &json));
    bool so_many = strstr(json, messages) != NULL;
    lk_free(json);
    return so_many;
}

/* Waiting costs what the header says, however long it lasts: a look for each poll. */
static void nobody_spins(struct world *w)
{
    open_both(w, world_url(w, "lease=20s&poll=5s"));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(wanted, 50)); /* the script is known, and the channel heard */
    eventually(world_elements(w, "PUBSUB CHANNELS *") == 1, 5000);
    world_redis(w, "PUBLISH redisson_countdownlatch__channel__{gate} nothing");
    eventually(has_heard(waiter_client, "\"messages\": 1"), 5000); /* and that it subscribed, before */
    sleep_ms(20);
    int64_t before = world_commands(w, "evalsha");
    assert_lk(ETIMEDOUT, lk_latch_waitfor(wanted, 1000));
    assert_between(world_commands(w, "evalsha") - before, 3, 3); /* closed, closed and heard, time up */
    assert_lk(0, lk_latch_delete(gate));
}

/* Destroying what a thread waits for is refused; deleting it ends the wait. */
static void a_waiter_hears_of_the_deletion(struct world *w)
{
    struct worker waiter;
    open_both(w, world_url(w, "lease=20s&poll=5s"));
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    worker_start(&waiter, wait_for_it, wanted);
    eventually(is_waiting(waiter_client), 5000);
    sleep_ms(50);
    assert_lk(EBUSY, lk_latch_destroy(wanted));
    int64_t deleted_ms = now_ms();
    assert_lk(0, lk_latch_delete(gate));
    assert_int_equal(ECANCELED, worker_join(&waiter));
    assert_between(woke_ms - deleted_ms, 0, SOON_MS);
}

static int wait_in_thread(int index, void *arg)
{
    (void)index;
    return lk_latch_wait(arg);
}

WORK(wait_in_eight_threads, arg, run_threads(8, wait_in_thread, arg))

/* Closing the client ends the waits of all its threads, with and without pub/sub, at once. */
static void close_ends_every_wait(struct world *w)
{
    static const char *const options[] = { "lease=20s&poll=5s", "lease=20s&poll=5s&pubsub=no" };
    for (int i = 0; i < 2; i++) {
        struct worker waiters;
        client = world_client(w, options[i]);
        gate = world_latch(w, client, "gate");
        assert_lk(0, lk_latch_trysetcount(gate, 1));
        worker_start(&waiters, wait_in_eight_threads, gate);
        eventually(is_waiting(client), 5000);
        sleep_ms(i * 100);
        int64_t began_ms = now_ms();
        assert_lk(0, close_by_hand(w, client));
        assert_int_equal(ECANCELED, worker_join(&waiters));
        assert_between(now_ms() - began_ms, 0, SOON_MS);
        assert_lk(ECANCELED, lk_latch_wait(gate));
        assert_lk(ECANCELED, lk_latch_countdown(gate));
        world_close(w, gate);
        world_redis(w, "DEL gate");
    }
}

/* Many threads of one process share one subscription and all return. */
static void threads_share_a_subscription(struct world *w)
{
    struct worker waiters;
    open_both(w, world_url(w, "lease=20s&poll=5s"));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    worker_start(&waiters, wait_in_eight_threads, wanted);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch__channel__{gate}") == 1, 5000);
    sleep_ms(100);
    assert_int_equal(1, world_commands(w, "subscribe"));
    int64_t counted_ms = now_ms();
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, worker_join(&waiters));
    assert_between(now_ms() - counted_ms, 0, SOON_MS);
    world_close(w, client);
    world_close(w, waiter_client);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson*") == 0, 2000);
}

int main(void)
{
    return world_run(zero_wakes_long_before_the_poll, without_pubsub_polling_finds_it, without_pubsub_it_is_found_soon,
                     a_user_without_channels_polls, a_lost_message_costs_one_poll, a_new_count_hides_no_opening,
                     a_wait_ends_with_its_time, nobody_spins, a_waiter_hears_of_the_deletion, close_ends_every_wait,
                     threads_share_a_subscription);
}
