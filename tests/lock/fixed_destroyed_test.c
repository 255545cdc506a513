/* SPDX-License-Identifier: MIT */
/*
 * fixed_destroyed_test.c - a fixed hold keeps a name taken for a time, and no object for it
 *
 * labels: threads memory
 * simulated: yes
 */
#include "news.h"
#include "proxy.h"

enum { LEASE_MS = 1500 };

static lk_client_t *client;
static struct news *orders_news;

static void open_client(struct world *w)
{
    client = world_client(w, "");
    orders_news = news_of(w, client, "orders");
}

/* The name stays taken until the lease is over, and no event tells of that end. */
static void expect_detached(struct world *w, const char *key, int64_t began_ms)
{
    assert_true(world_exists(w, key));
    eventually(!world_exists(w, key), LEASE_MS + SLACK_MS);
    assert_between(now_ms() - began_ms, LEASE_MS / 2, LEASE_MS + SLACK_MS);
    sleep_ms(100);
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(orders_news, type));
}

static void a_fixed_mutex_is_detached(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    lk_mutex_t orders, other;
    attr.fixed = 1;
    attr.lease_ms = LEASE_MS;
    open_client(w);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_init(&orders, client, "orders", &attr));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_init(&other, client, "orders", &attr));
    assert_lk(0, lk_mutex_destroy(&other));
    assert_lk(0, lk_mutex_check(&orders)); /* another object of the name had the hold yet */
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(EPERM, lk_mutex_unlock(&orders));
    assert_lk(EBUSY, lk_mutex_trylock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    expect_detached(w, "orders", began_ms);
}

static void a_fixed_reader_and_a_fixed_writer_are_detached(struct world *w)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    lk_rwlock_t orders;
    attr.fixed = 1;
    attr.lease_ms = LEASE_MS;
    open_client(w);
    lk_rwlock_t *next = world_rwlock(w, client, "next", NULL);
    for (int write = 0; write < 2; write++) {
        int64_t began_ms = now_ms();
        assert_lk(0, lk_rwlock_init(&orders, client, "orders", &attr));
        assert_lk(0, write ? lk_rwlock_wrlock(&orders) : lk_rwlock_rdlock(&orders));
        assert_lk(0, lk_rwlock_destroy(&orders));
        expect_detached(w, "latchkey:rw:{orders}", began_ms);
    }
    assert_lk(0, lk_rwlock_wrlock(next)); /* the client goes on */
    assert_lk(0, lk_rwlock_unlock(next));
}

/* For one acquire the caller says so; the owner can then be freed as well. */
static void a_hold_that_was_fixed_by_the_call_is_detached(struct world *w)
{
    lk_how_t how = LK_HOW_INIT;
    lk_mutex_t orders;
    open_client(w);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_owner_new(client, &how.owner));
    how.fixed = 1;
    how.lease_ms = LEASE_MS;
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_lockwith(&orders, &how));
    assert_lk(EBUSY, lk_owner_free(how.owner));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_owner_free(how.owner));
    expect_detached(w, "orders", began_ms);
}

static lk_how_t how = LK_HOW_INIT;

static int take(void *mutex)
{
    return lk_mutex_lockwith(mutex, &how); /* for an owner, who does not end with the thread */
}

/*
 * A hand-over brings a claim of 3 s: the whole lease is asked for before the object goes, and while the server does not
 * get that question the object stays.
 */
static void a_fixed_lease_that_was_handed_over_is_set_first(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker heir;
    lk_mutex_t fixed;
    client = proxy_client(p, "lease=60s&poll=30s&command_timeout=400ms");
    how.fixed = 1;
    how.lease_ms = 20000;
    assert_lk(0, lk_owner_new(client, &how.owner));
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(0, lk_mutex_init(&fixed, client, "orders", NULL));
    worker_start(&heir, take, &fixed);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    sleep_ms(100); /* it has asked again, and sleeps */
    proxy_stall(p, PROXY_UP);
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(0, worker_join(&heir)); /* by the message */
    assert_lk(EBUSY, lk_mutex_destroy(&fixed));
    proxy_resume(p);
    eventually(lk_mutex_destroy(&fixed) == 0, 2000);
    assert_lk(0, lk_owner_free(how.owner));
    assert_between(world_pttl(w, "orders"), 15000, 20000);
    assert_lk(0, lk_mutex_forceunlock(held));
}

int main(void)
{
    return world_run(a_fixed_mutex_is_detached, a_fixed_reader_and_a_fixed_writer_are_detached,
                     a_hold_that_was_fixed_by_the_call_is_detached, a_fixed_lease_that_was_handed_over_is_set_first);
}
