/* SPDX-License-Identifier: MIT */
/*
 * lost_answers_test.c - requests and answers get lost, late or doubled on the way, and still happen once
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "proxy.h"

enum { COMMAND_MS = 500 };

static struct proxy *p;
static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    p = proxy_begin(w);
    client = proxy_client(p, "lease=5s&command_timeout=500ms");
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY };
static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
enum { CUTS = sizeof cuts / sizeof cuts[0], FAULTS = sizeof faults / sizeof faults[0] };

/* Let the fault befall the next request of the mutex, which is a call's: nothing is under way behind earlier ones. */
static void arm(enum proxy_fault fault)
{
    eventually(client_settled(client), 5000);
    proxy_once(p, fault, 1, "orders");
}

/* Whatever is lost: lock() returns with one hold of one grant. */
static void a_lock_is_granted_once(struct world *w)
{
    uint64_t token;
    open_orders(w);
    for (int i = 0; i < FAULTS; i++) {
        int64_t fault = proxy_faults(p), last = world_int(w, "GET redisson_lock_token:{orders}");
        arm(faults[i]);
        assert_lk(0, lk_mutex_lock(orders));
        assert_int_equal(fault + 1, proxy_faults(p));
        assert_lk(0, lk_mutex_token(orders, &token));
        assert_true((int64_t)token > last);
        assert_int_equal((int64_t)token, world_int(w, "GET redisson_lock_token:{orders}"));
        assert_int_equal(1, world_holds(w, "orders"));
        assert_int_equal(1, world_int(w, "HLEN orders"));
        assert_lk(0, lk_mutex_unlock(orders));
        proxy_release(p); /* the copy that was held back comes after all, and may be just within its deadline */
        sleep_ms(50);
        eventually(!world_exists(w, "orders"), 3 * COMMAND_MS);
    }
}

/* Nor is a level counted twice, on the way down or up. */
static void a_level_is_counted_once(struct world *w)
{
    open_orders(w);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < CUTS; i++) {
        arm(cuts[i]);
        assert_lk(0, lk_mutex_lock(orders));
        assert_int_equal(2, world_holds(w, "orders"));
        arm(cuts[i]);
        assert_lk(0, lk_mutex_unlock(orders));
        assert_int_equal(1, world_holds(w, "orders"));
    }
    assert_lk(0, lk_mutex_unlock(orders));
}

/*
 * The connection ends while a request is on its way, and the request arrives when all is over: the caller
 * asked again, was served and gave back. The late copy must not leave the mutex to nobody.
 */
static void a_late_copy_leaves_no_orphan(struct world *w)
{
    open_orders(w);
    for (int i = 0; i < 3; i++) {
        arm(PROXY_PARK_REQUEST);
        assert_lk(0, i == 0   ? lk_mutex_lock(orders)
                     : i == 1 ? lk_mutex_trylock(orders)
                              : lk_mutex_lockfor(orders, 1000));
        assert_lk(0, lk_mutex_unlock(orders));
        proxy_release(p);
        sleep_ms(50);
        eventually(!world_exists(w, "orders"), 3 * COMMAND_MS); /* a lease is 5 s */
        assert_lk(0, lk_mutex_trylock(orders));
        arm(PROXY_PARK_REQUEST);
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_unlock(orders));
        arm(PROXY_PARK_REQUEST); /* the one before still is parked */
        assert_lk(0, lk_mutex_unlock(orders));
        proxy_release(p);
        sleep_ms(50);
        assert_false(world_exists(w, "orders"));
    }
}

/* An unlock whose answer is lost with its connection is asked again, and is no loss of the lease. */
static void an_unlock_is_confirmed(struct world *w)
{
    open_orders(w);
    for (int i = 0; i < CUTS; i++) {
        assert_lk(0, lk_mutex_lock(orders));
        arm(cuts[i]);
        assert_lk(0, lk_mutex_unlock(orders));
        assert_false(world_exists(w, "orders"));
    }
}

/* An answer that does not come in time leaves the outcome open, says so, and it is cleaned up behind. */
static void an_unlock_without_an_answer_is_eio(struct world *w)
{
    open_orders(w);
    for (int i = CUTS; i < FAULTS; i++) {
        assert_lk(0, lk_mutex_lock(orders));
        arm(faults[i]);
        int64_t began_ms = now_ms();
        assert_lk(EIO, lk_mutex_unlock(orders));
        assert_between(now_ms() - began_ms, COMMAND_MS - 1, COMMAND_MS + SLACK_MS);
        eventually(!world_exists(w, "orders"), 2000);
        proxy_release(p);
        sleep_ms(50);
        assert_false(world_exists(w, "orders"));
    }
}

/* A caller that gave up must not leave the mutex to itself: no late copy of its request takes it. */
static void who_gave_up_holds_nothing(struct world *w)
{
    open_orders(w);
    for (int i = 2; i < FAULTS; i++) {
        arm(faults[i]);
        assert_lk(EIO, lk_mutex_trylock(orders));
        assert_lk(EPERM, lk_mutex_unlock(orders));
        eventually(!world_exists(w, "orders"), 3000);
        proxy_release(p);
        sleep_ms(100);
        eventually(!world_exists(w, "orders"), 1000);
    }
    eventually(client_settled(client), 5000);
}

/* A release that arrives late belongs to the hold it was sent for, not to the next one of the same thread. */
static void a_late_release_spares_the_next_hold(struct world *w)
{
    open_orders(w);
    assert_lk(0, lk_mutex_lock(orders));
    arm(PROXY_HOLD_REQUEST);
    assert_lk(EIO, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    proxy_release(p);
    sleep_ms(100);
    assert_lk(0, lk_mutex_check(orders));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Answers in pieces and late are answers. */
static void a_slow_network_is_only_slow(struct world *w)
{
    open_orders(w);
    proxy_delay(p, 40); /* 80 ms for each round trip, and an unknown script takes three */
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_check(orders));
        assert_lk(0, lk_mutex_unlock(orders));
    }
    proxy_delay(p, 0);
    for (int bytes = 0; bytes < 40; bytes += 3) { /* the connection ends within the answer */
        proxy_cut_after(p, PROXY_DOWN, bytes);
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_unlock(orders));
        assert_false(world_exists(w, "orders"));
    }
}

/* While no connection can be made a try says so, and nothing was done; a wait goes on. */
static void without_a_connection_a_try_is_enotconn(struct world *w)
{
    struct worker waiter;
    open_orders(w);
    proxy_refuse(p, true);
    proxy_cut(p);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_mutex_trylock(orders));
    assert_lk(ENOTCONN, lk_mutex_lockfor(orders, 50));
    assert_between(now_ms() - began_ms, 0, 2 * COMMAND_MS + 50 + SLACK_MS);
    worker_start(&waiter, lock_and_unlock, orders);
    sleep_ms(2 * COMMAND_MS);
    proxy_refuse(p, false);
    assert_int_equal(0, worker_join(&waiter));
}

/* The connection ends, and for a moment nobody is there to connect to. */
static int interrupt(void *arg)
{
    (void)arg;
    sleep_ms(30);
    proxy_refuse(p, true);
    proxy_cut(p);
    proxy_resume(p);
    sleep_ms(100);
    proxy_refuse(p, false);
    return 0;
}

/* One attempt to connect that fails is not the end of a call that was cut: it has time left. */
static void an_unlock_outlives_a_failed_attempt_to_connect(struct world *w)
{
    struct worker worker;
    p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=3s");
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    proxy_stall(p, PROXY_UP);
    worker_start(&worker, interrupt, NULL);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&worker));
    assert_false(world_exists(w, "orders"));
}

static int serve_again(void *arg)
{
    (void)arg;
    sleep_ms(200);
    proxy_refuse(p, false);
    return 0;
}

/*
 * Nor of a call that begins while the connection, which ended under another one, is being made: it has as much time
 * for it. Once none was there for a command timeout, each attempt speaks for all.
 */
static void a_call_joins_a_reconnect(struct world *w)
{
    struct worker worker;
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=2s&retry_max=50ms");
    orders = world_mutex(w, client, "orders", NULL);
    lk_sem_t *pool = world_sem(w, client, "pool", 1, NULL);
    assert_lk(0, lk_sem_wait(pool));
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_lk(ENOTCONN, lk_mutex_trylock(orders));
    worker_start(&worker, serve_again, NULL);
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(0, worker_join(&worker));
    assert_lk(0, lk_sem_wait(pool));
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_lk(ENOTCONN, lk_sem_post(pool));
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_sem_post(pool));
    assert_between(now_ms() - began_ms, 0, 1000);
    proxy_refuse(p, false);
    int rc;
    eventually((rc = lk_sem_post(pool)) != ENOTCONN, 3000);
    assert_lk(0, rc);
}

int main(void)
{
    return world_run(an_unlock_outlives_a_failed_attempt_to_connect, a_call_joins_a_reconnect, a_lock_is_granted_once,
                     a_level_is_counted_once, a_late_copy_leaves_no_orphan, an_unlock_is_confirmed,
                     an_unlock_without_an_answer_is_eio, who_gave_up_holds_nothing, a_late_release_spares_the_next_hold,
                     a_slow_network_is_only_slow, without_a_connection_a_try_is_enotconn);
}
