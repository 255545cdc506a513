/* SPDX-License-Identifier: MIT */
/*
 * checker_test.c - the soak's checker finds what is wrong in histories made by hand, and nothing in good ones
 *
 * Each row is a history and the invariant that it breaks. Times are milliseconds here. A lease is 1000 of them, a
 * command timeout 200, the slack 400.
 */
#include "assert_lk.h"
#include "check.h"

#define OF(KIND, INDEX) ((KIND)*INDEX_MAX + (INDEX))

enum {
    MUTEX_0 = OF(MUTEX, 0),
    ROBUST_0 = OF(ROBUST, 0),
    ROBUST_1 = OF(ROBUST, 1),
    FIXED_0 = OF(FIXED, 0),
    GUARD_0 = OF(GUARD, 0),
    RWLOCK_0 = OF(RWLOCK, 0),
    ONCE_0 = OF(ONCE, 0),
    LEASED_0 = OF(LEASED, 0),     /* three permits, ... */
    COUNTING_0 = OF(COUNTING, 0), /* ... and here, too */
    LATCH_0 = OF(LATCH, 0),
    LATCH_1 = OF(LATCH, 1), /* who waits waits for a count, too */
    BARRIER_0 = OF(BARRIER, 0), /* of two */
    BARRIER_1 = OF(BARRIER, 1), /* of three */
};

/* A record, or a fault. */
struct line {
    struct record record;
    struct fault fault;
};

/* A record with more to it, and one without. */
#define E(OP, PROCESS, OBJECT, INVOKE, RETURN, CODE, ...)                                                              \
    {                                                                                                                  \
        .record = { .op = OP_##OP, .process = PROCESS, .object = OBJECT, .invoke_ns = INVOKE, .return_ns = RETURN,     \
                    .code = CODE, __VA_ARGS__ }                                                                        \
    }
#define R(OP, PROCESS, OBJECT, INVOKE, RETURN, CODE) E(OP, PROCESS, OBJECT, INVOKE, RETURN, CODE, .permits = 1)
#define TAKE(PROCESS, OBJECT, INVOKE, RETURN, VALID, TOKEN)                                                            \
    E(TAKE, PROCESS, OBJECT, INVOKE, RETURN, 0, .permits = 1, .valid_ns = VALID, .token = TOKEN)
#define SHARE(PROCESS, OBJECT, INVOKE, RETURN, VALID)                                                                  \
    E(SHARE, PROCESS, OBJECT, INVOKE, RETURN, 0, .permits = 1, .valid_ns = VALID)
#define CHECK(PROCESS, OBJECT, INVOKE, CODE, VALID)                                                                    \
    E(CHECK, PROCESS, OBJECT, INVOKE, INVOKE + 1, CODE, .valid_ns = VALID)
#define GIVE(PROCESS, OBJECT, INVOKE, CODE) R(GIVE, PROCESS, OBJECT, INVOKE, INVOKE + 1, CODE)
#define HELD(PROCESS, OBJECT, INVOKE, RETURN, GIVEN, TOKEN)                                                            \
    TAKE(PROCESS, OBJECT, INVOKE, RETURN, RETURN + 900, TOKEN), GIVE(PROCESS, OBJECT, GIVEN, 0)
#define PERMITS(PROCESS, OBJECT, INVOKE, RETURN, GIVEN, N)                                                             \
    E(TAKE, PROCESS, OBJECT, INVOKE, RETURN, 0, .permits = N, .valid_ns = RETURN + 900), GIVE(PROCESS, OBJECT, GIVEN, 0)
#define FAILS(OBJECT, INVOKE, RETURN, CODE, LIMIT) E(TAKE, 0, OBJECT, INVOKE, RETURN, CODE, .limit_ms = LIMIT)
#define OPENED R(OPEN, 0, 0, 1, 2, 0)
#define CLOSED(INVOKE) R(CLOSE, 0, 0, INVOKE, INVOKE + 1, 0)
#define MEETS(PROCESS, OBJECT, INVOKE, RETURN, CODE, SERIAL)                                                           \
    E(MEET, PROCESS, OBJECT, INVOKE, RETURN, CODE, .token = SERIAL)
#define FAULT(KIND, BEGIN, END)                                                                                        \
    {                                                                                                                  \
        .fault = { .kind = KIND, .process = EVERYBODY, .begin_ns = BEGIN, .end_ns = END }                              \
    }
#define SET E(SET, 0, LATCH_0, 10, 11, 0, .permits = 3)
#define COUNT(PROCESS, INVOKE, CODE) R(COUNTDOWN, PROCESS, LATCH_0, INVOKE, INVOKE + 1, CODE)
#define WAITS(INVOKE, RETURN, CODE) E(WAIT, 4, LATCH_0, INVOKE, RETURN, CODE, .limit_ms = 1000)
#define VALUE(OBJECT, NUMBER) E(VALUE, 8, OBJECT, 9000, 9001, 0, .token = NUMBER)
#define FINE INVARIANTS
#define CALM_MS 10 /* where a row says so */

static const struct row {
    int breaks; /* enum invariant, or FINE */
    bool calm;
    struct line lines[10];
} rows[] = {
    /* two hold it at once */
    { FINE, 0, { HELD(0, MUTEX_0, 10, 20, 30, 1), HELD(1, MUTEX_0, 15, 31, 40, 2) } },
    { I1, 0, { HELD(0, MUTEX_0, 10, 20, 30, 1), HELD(1, MUTEX_0, 15, 29, 40, 2) } },
    /* a dead holder keeps others out until its validity ends, which a check may prolong */
    { FINE, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), HELD(1, MUTEX_0, 15, 901, 950, 2) } },
    { I1, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), HELD(1, MUTEX_0, 15, 899, 950, 2) } },
    { I1, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), CHECK(0, MUTEX_0, 500, 0, 1400),
               HELD(1, MUTEX_0, 15, 1000, 1001, 2) } },
    { FINE, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), CHECK(0, MUTEX_0, 30, ESTALE, 0),
                 HELD(2, MUTEX_0, 10, 32, 33, 3) } },
    /* a loss of data excuses old against new, for a lease */
    { FINE, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), FAULT(LOSE_DATA, 100, 200), HELD(1, MUTEX_0, 210, 220, 230, 2) } },
    { FINE, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), FAULT(FLUSH_DATA, 100, 101), TAKE(1, MUTEX_0, 110, 120, 1000, 2),
                 FAULT(FLUSH_DATA, 200, 201), HELD(2, MUTEX_0, 210, 220, 230, 3) } },
    { I1, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), FAULT(FLUSH_DATA, 100, 101), TAKE(1, MUTEX_0, 110, 120, 1000, 2),
               HELD(2, MUTEX_0, 210, 220, 230, 3) } },
    { I1, 0, { FAULT(LOSE_DATA, 100, 200), HELD(0, MUTEX_0, 205, 210, 250, 2), HELD(1, MUTEX_0, 210, 220, 230, 3) } },
    { I1, 0, { TAKE(0, MUTEX_0, 10, 20, 900, 1), FAULT(LOSE_DATA, 100, 200), CHECK(0, MUTEX_0, 1000, 0, 1900),
               HELD(1, MUTEX_0, 1300, 1310, 1320, 2) } },
    /* so does a failover while it lasts, but no Sentinel that dies, and an operator for one mutex */
    { FINE, 0, { FAULT(CUT_MASTER, 100, 2000), HELD(0, MUTEX_0, 200, 210, 900, 2),
                 HELD(1, MUTEX_0, 300, 310, 800, 3) } },
    { I1, 0, { FAULT(KILL_SENTINEL, 100, 2000), HELD(0, MUTEX_0, 200, 210, 900, 2),
               HELD(1, MUTEX_0, 300, 310, 800, 3) } },
    { I1, 0, { FAULT(MOVE_SLOT, 100, 2000), HELD(0, MUTEX_0, 200, 210, 900, 2), HELD(1, MUTEX_0, 300, 310, 800, 3) } },
    { FINE, 0, { TAKE(0, ROBUST_0, 10, 20, 900, 1), R(FORCE, 1, ROBUST_0, 100, 101, 0),
                 HELD(1, ROBUST_0, 102, 110, 200, 2) } },
    { I1, 0, { TAKE(0, ROBUST_0, 10, 20, 900, 1), R(FORCE, 1, ROBUST_1, 100, 101, 0),
               HELD(1, ROBUST_0, 102, 110, 200, 2) } },
    /* readers share, and a writer does not */
    { FINE, 0, { SHARE(0, RWLOCK_0, 10, 20, 90), GIVE(0, RWLOCK_0, 60, 0), SHARE(1, RWLOCK_0, 10, 20, 90),
                 GIVE(1, RWLOCK_0, 60, 0), HELD(2, RWLOCK_0, 10, 61, 70, 1) } },
    { I1, 0, { SHARE(0, RWLOCK_0, 10, 20, 90), GIVE(0, RWLOCK_0, 60, 0), HELD(2, RWLOCK_0, 10, 59, 70, 1) } },
    { I1, 0, { HELD(2, RWLOCK_0, 10, 20, 60, 1), SHARE(0, RWLOCK_0, 10, 59, 90) } },
    /* no more permits than there are; of the dead they come back with a lease only */
    { FINE, 0, { PERMITS(0, LEASED_0, 10, 20, 60, 2), PERMITS(1, LEASED_0, 10, 20, 60, 1) } },
    { I1, 0, { PERMITS(0, LEASED_0, 10, 20, 60, 2), PERMITS(1, LEASED_0, 10, 20, 60, 2) } },
    { FINE, 0, { E(TAKE, 0, LEASED_0, 10, 20, 0, .permits = 3, .valid_ns = 900),
                 PERMITS(1, LEASED_0, 9000, 9010, 9020, 1) } },
    { I1, 0, { E(TAKE, 0, COUNTING_0, 10, 20, 0, .permits = 3), PERMITS(1, COUNTING_0, 9000, 9010, 9020, 1) } },
    /* who sleeps has no hold, and who wakes has one */
    { FINE, 0, { TAKE(0, GUARD_0, 10, 20, 900, 1), E(SLEEP, 0, GUARD_0, 30, 600, 0, .token = 3, .valid_ns = 1500),
                 GIVE(0, GUARD_0, 700, 0), HELD(1, GUARD_0, 25, 520, 570, 2) } },
    { I1, 0, { TAKE(0, GUARD_0, 10, 20, 900, 1), E(SLEEP, 0, GUARD_0, 30, 600, 0, .token = 3, .valid_ns = 1500),
               GIVE(0, GUARD_0, 700, 0), HELD(1, GUARD_0, 25, 620, 670, 4) } },
    { I1, 0, { TAKE(0, ONCE_0, 10, 20, 900, 1), TAKE(1, ONCE_0, 30, 40, 900, 2) } },

    /* tokens rise, whatever is lost; answers of permits may come in another order */
    { I2, 0, { HELD(0, MUTEX_0, 10, 20, 30, 2), HELD(1, MUTEX_0, 35, 37, 40, 1) } },
    { I2, 0, { HELD(0, MUTEX_0, 10, 20, 30, 2), HELD(1, MUTEX_0, 15, 31, 40, 2) } },
    { I2, 0, { HELD(0, MUTEX_0, 10, 20, 30, 2), FAULT(LOSE_DATA, 100, 200), HELD(1, MUTEX_0, 250, 260, 270, 1) } },
    { FINE, 0, { HELD(0, LEASED_0, 10, 20, 60, 2), HELD(1, LEASED_0, 15, 25, 60, 1) } },
    { I2, 0, { HELD(0, LEASED_0, 10, 20, 60, 2), HELD(1, LEASED_0, 21, 25, 60, 1) } },
    { I2, 0, { TAKE(0, GUARD_0, 10, 20, 900, 3), E(SLEEP, 0, GUARD_0, 30, 600, 0, .token = 2, .valid_ns = 1500) } },

    /* the heir of a dead holder is told, and nobody else */
    { FINE, 0, { HELD(0, ROBUST_0, 10, 20, 40, 1), HELD(1, ROBUST_0, 1000, 1010, 1020, 2) } },
    { FINE, 0, { TAKE(0, ROBUST_0, 10, 20, 900, 1), R(EXIT, 0, ROBUST_0, 40, 41, 0),
                 E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2) } },
    { I3, 0, { TAKE(0, ROBUST_0, 10, 20, 900, 1), R(EXIT, 0, ROBUST_0, 40, 41, 0),
               HELD(1, ROBUST_0, 1000, 1010, 1020, 2) } },
    { I3, 0, { HELD(0, ROBUST_0, 10, 20, 40, 1), E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2) } },
    { FINE, 0, { HELD(0, ROBUST_0, 10, 20, 40, 1), FAULT(STOP_SERVER, 500, 600),
                 E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2) } },
    /* what was not repaired is granted to nobody, until an operator forces it */
    { FINE, 0, { E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2), R(REPAIR, 1, ROBUST_0, 1020, 1021, 0),
                 GIVE(1, ROBUST_0, 1030, 0), HELD(2, ROBUST_0, 1040, 1050, 1060, 3) } },
    { I3, 0, { E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2), GIVE(1, ROBUST_0, 1030, 0),
               HELD(2, ROBUST_0, 1040, 1050, 1060, 3) } },
    { FINE, 0, { E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2), GIVE(1, ROBUST_0, 1030, 0),
                 R(FORCE, 3, ROBUST_0, 1032, 1033, 0), HELD(2, ROBUST_0, 1040, 1050, 1060, 3) } },
    { FINE, 0, { E(TAKE, 1, ROBUST_0, 1000, 1010, EOWNERDEAD, .token = 2), GIVE(1, ROBUST_0, 1030, 0),
                 FAILS(ROBUST_0, 1040, 1050, ENOTRECOVERABLE, 10) } },
    { I3, 0, { HELD(1, ROBUST_0, 1000, 1010, 1030, 2), FAILS(ROBUST_0, 1040, 1050, ENOTRECOVERABLE, 10) } },

    /* permits at the end */
    { FINE, 0, { HELD(0, COUNTING_0, 10, 20, 60, 0), VALUE(COUNTING_0, 3) } },
    { I4, 0, { HELD(0, COUNTING_0, 10, 20, 60, 0), VALUE(COUNTING_0, 2) } },
    { I4, 0, { HELD(0, COUNTING_0, 10, 20, 60, 0), VALUE(COUNTING_0, 4) } },
    { FINE, 0, { TAKE(0, COUNTING_0, 10, 20, 0, 0), VALUE(COUNTING_0, 2) } }, /* killed */
    { I4, 0, { TAKE(0, COUNTING_0, 10, 20, 0, 0), VALUE(COUNTING_0, 3) } },
    { FINE, 0, { TAKE(0, COUNTING_0, 10, 20, 0, 0), GIVE(0, COUNTING_0, 60, EIO), VALUE(COUNTING_0, 2) } },
    { FINE, 0, { TAKE(0, LEASED_0, 10, 20, 900, 1), VALUE(LEASED_0, 3) } },
    { I4, 0, { TAKE(0, LEASED_0, 10, 20, 900, 1), VALUE(LEASED_0, 2) } },

    /* a latch opens after the last count, and stays open; a count of unknown outcome may have opened it */
    { FINE, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 30, 0), WAITS(15, 31, 0) } },
    { I5, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), WAITS(15, 29, 0) } },
    { FINE, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 22, EIO), WAITS(15, 29, 0) } },
    { I5, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 22, ENOTCONN), WAITS(15, 29, 0) } },
    { I5, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 30, 0), WAITS(40, 140, ETIMEDOUT) } },
    { I5, 0, { SET, WAITS(40, 41, ENOENT) } },
    { FINE, 0, { WAITS(5, 6, ENOENT), SET } },
    { I5, 0, { R(WAIT, 0, LATCH_1, 5, 6, ENOENT) } },
    { I5, 0, { R(WAIT, 0, LATCH_1, 5, 6, 0) } },
    { FINE, 0, { WAITS(5, 6, 0) } }, /* as with redisson=yes */
    { FINE, 0, { FAULT(FLUSH_DATA, 5, 6), WAITS(5, 6, 0) } },
    { I5, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 30, 0), COUNT(4, 30, 0) } },
    { I5, 0, { SET, COUNT(1, 20, 0), COUNT(2, 20, 0), COUNT(3, 30, EIO), WAITS(15, 31, 0), COUNT(4, 40, 0) } },

    /* all of a round pass, and one is the serial party */
    { FINE, 0, { MEETS(0, BARRIER_0, 10, 31, 0, 0), MEETS(1, BARRIER_0, 30, 32, 0, 1) } },
    { I6, 0, { MEETS(0, BARRIER_0, 10, 31, 0, 1), MEETS(1, BARRIER_0, 30, 32, 0, 1) } },
    { I6, 0, { MEETS(0, BARRIER_0, 10, 31, 0, 0), MEETS(1, BARRIER_0, 30, 32, 0, 0) } },
    { I6, 0, { MEETS(0, BARRIER_1, 10, 31, 0, 0), MEETS(1, BARRIER_1, 30, 32, 0, 1) } },
    { I6, 0, { MEETS(0, BARRIER_0, 10, 20, 0, 0), MEETS(1, BARRIER_0, 30, 32, 0, 1) } },
    { FINE, 0, { MEETS(0, BARRIER_0, 10, 20, 0, 0), FAULT(LOSE_DATA, 15, 25), MEETS(1, BARRIER_0, 30, 32, 0, 1) } },
    { FINE, 0, { MEETS(0, BARRIER_0, 10, 0, 0, 0), MEETS(1, BARRIER_0, 30, 32, 0, 1) } }, /* killed */
    { FINE, 0, { MEETS(0, BARRIER_0, 10, 20, EIO, 0), MEETS(1, BARRIER_0, 1000, 1002, 0, 1) } },
    { I6, 0, { MEETS(0, BARRIER_0, 10, 20, EIO, 0), MEETS(1, BARRIER_0, 1700, 1702, 0, 1) } },

    /* in calm nothing fails, unless the machine is slow or busy */
    { FINE, 0, { FAILS(MUTEX_0, 20, 220, EIO, 2000) } },
    { I7, 1, { FAILS(MUTEX_0, 20, 220, EIO, 2000) } },
    { FINE, 1, { FAILS(MUTEX_0, 20, 220, ETIMEDOUT, 200) } },
    { I7, 1, { FAILS(COUNTING_0, 20, 6020, ETIMEDOUT, 6000) } },
    { FINE, 1, { FAILS(MUTEX_0, 20, 220, EIO, 2000), R(LATE, 1, 0, 60, 160, 0) } },
    { FINE, 1, { FAILS(MUTEX_0, 20, 220, EIO, 2000), R(GIVE, 1, COUNTING_0, 60, 160, 0) } },
    { I7, 1, { FAILS(MUTEX_0, 20, 220, EIO, 2000), R(GIVE, 1, COUNTING_0, 60, 80, 0) } },
    { I7, 1, { R(SIGNAL, 0, GUARD_0, 20, 220, EIO) } },
    { I7, 1, { CHECK(0, MUTEX_0, 20, ESTALE, 0) } },
    { FINE, 1, { CHECK(0, FIXED_0, 20, ESTALE, 0) } },

    /* each call returns, unless its process is killed */
    { FINE, 0, { R(TAKE, 0, MUTEX_0, 20, 0, 0) } },
    { I8, 0, { OPENED, R(TAKE, 0, MUTEX_0, 20, 0, 0), CLOSED(100) } },
    { I8, 0, { FAILS(MUTEX_0, 20, 30000, ETIMEDOUT, 1000) } },

    /* a failure leaves nothing */
    { FINE, 0, { R(TAKE, 0, MUTEX_0, 20, 30, EBUSY), CHECK(0, MUTEX_0, 31, EPERM, 0) } },
    { I9, 0, { R(TAKE, 0, MUTEX_0, 20, 30, EBUSY), CHECK(0, MUTEX_0, 31, 0, 0) } },
    { I9, 0, { TAKE(0, GUARD_0, 10, 20, 900, 1), R(SLEEP, 0, GUARD_0, 30, 600, EIO), CHECK(0, GUARD_0, 601, 0, 0) } },

    /* a loss is told once, and final */
    { FINE, 0, { OPENED, CLOSED(2000), TAKE(0, MUTEX_0, 10, 20, 900, 1), CHECK(0, MUTEX_0, 950, ESTALE, 0),
                 GIVE(0, MUTEX_0, 960, ESTALE), R(LOST, 0, MUTEX_0, 950, 951, 1) } },
    { I10, 0, { OPENED, CLOSED(2000), TAKE(0, MUTEX_0, 10, 20, 900, 1), CHECK(0, MUTEX_0, 950, ESTALE, 0),
                GIVE(0, MUTEX_0, 960, 0), R(LOST, 0, MUTEX_0, 950, 951, 1) } },
    { I10, 0, { OPENED, CLOSED(2000), TAKE(0, MUTEX_0, 10, 20, 900, 1), GIVE(0, MUTEX_0, 960, ESTALE) } },
    { I10, 0, { OPENED, CLOSED(2000), TAKE(0, MUTEX_0, 10, 20, 900, 1), GIVE(0, MUTEX_0, 960, ESTALE),
                R(LOST, 0, MUTEX_0, 950, 951, 1), R(LOST, 0, MUTEX_0, 950, 951, 1) } },
    { I10, 0, { OPENED, CLOSED(2000), HELD(0, MUTEX_0, 10, 20, 30, 1), R(LOST, 0, MUTEX_0, 25, 26, 1) } },
    { I10, 0, { OPENED, CLOSED(2000), TAKE(0, GUARD_0, 10, 20, 900, 1), R(SLEEP, 0, GUARD_0, 30, 40, ESTALE) } },
    { FINE, 0, { E(HEARD, 0, 0, 2001, 2002, 0, .limit_ms = 2, .token = 2) } },
    { I10, 0, { E(HEARD, 0, 0, 2001, 2002, 0, .limit_ms = 1, .token = 2) } },

    /* nothing is left, and processes end as they are told */
    { I11, 0, { R(LEFT, 8, MUTEX_0, 9000, 9001, EEXIST) } },
    { I11, 0, { OPENED, E(CLOSE, 0, 0, 2000, 2001, 0, .permits = 2) } },
    { I11, 0, { OPENED, E(CLOSE, 0, 0, 2000, 2001, 0, .permits = 1, .limit_ms = 1) } },
    { I11, 0, { OPENED, R(CLOSE, 0, 0, 2000, 2001, EBUSY) } },
    { I12, 0, { R(LEFT, 2, 0, 9000, 9001, ECANCELED) } },
    { FINE, 0, { R(FORK, 2, MUTEX_0, 9000, 9001, EPERM) } },
    { I12, 0, { R(FORK, 2, MUTEX_0, 9000, 9001, 0) } },
};

static int64_t at(int64_t ms)
{
    return ms == 0 ? 0 : (1000000 + ms) * NS_PER_MS;
}

static void add_line(struct history *history, const struct line *line, uint32_t *hold)
{
    struct record record = line->record;
    struct fault fault = line->fault;
    if (fault.begin_ns != 0) {
        fault.begin_ns = at(fault.begin_ns);
        fault.end_ns = at(fault.end_ns);
        history_fault(history, &fault);
    }
    if (record.op == OP_NONE)
        return;
    record.invoke_ns = at(record.invoke_ns);
    record.return_ns = at(record.return_ns);
    record.valid_ns = at(record.valid_ns);
    record.hold = *hold += is_take(&record);
    history_record(history, &record);
}

static void each_row_breaks_what_it_says(void)
{
    bool broken[INVARIANTS + 1] = { false };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct history history = { .lease_ms = 1000, .command_ms = 200, .slack_ms = 400 };
        struct report report = { 0 };
        uint32_t hold = 0;
        history.calm_ns = rows[i].calm ? at(CALM_MS) : 0;
        for (size_t j = 0; j < sizeof rows[i].lines / sizeof(struct line); j++)
            add_line(&history, &rows[i].lines[j], &hold);
        history_join(&history);
        int total = check_all(&report, &history);
        int expected = rows[i].breaks == FINE ? 0 : report.violations[rows[i].breaks];
        if (total != expected || (rows[i].breaks != FINE && total == 0)) {
            report = (struct report){ .out = stderr };
            check_all(&report, &history);
            fail_msg("row %zu: %d violations, of %s %d", i, total,
                     rows[i].breaks == FINE ? "none" : invariant_name((enum invariant)rows[i].breaks), expected);
        }
        broken[rows[i].breaks] = true;
        history_free(&history);
    }
    for (int i = 0; i < INVARIANTS; i++)
        assert_true(broken[i]);
}

int main(void)
{
    return plain_run(each_row_breaks_what_it_says);
}
