/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - what is locked on a server, whoever locked it: for tools that operators use
 *
 * Walk      goes through all keys of a server by SCAN, never KEYS, in steps that hold it up for well below a
 *           millisecond; of a cluster through those of each master, of a quorum of each server. It is for people and
 *           dashboards: it costs a look at each key, so a program that has a name asks lk_mutex_info() and its like.
 * Sees      objects with the client's `prefix`, each as it was in its own moment. One that is there from the
 *           beginning to the end is found, as SCAN promises; sometimes twice. A server that was started anew, or whose
 *           place another one took, is gone through from its beginning, which INFO tells. So is a node of a cluster that
 *           got slots meanwhile; what is in a slot that is still on its way when the walk ends, or that went and came back
 *           meanwhile, may be missed.
 * Not seen  a semaphore or a latch with a count that Redisson made, and a latch that nobody touched for a minute and
 *           a half: a bare number, which may be anything. Who has permits of a counting semaphore. Threads that wait behind
 *           others of their process. Keys that access rules keep from the user: they are counted.
 * Rights    SCAN, beside what the library needs; docs/security.md. It is not in the rule for applications.
 */
#ifndef LATCHKEY_INSPECT_H
#define LATCHKEY_INSPECT_H

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is the matter with an object that was found. */
enum {
    LK_STATE_FREE = 1,         /* nobody has it; somebody waits, or is just about to have it */
    LK_STATE_EXCLUSIVE = 2,    /* held; of what is done once: somebody runs it */
    LK_STATE_SHARED = 3,       /* readers hold it */
    LK_STATE_COUNTING = 4,     /* a semaphore, a latch with a count, a barrier, a condition: `number` */
    LK_STATE_OPEN = 5,         /* a latch that opened in the last ten minutes */
    LK_STATE_COMPLETE = 6,     /* it was done, once */
    LK_STATE_BROKEN = 7,       /* a barrier whose round is broken */
    LK_STATE_OWNERDEAD = 8,    /* robust, and its holder died: the next one is told */
    LK_STATE_UNRECOVERABLE = 9 /* robust, and given back unrepaired */
};

/* What a walk looks for. All zero but the size: everything. */
typedef struct lk_inspectattr {
    size_t size;         /* sizeof(lk_inspectattr_t); see LK_INSPECTATTR_INIT */
    const char *pattern; /* of names, without the prefix: * any text, ? a byte, [a-z] one of these, [^a-z] none of
                            them, and a backslash before one that is meant itself. Copied; NULL: all */
    unsigned kinds;      /* 1 << LK_KIND_... for each kind wanted; 0: all. A quorum has no LK_KIND_MUTEX: its
                            servers' mutexes are LK_KIND_REDLOCK */
} lk_inspectattr_t;

/* clang-format off */
#define LK_INSPECTATTR_INIT { sizeof(lk_inspectattr_t), NULL, 0 }
/* clang-format on */

/* An object as it was found. */
typedef struct lk_inspected {
    size_t size;          /* sizeof(lk_inspected_t); see LK_INSPECTED_INIT, and api.h on sizes */
    int kind;             /* LK_KIND_... */
    int state;            /* LK_STATE_... */
    unsigned server;      /* where: 0 of a single one; else its number in the order in which this client met them */
    unsigned holders;     /* who hold it now; permits that are taken; 0 of a counting semaphore */
    unsigned waiters;     /* queued in Redis: a process queues once, not each thread; parties at a barrier */
    int64_t remaining_ms; /* until the lease ends: the last one of readers, the next one of permits; of a latch
                             its count. -1: none, or not known */
    int64_t held_ms;      /* for how long it has been held, by the clock of its token; -1: not known */
    int64_t waited_ms;    /* for how long the first waiter has waited; -1: none, or not known */
    int64_t number;       /* free permits; a latch's count; parties at a barrier, waiters of a condition; -1: none */
    int64_t total;        /* permits in all; parties that meet; -1: not known */
    uint64_t token;       /* the last fencing token; 0: none in the last day */
    char holder[160];     /* owner id of a holder, the only one or one of several; cut to fit; "" when there is none */
    char name[LK_NAME_MAX + 1]; /* without the prefix */
} lk_inspected_t;

/* clang-format off */
#define LK_INSPECTED_INIT { sizeof(lk_inspected_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }
/* clang-format on */

/* How far a walk has come. */
typedef struct lk_inspectstats {
    size_t size;             /* sizeof(lk_inspectstats_t); see LK_INSPECTSTATS_INIT, and api.h on sizes */
    unsigned long long keys; /* that were looked at */
    unsigned long long hidden; /* of them, those that access rules keep from the user: what is in them is not told */
    unsigned servers;        /* masters of a cluster, or servers of a quorum, that were begun; 1 of a single one. A master
                                that got more slots meanwhile counts once more */
    unsigned servers_away;   /* of them, those of a quorum that did not answer, or not to the end: what they have is not
                                told, or not all */
    unsigned slots_missing;  /* slots of a cluster that no node is known for: their keys were not looked at */
} lk_inspectstats_t;

/* clang-format off */
#define LK_INSPECTSTATS_INIT { sizeof(lk_inspectstats_t), 0, 0, 0, 0, 0 }
/* clang-format on */

/* A holder, as an element of an array: its size is the array's stride. */
typedef struct lk_holder {
    char id[160];         /* its owner id, and what its kind adds; cut to fit */
    int64_t remaining_ms; /* of its lease; -1: it has none */
} lk_holder_t;

/* Who a client is, in its own words: printable ASCII, whatever they were, cut to fit. */
typedef struct lk_who {
    size_t size;         /* sizeof(lk_who_t); see LK_WHO_INIT, and api.h on sizes */
    long pid;            /* on its host, or in its container; 0: not said */
    char host[256];      /* as gethostname() says; "", as those that follow: not said */
    char program[128];   /* the name that it was called by, or another one that it gave */
    char arguments[512]; /* only where it was told to say them */
    char why[256];       /* a reason, for people */
} lk_who_t;

/* clang-format off */
#define LK_WHO_INIT { sizeof(lk_who_t), 0, { 0 }, { 0 }, { 0 }, { 0 } }
/* clang-format on */

/* A walk through all keys. */
typedef struct lk_inspect lk_inspect_t;

/*
 * Begin a walk. Nothing is asked yet.
 *
 *   walk      receives it, on success only
 *   client    must be open for lk_inspect_next(); closing it does not free the walk
 *   attr      NULL: everything; copied
 *
 * Returns     0
 *             EINVAL     no walk or client; attributes whose size no version has, or a kind that there is not
 *             ECANCELED  the client was closed, or belongs to a process forked from
 *             ENOMEM     nothing was opened
 * Threads     any
 * Round trips 0
 * Frees       lk_inspect_close()
 */
LK_API LK_MUST_CHECK int lk_inspect_open(lk_inspect_t **walk, lk_client_t *client, const lk_inspectattr_t *attr);

/*
 * Fetch the next object.
 *
 *   walk      its client is to be open
 *   found     its size set by LK_INSPECTED_INIT; the rest written on success only
 *
 * Returns     0
 *             ENOENT     the walk is over: all servers were gone through
 *             EACCES     the user may not SCAN, or lacks another right; lk_errortext() has the server's words
 *             ENOTCONN EIO  a server would not answer in time: the next call asks it once more. One of a quorum is
 *                        left out and counted, lk_inspect_stats(); when all are away, ENOTCONN, and the next call
 *                        begins with the first of them
 *             ECANCELED  the client is closed, or is being closed meanwhile; or it belongs to a process forked from
 *             EPROTO EINVAL
 *             After any other of them the walk stands where it stood
 * Threads     any, one at a time; takes one command timeout at most for each round trip
 * Round trips 0, or 1 for each hundred keys on the way to the next object, and 1 for each server that is away; of a
 *             cluster 1 at the end, by which it is asked where slots are
 */
LK_API LK_SHOULD_CHECK int lk_inspect_next(lk_inspect_t *walk, lk_inspected_t *found);

/*
 * How far the walk has come, and what it could not see.
 *
 *   walk      anywhere, also behind its end; its client may be closed
 *   stats     its size set by LK_INSPECTSTATS_INIT; the rest written on success only
 *
 * Returns     0, EINVAL
 * Threads     as lk_inspect_next()
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_inspect_stats(const lk_inspect_t *walk, lk_inspectstats_t *stats);

/*
 * End a walk, finished or not.
 *
 *   walk      NULL is allowed and does nothing
 *
 * Threads     any; nobody else uses it
 * Round trips 0
 */
LK_API void lk_inspect_close(lk_inspect_t *walk);

/*
 * Who holds an object: all of its holders, those whose lease ends first in front.
 *
 *   client    whose server is asked, and whose prefix the name has there
 *   kind      LK_KIND_MUTEX, _RWLOCK, _PERMITS, _ONCE, or _BARRIER for the parties that wait
 *   name      without the prefix
 *   holders   room for `capacity` of them; NULL with a capacity of 0
 *   stride    sizeof(lk_holder_t), as of lk_mutex_queue()
 *   count     receives how many there are, which may be more than `capacity`; both written on success only
 *
 * Returns     0
 *             EINVAL     a kind whose holders are nowhere, a name that no object may have, nowhere to put them
 *             ENOTSUP    the client is one of a quorum, where each server has a holder of its own
 *             EPROTO     something of the application has the name
 *             ENOTCONN EIO EACCES ECANCELED ENOMEM
 * Threads     any; takes one command timeout at most for each round trip
 * Round trips 1 for each 50 holders asked for. They may change between two of them
 */
LK_API LK_SHOULD_CHECK int lk_inspect_holders(lk_client_t *client, int kind, const char *name, lk_holder_t *holders,
                                              size_t stride, unsigned capacity, unsigned *count);

/*
 * Who a client is that holds something, or waits for it. Nobody checks what it says: whoever may write its key may have
 * written that.
 *
 * A client is described from a tenth of a second after its first hold or wait on, as long as it is open, unless its URL or file
 * says describe=no: host, process and name of the program, and what options or lk_clientattr_t add. Its thread that
 * renews leases says so, beside its renewals: no call waits for that. It does so again every 30 s, and by each new
 * connection, so also to a server that lost it. Of a process that died, or whose close could not tell the server, it
 * stays for 90 s, or two leases if these are longer.
 *
 *   id        of an owner, a holder or a waiter, as this header's calls, lk_mutex_info(), lk_mutex_queue() and their
 *             like have them; or of a client: the 32 digits that these begin with
 *   who       its size set by LK_WHO_INIT; the rest written on success only
 *
 * Returns     0
 *             ENOENT     the client says nothing of itself, is closed, or died some time ago; or the id is of no client
 *                        of this library: Redisson's say nothing
 *             EPROTO     what stands there is nothing that a client says
 *             EINVAL     no client, id or `who`; a size that no version has
 *             ENOTCONN EIO  the server would not answer in time. Of a quorum: one of them, and no other knows it
 *             EACCES     access rules keep the key from the user
 *             ECANCELED  the client was closed, is being closed meanwhile, or belongs to a process forked from
 *             ENOMEM
 * Threads     any; takes one command timeout at most for each round trip
 * Round trips 1, or 0 if the id cannot be of a client; of a quorum up to 1 for each server
 */
LK_API LK_SHOULD_CHECK int lk_inspect_who(lk_client_t *client, const char *id, lk_who_t *who);

#ifdef __cplusplus
}
#endif

#endif
