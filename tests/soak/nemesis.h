/* SPDX-License-Identifier: MIT */
/*
 * nemesis.h - makes the faults of a plan happen, and ends them
 */
#ifndef TESTS_SOAK_NEMESIS_H
#define TESTS_SOAK_NEMESIS_H

#include "cluster.h"
#include "failover.h"
#include "fault.h"
#include "proxy.h"
#include "table.h"
#include "world.h"

#include <sys/types.h>

struct nemesis {
    struct world *world;
    struct failover *failover; /* NULL, as is the next one: one server, behind proxies */
    struct cluster *cluster;
    int node;                     /* of the fault under way: the master of before, or a Sentinel */
    int slot, to;                 /* of that: which slot goes where */
    int leaders[CLUSTER_MASTERS]; /* masters when nothing was amiss last, and when that was */
    int64_t known_ns, failovers;  /* likewise with Sentinels: the number of the last failover */
    const char *dir;     /* for faults that are found */
    bool lifted;         /* what was done to it is undone; others may not have got over it yet */
    int settled;         /* looks in a row that found nothing amiss */
    int64_t looked_ns;   /* when it was asked about last */
    int64_t demanded_ns; /* when a failover was, last */
    struct table *table;
    struct proxy *proxies[PROCESSES_MAX];
    pid_t *actors;              /* the driver's; 0: none just now */
    struct redisContext *redis; /* of its own, which is never sent away */
};

/* Faults for a storm of that length. The same seed and settings make the same plan. */
int plan_make(struct fault *plan, int room, const struct table *table, int storm_ms);

void nemesis_begin(struct nemesis *nemesis, struct fault *fault);
/* False: it is not over yet, and to be tried again. */
bool nemesis_end(struct nemesis *nemesis, struct fault *fault);

/* --- nemesis_failover.c: the same of servers that replace each other ----------------------------------------------- */

void nemesis_beginfailover(struct nemesis *nemesis, const struct fault *fault);
bool nemesis_endfailover(struct nemesis *nemesis, const struct fault *fault);
/* Is it time to look whether a fault is over? One that lasts too long ends the soak. */
bool nemesis_mustlook(struct nemesis *nemesis, const struct fault *fault);
/* Was nothing amiss often enough in a row? */
bool nemesis_issettled(struct nemesis *nemesis, bool settled);

/*
 * Note the number of the last failover. If there was one that nobody asked for, as this machine was too busy for the master,
 * that is a fault, too, since the last time. `fault`: what was done, or NULL.
 */
void nemesis_notefailovers(struct nemesis *nemesis, const struct fault *fault);
/* Since the last time masters were replaced for no other reason, or not. */
void nemesis_note(struct nemesis *nemesis, bool found);

/* --- nemesis_cluster.c: the same of a cluster ---------------------------------------------------------------------- */

void nemesis_begincluster(struct nemesis *nemesis, const struct fault *fault);
bool nemesis_endcluster(struct nemesis *nemesis, const struct fault *fault);
/*
 * Note which nodes are masters. If one is that should not, as nothing was done to the one before but that this machine was
 * too busy for it, that is a fault, too, since the last time. `fault`: what was done, or NULL.
 */
void nemesis_notemasters(struct nemesis *nemesis, const struct fault *fault);

/*
 * Use other counting semaphores from now on: the data of the old ones is about to vanish, or may just have; or
 * permits have died with those who held them, and whoever wants all of them would wait for ever.
 */
void nemesis_next_epoch(struct nemesis *nemesis);

void nemesis_rest(struct nemesis *nemesis); /* closes its connection */

#endif
