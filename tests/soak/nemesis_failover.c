/* SPDX-License-Identifier: MIT */
/*
 * nemesis_failover.c - faults of a master with replicas and Sentinels
 *
 * What the servers know may be lost from the beginning of such a fault to its end, which is when a master has its replicas
 * again and all agree that it is one: until then an old one may go on granting. What was lost is noted by these times, and
 * not found out from what happened; but for a failover that the Sentinels began by themselves.
 */
#include "nemesis.h"

#include "history.h"
#include "record.h"

#include <stdio.h>

#define LOOK_EVERY_NS (100 * NS_PER_MS)
#define LOOKS 5
#define OVER_WITHIN_NS (60000 * NS_PER_MS)
#define DEMAND_EVERY_NS (6000 * NS_PER_MS) /* three times what the Sentinels take before they give one up */

static void demand(struct nemesis *nemesis)
{
    failover_demand(nemesis->failover);
    nemesis->demanded_ns = now_ns();
}

void nemesis_note(struct nemesis *nemesis, bool found)
{
    struct fault lost = {
        .kind = LOST_PATIENCE, .process = EVERYBODY, .begin_ns = nemesis->known_ns, .end_ns = now_ns()
    };
    if (found && nemesis->known_ns != 0) {
        nemesis_next_epoch(nemesis);
        assert_that(fault_write(nemesis->dir, &lost));
    }
    nemesis->known_ns = lost.end_ns;
}

void nemesis_notefailovers(struct nemesis *nemesis, const struct fault *fault)
{
    int64_t before = nemesis->failovers, last = failover_epoch(nemesis->failover);
    nemesis->failovers = last > before ? last : before;
    nemesis_note(nemesis, last > before && !(fault != NULL && fault_loses_data(fault)));
}

void nemesis_beginfailover(struct nemesis *nemesis, const struct fault *fault)
{
    struct failover *f = nemesis->failover;
    nemesis_notefailovers(nemesis, NULL);
    nemesis->lifted = false;
    nemesis->settled = 0;
    nemesis->node = fault->kind == KILL_SENTINEL ? fault->number % FAILOVER_SENTINELS : failover_master(f);
    assert_that(nemesis->node >= 0); /* they agreed when the last such fault was over */
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    switch (fault->kind) {
    case KILL_MASTER:
        failover_kill(f, nemesis->node);
        break;
    case STOP_MASTER:
        failover_stop(f, nemesis->node);
        break;
    case CUT_MASTER:
        failover_cutoff(f, nemesis->node);
        break;
    case DEMAND_FAILOVER:
        demand(nemesis);
        break;
    case KILL_SENTINEL:
        failover_killsentinel(f, nemesis->node);
        break;
    }
}

static bool has_new_master(const struct nemesis *nemesis)
{
    int master = failover_master(nemesis->failover);
    return master >= 0 && master != nemesis->node;
}

/* An empty server must not be a master before another one is. */
static bool lift(struct nemesis *nemesis, const struct fault *fault)
{
    struct failover *f = nemesis->failover;
    switch (fault->kind) {
    case KILL_MASTER:
        if (!has_new_master(nemesis))
            return false;
        failover_start(f, nemesis->node);
        return true;
    case STOP_MASTER:
        failover_cont(f, nemesis->node);
        return true;
    case CUT_MASTER:
        failover_heal(f, nemesis->node);
        return true;
    case DEMAND_FAILOVER: /* which they give up if the next master does not tell in time that it is one */
        if (!has_new_master(nemesis) && now_ns() > nemesis->demanded_ns + DEMAND_EVERY_NS)
            demand(nemesis);
        return has_new_master(nemesis);
    default:
        failover_startsentinel(f, nemesis->node);
        return true;
    }
}

bool nemesis_mustlook(struct nemesis *nemesis, const struct fault *fault)
{
    if (now_ns() < nemesis->looked_ns + LOOK_EVERY_NS)
        return false;
    nemesis->looked_ns = now_ns();
    if (now_ns() > fault->begin_ns + fault->length_ms * NS_PER_MS + OVER_WITHIN_NS) {
        fprintf(stderr, "%s: the servers do not get over it\n", fault_name(fault->kind));
        assert_that(false);
    }
    return true;
}

bool nemesis_issettled(struct nemesis *nemesis, bool settled)
{
    nemesis->settled = settled ? nemesis->settled + 1 : 0;
    return nemesis->settled >= LOOKS;
}

bool nemesis_endfailover(struct nemesis *nemesis, const struct fault *fault)
{
    if (!nemesis_mustlook(nemesis, fault))
        return false;
    if (!nemesis->lifted)
        nemesis->lifted = lift(nemesis, fault);
    if (!nemesis_issettled(nemesis, nemesis->lifted && failover_settled(nemesis->failover)))
        return false;
    nemesis_notefailovers(nemesis, fault);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    return true;
}
