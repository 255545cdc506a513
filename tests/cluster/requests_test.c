/* SPDX-License-Identifier: MIT */
/*
 * requests_test.c - objects of a cluster: each is where its slot is, and follows it
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 25
 */
#include "cluster.h"
#include "subject.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=3s&command_timeout=500ms&poll=200ms"
#define PATIENTLY "lease=20s&command_timeout=5s&poll=200ms" /* a busy machine has time */

enum { EACH = 4 };

/* Holds of three nodes are taken, renewed and given back; who has something of one node alone has no more connections. */
static void objects_of_all_nodes(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS);
    lk_mutex_t *held[CLUSTER_MASTERS * EACH];
    for (int i = 0; i < CLUSTER_MASTERS * EACH; i++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "order-%c", 'a' + i);
        const char *name = cluster_name(c, i % CLUSTER_MASTERS, prefix);
        held[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(held[i]));
        assert_int_equal(1, cluster_int(c, i % CLUSTER_MASTERS, "EXISTS %s", name));
    }
    sleep_ms(4500);
    for (int i = 0; i < CLUSTER_MASTERS * EACH; i++) {
        int64_t left_ms;
        assert_lk(0, lk_mutex_remaining(held[i], &left_ms));
        assert_lk(0, lk_mutex_check(held[i]));
        assert_lk(0, lk_mutex_unlock(held[i]));
    }
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        eventually(cluster_connections(c, node) == 2, PATIENT_MS);
    world_close(w, client);

    client = cluster_client(c, OPTIONS);
    int before = cluster_connections(c, 2);
    lk_mutex_t *orders = world_mutex(w, client, cluster_name(c, 0, "orders"), NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_true(cluster_connections(c, 2) <= before); /* those that looked at its clock may have been among them */
}

/* One of each kind, and somebody else who waits for it. */
static void every_primitive(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, PATIENTLY), *other = cluster_client(c, PATIENTLY);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        char name[40];
        snprintf(name, sizeof name, "of-%d", (int)(kind - subject_kinds));
        struct subject *mine = world_subject(w, one, kind, name);
        struct subject *theirs = world_subject(w, other, subject_keeper(kind), name);
        assert_lk(0, subject_take(mine, PATIENT_MS));
        assert_int_not_equal(0, subject_take(theirs, 300));
        assert_lk(0, subject_give(mine));
        assert_lk(0, subject_take(theirs, PATIENT_MS));
        assert_lk(0, subject_give(theirs));
    }
    lk_latch_t *gate = world_latch(w, one, "gate"), *same = world_latch(w, other, "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(same, 100));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_waitfor(same, PATIENT_MS));
}

struct meeting {
    lk_mutex_t *mutex;
    lk_cond_t *told;
    lk_barrier_t *barrier;
    atomic_bool ready;
};

/* Is told, and then comes to the barrier. */
static int meet(void *arg)
{
    struct meeting *meeting = arg;
    int rc = lk_mutex_lockfor(meeting->mutex, PATIENT_MS);
    while (rc == 0 && !atomic_load(&meeting->ready))
        rc = lk_cond_waitfor(meeting->told, meeting->mutex, PATIENT_MS);
    if (rc == 0)
        rc = lk_mutex_unlock(meeting->mutex);
    return rc == 0 ? lk_barrier_waitfor(meeting->barrier, PATIENT_MS) : rc;
}

/* What several wait for at once: one client of them here and one there, and each object at another node. */
static void what_all_wait_for(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *clients[2] = { cluster_client(c, PATIENTLY), cluster_client(c, PATIENTLY) };
    const char *mutex = cluster_name(c, 0, "orders"), *barrier = cluster_name(c, 1, "start"),
               *once = cluster_name(c, 2, "fill");
    struct meeting meetings[2] = { 0 };
    lk_once_t *fills[2];
    struct worker worker;
    for (int i = 0; i < 2; i++) {
        meetings[i].mutex = world_mutex(w, clients[i], mutex, NULL);
        meetings[i].told = world_cond(w, clients[i], mutex, NULL);
        meetings[i].barrier = world_barrier(w, clients[i], barrier, 2, NULL);
        fills[i] = world_once(w, clients[i], once, NULL);
    }
    worker_start(&worker, meet, &meetings[1]);
    eventually(cluster_int(c, 0, "ZCARD latchkey:queue:cond:{%s}", mutex) == 1, PATIENT_MS);
    assert_lk(0, lk_mutex_lockfor(meetings[0].mutex, PATIENT_MS));
    atomic_store(&meetings[1].ready, true);
    assert_lk(0, lk_cond_signal(meetings[0].told));
    assert_lk(0, lk_mutex_unlock(meetings[0].mutex));
    int mine = lk_barrier_waitfor(meetings[0].barrier, PATIENT_MS), theirs = worker_join(&worker);
    assert_true((mine == 0 && theirs == LK_BARRIER_SERIAL) || (mine == LK_BARRIER_SERIAL && theirs == 0));

    assert_lk(0, lk_once_begin(fills[0], PATIENT_MS));
    assert_lk(ETIMEDOUT, lk_once_begin(fills[1], 100));
    assert_lk(0, lk_once_end(fills[0], "full"));
    assert_lk(EALREADY, lk_once_begin(fills[1], PATIENT_MS));
    assert_int_equal(1, cluster_int(c, 2, "EXISTS latchkey:done:{%s}", once));
}

/* What is held goes on being held, and is given back where it is by then. */
static void a_slot_moves(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *orders = world_mutex(w, client, name, NULL);
    uint64_t first, second;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &first));
    cluster_move(c, cluster_slot(c, name), 0, 1);
    sleep_ms(3500);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, cluster_int(c, 1, "EXISTS %s", name));
    cluster_move(c, cluster_slot(c, name), 1, 2);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &second));
    assert_true(second > first);
    assert_int_equal(1, cluster_int(c, 2, "EXISTS %s", name));
    assert_lk(0, lk_mutex_unlock(orders));
}

/*
 * While the slot of a hold migrates, its key is here and then there: renewals find it. Who asks with several keys of which
 * some are there has to wait, as long as that lasts.
 */
static void a_slot_that_migrates(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    int slot = cluster_slot(c, name);
    lk_mutex_t *orders = world_mutex(w, client, name, NULL), *theirs = world_mutex(w, other, name, NULL);
    assert_lk(0, lk_mutex_lock(orders));
    cluster_beginmove(c, slot, 0, 2);
    cluster_movekey(c, name, 0, 2);
    sleep_ms(4000); /* more than the lease */
    int64_t left_ms;
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_int_equal(1, cluster_int(c, 2, "CLUSTER COUNTKEYSINSLOT %d", slot));
    int64_t began_ms = now_ms();
    assert_int_not_equal(0, lk_mutex_lockfor(theirs, 700));
    assert_between(now_ms() - began_ms, 600, 700 + 500 + SLACK_MS);
    while (cluster_movekeys(c, slot, 0, 2) > 0)
        ;
    assert_lk(0, lk_mutex_check(orders));
    cluster_endmove(c, slot, 0, 2);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lockfor(theirs, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(theirs));
}

int main(void)
{
    return world_run(objects_of_all_nodes, every_primitive, what_all_wait_for, a_slot_moves, a_slot_that_migrates);
}
