/* SPDX-License-Identifier: MIT */
/*
 * check.h - what must be true of every history, and what to say where it is not
 *
 * Each file check_*.c looks after one or two invariants. Where a check makes an exception, a comment names
 * the promise that allows it.
 */
#ifndef TESTS_SOAK_CHECK_H
#define TESTS_SOAK_CHECK_H

#include "history.h"

#include <stdio.h>

enum invariant {
    I1,  /* conflicting holds do not overlap while they are valid */
    I2,  /* tokens rise */
    I3,  /* a resource that compares tokens refuses no valid hold */
    I4,  /* robust: the next one after a dead holder is told, and nobody else */
    I5,  /* fair: in order of arrival */
    I6,  /* readers or one writer */
    I7,  /* never more permits than there are, none vanishes */
    I8,  /* a latch opens after the last count, and stays open */
    I9,  /* in calm everybody gets what he waits for */
    I10, /* 999 of 1000 who have time enough and are not disturbed get it */
    I11, /* calls return in time */
    I12, /* a failed call leaves nothing behind */
    I13, /* one LOST for each lost hold, and no success after it */
    I14, /* nothing is left on the server */
    I15, /* nothing is left in the process */
    I16, /* leases end, last when extended, and names are kept, as calls and attributes say */
    I17, /* no signal is lost, nor an item of a buffer, and none comes twice */
    I18, /* processes end only when they are told to; children own nothing */
    I19, /* nobody passes a barrier before all came; one of them is serial; a broken round is broken for all */
    I20, /* what is to be done once is: at most one run completes, and all are told of that one */
    INVARIANTS
};

struct report {
    const struct history *history;
    FILE *out; /* NULL: silent */
    int violations[INVARIANTS];
    int total;
    int64_t items, sleeps, meetings, runs; /* looked at, as the next ones */
    int64_t grants, tokens, pairs, accounts, latches, heirs; /* looked at: a check that saw nothing proves nothing */
    int64_t writes, overlaps, longest_ns; /* accepted by tokens; of exclusive holds after a failover, and the longest */
    int64_t acquires[KINDS], failed;      /* that had time and were not disturbed */
};

/* Look for everything. Returns report->total. */
int check_all(struct report *report, const struct history *history);

void check_exclusion(struct report *report);
void check_totals(struct report *report);
void check_tokens(struct report *report);
void check_robust(struct report *report);
void check_rate(struct report *report);
void check_lease(struct report *report);
void check_fair(struct report *report);
void check_account(struct report *report);
void check_latches(struct report *report);
void check_calm(struct report *report);
void check_time(struct report *report);
void check_failures(struct report *report);
void check_lost(struct report *report);
void check_end(struct report *report);
void check_buffer(struct report *report);
void check_barrier(struct report *report);
void check_once(struct report *report);

/* Say what is wrong, with the records that show it: up to two, and what happened around them. */
void violation(struct report *report, enum invariant invariant, const struct record *first, const struct record *second,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Of a take: a code that is no failure, for what it is. */
bool is_answer(const struct record *record);

/* How long a hold may last that this record is of: for ever, more or less, but for those that are not renewed. */
int64_t longest_hold_ms(const struct history *history, const struct record *record);

/* Of an object of the kind GROWN or RESIZED: who changed how many permits there are. */
struct resizes {
    const struct record **records;
    size_t count;
};
struct resizes resizes_of(const struct history *history, uint32_t object);
void resizes_free(struct resizes *resizes);

/* The most permits that there may have been at a moment of that time. */
int64_t most_permits(const struct history *history, const struct resizes *resizes, uint32_t object, int64_t from_ns,
                     int64_t until_ns);

/* Of an object of the kind GROWN: the most that there may have been when that was granted. */
int64_t most_grown(const struct resizes *adds, const struct hold *hold);

const char *invariant_name(enum invariant invariant);

/* The end of the run of holds of one object and instance that begins at `first`. */
size_t group_end(const struct history *history, size_t first);

#endif
