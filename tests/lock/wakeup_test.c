/* SPDX-License-Identifier: MIT */
/*
 * wakeup_test.c - an unlock wakes the next waiter; where no message can come, polling finds the mutex free
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>

static lk_mutex_t *held, *wanted;
static int64_t got_ms; /* when the waiter had it */

static void open_both(struct world *w, const char *holder_options, const char *waiter_url)
{
    held = world_mutex(w, world_client(w, holder_options), "orders", NULL);
    wanted = world_mutex(w, world_client_at(w, NULL, waiter_url), "orders", NULL);
}

static int wait_for_it(void *arg)
{
    lk_mutex_t *m = arg;
    int rc = lk_mutex_lock(m);
    if (rc != 0)
        return rc;
    got_ms = now_ms();
    return lk_mutex_unlock(m);
}

/* Let `waiter` wait until it is in the queue, and for `then_ms` more; how long after the unlock did it get it? */
static int64_t wake_after_ms(struct world *w, int64_t then_ms)
{
    struct worker waiter;
    int64_t unlocked_ms;
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, wait_for_it, wanted);
    eventually(world_queued(w, "orders") == 1, 5000);
    sleep_ms(then_ms);
    unlocked_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
    assert_false(world_exists(w, "orders"));
    assert_int_equal(0, world_queued(w, "orders"));
    return got_ms - unlocked_ms;
}

/* Waiting must not cost what the poll ceiling is: the message brings it at once. */
static void an_unlock_wakes_a_waiter_long_before_its_poll(struct world *w)
{
    open_both(w, "", world_url(w, "lease=20s&poll=5s"));
    assert_between(wake_after_ms(w, 100), 0, 1000 + SLACK_MS);
    assert_between(wake_after_ms(w, 0), 0, 1000 + SLACK_MS); /* also one that has only just begun to wait */
}

/* Threads of one client wait for each other as processes do. */
static void an_unlock_wakes_a_thread_of_the_same_client(struct world *w)
{
    struct worker waiter;
    held = world_mutex(w, world_client(w, "lease=20s&poll=5s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, wait_for_it, held);
    eventually(world_queued(w, "orders") == 1, 5000);
    int64_t unlocked_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(got_ms - unlocked_ms, 0, 1000 + SLACK_MS);
}

/* pubsub=no is for servers and proxies without it: slower, and as safe. */
static void without_pubsub_polling_finds_it(struct world *w)
{
    open_both(w, "", world_url(w, "pubsub=no&poll=100ms"));
    assert_between(wake_after_ms(w, 50), 0, 120 + SLACK_MS);
    assert_int_equal(0, world_commands(w, "subscribe"));
}

/* A user without rights on channels is no reason to fail: the library finds that out by itself. */
static void a_user_without_channels_polls(struct world *w)
{
    char url[256];
    world_redis(w, "ACL SETUSER worker on >secret ~* +@all resetchannels");
    snprintf(url, sizeof url, "unix://worker:secret@%s?poll=100ms", w->socket);
    open_both(w, "", url);
    assert_between(wake_after_ms(w, 50), 0, 120 + SLACK_MS);
}

/* Nor does such a user's unlock fail, which may not publish: the others' polls find the mutex. */
static void an_unlock_that_may_not_publish_still_frees_it(struct world *w)
{
    char url[256];
    world_redis(w, "ACL SETUSER worker on >secret ~* +@all resetchannels");
    snprintf(url, sizeof url, "unix://worker:secret@%s?poll=100ms", w->socket);
    open_both(w, "poll=100ms", url);
    struct worker waiter;
    assert_lk(0, lk_mutex_lock(wanted));
    worker_start(&waiter, wait_for_it, held);
    eventually(world_queued(w, "orders") == 1, 5000);
    int64_t unlocked_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(wanted));
    assert_int_equal(0, worker_join(&waiter));
    assert_between(got_ms - unlocked_ms, 0, 120 + SLACK_MS);
}

int main(void)
{
    return world_run(an_unlock_wakes_a_waiter_long_before_its_poll, an_unlock_wakes_a_thread_of_the_same_client,
                     without_pubsub_polling_finds_it, a_user_without_channels_polls,
                     an_unlock_that_may_not_publish_still_frees_it);
}
