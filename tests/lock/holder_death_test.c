/* SPDX-License-Identifier: MIT */
/*
 * holder_death_test.c - a holder that dies, hangs or forgets loses the mutex with its lease, not before
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

enum { LEASE_MS = 2000 };

/* What a suspended child found out when it went on. */
struct findings {
    struct gate resumed, looked, close;
    int remaining, token, unlock, again;
    int64_t took_ms;
};

static int hold_forever(struct world *w, void *arg)
{
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=2s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

static int wait_forever(struct world *w, void *arg)
{
    (void)arg;
    lk_mutex_t *orders = world_mutex(w, world_client(w, ""), "orders", NULL);
    world_ready(w);
    int rc = lk_mutex_lock(orders);
    return rc != 0 ? rc : 1; /* 1: it ends as it is, holding it */
}

static int hold_and_look(struct world *w, void *arg)
{
    struct findings *found = arg;
    uint64_t token;
    int64_t left_ms, began_ms;
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=2s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    world_ready(w);
    gate_pass(&found->resumed);
    began_ms = now_ms();
    found->remaining = lk_mutex_remaining(orders, &left_ms);
    found->token = lk_mutex_token(orders, &token);
    found->took_ms = now_ms() - began_ms;
    found->unlock = lk_mutex_unlock(orders);
    found->again = lk_mutex_unlock(orders);
    gate_open(&found->looked);
    gate_pass(&found->close);
    return 0;
}

/* A holder is killed without warning; a waiter gets the mutex when the lease ends, not before. */
static void a_waiter_gets_it_when_the_lease_ends(struct world *w)
{
    pid_t holder = world_fork(w, hold_forever, world_shared(w, sizeof(struct gate)));
    lk_mutex_t *orders = world_mutex(w, world_client(w, ""), "orders", NULL);
    int64_t began_ms = now_ms(), before_ms = world_killholder(w, holder, "orders");
    assert_between(before_ms, 1, LEASE_MS);
    assert_lk(0, lk_mutex_lockfor(orders, LEASE_MS + 2 * SLACK_MS));
    assert_between(now_ms() - began_ms, before_ms - 2, before_ms + 2 * SLACK_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A waiter that dies is no step that the mutex stumbles over. */
static void a_dead_waiter_delays_nobody(struct world *w)
{
    lk_mutex_t *orders;
    world_redis(w, "HSET orders somebody:1 1");
    pid_t waiter = world_fork(w, wait_forever, NULL);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    world_kill(w, waiter);
    world_redis(w, "DEL orders");
    orders = world_mutex(w, world_client(w, ""), "orders", NULL);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, ""), "orders", NULL);
    for (int i = 0; i < 3; i++) {
        int64_t began_ms = now_ms();
        assert_lk(0, lk_mutex_lockfor(orders, 2000));
        assert_lk(0, lk_mutex_unlock(orders));
        assert_lk(0, lk_mutex_lockfor(same_name, 2000));
        assert_lk(0, lk_mutex_unlock(same_name));
        assert_between(now_ms() - began_ms, 0, SLACK_MS);
    }
    world_allow(w, "latchkey:queue:mutex:{orders}"); /* its entry lapses with a TTL */
    world_allow(w, "latchkey:alive:mutex:{orders}");
    assert_true(world_pttl(w, "latchkey:queue:mutex:{orders}") != -1);
    assert_true(world_pttl(w, "latchkey:alive:mutex:{orders}") != -1);
}

/*
 * A holder sleeps through its lease and wakes up believing that it still has the mutex. It must find out
 * by itself, before anything goes over the network, and whoever has the mutex now must not notice.
 */
static void a_stopped_holder_learns_of_its_loss_by_itself(struct world *w)
{
    struct findings *found = world_shared(w, sizeof *found);
    pid_t holder = world_fork(w, hold_and_look, found);
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=20s"), "orders", NULL);
    world_stop(holder);
    assert_lk(0, lk_mutex_lockfor(orders, 5000));

    world_stop_server(w); /* so nobody can tell it */
    gate_open(&found->resumed);
    world_cont(holder);
    gate_pass(&found->looked);
    assert_int_equal(ESTALE, found->remaining);
    assert_int_equal(ESTALE, found->token);
    assert_between(found->took_ms, 0, SLACK_MS);
    assert_int_equal(ESTALE, found->unlock);
    assert_int_equal(EPERM, found->again);
    world_cont_server(w);
    gate_open(&found->close);
    assert_int_equal(0, world_wait(w, holder));

    assert_lk(0, lk_mutex_check(orders));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
}

static void remember(const lk_event_t *event, void *arg)
{
    if (event->type == LK_EVENT_LOST)
        __atomic_store_n((int *)arg, event->reason, __ATOMIC_RELEASE);
}

/* A thread that ends cannot unlock any more: its hold ends with the lease, and somebody is told. */
static void a_thread_that_ended_is_not_renewed(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=2s&command_timeout=650ms");
    int reason = 0;
    assert_lk(0, lk_client_addlistener(client, remember, &reason, NULL));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, in_thread(lock_mutex, orders));
    int64_t began_ms = now_ms(), before_ms = world_pttl(w, "orders");
    assert_between(before_ms, 1, LEASE_MS);
    assert_lk(EBUSY, lk_mutex_trylock(orders)); /* what it was doing may be half done */
    assert_lk(0, lk_mutex_lockfor(orders, LEASE_MS + 2 * SLACK_MS));
    assert_between(now_ms() - began_ms, before_ms - LEASE_MS / 100 - 10, before_ms + 2 * SLACK_MS);
    eventually(__atomic_load_n(&reason, __ATOMIC_ACQUIRE) == LK_REASON_THREAD_EXIT, SLACK_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(a_waiter_gets_it_when_the_lease_ends, a_dead_waiter_delays_nobody,
                     a_stopped_holder_learns_of_its_loss_by_itself, a_thread_that_ended_is_not_renewed);
}
