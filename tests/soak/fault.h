/* SPDX-License-Identifier: MIT */
/*
 * fault.h - the faults that a nemesis can make, and what is known of each that it made
 */
#ifndef TESTS_SOAK_FAULT_H
#define TESTS_SOAK_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    /* of one process */
    KILL_PROCESS, /* and a new one takes its place */
    STOP_PROCESS, /* SIGSTOP, SIGCONT */
    EXIT_THREAD,  /* while it holds something */
    FORK_PROCESS, /* while it holds something */
    CANCEL_THREAD,
    /* of the network of one process, or of all */
    CUT,          /* all connections, at once */
    CUT_AFTER,    /* so many more bytes */
    STALL,        /* nothing is delivered */
    LOSE_REPLIES, /* none is delivered, then the connections end */
    DELAY,
    REFUSE,      /* no new connections, and the old ones are cut */
    CUT_REQUEST, /* of one request: see proxy.h */
    CUT_REPLY,
    HOLD_REQUEST, /* delivered much later */
    PARK_REQUEST, /* likewise, a copy that nobody waits for any more */
    DRIBBLE,      /* one byte at a time */
    /* of the server */
    STOP_SERVER,    /* SIGSTOP, SIGCONT */
    RESTART,        /* kill -9; its data is kept */
    LOSE_DATA,      /* kill -9; its data is gone */
    FLUSH_DATA,     /* FLUSHALL */
    KILL_CLIENTS,   /* CLIENT KILL TYPE normal */
    KILL_LISTENERS, /* CLIENT KILL TYPE pubsub */
    FLUSH_SCRIPTS,
    PAUSE_CLIENTS,
    NO_MEMORY,
    BUSY_SCRIPT,
    READ_ONLY,     /* it becomes the replica of a server that is not there */
    SMALL_BUFFERS, /* listeners are cut off as soon as there is something to hear */
    FEW_CLIENTS,   /* maxclients; those that are there are sent away */
    /* of servers that replace each other, over when a master has its replicas again and all agree that it is one */
    KILL_MASTER,     /* kill -9; it comes back empty, when another one is the master */
    STOP_MASTER,     /* SIGSTOP, SIGCONT */
    CUT_MASTER,      /* replicas and Sentinels reach it no more, clients do */
    DEMAND_FAILOVER, /* SENTINEL FAILOVER */
    KILL_SENTINEL,   /* kill -9; it comes back as it was */
    /* of a cluster, over when each of its masters has a replica again and none sees anything amiss */
    KILL_NODE,   /* kill -9 of a master; it comes back empty, when its replica has its place */
    STOP_NODE,   /* SIGSTOP, SIGCONT */
    DEMAND_NODE, /* CLUSTER FAILOVER */
    MOVE_SLOT,   /* of an object that everybody wants; it migrates as long as that lasts */
    CUT_NODES,   /* all connections to all nodes */
    /* found, not made */
    LOST_PATIENCE, /* servers that were not given the processor for long counted as dead, and were replaced */
    SLOW_MACHINE,  /* the soak itself was not given the processor for so long */
    BUSY_MACHINE,  /* who works waited so long for a turn and for an answer of the server */
    FAULT_KINDS
};

#define EVERYBODY (-1)

struct fault {
    int64_t begin_ns, end_ns; /* on CLOCK_MONOTONIC, around what was done. 0: not yet */
    int32_t at_ms, length_ms; /* as planned, from the start of the round */
    int32_t kind;             /* enum fault_kind */
    int32_t process;          /* EVERYBODY, if it is not for one */
    int32_t thread;
    int32_t number; /* bytes, milliseconds or a direction, as the kind needs it */
};

const char *fault_name(int kind);

static inline bool fault_loses_data(const struct fault *fault)
{
    return fault->kind == LOSE_DATA || fault->kind == FLUSH_DATA ||
           (fault->kind >= KILL_MASTER && fault->kind <= DEMAND_FAILOVER) ||
           (fault->kind >= KILL_NODE && fault->kind <= DEMAND_NODE) || fault->kind == LOST_PATIENCE;
}

static inline bool fault_is_failover(const struct fault *fault)
{
    return fault->kind >= KILL_MASTER && fault->kind <= LOST_PATIENCE;
}

/* "stop-server 120 ms", "cut-after 77 bytes of process 2" */
void fault_text(char *text, unsigned room, const struct fault *fault);

#endif
