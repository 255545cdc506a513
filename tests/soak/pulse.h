/* SPDX-License-Identifier: MIT */
/*
 * pulse.h - notes on a tape how late a process is, and how long on its machine who works waits
 *
 * A thread that only sleeps gets the processor first, so that its naps tell of a machine that stands still, and
 * nothing of one that has too much to do. There whoever works waits: a thread that has used up its turn, the
 * server, the proxy in front of it. So in lulls and in calm, when no fault is the reason, another thread gives up its
 * turns, as noise makes threads do, and asks the server by the way that its client takes.
 */
#ifndef TESTS_SOAK_PULSE_H
#define TESTS_SOAK_PULSE_H

#include "record.h"
#include "table.h"

#include <pthread.h>
#include <stdbool.h>

struct pulse {
    struct table *table;
    int process;
    struct tape naps, asks;
    pthread_t napper, asker;
    bool over;                  /* atomic builtins */
    struct redisContext *redis; /* NULL: not connected */
};

/* False: no room for tapes. */
bool pulse_begin(struct pulse *pulse, struct table *table, const char *dir, int process, int incarnation);

/* No thread or descriptor of it is left. */
void pulse_end(struct pulse *pulse);

#endif
