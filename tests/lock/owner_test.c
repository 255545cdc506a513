/* SPDX-License-Identifier: MIT */
/*
 * owner_test.c - a mutex belongs to the thread that locked it
 *
 * labels: threads memory
 */
#include "world.h"

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    client = world_client(w, "");
    orders = world_mutex(w, client, "orders", NULL);
}

static int unlock(void *arg)
{
    return lk_mutex_unlock(arg);
}

static int trylock(void *arg)
{
    return lk_mutex_trylock(arg);
}

static int ask_for_token(void *arg)
{
    uint64_t token = 4711;
    int rc = lk_mutex_token(arg, &token);
    return token == 4711 ? rc : -1; /* written on success only */
}

static int ask_for_remaining(void *arg)
{
    int64_t ms = 4711;
    int rc = lk_mutex_remaining(arg, &ms);
    return ms == 4711 ? rc : -1;
}

static int check(void *arg)
{
    return lk_mutex_check(arg);
}

static int extend(void *arg)
{
    return lk_mutex_extend(arg, 60000);
}

/* What one thread holds, another can neither give back nor speak for. */
static void another_thread_is_somebody_else(struct world *w)
{
    open_orders(w);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EPERM, in_thread(unlock, orders));
    assert_lk(EPERM, in_thread(ask_for_token, orders));
    assert_lk(EPERM, in_thread(ask_for_remaining, orders));
    assert_lk(EPERM, in_thread(check, orders));
    assert_lk(EPERM, in_thread(extend, orders));
    assert_lk(EBUSY, in_thread(trylock, orders));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_int_equal(0, world_queued(w, "orders"));
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Another client is somebody else, even in the same thread. */
static void another_client_is_somebody_else(struct world *w)
{
    open_orders(w);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EBUSY, lk_mutex_trylock(same_name));
    assert_lk(EPERM, lk_mutex_unlock(same_name));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(same_name, 30));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_trylock(same_name));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* Before the first lock and after the last unlock there is nothing to say. */
static void without_a_hold_everything_is_eperm(struct world *w)
{
    open_orders(w);
    for (int i = 0; i < 2; i++) {
        assert_lk(EPERM, unlock(orders));
        assert_lk(EPERM, ask_for_token(orders));
        assert_lk(EPERM, ask_for_remaining(orders));
        assert_lk(EPERM, check(orders));
        assert_lk(EPERM, extend(orders));
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_unlock(orders));
    }
}

/* Two mutexes of one thread do not mix. */
static void holds_of_different_names_are_apart(struct world *w)
{
    uint64_t token, other;
    open_orders(w);
    lk_mutex_t *stock = world_mutex(w, client, "stock", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EPERM, lk_mutex_unlock(stock));
    assert_lk(0, lk_mutex_lock(stock));
    assert_lk(0, lk_mutex_token(orders, &token));
    assert_lk(0, lk_mutex_unlock(stock));
    assert_lk(0, lk_mutex_token(orders, &other));
    assert_true(token == other);
    assert_int_equal(1, world_holds(w, "orders"));
    assert_false(world_exists(w, "stock"));
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(another_thread_is_somebody_else, another_client_is_somebody_else,
                     without_a_hold_everything_is_eperm, holds_of_different_names_are_apart);
}
