/* SPDX-License-Identifier: MIT */
/*
 * explicit_owner_test.c - an owner that is no thread: made, used from anywhere, freed
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static lk_client_t *client;
static lk_mutex_t *orders;
static lk_owner_t *owner;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_owner_new(client, &owner));
}

static int lock_for(lk_mutex_t *m, lk_owner_t *by, int64_t timeout_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = timeout_ms, .owner = by };
    return lk_mutex_lockwith(m, &how);
}

static int lock_by_owner(void *m)
{
    return lock_for(m, owner, 5000);
}

static int unlock_by_owner(void *m)
{
    return lk_mutex_unlockby(m, owner);
}

/* What a holder may ask, for `by`: 0, the one code of all, or -1. */
static int ask_all(lk_owner_t *by)
{
    uint64_t token = 4711;
    int64_t left_ms = 4711;
    int rc = lk_mutex_tokenby(orders, by, &token);
    if (lk_mutex_remainingby(orders, by, &left_ms) != rc || lk_mutex_checkby(orders, by) != rc ||
        lk_mutex_extendby(orders, by, 60000) != rc)
        return -1;
    return (rc == 0) == (token != 4711) && (rc == 0) == (left_ms != 4711) ? rc : -1;
}

static int ask_as_the_owner(void *arg)
{
    (void)arg;
    return ask_all(owner);
}

/* Locked by one thread, asked about by a second, given back by a third. */
static void any_thread_acts_for_it(struct world *w)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    char id[64];
    open_orders(w, "");
    assert_lk(0, in_thread(lock_by_owner, orders));
    assert_lk(0, in_thread(ask_as_the_owner, NULL));
    assert_lk(0, lk_mutex_info(orders, &info));
    snprintf(id, sizeof id, ":%" PRIu64 ":", lk_owner_number(owner));
    assert_non_null(strstr(info.holder, id));
    assert_lk(0, in_thread(unlock_by_owner, orders));
    assert_false(world_exists(w, "orders"));
    assert_lk(EPERM, in_thread(unlock_by_owner, orders));
    assert_lk(EPERM, ask_all(owner));
    assert_lk(0, lk_owner_free(owner));
}

/* A thread and the owners that it works for do not have each other's holds. */
static void a_thread_and_its_owners_are_several(struct world *w)
{
    lk_owner_t *other;
    open_orders(w, "");
    assert_lk(0, lk_owner_new(client, &other));
    assert_lk(0, lock_for(orders, owner, 0));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(ETIMEDOUT, lock_for(orders, NULL, 20));
    assert_lk(ETIMEDOUT, lock_for(orders, other, 0));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlockby(orders, NULL));
    assert_lk(EPERM, lk_mutex_unlockby(orders, other));
    assert_lk(EPERM, ask_all(NULL));
    assert_lk(EPERM, ask_all(other));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlockby(orders, owner));
    assert_lk(0, lock_for(orders, NULL, 0));
    assert_lk(EPERM, lk_mutex_unlockby(orders, owner));
    assert_lk(0, lk_mutex_unlockby(orders, NULL));
    assert_int_equal(0, world_queued(w, "orders"));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_free(other));
}

static int number_here(void *number)
{
    *(uint64_t *)number = lk_owner_number(NULL);
    return 0;
}

/* Events and ids name the owner, so its number is nobody else's. */
static void each_has_a_number_of_its_own(struct world *w)
{
    uint64_t thread;
    lk_owner_t *other;
    open_orders(w, "");
    assert_lk(0, lk_owner_new(client, &other));
    assert_int_equal(0, in_thread(number_here, &thread));
    const uint64_t numbers[] = { lk_owner_number(owner), lk_owner_number(other), lk_owner_number(NULL), thread };
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(i == k, numbers[i] == numbers[k]);
    assert_true(numbers[2] == lk_owner_number(NULL));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_free(other));
}

/* The thread that locked is gone for longer than the lease: the hold is renewed all the same. */
static void the_end_of_a_thread_ends_no_hold_of_it(struct world *w)
{
    open_orders(w, "lease=4s");
    assert_lk(0, in_thread(lock_by_owner, orders));
    sleep_ms(5000);
    assert_lk(0, lk_mutex_checkby(orders, owner));
    assert_lk(EBUSY, lk_mutex_destroy(orders));
    assert_lk(0, lk_mutex_unlockby(orders, owner));
    assert_lk(0, lk_owner_free(owner));
}

/* Who frees it too early is told so, and nothing happened. */
static void it_is_not_freed_while_it_holds_or_waits(struct world *w)
{
    struct worker waiter;
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_by_owner, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, worker_join(&waiter));
    assert_lk(EBUSY, lk_owner_free(owner));
    assert_lk(0, lk_mutex_checkby(orders, owner));
    assert_lk(0, lk_mutex_unlockby(orders, owner));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_free(NULL));
}

/* What was lost and never unlocked keeps no owner alive, nor what it held; also not where that is gone by now. */
static void what_it_lost_keeps_nothing(struct world *w)
{
    int64_t left_ms;
    open_orders(w, "lease=3s");
    lk_mutex_t *stock = world_mutex(w, client, "stock", NULL);
    assert_lk(0, lock_for(orders, owner, 0));
    assert_lk(0, lock_for(stock, owner, 0));
    world_redis(w, "DEL orders stock");
    eventually(lk_mutex_remainingby(orders, owner, &left_ms) == ESTALE, 5000);
    eventually(lk_mutex_remainingby(stock, owner, &left_ms) == ESTALE, 5000);
    world_close(w, stock);
    assert_lk(ESTALE, lock_for(orders, owner, 0));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_mutex_lock(orders)); /* which drops the lost hold */
    assert_lk(0, lk_mutex_unlock(orders));
}

/* An owner is for the objects of its client. */
static void another_client_s_owner_is_refused(struct world *w)
{
    lk_owner_t *stranger;
    open_orders(w, "");
    assert_lk(0, lk_owner_new(world_client(w, ""), &stranger));
    assert_lk(0, lock_for(orders, owner, 0));
    assert_lk(EINVAL, lock_for(orders, stranger, 0));
    assert_lk(EINVAL, lk_mutex_unlockby(orders, stranger));
    assert_lk(EINVAL, ask_all(stranger));
    assert_lk(EINVAL, lk_mutex_consistentby(orders, stranger));
    assert_lk(0, lk_mutex_unlockby(orders, owner));
    assert_lk(EINVAL, lk_owner_new(client, NULL));
    assert_lk(0, lk_owner_free(stranger));
    assert_lk(0, lk_owner_free(owner));
}

/* A close gives back what owners hold, wakes those who wait, and leaves the owner to be freed. */
static void it_outlives_its_client(struct world *w)
{
    struct worker waiter, second; /* which waits for the other call of its owner */
    lk_owner_t *other;
    open_orders(w, "");
    lk_mutex_t *stock = world_mutex(w, client, "stock", NULL);
    assert_lk(0, lk_owner_new(client, &other));
    assert_lk(0, lock_for(stock, owner, 0));
    assert_lk(0, lock_for(orders, other, 0));
    worker_start(&waiter, lock_by_owner, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    worker_start(&second, lock_by_owner, orders);
    sleep_ms(30);
    assert_lk(0, close_by_hand(w, client));
    assert_lk(ECANCELED, worker_join(&waiter));
    assert_lk(ECANCELED, worker_join(&second));
    assert_false(world_exists(w, "stock"));
    assert_lk(ECANCELED, lock_for(stock, owner, 0));
    assert_lk(ECANCELED, lk_mutex_unlockby(stock, owner));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_free(other));
}

/* A mistake in what a call says is found before anything is asked. */
static void what_a_call_says_is_checked(struct world *w)
{
    const lk_how_t wrong[] = {
        { .size = 0 },
        { .size = sizeof wrong[0] - 1 },
        { .size = sizeof wrong[0], .timeout_ms = -2 },
        { .size = sizeof wrong[0], .lease_ms = 99 },
        { .size = sizeof wrong[0], .lease_ms = -1 },
        { .size = sizeof wrong[0], .lease_ms = INT64_C(86400001) },
        { .size = sizeof wrong[0], .fixed = 2 },
        { .size = sizeof wrong[0], .fixed = -2 },
    };
    struct {
        lk_how_t how;
        int64_t of_the_future;
    } larger = { .how = { .size = sizeof larger } };
    open_orders(w, "");
    lk_rwlock_t *rates = world_rwlock(w, client, "rates", NULL);
    lk_sem_t *pool = world_sem(w, client, "pool", 0, NULL);
    int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_lk(EINVAL, lk_mutex_lockwith(orders, &wrong[i]));
        assert_lk(EINVAL, lk_rwlock_rdlockwith(rates, &wrong[i]));
        assert_lk(EINVAL, lk_rwlock_wrlockwith(rates, &wrong[i]));
        assert_lk(EINVAL, lk_sem_acquirewith(pool, 1, &wrong[i]));
    }
    larger.of_the_future = 1;
    assert_lk(EINVAL, lk_mutex_lockwith(orders, &larger.how));
    assert_int_equal(before, world_commands(w, "evalsha") + world_commands(w, "eval"));
    larger.of_the_future = 0; /* built against a newer header, and asking for nothing new */
    assert_lk(0, lk_mutex_lockwith(orders, &larger.how));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lockwith(orders, NULL));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_owner_free(owner));
}

/* Of the default client, as static objects are; it is opened where that is still to be done. */
static void it_may_be_the_default_client_s(struct world *w)
{
    static lk_mutex_t stock = LK_MUTEX_INITIALIZER("stock");
    use_default(world_url(w, "connect_timeout=10s"));
    assert_lk(0, lk_owner_new(NULL, &owner));
    assert_lk(0, lock_for(&stock, owner, 0));
    assert_lk(EPERM, lk_mutex_unlock(&stock));
    close_default();
    assert_lk(ECANCELED, lock_for(&stock, owner, 0)); /* by now that is another client */
    assert_lk(0, lk_mutex_lock(&stock));
    assert_lk(ECANCELED, lk_mutex_unlockby(&stock, owner));
    assert_lk(0, lk_mutex_unlock(&stock));
    assert_lk(0, lk_mutex_destroy(&stock));
    assert_lk(0, lk_owner_free(owner));
    close_default();
}

static lk_mutex_t inherited = LK_MUTEX_INITIALIZER("inherited");

static int child_of_an_owner(struct world *w, void *arg)
{
    lk_owner_t *own;
    (void)arg;
    assert_lk(EPERM, unlock_by_owner(&inherited));
    assert_lk(EPERM, lk_mutex_checkby(&inherited, owner));
    assert_lk(ECANCELED, lock_for(&inherited, owner, 0));
    assert_lk(EPERM, unlock_by_owner(orders));
    assert_lk(ECANCELED, lock_for(orders, owner, 0));
    assert_lk(ECANCELED, lk_owner_new(client, &own));
    assert_lk(0, lk_owner_free(owner));
    assert_lk(0, lk_owner_new(NULL, &own));
    assert_lk(ETIMEDOUT, lock_for(&inherited, own, 0)); /* the parent has it */
    assert_lk(0, lk_owner_free(own));
    close_default();
    world_ready(w);
    return 0;
}

/* The child of a fork owns nothing, whoever of the parent does. */
static void in_a_child_it_holds_nothing(struct world *w)
{
    lk_owner_t *of_default;
    if (THREAD_SANITIZED) /* it cannot follow a fork out of a process with threads */
        skip();
    use_default(world_url(w, "lease=20s&connect_timeout=10s"));
    open_orders(w, "lease=20s");
    assert_lk(0, lk_owner_new(NULL, &of_default));
    assert_lk(0, lock_for(&inherited, of_default, 0));
    assert_lk(0, lock_for(orders, owner, 0));
    pid_t child = world_fork(w, child_of_an_owner, NULL);
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, lk_mutex_unlockby(orders, owner));
    assert_lk(0, lk_mutex_unlockby(&inherited, of_default));
    assert_lk(0, lk_mutex_destroy(&inherited));
    assert_lk(0, lk_owner_free(of_default));
    assert_lk(0, lk_owner_free(owner));
    close_default();
}

int main(void)
{
    return world_run(any_thread_acts_for_it, a_thread_and_its_owners_are_several, each_has_a_number_of_its_own,
                     the_end_of_a_thread_ends_no_hold_of_it, it_is_not_freed_while_it_holds_or_waits,
                     what_it_lost_keeps_nothing, another_client_s_owner_is_refused, it_outlives_its_client,
                     what_a_call_says_is_checked, it_may_be_the_default_client_s, in_a_child_it_holds_nothing);
}
