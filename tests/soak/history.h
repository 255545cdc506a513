/* SPDX-License-Identifier: MIT */
/*
 * history.h - all tapes of a soak together, the holds that they tell of, and the faults
 */
#ifndef TESTS_SOAK_HISTORY_H
#define TESTS_SOAK_HISTORY_H

#include "fault.h"
#include "objects.h"
#include "record.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From a take to a give. The promise covers from_ns up to until_ns; there may be nothing between them. */
struct hold {
    const struct record *take, *give, *exit; /* give, exit: NULL if there was none. A downgrade is a give and a take, as a sleep is */
    int64_t from_ns;                         /* the take had returned */
    int64_t until_ns;                        /* validity was over, as far as it was known, or the give was invoked */
    bool lost;                               /* some call said ESTALE */
    bool repaired;                           /* what a dead holder had left */
};

/* The server forgets: everything, or by an operator's word who holds this one mutex. */
struct loss {
    int64_t begin_ns, end_ns; /* in between it happened, or it did not */
    uint32_t object;          /* or EVERYTHING */
    bool failover;            /* by servers that replace each other: two may have served meanwhile */
};
#define EVERYTHING UINT32_MAX

struct history {
    struct record *records; /* tape by tape, each in its order */
    size_t count, room;
    struct fault *faults;
    size_t fault_count, fault_room;
    struct hold *holds; /* by object, instance, beginning */
    size_t hold_count;
    struct loss *losses;
    size_t loss_count;

    int64_t lease_ms, command_ms;
    int64_t skew_ms;  /* clock_skew, by which each validity is shorter */
    int64_t slack_ms; /* how late things may be on a busy machine */
    int64_t calm_ns;  /* from then on nothing is done to anybody. 0: never */
};

void history_record(struct history *history, const struct record *record);
void history_fault(struct history *history, const struct fault *fault);

/* Add the tapes and faults in a directory. False: it cannot be read. */
bool history_read(struct history *history, const char *dir);

/* Find the holds: after the last record was added. */
void history_join(struct history *history);
void history_free(struct history *history);

/* Write down a fault for history_read(). */
bool fault_write(const char *dir, const struct fault *fault);

/* Does anything that was done to this process, or to everybody, overlap that time? */
bool disturbed(const struct history *history, int process, int64_t from_ns, int64_t until_ns);

/* Does anything that was done to anybody? Not: did it wait for others that work, which who has time gets over. */
bool anybody_disturbed(const struct history *history, int64_t from_ns, int64_t until_ns);

/* Was anybody late in that time, or busy? Then the server and the network may have been: they are on one machine. */
bool machine_slow(const struct history *history, int64_t from_ns, int64_t until_ns);

/*
 * How much of that time this process could not run: it was stopped, or the machine was slow. That it was
 * busy is no reason: there all get on, if slowly.
 */
int64_t asleep_ns(const struct history *history, int process, int64_t from_ns, int64_t until_ns);

/* May the server have forgotten who holds that object, in that time? */
bool lost_within(const struct history *history, uint32_t object, int64_t from_ns, int64_t until_ns);

static inline bool loses(const struct loss *loss, uint32_t object)
{
    return loss->object == EVERYTHING || loss->object == object;
}

static inline bool is_take(const struct record *record)
{
    return record->op == OP_TAKE || record->op == OP_SHARE;
}

static inline bool is_fixed(const struct record *record)
{
    return record->fixed == 1 || (record->fixed == 0 && kind_of(record->object) == FIXED);
}

/* EOWNERDEAD: held, and whoever had it before died. */
static inline bool is_granted(const struct record *record)
{
    return is_take(record) && record->return_ns != 0 && (record->code == 0 || record->code == EOWNERDEAD);
}

/* Then a hold for writing ends, and one for reading begins; after EIO, too, says rwlock.h. Who was killed meanwhile
   may have come that far. */
static inline bool is_downgraded(const struct record *record)
{
    return record->op == OP_DOWNGRADE && (record->return_ns == 0 || record->code == 0 || record->code == EIO);
}

/* A wait for a condition that has the mutex again. Of a thread that was cancelled in it the next record tells. */
static inline bool is_slept(const struct record *record)
{
    return record->op == OP_SLEEP && record->return_ns != 0 &&
           (record->code == 0 || record->code == ETIMEDOUT || record->code == EOWNERDEAD || record->code == ECANCELED ||
            record->code == EINVAL);
}

static inline bool same_tape(const struct record *a, const struct record *b)
{
    return a->process == b->process && a->incarnation == b->incarnation && a->thread == b->thread;
}

static inline bool same_instance(const struct record *a, const struct record *b)
{
    return a->object == b->object && a->instance == b->instance;
}

#endif
