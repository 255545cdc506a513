/* SPDX-License-Identifier: MIT */
/*
 * close_test.c - closing a client releases what it holds, ends its waits and leaves nothing
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"

#include <dirent.h>
#include <stdio.h>

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

/* Holds are given back at once, not left to their leases. */
static void close_releases_every_hold(struct world *w)
{
    enum { MANY = 50 };
    static lk_mutex_t *many[MANY];
    char name[16];
    uint64_t token;
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "order-%d", i);
        many[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(many[i]));
    }
    assert_lk(0, close_by_hand(w, client));
    assert_false(world_exists(w, "orders"));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "order-%d", i);
        assert_false(world_exists(w, name));
        world_close(w, many[i]);
    }
    assert_lk(ECANCELED, lk_mutex_lock(orders));
    assert_lk(ECANCELED, lk_mutex_trylock(orders));
    assert_lk(ECANCELED, lk_mutex_lockfor(orders, 100));
    assert_lk(ECANCELED, lk_mutex_token(orders, &token));
}

/* A client that was never used, and none at all. */
static void there_may_be_nothing_to_close(struct world *w)
{
    lk_client_t *unused = world_open(w, "");
    assert_lk(0, lk_client_close(unused));
    assert_lk(0, lk_client_close(NULL));
}

struct flight {
    lk_client_t *client;
    int landed[256]; /* how often each code came back */
};

static int one_request(int index, void *arg)
{
    struct flight *flight = arg;
    lk_mutex_t m;
    char name[16];
    snprintf(name, sizeof name, "order-%d", index);
    if (lk_mutex_init(&m, flight->client, name, NULL) != 0)
        return -1;
    int rc = lk_mutex_lock(&m);
    __atomic_add_fetch(&flight->landed[rc], 1, __ATOMIC_RELAXED);
    return lk_mutex_destroy(&m);
}

WORK(hundred_requests, arg, run_threads(100, one_request, arg))

/* A hundred requests whose answers are still on their way: each caller hears something, nothing stays held. */
static void close_with_a_hundred_requests_in_flight(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct flight flight = { 0 };
    struct worker callers;
    assert_lk(0, lk_client_open(&flight.client, proxy_url(p, "lease=7s&command_timeout=2s")));
    orders = world_mutex(w, flight.client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* from now on the server knows the scripts */
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    proxy_stall(p, PROXY_DOWN);
    worker_start(&callers, hundred_requests, &flight);
    eventually(world_elements(w, "KEYS order-*") == 100, 5000); /* all granted, nobody knows */
    int64_t began_ms = now_ms();
    int code = lk_client_close(flight.client);
    assert_between(now_ms() - began_ms, 0, 4000 + SLACK_MS);
    assert_true(code == 0 || code == EIO);
    assert_int_equal(0, worker_join(&callers));
    assert_int_equal(100, flight.landed[ECANCELED] + flight.landed[EIO]);
    proxy_resume(p);
    eventually(world_elements(w, "KEYS order-*") == 0, 8000);
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Programs that open a client per job must not run dry after a day. */
static void a_hundred_opens_and_closes_leave_no_descriptor(struct world *w)
{
    int before = count_descriptors();
    for (int i = 0; i < 100; i++) {
        open_orders(w, "lease=5s");
        assert_lk(0, lock_and_unlock(orders));
        world_close(w, client);
    }
    assert_int_equal(before, count_descriptors());
}

int main(void)
{
    return world_run(close_releases_every_hold, there_may_be_nothing_to_close, close_with_a_hundred_requests_in_flight,
                     a_hundred_opens_and_closes_leave_no_descriptor);
}
