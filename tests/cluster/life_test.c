/* SPDX-License-Identifier: MIT */
/*
 * life_test.c - clients of a cluster begin, fork and end, also while nodes are down or stand still
 *
 * labels: fullthreads
 * simulated: yes
 * seconds: 38
 */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>

#define OPTIONS "lease=4s&command_timeout=900ms&connect_timeout=2s&poll=500ms"

static lk_mutex_t first_used = LK_MUTEX_INITIALIZER("orders");

static lk_mutex_t *lock_at(struct world *w, struct cluster *c, lk_client_t *client, int node, const char *prefix)
{
    lk_mutex_t *mutex = world_mutex(w, client, cluster_name(c, node, prefix), NULL);
    assert_lk(0, lk_mutex_lockfor(mutex, CLUSTER_WITHIN_MS));
    return mutex;
}

static int use_first(int index, void *arg)
{
    (void)index;
    (void)arg;
    int rc = lk_mutex_lockfor(&first_used, 10000);
    return rc != 0 ? rc : lk_mutex_unlock(&first_used);
}

/* Several threads at once use the default client for the first time. */
static void the_first_use_opens_it(struct world *w)
{
    enum { THREADS = 8 };
    struct cluster *c = cluster_begin(w, false);
    use_default(cluster_url(c, OPTIONS));
    assert_int_equal(0, run_threads(THREADS, use_first, NULL));
    close_default();
    assert_lk(0, lk_mutex_destroy(&first_used));
    assert_lk(0, lk_client_setdefault(NULL));
    unsetenv("LATCHKEY_URL");
}

/* What is held on several nodes is given back by a close, and who waits is sent away. */
static void a_close_gives_all_back(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    struct worker waiter;
    lk_mutex_t *taken = lock_at(w, c, other, 0, "taken");
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        lock_at(w, c, client, node, "orders");
    worker_start(&waiter, lock_mutex, world_mutex(w, client, cluster_name(c, 0, "taken"), NULL));
    sleep_ms(300);
    assert_lk(0, close_by_hand(w, client));
    assert_int_equal(ECANCELED, worker_join(&waiter));
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        assert_int_equal(0, cluster_int(c, node, "EXISTS %s", cluster_name(c, node, "orders")));
    assert_lk(0, lk_mutex_unlock(taken));
}

static int live_on(struct world *w, void *arg)
{
    struct cluster *c = arg;
    assert_lk(ECANCELED, lk_mutex_lock(&first_used));
    lk_client_t *mine = NULL;
    lk_mutex_t m;
    assert_lk(0, lk_client_open(&mine, cluster_url(c, OPTIONS)));
    assert_lk(0, lk_mutex_init(&m, mine, "child", NULL));
    assert_lk(0, lk_mutex_lockfor(&m, 5000));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_client_close(mine));
    world_ready(w);
    return 0;
}

/* The child has a client of its own, or none; what its parent holds stays held. */
static void a_fork_leaves_it_behind(struct world *w)
{
    if (THREAD_SANITIZED) /* it cannot follow a fork out of a process with threads */
        skip();
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS);
    lk_mutex_t *mine = lock_at(w, c, client, 1, "orders");
    assert_lk(0, lk_mutex_init(&first_used, client, "before", NULL));
    assert_lk(0, lk_mutex_lock(&first_used));
    assert_lk(0, lk_mutex_unlock(&first_used));
    assert_int_equal(0, world_wait(w, world_fork(w, live_on, c)));
    assert_lk(0, lk_mutex_check(mine));
    assert_lk(0, lk_mutex_unlock(mine));
    assert_lk(0, lk_mutex_destroy(&first_used));
}

/* All are down: that is said in time, and a later attempt finds them. */
static void a_cluster_is_down(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = NULL;
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        cluster_kill(c, node);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_client_open(&client, cluster_url(c, "connect_timeout=500ms")));
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        cluster_start(c, node);
    client = cluster_client(c, OPTIONS);
    assert_lk(0, lk_mutex_unlock(lock_at(w, c, client, 0, "orders")));
}

/* Who is named is no node, but a server by itself; or a replica, which knows all masters. */
static void it_is_named_by_others(struct world *w)
{
    struct cluster *c = cluster_begin(w, true);
    char hosts[64];
    lk_client_t *client = NULL;
    snprintf(hosts, sizeof hosts, "127.0.0.1:%d", cluster_port(c, CLUSTER_MASTERS + 1));
    assert_lk(0, lk_client_open(&client, cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, hosts, OPTIONS)));
    lk_mutex_t m;
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        assert_lk(0, lk_mutex_init(&m, client, cluster_name(c, node, "orders"), NULL));
        assert_lk(0, lk_mutex_lockfor(&m, 5000));
        assert_lk(0, lk_mutex_unlock(&m));
        assert_lk(0, lk_mutex_destroy(&m));
    }
    assert_lk(0, lk_client_close(client));
}

/* One that stands still delays neither calls nor renewals of what is elsewhere, nor who opens a client. */
static void one_that_stands_still_delays_no_other(struct world *w)
{
    enum { LASTS_MS = 5000 };
    struct cluster *c = cluster_begin(w, false);
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        cluster_str(c, node, "CONFIG SET cluster-require-full-coverage no");
    lk_client_t *client = cluster_client(c, OPTIONS);
    lk_mutex_t *held[CLUSTER_MASTERS];
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        held[node] = lock_at(w, c, client, node, "orders");
    lk_mutex_t *other = lock_at(w, c, client, 2, "others");
    cluster_stop(c, 0);
    int64_t slowest_ms = 0;
    for (int64_t until_ms = now_ms() + LASTS_MS; now_ms() < until_ms; sleep_ms(20)) {
        int64_t at_ms = now_ms();
        assert_lk(0, lk_mutex_unlock(other));
        assert_lk(0, lk_mutex_lockfor(other, 3000));
        slowest_ms = now_ms() - at_ms > slowest_ms ? now_ms() - at_ms : slowest_ms;
    }
    assert_between(slowest_ms, 0, SLACK_MS);
    assert_lk(0, lk_mutex_check(held[1]));
    assert_lk(0, lk_mutex_check(held[2]));
    lk_client_t *late = cluster_client(c, OPTIONS);
    assert_lk(0, lk_mutex_unlock(lock_at(w, c, late, 1, "late")));
    cluster_cont(c, 0);
    assert_lk(0, lk_mutex_unlock(other));
    for (int node = 1; node < CLUSTER_MASTERS; node++)
        assert_lk(0, lk_mutex_unlock(held[node]));
    int rc = lk_mutex_unlock(held[0]);
    assert_true(rc == 0 || rc == ESTALE);
}

int main(void)
{
    return world_run(the_first_use_opens_it, a_close_gives_all_back, a_fork_leaves_it_behind, a_cluster_is_down,
                     it_is_named_by_others, one_that_stands_still_delays_no_other);
}
