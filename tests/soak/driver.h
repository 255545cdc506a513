/* SPDX-License-Identifier: MIT */
/*
 * driver.h - rounds of a soak: servers, a client process each, a plan of faults, calm, the checks
 */
#ifndef TESTS_SOAK_DRIVER_H
#define TESTS_SOAK_DRIVER_H

#include "check.h"

#include "cluster.h"
#include "failover.h"
#include "proxy.h"
#include "world.h"

#include <sys/types.h>

struct settings {
    int seconds;
    uint64_t seed;
    int processes, threads;
    int64_t lease_ms;
    const char *keep; /* folder for tapes; NULL: removed afterwards */
    enum deployment deployment;
    int replicas; /* wait_replicas; 0: none */
    int64_t least_faults, least_operations, least_acquires;
};

/* What all rounds did together. */
#define CODES_MAX 256
struct totals {
    struct report sum;
    int64_t operations, fault_count;
    int64_t faults[FAULT_KINDS];
    int64_t codes[KINDS][OPS][CODES_MAX]; /* the last one: never returned */
};

/* False: something was violated. */
bool round_run(const struct settings *settings, struct totals *totals);
/* Check kept tapes again. */
bool round_look(const char *dir, struct totals *totals);

/* --- plan.c ------------------------------------------------------------------------------------------------------- */

/* Faults for a storm of that length. The same seed and settings make the same plan. */
int plan_make(struct fault *plan, int room, const struct table *table, int storm_ms);

/* --- nemesis.c, servers.c: makes the faults of a plan happen, and ends them --------------------------------------- */

struct nemesis {
    struct world *world;
    struct failover *failover; /* NULL, as is the next one: one server, behind proxies */
    struct cluster *cluster;
    struct table *table;
    const char *dir; /* for faults that are found */
    struct proxy *proxies[PROCESSES_MAX];
    pid_t *actors;              /* the driver's; 0: none just now */
    struct redisContext *redis; /* of its own, which is never sent away */

    /* Of the fault of servers that replace each other which is under way. */
    int node;            /* the master of before, or a Sentinel */
    int slot, to;        /* which slot goes where */
    bool lifted;         /* what was done to it is undone; others may not have got over it yet */
    int settled;         /* looks in a row that found nothing amiss */
    int64_t looked_ns;   /* when it was asked about last */
    int64_t demanded_ns; /* when a failover was, last */

    int leaders[CLUSTER_MASTERS]; /* masters when nothing was amiss last, ... */
    int64_t failovers;            /* ... or the number of the last failover, ... */
    int64_t known_ns;             /* ... and when that was */
};

void nemesis_begin(struct nemesis *nemesis, struct fault *fault);
bool nemesis_end(struct nemesis *nemesis, struct fault *fault); /* False: it is not over yet, and to be tried again */
void nemesis_rest(struct nemesis *nemesis);                     /* closes its connection */

/*
 * Use other plain numbers from now on: the data of the old ones is about to vanish, or may just have; or permits have
 * died with those who held them, and whoever wants all of them would wait for ever.
 */
void nemesis_next_epoch(struct nemesis *nemesis);

void servers_begin(struct nemesis *nemesis, const struct fault *fault);
bool servers_end(struct nemesis *nemesis, const struct fault *fault);
/*
 * Note who is a master. If one was replaced though nothing was done to it but that this machine was too busy for it,
 * that is a fault, too, since the last time. `fault`: what was done, or NULL.
 */
void servers_note(struct nemesis *nemesis, const struct fault *fault);

/* --- ending.c ----------------------------------------------------------------------------------------------------- */

/* Once all leases have run out: write down keys and channels that should not be there, and free permits. */
void look_at_what_is_left(struct world *world, const struct table *table, struct tape *tape);

#endif
