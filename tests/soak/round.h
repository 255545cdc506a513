/* SPDX-License-Identifier: MIT */
/*
 * round.h - one round of a soak: a server, a proxy and a client process each, faults, calm, the checks
 */
#ifndef TESTS_SOAK_ROUND_H
#define TESTS_SOAK_ROUND_H

#include "check.h"
#include "nemesis.h"

#define CODES_MAX 256

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
struct totals {
    int64_t operations, fault_count;
    int64_t items, sleeps, meetings, runs; /* that the checks looked at, as the next ones */
    int64_t grants, tokens, pairs, accounts, latches, heirs; /* that the checks looked at */
    int64_t writes, overlaps, longest_ns;
    int64_t acquires[KINDS], failed;
    int64_t faults[FAULT_KINDS];
    int64_t codes[KINDS][OPS][CODES_MAX]; /* the last one: never returned */
    int violations[INVARIANTS];
};

/* False: something was violated. */
bool round_run(const struct settings *settings, struct totals *totals);

void totals_add(struct totals *totals, const struct report *report);
/* Of the kind that had fewest: acquires that had time and were not disturbed. */
int64_t totals_acquires(const struct totals *totals);
void totals_print(const struct totals *totals);

#endif
