/* SPDX-License-Identifier: MIT */
/*
 * record.h - what is written down of each operation, so that it survives whoever made it
 *
 * A tape is a file of records of fixed size, mapped by the one thread that writes it. A record is begun
 * before the call and ended after it: of a process that is killed in between, the begun one is left.
 * Times are those of CLOCK_MONOTONIC, one clock for all processes of the machine.
 */
#ifndef TESTS_SOAK_RECORD_H
#define TESTS_SOAK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAPE_RECORDS (1 << 19)

enum op {
    OP_TAKE = 1,  /* lock for writing, take permits: `permits` of them */
    OP_SHARE,     /* lock for reading */
    OP_CHECK,     /* how long is the hold good for? */
    OP_GIVE,      /* unlock, give back */
    OP_NEST,      /* lock again what is held */
    OP_UNNEST,    /* and unlock it once */
    OP_DOWNGRADE, /* from writing to reading: a give and a share in one */
    OP_WRITE,     /* to the resource that compares tokens; EBUSY: refused although the hold was valid */
    OP_EXIT,      /* the thread ends with the hold */
    OP_FORK,      /* a child tried to use the hold; code: what it was told */
    OP_ASK,       /* the server whether the hold stands */
    OP_EXTEND,    /* its lease, to limit_ms from now on */
    OP_REPAIR,    /* of what a dead holder left: lk_mutex_consistent() */
    OP_FORCE,     /* an operator takes it away from whoever has it */
    OP_RESIZE,    /* to `permits` in all, if they are `token`; limit_ms: how many were found instead */
    OP_ADD,       /* limit_ms permits to all there are, or so many less; permits 1: by comparing the total, one more */
    OP_MAKE,      /* a semaphore that is not there yet */
    OP_SET,       /* latch: set the count, `permits` */
    OP_COUNTDOWN, /* latch */
    OP_WAIT,      /* latch */
    OP_SLEEP,     /* buffer: a give, and after a signal, or not, a take; for items if `permits`, else for room */
    OP_SIGNAL,    /* buffer: to one who sleeps; token 1: to all */
    OP_MOVE,      /* buffer: takes item `token` if `permits`, else puts it; EBUSY: refused although the hold was valid */
    OP_MEET,      /* barrier; token: MET_... */
    OP_RESULT,    /* once: what the run is told by that completed, in `token`. The give of one that completes has it, too */
    OP_RESET,     /* barrier, once */
    OP_LOST,      /* the listener was told; code: reason; hold: number of the owner */
    OP_OPEN,      /* the client was opened; limit_ms: threads, permits: descriptors before */
    OP_CLOSE,     /* the client was closed; limit_ms and permits likewise, afterwards */
    OP_HEARD,     /* of so many losses: the listener in limit_ms, a queue of events in `token` */
    OP_LATE,      /* pulse.c slept that long instead of a few milliseconds */
    OP_BUSY,      /* without faults it waited so long for a turn and for an answer of the server */
    OP_LEFT,      /* by the driver: a key or a channel that was left at the end; code: EEXIST */
    OP_VALUE, /* by the driver: permits of a semaphore at the end, in `token`; limit_ms: how many there are in all */
    OPS
};

/* What OP_MEET has in `token`. */
enum { MET, MET_SERIAL, MET_CANCELLED };

struct record {
    int64_t invoke_ns;
    int64_t return_ns; /* 0: it never returned */
    int64_t valid_ns;  /* until then the hold is good, as far as known when this record ended; 0: not held */
    uint64_t token;    /* of a grant. Of a failed take: milliseconds of the lease in its way, and one; 0: not known */
    uint32_t object;   /* of objects.h */
    uint32_t instance; /* which of that name: a latch is used once, a semaphore until its data is lost */
    uint32_t hold;     /* number of the acquisition within its tape: joins the records of one hold */
    int32_t limit_ms;  /* what the call was given; 0 for those that do not wait */
    uint16_t process, incarnation, thread;
    uint16_t permits;
    int16_t code;
    uint8_t op;
    int8_t fixed; /* what the call said of its lease: 1: not renewed, -1: renewed; 0: what the kind says */
    uint8_t spare[4];
};

struct tape {
    struct record *records;
    uint32_t count;
    uint16_t process, incarnation, thread;
};

#define NS_PER_MS 1000000LL
int64_t now_ns(void);

/* The tape of a thread, in a file of its own in `dir`. False: no room. */
bool tape_open(struct tape *tape, const char *dir, int process, int incarnation, int thread);
void tape_close(struct tape *tape);

/* A record whose call begins now, or whose call has ended now. NULL when the tape is full. */
struct record *tape_begin(struct tape *tape, enum op op, uint32_t object, uint32_t instance);
void tape_end(struct record *record, int code);

const char *op_name(enum op op);

#endif
