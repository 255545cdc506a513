/* SPDX-License-Identifier: MIT */
/*
 * shells_test.c - several objects of one name and client are one mutex; other clients and names are apart
 *
 * labels: threads memory
 */
#include "world.h"

static lk_client_t *client;
static lk_mutex_t *one, *two;

static void open_both(struct world *w)
{
    client = world_client(w, "");
    one = world_mutex(w, client, "orders", NULL);
    two = world_mutex(w, client, "orders", NULL);
}

/* Two modules of a program that both guard "orders" share its hold, as they share the name. */
static void two_of_one_name_share_the_hold(struct world *w)
{
    uint64_t token, same;
    open_both(w);
    assert_lk(0, lk_mutex_lock(one));
    assert_lk(0, lk_mutex_lock(two));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_token(one, &token));
    assert_lk(0, lk_mutex_token(two, &same));
    assert_true(token == same);
    assert_lk(0, lk_mutex_unlock(one));
    assert_lk(0, lk_mutex_unlock(one)); /* either may give back what the other took */
    assert_false(world_exists(w, "orders"));
    assert_lk(EPERM, lk_mutex_unlock(two));
}

/* What belongs to the name must agree; what belongs to the object need not. */
static void attributes_of_the_name_must_agree(struct world *w)
{
    lk_mutexattr_t robust = LK_MUTEXATTR_INIT, different = LK_MUTEXATTR_INIT;
    lk_mutex_t third;
    robust.robust = 1;
    different.type = LK_MUTEX_ERRORCHECK;
    different.lease_ms = 1000;
    open_both(w);
    assert_lk(EINVAL, lk_mutex_init(&third, client, "orders", &robust));
    assert_lk(0, lk_mutex_init(&third, client, "orders", &different));
    assert_lk(0, lk_mutex_lock(one));
    assert_lk(EDEADLK, lk_mutex_lock(&third));
    assert_lk(0, lk_mutex_unlock(one));
    assert_lk(0, lk_mutex_lock(&third));
    assert_between(world_pttl(w, "orders"), 1, 1000);
    assert_lk(0, lk_mutex_unlock(&third));
    assert_lk(0, lk_mutex_destroy(&third));
}

/* Attributes that no version knows are a caller's mistake, not ignored. */
static void attributes_that_mean_nothing_are_refused(struct world *w)
{
    lk_mutexattr_t no_size = LK_MUTEXATTR_INIT, no_type = LK_MUTEXATTR_INIT, no_yes = LK_MUTEXATTR_INIT;
    lk_mutexattr_t no_flag = LK_MUTEXATTR_INIT;
    lk_mutex_t third;
    open_both(w);
    no_size.size = 0;
    no_type.type = 3;
    no_flag.robust = 2;
    no_yes.fair = 2;
    assert_lk(EINVAL, lk_mutex_init(&third, client, "stock", &no_size));
    assert_lk(EINVAL, lk_mutex_init(&third, client, "stock", &no_type));
    assert_lk(EINVAL, lk_mutex_init(&third, client, "stock", &no_flag));
    assert_lk(EINVAL, lk_mutex_init(&third, client, "stock", &no_yes));
}

/* Freeing what is in use is refused rather than left to crash. */
static void what_is_in_use_is_not_destroyed(struct world *w)
{
    struct worker waiter;
    open_both(w);
    assert_lk(0, lk_mutex_lock(one));
    assert_lk(EBUSY, lk_mutex_destroy(one));
    assert_lk(0, lk_mutex_check(one)); /* unchanged */
    worker_start(&waiter, lock_and_unlock, two);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(EBUSY, lk_mutex_destroy(two));
    assert_lk(0, lk_mutex_unlock(one));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(EINVAL, lk_mutex_destroy(NULL));
}

/* A name lives on in Redis when an object of it is gone. */
static void destroying_one_leaves_the_other(struct world *w)
{
    open_both(w);
    world_close(w, one);
    assert_lk(0, lk_mutex_lock(two));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(two));
    one = world_mutex(w, client, "orders", NULL);
}

/* Another client is somebody else, even in the same thread. */
static void another_client_is_somebody_else(struct world *w)
{
    open_both(w);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(one));
    assert_lk(EBUSY, lk_mutex_trylock(same_name));
    assert_lk(EPERM, lk_mutex_unlock(same_name));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(same_name, 30));
    assert_lk(0, lk_mutex_unlock(one));
    assert_lk(0, lk_mutex_trylock(same_name));
    assert_lk(EBUSY, lk_mutex_trylock(one));
    assert_lk(0, lk_mutex_unlock(same_name));
}

/* Two mutexes of one thread do not mix. */
static void holds_of_different_names_are_apart(struct world *w)
{
    uint64_t token, other;
    open_both(w);
    lk_mutex_t *stock = world_mutex(w, client, "stock", NULL);
    assert_lk(0, lk_mutex_lock(one));
    assert_lk(EPERM, lk_mutex_unlock(stock));
    assert_lk(0, lk_mutex_lock(stock));
    assert_lk(0, lk_mutex_token(one, &token));
    assert_lk(0, lk_mutex_unlock(stock));
    assert_lk(0, lk_mutex_token(one, &other));
    assert_true(token == other);
    assert_int_equal(1, world_holds(w, "orders"));
    assert_false(world_exists(w, "stock"));
    assert_lk(0, lk_mutex_unlock(one));
}

int main(void)
{
    return world_run(two_of_one_name_share_the_hold, attributes_of_the_name_must_agree,
                     attributes_that_mean_nothing_are_refused, what_is_in_use_is_not_destroyed,
                     destroying_one_leaves_the_other, another_client_is_somebody_else,
                     holds_of_different_names_are_apart);
}
