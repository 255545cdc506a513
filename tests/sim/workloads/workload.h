/* SPDX-License-Identifier: MIT */
/*
 * workload.h - what the workloads of the simulation share
 *
 * A workload is a program that does what its seed says with the library and with real servers, and judges what the
 * library promises. It runs in the simulation alone: elsewhere it exits 77. Everything that it draws follows from the
 * seed.
 *
 * Judges compare what the public headers promise with what happened, in true time, which no clock of a machine shows.
 * They must hold whatever faults there were; progress is asked for once the storm is over.
 */
#ifndef TESTS_SIM_WORKLOAD_H
#define TESTS_SIM_WORKLOAD_H

#include "world.h"

#include <stdbool.h>
#include <stdint.h>

/* Random numbers, a stream for each use: so one draw more in one of them changes nothing in the others. */
struct luck {
    uint64_t state;
};
struct luck luck_begin(void); /* from the seed; each call begins another stream */
uint64_t luck_below(struct luck *luck, uint64_t limit);
bool luck_onein(struct luck *luck, unsigned n);
int64_t luck_about(struct luck *luck, int64_t least, int64_t most); /* short ones are as likely as long ones */

/* True time, the same for all machines; sleep in the time of this machine. */
int64_t true_ns(void);
int64_t true_ms(void);
void rest_ms(int64_t ms);

/*
 * Troubles of the world while there is a storm: pauses of processes between two calls, connections that are cut as
 * something is sent, messages that are held, machines that are silent or deaf. How often is up to the seed. The first
 * process and its connections are spared. What is held or pauses when the storm ends may last TROUBLE_MS longer.
 */
enum { TROUBLE_MS = 10000 };
void storm_begin(void);
void storm_end(void);

/* A fault that the workload is about to make. False: the search leaves it out. */
bool fault_happens(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Clocks of machines that begin from now on are wrong by up to that many millionths; a program that is started, as a
 * server, is one.
 */
void clocks_are_wrong(int64_t ppm);
void machine_isolated(pid_t pid, int64_t ms); /* it is silent, or deaf, or both; its connections stay */
void machine_begins(unsigned number); /* this process is that machine: in a child, before it opens a client */

/* A promise was broken: says so and ends the world. Any process may call it. */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define must(promise, ...)                                                                                             \
    do {                                                                                                               \
        if (!(promise))                                                                                                \
            broken(__VA_ARGS__);                                                                                       \
    } while (0)

/* For main(): the exit code. The world has a server of its own, begun with these options, or NULL. */
int workload_run(const char *server_args, void (*workload)(struct world *w));

#endif
