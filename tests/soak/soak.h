/* SPDX-License-Identifier: MIT */
/*
 * soak.h - what driver, clients and checker of a soak share: objects, records, faults, and a table in shared memory
 *
 * Tape   a file of records of fixed size, mapped by the one thread that writes it. A record is begun before the call
 *        and ended after it: a process that is killed in between leaves the begun one. Times are those of
 *        CLOCK_MONOTONIC, one clock for all processes of the machine.
 * Table  a file in the directory of the soak, mapped by everybody. Words that change are reached with atomic builtins;
 *        nobody waits for anybody, because anybody may be killed at any time.
 */
#ifndef TESTS_SOAK_H
#define TESTS_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS 1000000LL
#define PROCESSES_MAX 8
#define THREADS_MAX 16
#define TAPE_RECORDS (1 << 19)

/* --- objects ------------------------------------------------------------------------------------------------------ */

#define KINDS_ALL(X)                                                                                                   \
    X(mutex, MUTEX) /* these six are mutexes */                                                                        \
    X(fair, FAIR)                                                                                                      \
    X(robust, ROBUST)                                                                                                  \
    X(fixed, FIXED)     /* its lease is not renewed */                                                                 \
    X(striped, STRIPED) /* one of STRIPES of a name */                                                                 \
    X(guard, GUARD)     /* of a condition */                                                                           \
    X(rwlock, RWLOCK)                                                                                                  \
    X(once, ONCE) /* a run is held as a mutex is, until it is complete or given up */                                  \
    X(leased, LEASED)                                                                                                  \
    X(counting, COUNTING) /* a plain number of permits: no lease, no owner */                                          \
    X(latch, LATCH)                                                                                                    \
    X(barrier, BARRIER)
#define KIND_CONSTANT(name, constant) constant,
enum kind { KINDS_ALL(KIND_CONSTANT) KINDS };

#define STRIPES 4
#define HOT 2         /* objects of each kind that everybody wants; the others belong to one thread of two processes */
#define INDEX_MAX 256 /* objects of one kind */
#define HOT_PERMITS 3
#define COLD_PERMITS 2
#define LATCH_COUNT 3

static inline uint32_t object_of(enum kind kind, unsigned index)
{
    return (uint32_t)kind * INDEX_MAX + index;
}

static inline enum kind kind_of(uint32_t object)
{
    return (enum kind)(object / INDEX_MAX);
}

static inline unsigned index_of(uint32_t object)
{
    return object % INDEX_MAX;
}

static inline bool is_mutex(uint32_t object)
{
    return kind_of(object) < RWLOCK;
}

static inline bool is_semaphore(uint32_t object)
{
    return kind_of(object) == LEASED || kind_of(object) == COUNTING;
}

static inline unsigned permits_of(uint32_t object)
{
    return index_of(object) < HOT ? HOT_PERMITS : COLD_PERMITS;
}

/* Who waits for it before it is set waits for that. */
static inline bool is_appearing(uint32_t object)
{
    return kind_of(object) == LATCH && index_of(object) % 2 != 0;
}

static inline unsigned parties_of(uint32_t object)
{
    return 2 + index_of(object) % 2;
}

const char *kind_name(enum kind kind);
/* "soak:fair:1:0", and back; object_named() returns -1 for a name that is none of ours. */
void object_name(char *name, size_t room, uint32_t object, uint32_t instance);
int object_named(const char *name, uint32_t *object, uint32_t *instance);

/* --- records ------------------------------------------------------------------------------------------------------ */

#define OPS_ALL(X)                                                                                                     \
    X(TAKE)      /* lock for writing, begin a run, take `permits` permits */                                           \
    X(SHARE)     /* lock for reading */                                                                                \
    X(CHECK)     /* how long is the hold good for? */                                                                  \
    X(GIVE)      /* unlock, give permits back, end a run */                                                            \
    X(EXIT)      /* the thread ends with the hold */                                                                   \
    X(FORK)      /* a child tried to use the hold; code: what it was told */                                           \
    X(REPAIR)    /* of what a dead holder left: lk_mutex_consistent() */                                               \
    X(FORCE)     /* an operator takes it away from whoever has it */                                                   \
    X(SLEEP)     /* wait for a condition: a give and a take in one */                                                  \
    X(SIGNAL)                                                                                                          \
    X(SET)       /* latch: set the count, `permits` */                                                                 \
    X(COUNTDOWN) /* latch */                                                                                           \
    X(WAIT)      /* latch */                                                                                           \
    X(MEET)      /* barrier; token 1: as the serial party */                                                           \
    X(RESET)     /* barrier */                                                                                         \
    X(LOST)      /* the listener was told of a loss; code: reason */                                                   \
    X(OPEN)      /* the client was opened; limit_ms: threads, permits: descriptors before */                           \
    X(CLOSE)     /* the client was closed; limit_ms and permits likewise, afterwards */                                \
    X(HEARD)     /* of so many losses: the listener in limit_ms, a queue of events in `token` */                       \
    X(LATE)      /* a thread that does nothing else slept that long instead of a few milliseconds */                   \
    X(LEFT)      /* by the driver: a key or a channel was left, EEXIST, or a process ended by itself, ECANCELED */     \
    X(VALUE)     /* by the driver: free permits of a semaphore at the end, in `token` */
#define OP_CONSTANT(name) OP_##name,
enum op { OP_NONE, OPS_ALL(OP_CONSTANT) OPS };

struct record {
    int64_t invoke_ns;
    int64_t return_ns; /* 0: it never returned */
    int64_t valid_ns;  /* until then the hold is good, as far as known when this record ended; 0: not held */
    uint64_t token;
    uint32_t object;
    uint32_t instance; /* which of that name: a latch is used once, a plain number until its data is lost */
    uint32_t hold;     /* number of the acquisition within its tape: joins the records of one hold */
    int32_t limit_ms;  /* what the call was given; 0 for those that do not wait */
    uint16_t process, incarnation, thread;
    uint16_t permits;
    int16_t code;
    uint8_t op;
    uint8_t spare[5];
};

struct tape {
    struct record *records;
    uint32_t count;
    uint16_t process, incarnation, thread;
};

int64_t now_ns(void);
void nap(void); /* a few milliseconds */
const char *op_name(enum op op);

/* The tape of a thread, in a file of its own in `dir`. False: no room. */
bool tape_open(struct tape *tape, const char *dir, int process, int incarnation, int thread);
void tape_close(struct tape *tape);

/* A record whose call begins now, or whose call has ended now. NULL when the tape is full. */
struct record *tape_begin(struct tape *tape, enum op op, uint32_t object, uint32_t instance);
void tape_end(struct record *record, int code);

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* How often each is drawn, and how long it lasts at most, in hundredths of a lease. */
#define FAULTS_ALL(X)                                                                                                  \
    /* of one process */                                                                                               \
    X(KILL_PROCESS, 6, 50)  /* and a new one takes its place */                                                        \
    X(STOP_PROCESS, 6, 300) /* SIGSTOP, SIGCONT */                                                                     \
    X(EXIT_THREAD, 4, 30)   /* while it holds something */                                                             \
    X(FORK_PROCESS, 3, 30)  /* while it holds something */                                                             \
    X(CANCEL_THREAD, 4, 10)                                                                                            \
    /* of the network of one process, or of all */                                                                     \
    X(CUT, 3, 10)           /* all connections, at once */                                                             \
    X(CUT_AFTER, 6, 30)     /* so many more bytes */                                                                   \
    X(STALL, 6, 200)        /* nothing is delivered */                                                                 \
    X(LOSE_REPLIES, 5, 100) /* none is delivered, then the connections end */                                          \
    X(DELAY, 4, 150)                                                                                                   \
    X(DRIBBLE, 3, 80)      /* one byte at a time */                                                                    \
    X(REFUSE, 4, 150)      /* no new connections, and the old ones are cut */                                          \
    X(CUT_REQUEST, 3, 20)  /* of one request, as the next three: see proxy.h */                                        \
    X(CUT_REPLY, 4, 20)                                                                                                \
    X(HOLD_REQUEST, 4, 200) /* delivered much later */                                                                 \
    X(PARK_REQUEST, 4, 200) /* likewise, a copy that nobody waits for any more */                                      \
    /* of the server */                                                                                                \
    X(STOP_SERVER, 6, 300)   /* SIGSTOP, SIGCONT */                                                                    \
    X(RESTART, 5, 60)        /* kill -9; its data is kept */                                                           \
    X(LOSE_DATA, 1, 60)      /* kill -9; its data is gone */                                                           \
    X(FLUSH_DATA, 1, 0)      /* FLUSHALL */                                                                            \
    X(KILL_CLIENTS, 3, 10)   /* CLIENT KILL TYPE normal */                                                             \
    X(KILL_LISTENERS, 4, 10) /* CLIENT KILL TYPE pubsub */                                                             \
    X(FLUSH_SCRIPTS, 4, 10)                                                                                            \
    X(PAUSE_CLIENTS, 3, 150)                                                                                           \
    X(NO_MEMORY, 4, 100)                                                                                               \
    X(BUSY_SCRIPT, 4, 120)                                                                                             \
    X(READ_ONLY, 3, 100)    /* it becomes the replica of a server that is not there */                                 \
    X(SMALL_BUFFERS, 3, 60) /* listeners are cut off as soon as there is something to hear */                          \
    X(FEW_CLIENTS, 3, 100)  /* maxclients; those that are there are sent away */                                       \
    /* of servers with Sentinels, over when a master has its replicas again and all agree that it is one */            \
    X(KILL_MASTER, 6, 100)   /* kill -9; it comes back empty, when another one is the master */                        \
    X(STOP_MASTER, 6, 250)   /* SIGSTOP, SIGCONT */                                                                    \
    X(CUT_MASTER, 6, 250)    /* replicas and Sentinels reach it no more, clients do */                                 \
    X(DEMAND_FAILOVER, 4, 0) /* SENTINEL FAILOVER */                                                                   \
    X(KILL_SENTINEL, 4, 100) /* kill -9; it comes back as it was */                                                    \
    /* of a cluster, over when each of its masters has a replica again and none sees anything amiss */                 \
    X(KILL_NODE, 5, 100)  /* kill -9 of a master; it comes back empty, when its replica has its place */               \
    X(STOP_NODE, 5, 250)  /* SIGSTOP, SIGCONT */                                                                       \
    X(DEMAND_NODE, 3, 0)  /* CLUSTER FAILOVER */                                                                       \
    X(MOVE_SLOT, 12, 60)  /* of an object that everybody wants; it migrates as long as that lasts */                   \
    X(CUT_NODES, 5, 0)    /* all connections to all nodes */                                                           \
    /* found, not made */                                                                                              \
    X(LOST_PATIENCE, 0, 0) /* servers that were not given the processor for long counted as dead, and were replaced */ \
    X(SLOW_MACHINE, 0, 0)  /* the soak itself was not given the processor for so long */
#define FAULT_CONSTANT(name, weight, longest) name,
enum fault_kind { FAULTS_ALL(FAULT_CONSTANT) FAULT_KINDS };

#define EVERYBODY (-1)

struct fault {
    int64_t begin_ns, end_ns; /* around what was done. 0: not yet */
    int32_t at_ms, length_ms; /* as planned, from the start of the round */
    int32_t kind;             /* enum fault_kind */
    int32_t process;          /* EVERYBODY, if it is not for one */
    int32_t thread;
    int32_t number; /* bytes, milliseconds or a direction, as the kind needs it */
};

const char *fault_name(int kind);
bool fault_write(const char *dir, const struct fault *fault); /* for history_read() */

static inline bool fault_is_failover(const struct fault *fault)
{
    return fault->kind >= KILL_MASTER && fault->kind <= LOST_PATIENCE;
}

static inline bool fault_loses_data(const struct fault *fault)
{
    return fault->kind == LOSE_DATA || fault->kind == FLUSH_DATA ||
           (fault_is_failover(fault) && fault->kind != KILL_SENTINEL && fault->kind != MOVE_SLOT &&
            fault->kind != CUT_NODES);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

enum phase { STORM, CALM, STOP };
enum deployment { SINGLE_SERVER, SENTINELS, CLUSTER }; /* each has faults of its own */
enum wish { WISH_NONE, WISH_EXIT, WISH_FORK, WISH_CANCEL };

struct table {
    uint64_t seed;
    int processes, threads;
    int64_t lease_ms, command_ms, skew_ms;
    enum deployment deployment;
    char urls[PROCESSES_MAX][384];

    enum phase phase;
    uint32_t epoch; /* of plain numbers: moves on when the server loses its data */
    enum wish wishes[PROCESSES_MAX][THREADS_MAX];
    int64_t operations;
    int64_t calm_ns; /* when the calm began; 0: not yet */

    uint32_t runs[HOT];    /* which instance of what is done once, ... */
    uint32_t latches[HOT]; /* ... and of a latch */
};

struct table *table_map(const char *dir, bool make); /* NULL: it cannot be */
void table_unmap(struct table *table);

/* A number from a seed: splitmix64. */
uint64_t draw(uint64_t *state);
unsigned draw_below(uint64_t *state, unsigned limit);

#endif
