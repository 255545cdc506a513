/* SPDX-License-Identifier: MIT */
/*
 * table.h - what all processes of a soak share: settings, wishes of the nemesis, and the resources that
 * the locks protect
 *
 * It is one file in the soak's directory, mapped by everybody. Words that change are reached with atomic
 * builtins; nobody waits for anybody, since anybody may be killed at any time.
 */
#ifndef TESTS_SOAK_TABLE_H
#define TESTS_SOAK_TABLE_H

#include "objects.h"

#include <stdbool.h>
#include <stdint.h>

#define PROCESSES_MAX 8
#define THREADS_MAX 16

enum phase { STORM, CALM, STOP };

/* What the servers are; each has faults of its own. */
enum deployment { SINGLE_SERVER, SENTINELS, CLUSTER };

enum wish { WISH_NONE, WISH_EXIT, WISH_FORK, WISH_CANCEL };

struct table {
    uint64_t seed;
    int processes, threads;
    int64_t lease_ms, command_ms, skew_ms;
    enum deployment deployment;
    char urls[PROCESSES_MAX][384];
    char pulse[PROCESSES_MAX][128]; /* the socket of a server, to see whether the machine is busy */

    enum phase phase;
    bool quiet;     /* no fault is under way, and none is near: lulls and calm */
    uint32_t epoch; /* of the counting semaphores: moves on when the server loses its data */
    enum wish wishes[PROCESSES_MAX][THREADS_MAX];
    int64_t operations;

    uint64_t written[KINDS * INDEX_MAX]; /* the largest token that each resource has seen */
    uint64_t buffers[HOT];               /* token << 32 | items put << 16 | items taken: see buffer.c */
    uint32_t runs[HOT];                  /* which instance of what is done once */
    uint64_t latches[HOT];               /* generation << 2 | how far it is: see latch.c */
    int64_t latch_since_ns[HOT];
};

struct table *table_make(const char *dir);
struct table *table_open(const char *dir);
void table_close(struct table *table);

/* A number from a seed: splitmix64. */
uint64_t draw(uint64_t *state);
unsigned draw_below(uint64_t *state, unsigned limit);

#endif
