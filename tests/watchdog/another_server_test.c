/* SPDX-License-Identifier: MIT */
/*
 * another_server_test.c - another server answers than the one that granted: every hold is asked for there at once
 *
 * A third of these leases is 20 s, in which nothing would be renewed. A loss that is told within a few seconds was asked for.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "news.h"
#include "subject.h"

#include <stdio.h>

enum { SOON_MS = 5000, LEASE_MS = 60000, MANY = 1000 };

#define OPTIONS "lease=60s"

static int losses; /* atomic builtins */

static void count_losses(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST && event->reason == LK_REASON_GONE)
        __atomic_add_fetch(&losses, 1, __ATOMIC_SEQ_CST);
}

static void restart(struct world *w)
{
    world_kill_server(w);
    world_restart_server(w);
}

static void a_loss_is_told_soon(struct world *w, const struct subject_kind *kind)
{
    if (!kind->leased)
        return;
    lk_client_t *client = world_client(w, OPTIONS);
    struct subject *s = world_subject(w, client, kind, "thing");
    losses = 0;
    assert_lk(0, lk_client_addlistener(client, count_losses, NULL, NULL));
    assert_lk(0, subject_take(s, 0));
    restart(w);
    eventually(__atomic_load_n(&losses, __ATOMIC_SEQ_CST) > 0, SOON_MS);
    assert_lk(ESTALE, subject_give(s));
}

static lk_mutex_t *fixed_mutex(struct world *w, lk_client_t *client, const char *name)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .fixed = 1 };
    return world_mutex(w, client, name, &attr);
}

/* A lease that is never renewed is asked for, too. */
static void of_a_fixed_lease_as_well(struct world *w)
{
    lk_client_t *client = world_client(w, OPTIONS);
    lk_mutex_t *orders = fixed_mutex(w, client, "orders");
    struct news *n = news_of(w, client, "orders");
    assert_lk(0, lk_mutex_trylock(orders));
    restart(w);
    eventually(news(n, LK_EVENT_LOST) == 1, SOON_MS);
    assert_int_equal(LK_REASON_GONE, news_reason(n));
    assert_lk(ESTALE, lk_mutex_unlock(orders));
}

static void of_each_of_many(struct world *w)
{
    lk_client_t *client = world_client(w, OPTIONS);
    lk_mutex_t *mutexes[MANY];
    losses = 0;
    assert_lk(0, lk_client_addlistener(client, count_losses, NULL, NULL));
    for (int i = 0; i < MANY; i++) {
        char name[24];
        snprintf(name, sizeof name, "order-%d", i);
        mutexes[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(mutexes[i]));
    }
    restart(w);
    eventually(__atomic_load_n(&losses, __ATOMIC_SEQ_CST) == MANY, SOON_MS);
    for (int i = 0; i < MANY; i++)
        assert_lk(ESTALE, lk_mutex_unlock(mutexes[i]));
}

static int64_t left_ms(lk_mutex_t *m)
{
    int64_t ms;
    assert_lk(0, lk_mutex_remaining(m, &ms));
    return ms;
}

/* A server that kept the holds renews them. A fixed lease is asked for and not prolonged. */
static void what_it_knows_is_held_on(void)
{
    struct world *w = world_begin("--appendonly yes --appendfsync always");
    lk_client_t *client = world_client(w, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *bills = fixed_mutex(w, client, "bills");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_trylock(bills));
    sleep_ms(1500);
    int64_t before_ms = left_ms(bills);
    restart(w);
    for (int i = 0; i < 20; i++) { /* connections come up while it is about to be asked for */
        world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
        sleep_ms(5);
    }
    eventually(left_ms(orders) > LEASE_MS - 1500 - 700, SOON_MS); /* renewed: 1 % and more are never trusted */
    assert_lk(0, lk_mutex_check(bills));
    assert_true(left_ms(bills) <= before_ms);
    assert_true(world_int(w, "PTTL bills") <= LEASE_MS - 1500);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(bills));
    world_end(w);
}

int main(void)
{
    int failed = subject_run(a_loss_is_told_soon);
    failed += world_run(of_a_fixed_lease_as_well, of_each_of_many);
    return failed + plain_run(what_it_knows_is_held_on);
}
