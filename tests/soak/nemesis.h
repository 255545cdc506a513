/* SPDX-License-Identifier: MIT */
/*
 * nemesis.h - makes the faults of a plan happen, and ends them
 */
#ifndef TESTS_SOAK_NEMESIS_H
#define TESTS_SOAK_NEMESIS_H

#include "fault.h"
#include "proxy.h"
#include "table.h"
#include "world.h"

#include <sys/types.h>

struct nemesis {
    struct world *world;
    struct table *table;
    struct proxy *proxies[PROCESSES_MAX];
    pid_t *actors;              /* the driver's; 0: none just now */
    struct redisContext *redis; /* of its own, which is never sent away */
};

/* Faults for a storm of that length. The same seed and settings make the same plan. */
int plan_make(struct fault *plan, int room, const struct table *table, int storm_ms);

void nemesis_begin(struct nemesis *nemesis, struct fault *fault);
void nemesis_end(struct nemesis *nemesis, struct fault *fault);

/*
 * Use other counting semaphores from now on: the data of the old ones is about to vanish, or may just have; or
 * permits have died with those who held them, and whoever wants all of them would wait for ever.
 */
void nemesis_next_epoch(struct nemesis *nemesis);

void nemesis_rest(struct nemesis *nemesis); /* closes its connection */

#endif
