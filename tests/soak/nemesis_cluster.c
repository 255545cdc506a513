/* SPDX-License-Identifier: MIT */
/*
 * nemesis_cluster.c - faults of a cluster of masters with a replica each
 *
 * What a node knows may be lost from the beginning of such a fault to its end, but not by a slot that moves: what is held in
 * it has to be held on. Node n + 3 is the replica of node n, or the other way round; a fault is of one such two.
 */
#include "nemesis.h"

#include "record.h"

#define DEMAND_EVERY_NS (6000 * NS_PER_MS) /* longer than nodes try */

/* The other one of the two. */
static int partner_of(int node)
{
    return node < CLUSTER_MASTERS ? node + CLUSTER_MASTERS : node - CLUSTER_MASTERS;
}

static void demand(struct nemesis *nemesis)
{
    static int64_t demanded_ns;
    if (now_ns() < demanded_ns + DEMAND_EVERY_NS)
        return;
    demanded_ns = now_ns();
    cluster_str(nemesis->cluster, partner_of(nemesis->node), "CLUSTER FAILOVER");
}

/* Some of its keys are here then, and some are there. */
static void begin_move(struct nemesis *nemesis, const struct fault *fault)
{
    char name[64];
    struct cluster *c = nemesis->cluster;
    enum kind kind = (enum kind)(fault->number % LATCH);
    uint32_t epoch = __atomic_load_n(&nemesis->table->epoch, __ATOMIC_SEQ_CST);
    object_name(name, sizeof name, object_of(kind, (unsigned)fault->number / LATCH % HOT),
                kind == COUNTING ? epoch : 0);
    nemesis->slot = cluster_slot(c, name);
    nemesis->node = cluster_master(c, name);
    assert_that(nemesis->node >= 0); /* they agreed when the last fault was over */
    nemesis->to = cluster_leader(c, (nemesis->node + 1 + fault->number % 2) % CLUSTER_MASTERS);
    cluster_beginmove(c, nemesis->slot, nemesis->node, nemesis->to);
    if (fault->number % 3 != 0)
        cluster_movekey(c, name, nemesis->node, nemesis->to);
}

static void end_move(struct nemesis *nemesis)
{
    struct cluster *c = nemesis->cluster;
    while (cluster_movekeys(c, nemesis->slot, nemesis->node, nemesis->to) > 0)
        continue;
    cluster_endmove(c, nemesis->slot, nemesis->node, nemesis->to);
}

static void cut_all(struct cluster *c)
{
    cluster_order(c, "CLIENT KILL TYPE normal");
    cluster_order(c, "CLIENT KILL TYPE pubsub");
}

void nemesis_begincluster(struct nemesis *nemesis, const struct fault *fault)
{
    struct cluster *c = nemesis->cluster;
    nemesis->lifted = false;
    nemesis->settled = 0;
    nemesis->node = cluster_leader(c, fault->number % CLUSTER_MASTERS);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    switch (fault->kind) {
    case KILL_NODE:
        cluster_kill(c, nemesis->node);
        break;
    case STOP_NODE:
        cluster_stop(c, nemesis->node);
        break;
    case DEMAND_NODE:
        demand(nemesis);
        break;
    case MOVE_SLOT:
        begin_move(nemesis, fault);
        break;
    case CUT_NODES:
        cut_all(c);
        break;
    }
}

static bool has_new_master(const struct nemesis *nemesis)
{
    return cluster_leader(nemesis->cluster, nemesis->node) == partner_of(nemesis->node);
}

/* An empty server must not be a master before another one is. */
static bool lift(struct nemesis *nemesis, const struct fault *fault)
{
    struct cluster *c = nemesis->cluster;
    switch (fault->kind) {
    case KILL_NODE:
        if (!has_new_master(nemesis))
            return false;
        cluster_start(c, nemesis->node);
        break;
    case STOP_NODE:
        cluster_cont(c, nemesis->node);
        break;
    case DEMAND_NODE:
        if (has_new_master(nemesis))
            break;
        demand(nemesis);
        return false;
    case MOVE_SLOT:
        end_move(nemesis);
        break;
    }
    return true;
}

bool nemesis_endcluster(struct nemesis *nemesis, const struct fault *fault)
{
    if (!nemesis_mustlook(nemesis, fault))
        return false;
    if (!nemesis->lifted)
        nemesis->lifted = lift(nemesis, fault);
    if (!nemesis_issettled(nemesis, nemesis->lifted && cluster_settled(nemesis->cluster)))
        return false;
    nemesis_notemasters(nemesis, fault);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    return true;
}

void nemesis_notemasters(struct nemesis *nemesis, const struct fault *fault)
{
    bool found = false;
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        int leader = cluster_leader(nemesis->cluster, i);
        bool expected = fault != NULL && fault_loses_data(fault) && nemesis->node % CLUSTER_MASTERS == i;
        found |= !expected && leader != nemesis->leaders[i];
        nemesis->leaders[i] = leader;
    }
    nemesis_note(nemesis, found);
}
