/* SPDX-License-Identifier: MIT */
/*
 * owner_levels_test.c - levels, types and leases of a mutex that an explicit owner holds
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_mutex_t *orders;
static lk_owner_t *owner;

static void open_orders(struct world *w, const lk_mutexattr_t *attr)
{
    client = world_client(w, "lease=10s");
    orders = world_mutex(w, client, "orders", attr);
    owner = world_newowner(w, client);
}

static int lock_within(int64_t timeout_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = timeout_ms, .owner = owner };
    return lk_mutex_lockwith(orders, &how);
}

WORK(lock_patiently, arg, lock_within(10000))
WORK(unlock_it, arg, lk_mutex_unlockby(orders, owner))

/* Levels are the owner's, whichever thread makes them and takes them back. */
static void levels_are_counted_for_the_owner(struct world *w)
{
    for (int local = 0; local < 2; local++) {
        const lk_mutexattr_t attr = { .size = sizeof attr, .nested_local = local };
        open_orders(w, &attr);
        assert_lk(0, lock_within(0));
        assert_lk(0, in_thread(lock_patiently, NULL));
        assert_lk(0, lock_within(0));
        assert_int_equal(local ? 1 : 3, world_holds(w, "orders"));
        assert_lk(0, in_thread(unlock_it, NULL));
        assert_lk(0, unlock_it(NULL));
        assert_int_equal(1, world_holds(w, "orders"));
        assert_lk(0, in_thread(unlock_it, NULL));
        assert_false(world_exists(w, "orders"));
        assert_lk(EPERM, unlock_it(NULL));
        world_close(w, client);
    }
}

/* An error-checking mutex knows its owner in every thread. */
static void an_errorchecking_one_knows_its_owner(struct world *w)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .type = LK_MUTEX_ERRORCHECK };
    open_orders(w, &attr);
    assert_lk(0, lock_within(0));
    assert_lk(EDEADLK, lock_within(0));
    assert_lk(EDEADLK, in_thread(lock_patiently, NULL));
    assert_lk(EBUSY, lk_mutex_trylock(orders)); /* the thread is another owner */
    assert_lk(0, unlock_it(NULL));
}

/* A normal one waits for its own owner; unlike a thread, that can still unlock it. */
static void a_normal_one_waits_until_its_owner_unlocks_it(struct world *w)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .type = LK_MUTEX_NORMAL };
    struct worker waiter;
    open_orders(w, &attr);
    assert_lk(0, lock_within(0));
    worker_start(&waiter, lock_patiently, NULL);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(ETIMEDOUT, lock_within(30)); /* behind the other call of this owner */
    assert_lk(ETIMEDOUT, lock_within(0));
    assert_lk(0, lk_mutex_checkby(orders, owner));
    assert_lk(0, unlock_it(NULL));
    assert_lk(0, worker_join(&waiter));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, unlock_it(NULL));
    assert_false(world_exists(w, "orders"));
}

/* Redisson's tryLock(waitTime, leaseTime): how long it lasts is said by the call. */
static void a_call_says_its_lease(struct world *w)
{
    lk_how_t how = LK_HOW_INIT;
    int64_t left_ms;
    open_orders(w, NULL);
    how.lease_ms = 20000;
    assert_lk(0, lk_mutex_lockwith(orders, &how));
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_between(left_ms, 15000, 20000);
    assert_between(world_pttl(w, "orders"), 15000, 20000);
    how.lease_ms = 3000; /* one level more leaves it as it is */
    assert_lk(0, lk_mutex_lockwith(orders, &how));
    assert_between(world_pttl(w, "orders"), 15000, 20000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lockwith(orders, &how));
    assert_between(world_pttl(w, "orders"), 1, 3000);
    sleep_ms(4000);
    assert_lk(0, lk_mutex_unlock(orders)); /* it was renewed, with three seconds each time */
    assert_lk(0, lk_mutex_lock(orders));
    assert_between(world_pttl(w, "orders"), 5000, 10000); /* the client's again */
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A fixed lease ends by itself, whoever asked for it. */
static void a_call_says_whether_it_is_fixed(struct world *w)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .fixed = 1, .lease_ms = 300 };
    lk_how_t how = { .size = sizeof how, .timeout_ms = LK_FOREVER, .lease_ms = 300, .fixed = 1 };
    int64_t left_ms;
    open_orders(w, NULL);
    how.owner = owner;
    assert_lk(0, lk_mutex_lockwith(orders, &how));
    eventually(lk_mutex_remainingby(orders, owner, &left_ms) == ESTALE, 5000);
    eventually(!world_exists(w, "orders"), 5000);
    assert_lk(ESTALE, unlock_it(NULL));
    lk_mutex_t *stock = world_mutex(w, client, "stock", &attr);
    how.fixed = -1;
    how.lease_ms = 3000;
    assert_lk(0, lk_mutex_lockwith(stock, &how));
    sleep_ms(4000);
    assert_lk(0, lk_mutex_unlockby(stock, owner));
}

/* Granted by a hand-over, the lease is the caller's all the same. */
static void a_waiter_gets_the_lease_that_it_asked_for(struct world *w)
{
    struct worker waiter;
    open_orders(w, NULL);
    lk_mutex_t *same = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(same));
    worker_start(&waiter, lock_patiently, NULL);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(same));
    assert_lk(0, worker_join(&waiter));
    assert_lk(0, lk_mutex_extendby(orders, owner, 9000));
    assert_between(world_pttl(w, "orders"), 5000, 9000);
    assert_lk(0, unlock_it(NULL));
}

static int hold_until_killed(struct world *w, void *arg)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .robust = 1, .lease_ms = 400 };
    open_orders(w, &attr);
    assert_lk(0, lock_within(0));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* An owner dies with its process; who follows is told, and repairs for its own owner, from any thread. */
static void who_follows_a_dead_owner_is_told(struct world *w)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .robust = 1 };
    world_kill(w, world_fork(w, hold_until_killed, world_shared(w, sizeof(struct gate))));
    open_orders(w, &attr);
    assert_lk(EOWNERDEAD, in_thread(lock_patiently, NULL));
    assert_lk(EPERM, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_consistentby(orders, owner));
    assert_lk(EINVAL, lk_mutex_consistentby(orders, owner));
    assert_lk(0, in_thread(unlock_it, NULL));
    assert_lk(0, lock_and_unlock(orders));
}

int main(void)
{
    return world_run(levels_are_counted_for_the_owner, an_errorchecking_one_knows_its_owner,
                     a_normal_one_waits_until_its_owner_unlocks_it, a_call_says_its_lease,
                     a_call_says_whether_it_is_fixed, a_waiter_gets_the_lease_that_it_asked_for,
                     who_follows_a_dead_owner_is_told);
}
