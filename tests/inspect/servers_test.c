/* SPDX-License-Identifier: MIT */
/*
 * servers_test.c - a walk goes through every master of a cluster, every server of a quorum, and the master of Sentinels
 *
 * labels: threads
 * simulated: yes
 * seconds: 20
 */
#include "cluster.h"
#include "failover.h"
#include "quorum.h"

#include <string.h>

#define LEASE "lease=20s"
#define PATIENT LEASE "&command_timeout=5s" /* a server that stands still for a second is not away */

/* How many of a kind a walk finds, at `servers` servers. */
static int found_by(lk_client_t *client, int kind, unsigned servers)
{
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    int rc, count = 0;
    bool at[16] = { false };
    assert_lk(0, lk_inspect_open(&walk, client, NULL));
    while ((rc = lk_inspect_next(walk, &object)) == 0) {
        assert_int_equal(kind, object.kind);
        assert_int_equal(LK_STATE_EXCLUSIVE, object.state);
        assert_true(object.server < 16);
        at[object.server] = true;
        count++;
    }
    assert_lk(ENOENT, rc);
    assert_lk(0, lk_inspect_stats(walk, &stats));
    assert_int_equal(servers, stats.servers);
    assert_int_equal(0, stats.slots_missing);
    for (unsigned i = 1; servers > 1 && i <= servers; i++)
        assert_true(at[i]);
    lk_inspect_close(walk);
    return count;
}

static void all_masters_of_a_cluster(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, PATIENT), *looks = cluster_client(c, PATIENT);
    lk_mutex_t *mutexes[CLUSTER_MASTERS];
    lk_holder_t holder;
    unsigned count;
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        mutexes[node] = world_mutex(w, client, cluster_name(c, node, "orders"), NULL);
        assert_lk(0, lk_mutex_lockfor(mutexes[node], 5000));
    }
    assert_int_equal(CLUSTER_MASTERS, found_by(looks, LK_KIND_MUTEX, CLUSTER_MASTERS));
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        const char *name = cluster_name(c, node, "orders");
        assert_lk(0, lk_inspect_holders(looks, LK_KIND_MUTEX, name, &holder, sizeof holder, 1, &count));
        assert_int_equal(1, count);
        assert_lk(0, lk_mutex_unlock(mutexes[node]));
    }
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    assert_lk(0, lk_inspect_open(&walk, looks, NULL));
    assert_lk(ENOENT, lk_inspect_next(walk, &object));
    lk_inspect_close(walk);
}

static void all_servers_of_a_quorum(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 500 };
    lk_client_t *client = quorum_client(q, PATIENT);
    lk_redlock_t *jobs = quorum_redlock(w, client, "jobs", &no_wait);
    unsigned count;
    quorum_lockall(q, jobs, "jobs");
    assert_int_equal(3, found_by(client, LK_KIND_REDLOCK, 3));
    assert_lk(ENOTSUP, lk_inspect_holders(client, LK_KIND_MUTEX, "jobs", NULL, 0, 0, &count));
    assert_lk(0, lk_redlock_unlock(jobs));
}

/* How many objects a walk finds; `stats` says what of the servers. */
static int count_of(lk_client_t *client, unsigned kinds, lk_inspectstats_t *stats)
{
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    int rc, count = 0;
    *stats = (lk_inspectstats_t)LK_INSPECTSTATS_INIT;
    attr.kinds = kinds;
    assert_lk(0, lk_inspect_open(&walk, client, &attr));
    while ((rc = lk_inspect_next(walk, &object)) == 0)
        count++;
    assert_lk(ENOENT, rc);
    assert_lk(ENOENT, lk_inspect_next(walk, &object));
    assert_lk(0, lk_inspect_stats(walk, stats));
    lk_inspect_close(walk);
    return count;
}

/* A mutex at a server of a quorum is a redlock, and asked for as that. */
static void kinds_at_a_quorum(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, PATIENT);
    lk_inspectstats_t stats;
    quorum_str(q, 0, "SET latchkey:robust:mutex:{jobs} x");
    quorum_str(q, 0, "SET latchkey:robust:rw:{jobs} x");
    assert_int_equal(2, count_of(client, 0, &stats));
    assert_int_equal(0, count_of(client, 1U << LK_KIND_MUTEX, &stats));
    assert_int_equal(1, count_of(client, 1U << LK_KIND_REDLOCK, &stats));
    assert_int_equal(1, count_of(client, 1U << LK_KIND_REDLOCK | 1U << LK_KIND_MUTEX, &stats));
    assert_int_equal(1, count_of(client, 1U << LK_KIND_RWLOCK | 1U << LK_KIND_MUTEX, &stats));
}

/* One that was killed, or that hangs: what the others have is told, and that it is away. */
static void a_quorum_does_without_one_that_is_away(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 500 };
    lk_client_t *client = quorum_client(q, LEASE "&command_timeout=1s");
    lk_redlock_t *jobs = quorum_redlock(w, client, "jobs", &no_wait);
    lk_inspectstats_t stats;
    quorum_lockall(q, jobs, "jobs");
    quorum_stop(q, 1);
    eventually(count_of(client, 0, &stats) == 2 && stats.servers_away == 1, QUORUM_WITHIN_MS);
    assert_int_equal(3, stats.servers);
    quorum_cont(q, 1);
    quorum_kill(q, 0);
    eventually(count_of(client, 0, &stats) == 2 && stats.servers_away == 1, QUORUM_WITHIN_MS);
    quorum_start(q, 0);
    eventually(count_of(client, 0, &stats) == 2 && stats.servers_away == 0, QUORUM_WITHIN_MS);
    assert_lk(0, lk_redlock_unlock(jobs));
}

/* When all are away that is said, and the walk begins anew when they are there. */
static void a_quorum_that_is_away_as_a_whole(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, LEASE "&command_timeout=1s");
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    int rc;
    assert_lk(0, lk_inspect_open(&walk, client, NULL));
    for (int node = 0; node < 3; node++)
        quorum_stop(q, node);
    assert_lk(ENOTCONN, lk_inspect_next(walk, &object));
    assert_lk(ENOTCONN, lk_inspect_next(walk, &object));
    for (int node = 0; node < 3; node++) {
        quorum_cont(q, node);
        quorum_str(q, node, "SET latchkey:robust:mutex:{jobs} x");
    }
    eventually(lk_inspect_next(walk, &object) == 0, QUORUM_WITHIN_MS);
    assert_string_equal("jobs", object.name);
    while ((rc = lk_inspect_next(walk, &object)) == 0)
        assert_string_equal("jobs", object.name);
    assert_lk(ENOENT, rc);
    assert_lk(0, lk_inspect_stats(walk, &stats));
    assert_int_equal(3, stats.servers);
    lk_inspect_close(walk);
}

static void the_master_that_sentinels_name(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = failover_client(f, PATIENT);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(1, found_by(client, LK_KIND_MUTEX, 1));
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(all_masters_of_a_cluster, all_servers_of_a_quorum, kinds_at_a_quorum,
                     a_quorum_does_without_one_that_is_away, a_quorum_that_is_away_as_a_whole, the_master_that_sentinels_name);
}
