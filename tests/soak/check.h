/* SPDX-License-Identifier: MIT */
/*
 * check.h - all tapes of a soak together, what they tell, and what must be true of it
 *
 * Each function check_...() of check.c looks after one invariant. Where it makes an exception, a comment names the
 * promise that allows it. docs/faults.md has the invariants.
 */
#ifndef TESTS_SOAK_CHECK_H
#define TESTS_SOAK_CHECK_H

#include "soak.h"

#include <errno.h>
#include <stdio.h>

enum invariant {
    I1,  /* at no time is more of an object held than there is of it */
    I2,  /* tokens rise */
    I3,  /* robust: the next one after a dead holder is told, and nobody else */
    I4,  /* no permit is made up or lost */
    I5,  /* a latch opens at its last count, and stays open */
    I6,  /* nobody passes a barrier alone; one of a round is serial */
    I7,  /* in calm nothing fails */
    I8,  /* calls return */
    I9,  /* a failed call leaves nothing */
    I10, /* one loss is told for each lost hold, and no success after it */
    I11, /* nothing is left on the server nor in the process */
    I12, /* processes end only when they are told to; children own nothing */
    INVARIANTS
};

/* From a take to a give. The promise covers from_ns up to until_ns; there may be nothing between them. */
struct hold {
    const struct record *take, *give, *exit; /* give, exit: NULL if there was none. A sleep is both */
    int64_t from_ns;                         /* the take had returned */
    int64_t until_ns;                        /* validity was over, as far as it was known, or the give was invoked */
    bool lost;                               /* some call said ESTALE */
    bool repaired;                           /* what a dead holder had left */
};

struct history {
    struct record *records; /* tape by tape, each in its order */
    size_t count, room;
    struct fault *faults;
    size_t fault_count, fault_room;
    struct hold *holds; /* by object, instance, beginning */
    size_t hold_count, hold_room;

    int64_t lease_ms, command_ms;
    int64_t slack_ms; /* how late things may be on a busy machine */
    int64_t calm_ns;  /* from then on nothing is done to anybody. 0: never */
};

struct report {
    const struct history *history;
    FILE *out; /* NULL: silent */
    int violations[INVARIANTS], total;
    int64_t seen[INVARIANTS]; /* a check that saw nothing proves nothing */
    int64_t acquires[KINDS];  /* in calm, with time */
};

/* --- history.c ---------------------------------------------------------------------------------------------------- */

void history_record(struct history *history, const struct record *record);
void history_fault(struct history *history, const struct fault *fault);
bool history_read(struct history *history, const char *dir); /* False: it cannot be read */
void history_join(struct history *history);                  /* find the holds, once all is there */
void history_free(struct history *history);

/* Is nothing done to anybody in that time, and is the machine neither slow nor busy? */
bool quiet(const struct history *history, int64_t from_ns, int64_t until_ns);

/* May the servers have forgotten who holds that object, in that time? Or did an operator take it away? */
bool lost_within(const struct history *history, uint32_t object, int64_t from_ns, int64_t until_ns);

/* The record with which that client was closed; NULL: it was killed. */
const struct record *close_of(const struct history *history, const struct record *of);

static inline bool is_take(const struct record *record)
{
    return record->op == OP_TAKE || record->op == OP_SHARE;
}

/* EOWNERDEAD: held, and whoever had it before died. */
static inline bool is_granted(const struct record *record)
{
    return is_take(record) && record->return_ns != 0 && (record->code == 0 || record->code == EOWNERDEAD);
}

/* A wait for a condition that has the mutex again. */
static inline bool is_slept(const struct record *record)
{
    return record->op == OP_SLEEP && record->return_ns != 0 && (record->code == 0 || record->code == ETIMEDOUT);
}

static inline bool same_client(const struct record *a, const struct record *b)
{
    return a->process == b->process && a->incarnation == b->incarnation;
}

static inline bool same_hold(const struct record *a, const struct record *b)
{
    return same_client(a, b) && a->thread == b->thread && a->hold == b->hold && a->object == b->object;
}

static inline bool same_instance(const struct record *a, const struct record *b)
{
    return a->object == b->object && a->instance == b->instance;
}

static inline int64_t end_of(const struct record *record)
{
    return record->return_ns != 0 ? record->return_ns : INT64_MAX;
}

/* --- check.c ------------------------------------------------------------------------------------------------------ */

/* Look for everything. Returns report->total. */
int check_all(struct report *report, const struct history *history);
const char *invariant_name(enum invariant invariant);
const char *invariant_units(enum invariant invariant); /* what it looks at */

/* --- report.c ----------------------------------------------------------------------------------------------------- */

/* Say what is wrong, with the records that show it: up to two, and what happened around them. */
void violation(struct report *report, enum invariant invariant, const struct record *first, const struct record *second,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
