/* SPDX-License-Identifier: MIT */
/*
 * events_test.c - whoever listens hears what happens to holds, once, and delays nobody
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 30
 */
#include "proxy.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { HEARD_MAX = 64 };

static lk_client_t *client;
static lk_mutex_t *orders;

static struct {
    pthread_mutex_t mu;
    int count;
    lk_event_t events[HEARD_MAX];
    int64_t sleeps_ms;
} heard = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void hear(const lk_event_t *event, void *arg)
{
    pthread_mutex_lock(&heard.mu);
    if (heard.count < HEARD_MAX && arg == &heard)
        heard.events[heard.count++] = *event;
    pthread_mutex_unlock(&heard.mu);
    sleep_ms(heard.sleeps_ms);
}

static int heard_of(const char *name, int type)
{
    int count = 0;
    pthread_mutex_lock(&heard.mu);
    for (int i = 0; i < heard.count; i++)
        count += heard.events[i].type == type && strcmp(heard.events[i].name, name) == 0;
    pthread_mutex_unlock(&heard.mu);
    return count;
}

static void open_orders(struct world *w, const char *options)
{
    heard.count = 0;
    heard.sleeps_ms = 0;
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

/* A key that vanished is a lost hold; it is told at the next renewal, and the hold does not come back. */
static void a_hold_the_server_forgot_is_told_once(struct world *w)
{
    uint64_t token;
    open_orders(w, "lease=3s");
    assert_lk(0, lk_client_addlistener(client, hear, &heard, NULL));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    world_redis(w, "DEL orders");
    eventually(heard_of("orders", LK_EVENT_LOST) == 1, 1000 + SLACK_MS);
    assert_int_equal(LK_REASON_GONE, heard.events[heard.count - 1].reason);
    assert_true(heard.events[heard.count - 1].token == token);
    assert_true(heard.events[heard.count - 1].remaining_ms == 0);
    sleep_ms(1100); /* a renewal later */
    assert_int_equal(1, heard_of("orders", LK_EVENT_LOST));
    assert_false(world_exists(w, "orders"));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

/* A server that pauses: first at risk, with the time that is left, then well again. */
static void a_short_pause_is_a_risk_and_a_recovery(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    int64_t left_ms;
    open_orders(w, "lease=6s&command_timeout=1s");
    lk_events_t *queue = world_events(w, client);
    assert_lk(0, lk_mutex_lock(orders));
    world_stop_server(w);
    struct pollfd events = { .events = POLLIN };
    assert_lk(0, lk_events_fd(queue, &events.fd));
    assert_int_equal(1, poll(&events, 1, 6000));
    assert_lk(0, lk_events_next(queue, &event));
    assert_int_equal(LK_EVENT_AT_RISK, event.type);
    assert_between(event.remaining_ms, 1, 2000);
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    world_cont_server(w);
    assert_int_equal(1, poll(&events, 1, 6000));
    assert_lk(0, lk_events_next(queue, &event));
    assert_int_equal(LK_EVENT_RECOVERED, event.type);
    assert_between(event.remaining_ms, 2000, 6000);
    assert_lk(EAGAIN, lk_events_next(queue, &event));
    assert_int_equal(0, poll(&events, 1, 0));
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* The same when there is not even a connection: it does not matter why there was no renewal. */
static void a_server_that_is_gone_is_a_risk(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    for (int killed = 0; killed < 2; killed++) {
        open_orders(w, "lease=3s&command_timeout=200ms");
        lk_events_t *queue = world_events(w, client);
        int64_t locked_ms = now_ms();
        assert_lk(0, lk_mutex_lock(orders));
        world_redis(w, "CLIENT KILL TYPE normal");
        if (killed)
            world_kill_server(w);
        else
            world_stop_server(w);
        struct pollfd events = { .events = POLLIN };
        assert_lk(0, lk_events_fd(queue, &events.fd));
        int64_t began_ms = now_ms();
        assert_int_equal(1, poll(&events, 1, 4000));
        assert_that(now_ms() - locked_ms >= 1900);
        assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
        assert_lk(0, lk_events_next(queue, &event));
        assert_int_equal(LK_EVENT_AT_RISK, event.type);
        assert_int_equal(1, poll(&events, 1, 4000));
        assert_lk(0, lk_events_next(queue, &event));
        assert_int_equal(LK_EVENT_LOST, event.type);
        assert_int_equal(LK_REASON_EXPIRED, event.reason);
        assert_that(now_ms() - locked_ms >= 2900);
        assert_between(now_ms() - began_ms, 0, 3000 + SLACK_MS);
        assert_lk(ESTALE, lk_mutex_unlock(orders));
        if (killed)
            world_restart_server(w);
        else
            world_cont_server(w);
        world_close(w, queue);
        world_close(w, orders);
        close_by_hand(w, client); /* EIO where the server is only just back */
    }
}

/* A renewal that fails is repeated, and most often that was all: an alarm would be one too many. */
static void a_failed_renewal_is_no_risk_yet(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_event_t event = LK_EVENT_INIT;
    client = proxy_client(p, "lease=6s&command_timeout=800ms");
    orders = world_mutex(w, client, "orders", NULL);
    lk_events_t *queue = world_events(w, client);
    assert_lk(0, lk_mutex_lock(orders));
    proxy_once(p, PROXY_DROP_REPLY, 1, "orders");
    eventually(proxy_faults(p) == 1, 2000 + SLACK_MS);
    eventually(world_pttl(w, "orders") > 5000, 1000 + SLACK_MS);
    sleep_ms(2000);
    assert_int_equal(1, proxy_faults(p));
    assert_lk(EAGAIN, lk_events_next(queue, &event));
    assert_lk(0, lk_mutex_unlock(orders));
}

static int visit_for_long(void *mutex)
{
    int rc = lk_mutex_lock(mutex);
    sleep_ms(2500); /* a claim of 3 s that nobody confirms is at risk after 2 s */
    return rc == 0 ? lk_mutex_unlock(mutex) : rc;
}

/* Who is handed a mutex has a claim at first, which is shorter than a lease, and is confirmed sooner. */
static void a_hand_over_is_no_risk(struct world *w)
{
    struct worker visitor;
    lk_event_t event = LK_EVENT_INIT;
    open_orders(w, "lease=9s&poll=3s");
    lk_client_t *other = world_client(w, "lease=9s&poll=3s");
    lk_mutex_t *theirs = world_mutex(w, other, "orders", NULL);
    lk_events_t *queue = world_events(w, client);
    lk_events_t *their_queue = world_events(w, other);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&visitor, visit_for_long, theirs);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, visit_for_long(orders));
    assert_lk(0, worker_join(&visitor));
    assert_lk(EAGAIN, lk_events_next(queue, &event));
    assert_lk(EAGAIN, lk_events_next(their_queue, &event));
}

/* A program's slow callback is its own affair: other holds are renewed meanwhile. */
static void a_listener_that_sleeps_costs_no_other_hold_its_lease(struct world *w)
{
    enum { OTHERS = 20, LEASE_MS = 3000 };
    static lk_mutex_t *others[OTHERS];
    char name[16];
    int64_t left_ms;
    open_orders(w, "lease=3s");
    heard.sleeps_ms = LEASE_MS * 3 / 2;
    assert_lk(0, lk_client_addlistener(client, hear, &heard, NULL));
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other-%d", i);
        others[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(others[i]));
    }
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "DEL orders");
    eventually(heard_of("orders", LK_EVENT_LOST) == 1, LEASE_MS);
    for (int64_t until_ms = now_ms() + LEASE_MS * 3 / 2; now_ms() < until_ms; sleep_ms(50))
        for (int i = 0; i < OTHERS; i++)
            assert_lk(0, lk_mutex_remaining(others[i], &left_ms));
    for (int i = 0; i < OTHERS; i++) {
        assert_lk(0, lk_mutex_unlock(others[i]));
        world_close(w, others[i]);
    }
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_int_equal(1, heard.count);
}

/* What a listener may do: use the library. What it may not: end the client it runs in. */
static void lock_and_close(const lk_event_t *event, void *arg)
{
    lk_mutex_t m;
    int *codes = arg;
    (void)event;
    codes[0] = lk_mutex_init(&m, client, "from-a-listener", NULL);
    codes[1] = lk_mutex_lock(&m);
    codes[2] = lk_mutex_unlock(&m);
    codes[3] = lk_mutex_destroy(&m);
    __atomic_store_n(&codes[4], lk_client_close(client), __ATOMIC_RELEASE);
}

static void a_listener_may_lock_but_not_close(struct world *w)
{
    int codes[5] = { -1, -1, -1, -1, -1 };
    open_orders(w, "lease=3s");
    assert_lk(0, lk_client_addlistener(client, lock_and_close, codes, NULL));
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "DEL orders");
    eventually(__atomic_load_n(&codes[4], __ATOMIC_ACQUIRE) != -1, 5000);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, codes[i]);
    assert_int_equal(EDEADLK, codes[4]);
}

/* A loss that the listener had no time for is told before the client is gone. */
static void a_close_drops_no_loss(struct world *w)
{
    lk_mutex_t *others[3];
    char name[16];
    open_orders(w, "lease=3s");
    heard.sleeps_ms = 200;
    assert_lk(0, lk_client_addlistener(client, hear, &heard, NULL));
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "other-%d", i);
        others[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(others[i]));
        world_redis(w, "DEL %s", name);
    }
    for (int i = 0; i < 3; i++) {
        assert_lk(ESTALE, lk_mutex_unlock(others[i]));
        world_close(w, others[i]);
    }
    world_close(w, client);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "other-%d", i);
        assert_int_equal(1, heard_of(name, LK_EVENT_LOST));
    }
}

/* When lk_client_removelistener() returns, the memory of the listener may go. */
static void a_listener_that_was_removed_is_silent(struct world *w)
{
    uint64_t handle;
    open_orders(w, "lease=3s");
    assert_lk(0, lk_client_addlistener(client, hear, &heard, &handle));
    assert_lk(0, lk_client_removelistener(client, handle));
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "DEL orders");
    sleep_ms(1200); /* a renewal later */
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_int_equal(0, heard.count);
}

int main(void)
{
    return world_run(a_hold_the_server_forgot_is_told_once, a_short_pause_is_a_risk_and_a_recovery,
                     a_failed_renewal_is_no_risk_yet, a_hand_over_is_no_risk, a_server_that_is_gone_is_a_risk,
                     a_listener_that_sleeps_costs_no_other_hold_its_lease, a_listener_may_lock_but_not_close,
                     a_close_drops_no_loss, a_listener_that_was_removed_is_silent);
}
