/* SPDX-License-Identifier: MIT */
/*
 * set_test.c - a set of stripes: which mutexes it has, what it refuses, and its end
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

static lk_client_t *client;
static lk_stripes_t *stock;

static void open_stock(struct world *w, unsigned n)
{
    client = world_client(w, "lease=5s");
    stock = world_stripes(w, client, "stock", n, NULL);
}

/* Stripe 7 of "stock" is the mutex "stock:7", whoever asks. */
static void a_stripe_is_the_mutex_of_its_name(struct world *w)
{
    open_stock(w, 11);
    lk_mutex_t *other = world_mutex(w, world_client(w, ""), "stock:10", NULL);
    assert_int_equal(11, lk_stripes_count(stock));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(stock, 10)));
    assert_int_equal(1, world_holds(w, "stock:10"));
    assert_lk(EBUSY, lk_mutex_trylock(other));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(stock, 0))); /* another one, and not in the way */
    assert_int_equal(1, world_holds(w, "stock:0"));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(stock, 0)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(stock, 10)));
    assert_lk(0, lock_and_unlock(other));
}

/* In slots of their own but for a tag, which the prefix may bring. */
static void prefixes_and_tags_are_kept(struct world *w)
{
    lk_client_t *shop = world_client(w, "prefix=shop:");
    lk_stripes_t *prefixed = world_stripes(w, shop, "stock", 2, NULL);
    lk_stripes_t *tagged = world_stripes(w, shop, "{eu}stock", 2, NULL);
    assert_lk(0, lk_mutex_lock(lk_stripes_at(prefixed, 1)));
    assert_int_equal(1, world_holds(w, "shop:stock:1"));
    assert_true(world_exists(w, "redisson_lock_token:{shop:stock:1}"));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(prefixed, 1)));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(tagged, 1)));
    assert_int_equal(1, world_holds(w, "shop:{eu}stock:1"));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(tagged, 1)));
}

/* Two sets of one name share their mutexes; each is recursive over both. */
static void two_sets_of_one_name_are_one(struct world *w)
{
    open_stock(w, 4);
    lk_stripes_t *same = world_stripes(w, client, "stock", 4, NULL);
    assert_lk(0, lk_mutex_lock(lk_stripes_at(stock, 2)));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(same, 2)));
    assert_int_equal(2, world_holds(w, "stock:2"));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(same, 2)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(stock, 2)));
}

/* Attributes are those of each stripe, copied. */
static void all_stripes_have_the_attributes(struct world *w)
{
    lk_mutexattr_t attr = { .size = sizeof attr, .type = LK_MUTEX_ERRORCHECK, .lease_ms = 2000 };
    lk_stripes_t checked;
    client = world_client(w, "lease=20s");
    assert_lk(0, lk_stripes_initattr(&checked, client, "stock", 3, &attr));
    memset(&attr, 0, sizeof attr);
    for (unsigned i = 0; i < 3; i++) {
        assert_lk(0, lk_mutex_lock(lk_stripes_at(&checked, i)));
        assert_lk(EDEADLK, lk_mutex_lock(lk_stripes_at(&checked, i)));
    }
    assert_between(world_pttl(w, "stock:1"), 1, 2000);
    for (unsigned i = 0; i < 3; i++)
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(&checked, i)));
    assert_lk(0, lk_stripes_destroy(&checked));
}

/* A mistake that can be seen is told when the set is made, and nothing is. */
static void what_cannot_be_is_refused_at_once(struct world *w)
{
    static char fits[LK_NAME_MAX + 1], too_long[LK_NAME_MAX + 1];
    const lk_mutexattr_t no_type = { .size = sizeof no_type, .type = 9 };
    lk_stripes_t none;
    lk_client_t *shop = world_client(w, "prefix=shop:"), *clients[] = { NULL, shop };
    memset(fits, 'x', LK_NAME_MAX - strlen("shop::99"));
    memset(too_long, 'x', LK_NAME_MAX - strlen(":9"));
    memset(&none, 0x5a, sizeof none);
    for (int i = 0; i < 2; i++) {
        assert_lk(EINVAL, lk_stripes_init(NULL, clients[i], "stock", 4));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], NULL, 4));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], "", 4));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], "a{b", 4));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], "stock", 0));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], "stock", LK_STRIPES_MAX + 1));
        assert_lk(EINVAL, lk_stripes_init(&none, clients[i], too_long, 11));
        assert_lk(EINVAL, lk_stripes_initattr(&none, clients[i], "stock", 4, &no_type));
    }
    assert_int_equal(0x5a, *(unsigned char *)&none);
    assert_lk(EINVAL, lk_stripes_init(&none, shop, fits, 101));
    assert_lk(0, lk_stripes_init(&none, shop, fits, 100));
    assert_lk(0, lock_and_unlock(lk_stripes_at(&none, 99)));
    assert_lk(0, lk_stripes_destroy(&none));
    assert_lk(EINVAL, lk_stripes_destroy(NULL));
}

/* What does not exist has no mutex, and a NULL mutex is no trap. */
static void what_is_not_there_has_no_mutex(struct world *w)
{
    lk_stripes_t never = { 0 };
    unsigned index = 77;
    open_stock(w, 4);
    assert_null(lk_stripes_at(stock, 4));
    assert_non_null(strstr(lk_errortext(), "stock"));
    assert_null(lk_stripes_at(stock, LK_STRIPES_ANY));
    assert_null(lk_stripes_of(stock, NULL, 3));
    assert_int_equal(LK_STRIPES_ANY, lk_stripes_index(stock, NULL, 3));
    assert_lk(EINVAL, lk_stripes_trylockany(stock, 0, NULL));
    assert_lk(EINVAL, lk_mutex_lock(lk_stripes_at(stock, 4)));
    for (int i = 0; i < 2; i++) {
        lk_stripes_t *s = i == 0 ? &never : NULL;
        assert_null(lk_stripes_at(s, 0));
        assert_null(lk_stripes_of(s, "a", 1));
        assert_int_equal(LK_STRIPES_ANY, lk_stripes_index(s, "a", 1));
        assert_int_equal(0, lk_stripes_count(s));
        assert_lk(EINVAL, lk_stripes_trylockany(s, 0, &index));
    }
    assert_lk(0, lk_stripes_destroy(&never));
    assert_int_equal(77, index);
}

/* Refused while a stripe is in use: all of them can be used on, and what is held stays so. */
static void what_is_in_use_is_not_destroyed(struct world *w)
{
    const lk_mutexattr_t fixed = { .size = sizeof fixed, .fixed = 1 };
    struct worker waiter;
    lk_stripes_t s;
    client = world_client(w, "lease=5s");
    assert_lk(0, lk_stripes_init(&s, client, "stock", 5));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&s, 0)));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&s, 3)));
    assert_lk(EBUSY, lk_stripes_destroy(&s));
    assert_lk(0, lk_mutex_check(lk_stripes_at(&s, 0)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 0)));
    worker_start(&waiter, lock_and_unlock, lk_stripes_at(&s, 3));
    eventually(world_queued(w, "stock:3") == 1, 5000);
    assert_lk(EBUSY, lk_stripes_destroy(&s));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 3)));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_stripes_destroy(&s));
    assert_int_equal(0, lk_stripes_count(&s));
    assert_lk(0, lk_stripes_destroy(&s));
    /* A hold that nobody renews is detached with the set, unless another stripe keeps that. */
    assert_lk(0, lk_stripes_initattr(&s, client, "other", 5, &fixed));
    const lk_how_t renewed = { .size = sizeof renewed, .timeout_ms = LK_FOREVER, .fixed = -1 };
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&s, 0)));
    assert_lk(0, lk_mutex_lockwith(lk_stripes_at(&s, 4), &renewed));
    assert_lk(EBUSY, lk_stripes_destroy(&s));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 0)));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 4)));
    assert_lk(0, lk_stripes_destroy(&s));
}

/* The memory of one stripe can be given back; it is the same mutex when it is used again. */
static void a_stripe_may_be_destroyed_and_used_again(struct world *w)
{
    open_stock(w, 4);
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_mutex_lock(lk_stripes_at(stock, 1)));
        assert_int_equal(1, world_holds(w, "stock:1"));
        assert_lk(EBUSY, lk_mutex_destroy(lk_stripes_at(stock, 1)));
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(stock, 1)));
        assert_lk(0, lk_mutex_destroy(lk_stripes_at(stock, 1)));
    }
}

/* Stripes that were used and others that were not answer alike when their client is closed. */
static void a_closed_client_ends_used_and_unused_ones(struct world *w)
{
    lk_stripes_t s, late;
    unsigned index;
    client = world_open(w, "");
    assert_lk(0, lk_stripes_init(&s, client, "stock", 4));
    assert_lk(0, lock_and_unlock(lk_stripes_at(&s, 1)));
    assert_lk(0, lk_client_close(client));
    for (unsigned i = 0; i < 4; i++)
        assert_lk(ECANCELED, lk_mutex_lock(lk_stripes_at(&s, i)));
    assert_lk(ECANCELED, lk_stripes_trylockany(&s, 0, &index));
    assert_lk(ECANCELED, lk_stripes_init(&late, client, "stock", 4)); /* the set still refers to it */
    assert_lk(0, lk_stripes_destroy(&s));
}

/* Stripes of the default client need no server until they are used. */
static void those_of_the_default_client_are_bound_by_their_first_use(struct world *w)
{
    lk_stripes_t s;
    unsigned index;
    use_default("unix:///nowhere/at/all?connect_timeout=200ms");
    assert_lk(0, lk_stripes_init(&s, NULL, "stock", 3));
    assert_lk(ENOTCONN, lk_stripes_trylockany(&s, 0, &index));
    use_default(world_url(w, "connect_timeout=10s"));
    assert_lk(0, lk_stripes_trylockany(&s, 1, &index));
    assert_int_equal(1, index);
    assert_int_equal(1, world_holds(w, "stock:1"));
    assert_lk(EBUSY, lk_stripes_destroy(&s));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 1)));
    close_default();
    assert_lk(0, lk_mutex_lock(lk_stripes_at(&s, 1))); /* the next default client */
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(&s, 1)));
    assert_lk(0, lk_stripes_destroy(&s));
    close_default();
}

int main(void)
{
    return world_run(a_stripe_is_the_mutex_of_its_name, prefixes_and_tags_are_kept, two_sets_of_one_name_are_one,
                     all_stripes_have_the_attributes, what_cannot_be_is_refused_at_once, what_is_not_there_has_no_mutex,
                     what_is_in_use_is_not_destroyed, a_stripe_may_be_destroyed_and_used_again,
                     a_closed_client_ends_used_and_unused_ones,
                     those_of_the_default_client_are_bound_by_their_first_use);
}
