/* SPDX-License-Identifier: MIT */
/*
 * servers.c - faults of servers that replace each other: a master with replicas and Sentinels, or a cluster of masters
 * with a replica each
 *
 * What the servers know may be lost from the beginning of such a fault to its end, which is when each master has its
 * replicas again and all agree that it is one: until then an old one may go on granting. Nothing may be lost by a slot
 * that moves, nor by a Sentinel that dies. Node n + 3 of a cluster is the replica of node n, or the other way round; a
 * fault is of one such two.
 */
#include "driver.h"

#define LOOK_EVERY_NS (100 * NS_PER_MS)
#define LOOKS 5
#define OVER_WITHIN_NS (60000 * NS_PER_MS)
#define DEMAND_EVERY_NS (6000 * NS_PER_MS) /* longer than servers try */

/* The other one of the two. */
static int partner_of(int node)
{
    return node < CLUSTER_MASTERS ? node + CLUSTER_MASTERS : node - CLUSTER_MASTERS;
}

static bool has_new_master(const struct nemesis *nemesis)
{
    if (nemesis->cluster != NULL)
        return cluster_leader(nemesis->cluster, nemesis->node) == partner_of(nemesis->node);
    int master = failover_master(nemesis->failover);
    return master >= 0 && master != nemesis->node;
}

/* They give it up if the next master does not tell in time that it is one. */
static void demand(struct nemesis *nemesis)
{
    if (now_ns() < nemesis->demanded_ns + DEMAND_EVERY_NS)
        return;
    nemesis->demanded_ns = now_ns();
    if (nemesis->cluster != NULL)
        cluster_str(nemesis->cluster, partner_of(nemesis->node), "CLUSTER FAILOVER");
    else
        failover_demand(nemesis->failover);
}

/* Some of its keys are here then, and some are there. */
static void begin_move(struct nemesis *nemesis, const struct fault *fault)
{
    char name[64];
    struct cluster *c = nemesis->cluster;
    enum kind kind = (enum kind)(fault->number % LATCH);
    uint32_t epoch = __atomic_load_n(&nemesis->table->epoch, __ATOMIC_SEQ_CST);
    uint32_t object = object_of(kind, (unsigned)fault->number / LATCH % HOT);
    object_name(name, sizeof name, object, kind == COUNTING ? epoch : 0);
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

static void cut_nodes(struct cluster *c)
{
    cluster_order(c, "CLIENT KILL TYPE normal");
    cluster_order(c, "CLIENT KILL TYPE pubsub");
}

/* What is done to one server, or to a Sentinel, and undone. */
static const struct {
    void (*begin)(struct failover *f, int node), (*end)(struct failover *f, int node);
} on_nodes[FAULT_KINDS] = {
    [KILL_MASTER] = { failover_kill, failover_start },
    [STOP_MASTER] = { failover_stop, failover_cont },
    [CUT_MASTER] = { failover_cutoff, failover_heal },
    [KILL_SENTINEL] = { failover_killsentinel, failover_startsentinel },
};

static const struct {
    void (*begin)(struct cluster *c, int node), (*end)(struct cluster *c, int node);
} on_cluster[FAULT_KINDS] = {
    [KILL_NODE] = { cluster_kill, cluster_start },
    [STOP_NODE] = { cluster_stop, cluster_cont },
};

void servers_begin(struct nemesis *nemesis, const struct fault *fault)
{
    struct cluster *c = nemesis->cluster;
    struct failover *f = nemesis->failover;
    nemesis->lifted = false;
    nemesis->settled = 0;
    nemesis->demanded_ns = 0;
    if (f != NULL)
        servers_note(nemesis, NULL);
    nemesis->node = c != NULL                     ? cluster_leader(c, fault->number % CLUSTER_MASTERS)
                    : fault->kind == KILL_SENTINEL ? fault->number % FAILOVER_SENTINELS
                                                   : failover_master(f);
    assert_that(nemesis->node >= 0); /* they agreed when the last such fault was over */
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    if (on_nodes[fault->kind].begin != NULL)
        on_nodes[fault->kind].begin(f, nemesis->node);
    else if (on_cluster[fault->kind].begin != NULL)
        on_cluster[fault->kind].begin(c, nemesis->node);
    else if (fault->kind == MOVE_SLOT)
        begin_move(nemesis, fault);
    else if (fault->kind == CUT_NODES)
        cut_nodes(c);
    else
        demand(nemesis);
}

/* An empty server must not be a master before another one is. */
static bool lift(struct nemesis *nemesis, const struct fault *fault)
{
    struct cluster *c = nemesis->cluster;
    struct failover *f = nemesis->failover;
    bool kills = fault->kind == KILL_MASTER || fault->kind == KILL_NODE;
    bool demands = fault->kind == DEMAND_FAILOVER || fault->kind == DEMAND_NODE;
    if ((kills || demands) && !has_new_master(nemesis)) {
        if (demands)
            demand(nemesis);
        return false;
    }
    if (on_nodes[fault->kind].end != NULL)
        on_nodes[fault->kind].end(f, nemesis->node);
    else if (on_cluster[fault->kind].end != NULL)
        on_cluster[fault->kind].end(c, nemesis->node);
    else if (fault->kind == MOVE_SLOT)
        end_move(nemesis);
    return true;
}

/* One that lasts too long ends the soak. */
bool servers_end(struct nemesis *nemesis, const struct fault *fault)
{
    if (now_ns() < nemesis->looked_ns + LOOK_EVERY_NS)
        return false;
    nemesis->looked_ns = now_ns();
    if (now_ns() > fault->begin_ns + fault->length_ms * NS_PER_MS + OVER_WITHIN_NS) {
        fprintf(stderr, "%s: the servers do not get over it\n", fault_name(fault->kind));
        assert_that(false);
    }
    if (!nemesis->lifted)
        nemesis->lifted = lift(nemesis, fault);
    bool settled = nemesis->lifted && (nemesis->cluster != NULL ? cluster_settled(nemesis->cluster)
                                                                : failover_settled(nemesis->failover));
    nemesis->settled = settled ? nemesis->settled + 1 : 0;
    if (nemesis->settled < LOOKS)
        return false;
    servers_note(nemesis, fault);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    return true;
}

static bool has_other_leaders(struct nemesis *nemesis, const struct fault *fault)
{
    bool found = false;
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        int leader = cluster_leader(nemesis->cluster, i);
        bool expected = fault != NULL && fault_loses_data(fault) && nemesis->node % CLUSTER_MASTERS == i;
        found |= !expected && leader != nemesis->leaders[i];
        nemesis->leaders[i] = leader;
    }
    return found;
}

static bool had_failovers(struct nemesis *nemesis, const struct fault *fault)
{
    int64_t before = nemesis->failovers, last = failover_epoch(nemesis->failover);
    nemesis->failovers = last > before ? last : before;
    return last > before && !(fault != NULL && fault_loses_data(fault));
}

void servers_note(struct nemesis *nemesis, const struct fault *fault)
{
    bool found = nemesis->cluster != NULL ? has_other_leaders(nemesis, fault) : had_failovers(nemesis, fault);
    struct fault lost = {
        .kind = LOST_PATIENCE, .process = EVERYBODY, .begin_ns = nemesis->known_ns, .end_ns = now_ns()
    };
    if (found && nemesis->known_ns != 0) {
        nemesis_next_epoch(nemesis);
        assert_that(fault_write(nemesis->dir, &lost));
    }
    nemesis->known_ns = lost.end_ns;
}
