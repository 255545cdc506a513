/* SPDX-License-Identifier: MIT */
/*
 * promoted_test.c - masters of a cluster that end, stand still, or come back with nothing
 *
 * labels: threads
 * simulated: yes
 * seconds: 30
 */
#include "cluster.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=20s&command_timeout=500ms&poll=500ms"

/* What its replica knew is held as before, and others go to it. What is elsewhere is not held up. */
static void a_master_is_killed(struct world *w)
{
    struct cluster *c = cluster_begin(w, true);
    lk_client_t *client = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *orders = world_mutex(w, client, name, NULL);
    lk_mutex_t *bills = world_mutex(w, client, cluster_name(c, 1, "bills"), NULL);
    lk_mutex_t *others = world_mutex(w, client, cluster_name(c, 0, "others"), NULL);
    uint64_t token;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    assert_lk(0, lk_mutex_lock(bills));
    assert_lk(0, lk_mutex_unlock(bills));
    cluster_replicated(c, 0);
    cluster_kill(c, 0);
    int64_t began_ms = now_ms(), slowest_ms = 0;
    while (lk_mutex_check(orders) != 0) {
        int64_t at_ms = now_ms(), left_ms;
        assert_between(at_ms - began_ms, 0, CLUSTER_WITHIN_MS);
        assert_lk(0, lk_mutex_remaining(orders, &left_ms));
        int rc = lk_mutex_lockfor(bills, 1000);
        if (rc == 0)
            assert_lk(0, lk_mutex_unlock(bills));
        if (now_ms() - at_ms > slowest_ms && rc == 0)
            slowest_ms = now_ms() - at_ms;
        sleep_ms(50);
    }
    assert_between(slowest_ms, 0, 1000 + SLACK_MS);
    eventually(cluster_master(c, name) == 3, CLUSTER_WITHIN_MS); /* each node hears of it in its own time */
    assert_lk(0, lk_mutex_lockfor(others, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(others));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, cluster_int(c, 3, "EXISTS %s", name));
    cluster_start(c, 0);
}

/* Its holds go on being renewed by others, and nobody waits for it who does not need it. */
static void a_master_stands_still(struct world *w)
{
    struct cluster *c = cluster_begin(w, true);
    lk_client_t *client = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 1, "orders");
    lk_mutex_t *orders = world_mutex(w, client, name, NULL);
    assert_lk(0, lk_mutex_lock(orders));
    cluster_replicated(c, 1);
    cluster_stop(c, 1);
    assert_lk(0, lk_mutex_lockfor(world_mutex(w, client, cluster_name(c, 1, "bills"), NULL), CLUSTER_WITHIN_MS));
    assert_lk(0, lk_mutex_unlock(world_mutex(w, client, cluster_name(c, 1, "bills"), NULL)));
    assert_lk(0, lk_mutex_check(orders));
    cluster_cont(c, 1);
    eventually(cluster_master(c, name) == 4, CLUSTER_WITHIN_MS);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Restarted before it counted as dead, it is the master with no keys: what was held there is lost, and its holder is told. */
static void a_master_comes_back_empty(struct world *w)
{
    static const lk_mutexattr_t longer = { .size = sizeof longer, .lease_ms = 20000 }; /* than it may be down */
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, "lease=3s&command_timeout=500ms&poll=500ms");
    lk_mutex_t *orders = world_mutex(w, client, cluster_name(c, 2, "orders"), NULL);
    lk_mutex_t *bills = world_mutex(w, client, cluster_name(c, 0, "bills"), &longer);
    int64_t left_ms;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_lock(bills));
    cluster_kill(c, 2);
    cluster_start(c, 2);
    eventually(lk_mutex_remaining(orders, &left_ms) == ESTALE, PATIENT_MS);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    eventually(lk_mutex_check(bills) == 0, PATIENT_MS);
    assert_lk(0, lk_mutex_lockfor(orders, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(bills));
}

/* With a node gone for good the others serve on, if the cluster is told to; what is there is refused in time. */
static void a_part_is_gone(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        cluster_str(c, node, "CONFIG SET cluster-require-full-coverage no");
    const char *name = cluster_name(c, 2, "orders"), *other = cluster_name(c, 0, "bills");
    cluster_kill(c, 2);
    lk_client_t *client = cluster_client(c, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, name, NULL), *bills = world_mutex(w, client, other, NULL);
    int64_t began_ms = now_ms();
    int rc = lk_mutex_lockfor(orders, 1500);
    assert_true(rc == ENOTCONN || rc == ETIMEDOUT);
    assert_between(now_ms() - began_ms, 0, 1500 + 500 + SLACK_MS);
    assert_lk(0, lk_mutex_lockfor(bills, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(bills));
    cluster_start(c, 2);
    assert_lk(0, lk_mutex_lockfor(orders, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(a_master_is_killed, a_master_stands_still, a_master_comes_back_empty, a_part_is_gone);
}
