/* SPDX-License-Identifier: MIT */
/*
 * late_renewal_test.c - what a renewal means when its answer is late, lost, or about somebody else's hold
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 20
 */
#include "lock/scripts.h"
#include "proxy.h"

#include <poll.h>

static struct proxy *p;
static lk_client_t *client;
static lk_mutex_t *orders;

/* Fixed, so that only lk_mutex_extend() renews; with a lease of its own. */
static void open_free(struct world *w, int64_t lease_ms)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fixed = 1;
    attr.lease_ms = lease_ms;
    p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=6s");
    orders = world_mutex(w, client, "orders", &attr);
}

static void open_fixed(struct world *w, int64_t lease_ms)
{
    open_free(w, lease_ms);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_extend(orders, lease_ms)); /* from now on the server knows the scripts */
}

static struct gate held, stalled, lost, answered;

/* The holder: extends while no answer comes, and looks again when it has come. 0: it was lost and stayed so. */
static int extend_in_a_stall(void *arg)
{
    int64_t left_ms;
    int rc = lk_mutex_lock(orders);
    if (rc == 0)
        rc = lk_mutex_extend(orders, 2500);
    if (rc != 0)
        return rc;
    gate_open(&held);
    gate_pass(&stalled);
    int extended = lk_mutex_extend(orders, *(int64_t *)arg);
    gate_open(&lost);
    gate_pass(&answered);
    int looked = lk_mutex_remaining(orders, &left_ms), unlocked = lk_mutex_unlock(orders);
    return extended == ESTALE && looked == ESTALE && unlocked == ESTALE ? 0 : -1;
}

/* The server obeyed in time, and the answer comes when the validity has ended: what is lost stays lost. */
static void a_late_answer_revives_nothing(struct world *w)
{
    struct worker holder;
    int64_t lease_ms = 60000;
    open_free(w, 2500);
    worker_start(&holder, extend_in_a_stall, &lease_ms);
    gate_pass(&held);
    proxy_stall(p, PROXY_DOWN);
    gate_open(&stalled);
    eventually(world_pttl(w, "orders") > lease_ms / 2, 2500);
    gate_pass(&lost);
    proxy_resume(p);
    eventually(!world_exists(w, "orders"), 5000); /* what the server was made to believe is taken back */
    gate_open(&answered);
    assert_int_equal(0, worker_join(&holder));
}

/* The server's lease may have begun when the request was sent: it counts from then, not from the answer. */
static void validity_counts_from_before_the_request(struct world *w)
{
    int64_t left_ms;
    open_fixed(w, 6000);
    proxy_delay(p, 1000); /* each way: more than passes on a busy machine between the answer and the look */
    assert_lk(0, lk_mutex_extend(orders, 30000));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    proxy_delay(p, 0);
    assert_between(left_ms, 1, 30000 - 2 * 1000 - 30000 / 100);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* The server may have obeyed a request that asked for less, so less is what it counts for from then on. */
static void a_shorter_lease_counts_before_it_is_confirmed(struct world *w)
{
    int64_t left_ms;
    open_fixed(w, 20000);
    proxy_once(p, PROXY_DROP_REPLY, 1, "orders");
    assert_lk(ESTALE, lk_mutex_extend(orders, 300)); /* it ended while the answer was awaited */
    assert_lk(ESTALE, lk_mutex_remaining(orders, &left_ms));
    eventually(!world_exists(w, "orders"), SLACK_MS);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

/* A connection that ends under an extension, as one that was idle for long may, costs nothing but time. */
static void an_extension_is_sent_again(struct world *w)
{
    int64_t left_ms;
    open_fixed(w, 20000);
    for (int i = 0; i < 20; i++) {
        proxy_once(p, i % 2 == 0 ? PROXY_CUT_REPLY : PROXY_CUT_REQUEST, 1, "orders");
        assert_lk(0, lk_mutex_extend(orders, 20000));
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
        assert_true(left_ms > 20000 - SLACK_MS);
    }
    assert_lk(0, lk_mutex_unlock(orders));
}

/* What went astray may have been obeyed: when the time is over it is never said that nothing was done. */
static void an_extension_without_an_answer_is_eio(struct world *w)
{
    p = proxy_begin(w);
    orders = world_mutex(w, proxy_client(p, "lease=20s&command_timeout=1s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    proxy_stall(p, PROXY_DOWN);
    assert_lk(EIO, lk_mutex_extend(orders, 20000));
    proxy_resume(p);
    eventually(lk_mutex_extend(orders, 20000) == 0, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* The next event of a client, which comes within `ms` and without anybody asking for the hold. */
static int next_event(lk_events_t *queue, int64_t ms)
{
    lk_event_t event = LK_EVENT_INIT;
    struct pollfd events = { .events = POLLIN };
    assert_lk(0, lk_events_fd(queue, &events.fd));
    assert_int_equal(1, poll(&events, 1, (int)ms));
    assert_lk(0, lk_events_next(queue, &event));
    return event.type;
}

/* A validity ends by the clock of this machine, and that is told then: no answer is needed, nor any question. */
static void a_loss_is_told_when_it_happens(struct world *w)
{
    open_free(w, 500);
    lk_events_t *events = world_events(w, client); /* before it can be lost */
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(LK_EVENT_LOST, next_event(events, 500 + SLACK_MS));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

/* What was given back early, is kept, and was looked at a moment ago: no request that comes now has changed that. */
static void assert_kept(struct world *w, int64_t left_ms)
{
    int64_t began_ms = now_ms();
    assert_true(left_ms > 0);
    proxy_release(p);
    sleep_ms(100);
    int64_t then_ms = world_pttl(w, "orders");
    assert_between(then_ms, left_ms - (now_ms() - began_ms) - SLACK_MS, left_ms);
    assert_int_equal(0, world_queued(w, "orders"));
    world_redis(w, "DEL orders");
}

/* A name that is given back before its least time is taken for that, and not for the lease of a request that comes late. */
static void what_comes_late_leaves_a_kept_name_alone(struct world *w)
{
    static const int64_t least_ms[] = { 4000, 60000 }; /* less, and more, than the lease of the renewal */
    p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=4s");
    for (int i = 0; i < 2; i++) {
        lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
        attr.min_hold_ms = least_ms[i];
        orders = world_mutex(w, client, "orders", &attr);
        proxy_once(p, PROXY_COPY_REQUEST, 1, "orders");
        assert_lk(0, lock_and_unlock(orders));
        assert_kept(w, world_pttl(w, "orders"));
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_extend(orders, 6000)); /* so it is renewed in two seconds */
        int64_t before = proxy_faults(p);
        proxy_once(p, PROXY_HOLD_REQUEST, 1, lk__lua_lock_renew.sha1[LK__PUBSUB_PLAIN]);
        eventually(proxy_faults(p) > before, 5000);
        assert_lk(0, lk_mutex_unlock(orders));
        assert_kept(w, world_pttl(w, "orders"));
        world_close(w, orders);
    }
}

/* Renewals that had no connection go out when there is one again. */
static void a_renewal_goes_out_when_the_connection_is_back(struct world *w)
{
    p = proxy_begin(w);
    lk_client_t *cut = proxy_client(p, "lease=6s");
    lk_events_t *events = world_events(w, cut);
    lk_mutex_t *renewed = world_mutex(w, cut, "orders", NULL);
    assert_lk(0, lk_mutex_lock(renewed));
    eventually(world_counter(w, "connected_clients") == 3, 5000); /* the test's, for commands, for renewals */
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_int_equal(LK_EVENT_AT_RISK, next_event(events, 4000 + SLACK_MS));
    proxy_refuse(p, false);
    assert_int_equal(LK_EVENT_RECOVERED, next_event(events, 2000 + SLACK_MS));
    assert_lk(0, lk_mutex_unlock(renewed));
}

/* Who was robbed learns it by its renewal, which leaves the lease of the next holder alone. */
static void the_next_holder_is_left_alone(struct world *w)
{
    int64_t left_ms;
    lk_mutex_t *renewed = world_mutex(w, world_client(w, "lease=2s"), "stock", NULL);
    assert_lk(0, lk_mutex_lock(renewed));
    world_redis(w, "MULTI");
    world_redis(w, "DEL stock");
    world_redis(w, "HSET stock somebody:1 1");
    world_redis(w, "PEXPIRE stock 60000");
    world_redis(w, "EXEC");
    eventually(lk_mutex_remaining(renewed, &left_ms) == ESTALE, 2000 + SLACK_MS);
    assert_between(world_pttl(w, "stock"), 30000, 60000);
    assert_lk(ESTALE, lk_mutex_unlock(renewed));
    assert_string_equal("somebody:1", world_owner(w, "stock"));
    world_redis(w, "DEL stock");
}

int main(void)
{
    return world_run(a_late_answer_revives_nothing, validity_counts_from_before_the_request,
                     a_shorter_lease_counts_before_it_is_confirmed, an_extension_is_sent_again,
                     an_extension_without_an_answer_is_eio,
                     a_loss_is_told_when_it_happens, what_comes_late_leaves_a_kept_name_alone,
                     a_renewal_goes_out_when_the_connection_is_back, the_next_holder_is_left_alone);
}
