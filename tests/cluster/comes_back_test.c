/* SPDX-License-Identifier: MIT */
/*
 * comes_back_test.c - a node takes no connections for a while, and stays the master: all that was cut is made anew
 *
 * Nobody calls meanwhile. The first attempts fail, and it takes others to come back.
 *
 * labels: threads
 * simulated: yes
 * seconds: 16
 */
#include "cluster.h"

#include <string.h>

enum { LEASE_MS = 8000, AWAY_MS = 3500, PATIENT_MS = 20000 };

#define OPTIONS "lease=8s&command_timeout=500ms&poll=500ms&retry_max=200ms&describe=no"

static void refuse(struct cluster *c, int node)
{
    cluster_str(c, node, "CONFIG SET maxclients 1");
    cluster_str(c, node, "CLIENT KILL TYPE pubsub");
    cluster_str(c, node, "CLIENT KILL TYPE normal SKIPME yes");
}

static void admit(struct cluster *c, int node)
{
    cluster_str(c, node, "CONFIG SET maxclients 1000");
}

/* A renewal was due meanwhile, and could not be sent. */
static void what_is_held_there_is_renewed(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_mutex_t *held = world_mutex(w, cluster_client(c, OPTIONS), cluster_name(c, 0, "orders"), NULL);
    assert_lk(0, lk_mutex_lock(held));
    int64_t began_ms = now_ms();
    refuse(c, 0);
    while (now_ms() < began_ms + AWAY_MS)
        sleep_ms(10);
    admit(c, 0);
    while (now_ms() < began_ms + LEASE_MS + LEASE_MS / 4)
        sleep_ms(10);
    assert_lk(0, lk_mutex_check(held));
    assert_lk(0, lk_mutex_unlock(held));
}

static bool is_subscribed(struct cluster *c, int node)
{
    return strstr(cluster_str(c, node, "CLIENT LIST TYPE pubsub"), "ssub=1") != NULL;
}

static void who_waits_there_hears_again(struct world *w)
{
    struct worker waiter;
    struct cluster *c = cluster_begin(w, false);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *theirs = world_mutex(w, cluster_client(c, "lease=60s"), name, NULL);
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, lock_and_unlock, world_mutex(w, cluster_client(c, OPTIONS), name, NULL));
    eventually(is_subscribed(c, 0), PATIENT_MS);
    refuse(c, 0);
    assert_false(is_subscribed(c, 0));
    sleep_ms(1000);
    admit(c, 0);
    eventually(is_subscribed(c, 0), PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(0, worker_join(&waiter));
}

int main(void)
{
    return world_run(what_is_held_there_is_renewed, who_waits_there_hears_again);
}
