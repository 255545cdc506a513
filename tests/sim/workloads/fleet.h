/* SPDX-License-Identifier: MIT */
/*
 * fleet.h - a few machines with threads, for workloads: they begin, suffer what the seed says, and come back
 *
 * The driver kills machines and starts others in their place, freezes them, cuts connections, has the server stand
 * still, restart or lose its data. Each seed has a few of these faults, many have none: there judges may be strict.
 */
#ifndef TESTS_SIM_FLEET_H
#define TESTS_SIM_FLEET_H

#include "workload.h"

#include <latchkey/latchkey.h>

enum { FLEET_MACHINES = 5, FLEET_THREADS = 4, FLEET_OPTIONS = 128 };

enum fleet_fault { TROUBLES_OF_THE_WORLD, KILLS, FREEZES, BLOWS, STANDSTILLS, RESTARTS, LOSSES, OTHERS, FLEET_FAULTS };

struct fleet;
struct person;

/* What a workload does with its machines. */
struct game {
    void (*open)(struct fleet *fleet, unsigned machine);  /* in the machine, whose client is open: its objects */
    void (*act)(struct person *person);                   /* a thread, again and again */
    void (*close)(struct fleet *fleet, unsigned machine); /* in the machine, whose threads ended */
    void (*dies)(struct fleet *fleet, unsigned machine);  /* in the driver: about to be killed */
    void (*died)(struct fleet *fleet, unsigned machine);  /* and gone */
    void (*loses)(struct fleet *fleet);                   /* the server is about to lose its data */
    void (*lost)(struct fleet *fleet);                    /* and has lost them */
    void (*other)(struct fleet *fleet);                   /* a fault of this workload; NULL: none */
};

/* In shared memory. */
struct fleet_state {
    struct gate over;              /* threads end */
    int calm;                      /* no fault happens any more, and none lasts */
    unsigned loss;                 /* odd while the server loses its data, and 2 for each time that it did */
    unsigned life[FLEET_MACHINES]; /* how often it was started */
};

struct fleet {
    struct world *w;
    const struct game *game;
    struct fleet_state *state;
    void *shared, *objects; /* the workload's: of all, and of this machine */
    lk_client_t *client;    /* of this machine */
    struct luck luck;       /* the driver's */
    unsigned machines, threads;
    bool has[FLEET_FAULTS], is_faultless;
    bool is_dead[FLEET_MACHINES];
    pid_t pids[FLEET_MACHINES];
    int64_t storm_ms, rest_least_ms, rest_most_ms;
    char options[FLEET_MACHINES][FLEET_OPTIONS];
};

struct person {
    struct fleet *fleet;
    unsigned machine, number; /* of the thread */
    struct luck luck;
};

/* Draw how many there are, what happens to them, and how quick they are; a game may change that. */
void fleet_draw(struct fleet *fleet, struct world *w, const struct game *game, void *shared);
void fleet_begin(struct fleet *fleet);
void fleet_storm(struct fleet *fleet); /* returns when it is calm, and all machines run */
void fleet_end(struct fleet *fleet);   /* all threads were told to end before, or are now */

void fleet_kill(struct fleet *fleet, unsigned machine);

bool fleet_isover(const struct person *person);
void fleet_rest(struct person *person);                    /* as long as people rest here */
void fleet_pause(const struct person *person, int64_t ms); /* or until it is over */

/* Has the server kept its data since? */
unsigned fleet_loss(const struct fleet *fleet);
bool fleet_kept(const struct fleet *fleet, unsigned since);

#endif
