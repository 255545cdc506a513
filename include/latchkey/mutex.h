/* SPDX-License-Identifier: MIT */
/*
 * mutex.h - a reentrant mutex shared by all processes that know its name
 *
 * Lease   A holder that stops renewing loses the mutex; lk_mutex_unlock() then
 *         says ESTALE. A thread of the client renews at a third of the lease.
 * Owner   The thread that locked it, as with pthreads, or an explicit owner (owner.h).
 *         A thread that ends while holding is not renewed any more. Mutexes of two clients are two owners,
 *         also in one thread and with one name: there the second waits for the
 *         first, and is not recursive. So are a static one, which is the default
 *         client's, and one of a client that was opened.
 * Fair    With the attribute `fair` it goes to waiters in the order in which they came,
 *         whatever their process; without, whoever asks first when it is free.
 * Unheard A waiter that receives no messages, because its client was opened with pubsub=no
 *         or may not subscribe, has its turn like all others. When it is handed the mutex,
 *         the mutex is kept for it until it asks, for 300 ms at most.
 * Token   Each grant has a number larger than all before it: hand it to the
 *         resource and let that refuse smaller ones.
 * Java    A Redisson RLock of the same name and this mutex exclude each other.
 * Unlike  pthread_mutex_t, it is reentrant by default and can be lost while held.
 *         More in docs/pthreads.md.
 */
#ifndef LATCHKEY_MUTEX_H
#define LATCHKEY_MUTEX_H

#include <latchkey/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LK_MUTEX_RECURSIVE = 0,  /* the default: a thread may lock it again */
    LK_MUTEX_ERRORCHECK = 1, /* locking it again is EDEADLK */
    LK_MUTEX_NORMAL = 2      /* locking it again waits for oneself, as POSIX says */
};

/*
 * How a mutex behaves. All zero but the size is the default of everything.
 * `fair` and `robust` belong to the name: two mutexes of one name and client that
 * differ there are EINVAL, and all processes have to agree. A client notices with its
 * first acquire that others do not, says so once, by a warning in the log and
 * LK_EVENT_DISAGREES, and goes on: who is not fair may come before those who queue, and
 * who is not robust neither leaves nor sees word of a dead holder. A client with
 * strict=yes is refused with EINVAL instead. The rest belongs to this lk_mutex_t alone.
 */
typedef struct lk_mutexattr {
    size_t size;         /* sizeof(lk_mutexattr_t); see LK_MUTEXATTR_INIT */
    int type;            /* LK_MUTEX_... */
    int fair;            /* 1: strict order of arrival over all threads of all processes */
    int robust;          /* 1: who gets it after a dead holder is told EOWNERDEAD */
    int fixed;           /* 1: the lease is not renewed (Redisson's lock(leaseTime)) */
    int nested_local;    /* 1: locking again costs no round trip; the server sees one hold */
    int64_t lease_ms;    /* 0: the client's; at least 100 */
    int64_t min_hold_ms; /* unlock keeps the name taken until this long after the grant, also if this handle
                            only locked it again; 0: no */
    int64_t max_hold_ms; /* not renewed beyond this; at least 100; 0: no limit */
} lk_mutexattr_t;

/* clang-format off */
#define LK_MUTEXATTR_INIT { sizeof(lk_mutexattr_t), 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * A mutex. For example:
 *
 *     static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");
 *
 *     int with_orders(void (*work)(uint64_t token))
 *     {
 *         uint64_t token;
 *         int rc = lk_mutex_lockfor(&orders, 5000);
 *         if (rc != 0)
 *             return rc; // not held; lk_errortext() says why
 *         if (lk_mutex_token(&orders, &token) == 0)
 *             work(token); // a resource can refuse tokens that are too old
 *         return lk_mutex_unlock(&orders); // ESTALE: lost meanwhile
 *     }
 */
typedef struct lk_mutex {
    const char *lk_name;           /* copied by lk_mutex_init(); a literal in a static initialiser */
    const lk_mutexattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                 /* private: NULL until first use */
    uintptr_t lk_process;          /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];         /* private: room to grow within one ABI */
} lk_mutex_t;

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_MUTEX_INITIALIZER(name) { (name), NULL, NULL, 0, { 0, 0, 0, 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_MUTEX_INITIALIZER_ATTR(name, attr) { (name), (attr), NULL, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/*
 * Make `m` a mutex of that name. Sends nothing, starts no thread; a mutex of the
 * default client needs no server yet.
 *
 *   m         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied. 1 to 512 bytes with the client's prefix. A brace is allowed
 *             only as one non-empty {tag}; names that begin with "latchkey:" or
 *             "redisson_" are not
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules, or against
 *                        another mutex of this name and client
 *             ECANCELED  the client is closed, or belongs to another process
 *             ENOMEM     m is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_mutex_destroy()
 */
LK_API LK_MUST_CHECK int lk_mutex_init(lk_mutex_t *m, lk_client_t *client, const char *name,
                                       const lk_mutexattr_t *attr);

/*
 * Give back what `m` has in this process. Nothing happens in Redis: the name and
 * other objects of it live on.
 *
 *   m         no thread begins a call with it any more. As POSIX has it,
 *             who locks it next may destroy it, even while the unlock that let it in
 *             is still returning. Afterwards as if never initialised (a static one
 *             may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process, or an owner, holds it or waits for
 *                        it through this client; unchanged. A hold that nobody
 *                        renews does not count, fixed or of a thread that ended
 *             EINVAL     m is NULL
 * Holds       that nobody renews are detached with the last object of the name: no
 *             memory is kept for them, nobody can unlock them any more, on the server
 *             they end with their lease, and no event tells of that end
 * Threads     any
 * Round trips 0. A fixed lease that was handed over a moment ago is set first: 1, for
 *             one command timeout at most, then EBUSY
 */
LK_API int lk_mutex_destroy(lk_mutex_t *m);

/*
 * Take `m`, waiting as long as it takes.
 *
 * Returns     0          held; the hold count went up by one
 *             EOWNERDEAD held likewise, but its previous holder died holding it:
 *                        repair what it guards, then lk_mutex_consistent()
 *             EDEADLK    error-checking type, and this thread holds it; unchanged
 *             EAGAIN     this thread holds it INT_MAX times; unchanged
 *             ESTALE     this thread's hold was lost and still has to be unlocked
 *             ENOTRECOVERABLE  robust, and was unlocked without being repaired
 *             ENOTCONN   the default client could not be opened; an open client
 *                        goes on trying, and logs what is wrong
 *             EIO        sent, answer lost: count it as not held; an unseen grant is
 *                        given back by the library or ends with its lease, at the
 *                        latest in lk_errorsettles() milliseconds
 *             EPROTO EACCES ENOSPC ECANCELED EINVAL ENOTSUP ENOMEM  not held;
 *                        EINVAL with strict=yes if others differ in fair or robust,
 *                        and if a version with another protocol uses the name
 * Threads     any; blocks only the caller; not for signal handlers; no cancellation
 *             point; signals do not end the wait
 * Round trips 1 if free or held by this thread; 1 and a message if it has to wait,
 *             and one more a poll ceiling (URL: poll); after some seconds one in 13
 */
LK_API LK_MUST_CHECK int lk_mutex_lock(lk_mutex_t *m);

/*
 * Take `m` if it is free now.
 *
 * Returns     as lk_mutex_lock(), and
 *             EBUSY      held by someone else (or by this thread, types other than
 *                        recursive); not held, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_MUST_CHECK int lk_mutex_trylock(lk_mutex_t *m);

/*
 * Take `m`, waiting until `abstime` on CLOCK_REALTIME, as pthread_mutex_timedlock().
 * The moment is converted once, on entry: setting the clock meanwhile has no effect.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has
 *             passed still takes a free mutex, and does not hide EDEADLK
 *
 * Returns     as lk_mutex_lock(), and
 *             ETIMEDOUT  still held by someone else; not held, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     as lk_mutex_lock(); returns by `abstime` plus one command timeout
 * Round trips as lk_mutex_lock(), one more to leave the queue
 */
LK_API LK_MUST_CHECK int lk_mutex_timedlock(lk_mutex_t *m, const struct timespec *abstime);

/*
 * The same on another clock, as pthread_mutex_clocklock().
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_mutex_timedlock()
 * Threads     as lk_mutex_timedlock()
 * Round trips as lk_mutex_timedlock()
 */
LK_API LK_MUST_CHECK int lk_mutex_clocklock(lk_mutex_t *m, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 tries once, LK_FOREVER waits on; other negatives
 *               are EINVAL
 *
 * Returns     as lk_mutex_timedlock(): ETIMEDOUT also for 0
 * Threads     as lk_mutex_timedlock()
 * Round trips as lk_mutex_timedlock()
 */
LK_API LK_MUST_CHECK int lk_mutex_lockfor(lk_mutex_t *m, int64_t timeout_ms);

/*
 * The same as `how` says: for how long to wait, with which lease, and for which owner.
 *
 *   how       see lk_how_t; NULL: as lk_mutex_lock(). Its lease is that of the first
 *             level
 *
 * Returns     as lk_mutex_timedlock(): ETIMEDOUT also where another call of the owner
 *             was acquiring it all the time. "This thread" is the owner
 *             EINVAL     how, or an owner of another client
 *             ECANCELED  also: the owner belongs to the parent of a fork
 * Threads     as lk_mutex_timedlock()
 * Round trips as lk_mutex_timedlock()
 */
LK_API LK_MUST_CHECK int lk_mutex_lockwith(lk_mutex_t *m, const lk_how_t *how);

/*
 * Give `m` back once. At the last level the first waiter becomes its holder within
 * the same step on the server.
 *
 * Returns     0          one level less; at the last one confirmed released
 *             EPERM      this thread does not hold it; unchanged. In the child of a
 *                        fork so is every hold of the parent
 *             ESTALE     the hold had been lost: what was done since may have met
 *                        another holder. One level less
 *             ENOTCONN   nothing could be sent; one level less. The library goes on
 *                        trying until the lease ends
 *             EIO        sent, answer lost; one level less. The library goes on
 *                        trying until the lease ends, in lk_errorsettles()
 *                        milliseconds at the latest
 *             EPROTO EACCES  refused; one level less; ends with its lease
 * Threads     the one that locked it; takes one command timeout at most
 * Round trips 1; none at an inner level with nested_local
 */
LK_API int lk_mutex_unlock(lk_mutex_t *m);

/*
 * The same for an owner, from any thread: one level less of what it holds.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_unlock(), and
 *             EINVAL     an owner of another client; unchanged
 *             EPERM      also: the owner belongs to the parent of a fork
 * Threads     any; takes one command timeout at most, and as long for each other call
 *             of that owner on `m` that came before
 * Round trips as lk_mutex_unlock()
 */
LK_API int lk_mutex_unlockby(lk_mutex_t *m, lk_owner_t *owner);

/*
 * The fencing token of this thread's hold: larger than that of every earlier grant
 * of this name. A server that lost the last token, or is the next master and never had
 * it, goes on with the time of its clock: if that is behind the one that the last token
 * came from by more than has passed since, the token is smaller. docs/deployment.md.
 *
 *   token     written on success only
 *
 * Returns     0, EPERM (not held by this thread), ESTALE (lost), EINVAL, ECANCELED
 * Threads     any; each sees its own hold
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_mutex_token(lk_mutex_t *m, uint64_t *token);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_token(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_mutex_token()
 */
LK_API LK_SHOULD_CHECK int lk_mutex_tokenby(lk_mutex_t *m, lk_owner_t *owner, uint64_t *token);

/*
 * How long this thread's hold is good for if no renewal follows. The library's
 * promise stands while this is above zero.
 *
 *   ms        written on success only; at least 1
 *
 * Returns     0, EPERM, ESTALE (lost: known without asking the server), EINVAL,
 *             ECANCELED
 * Threads     any; each sees its own hold
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_mutex_remaining(lk_mutex_t *m, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_remaining(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_mutex_remaining()
 */
LK_API LK_SHOULD_CHECK int lk_mutex_remainingby(lk_mutex_t *m, lk_owner_t *owner, int64_t *ms);

/*
 * Ask the server whether this thread's hold stands.
 *
 * Returns     0          it does
 *             ESTALE     it was lost; from now on every call of this thread says so
 *             EPERM      this thread does not hold it
 *             ENOTCONN EIO EPROTO EACCES ECANCELED  not known; nothing changed
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_mutex_check(lk_mutex_t *m);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_check(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_mutex_check()
 */
LK_API LK_SHOULD_CHECK int lk_mutex_checkby(lk_mutex_t *m, lk_owner_t *owner);

/*
 * Give this thread's hold a lease of `lease_ms` from now on, and renewals of that
 * length unless it is fixed. max_hold_ms still caps it.
 *
 *   lease_ms  at least 100; may be shorter than the lease it had
 *
 * Returns     0          the lease is set
 *             ESTALE EPERM EINVAL  as above
 *             ENOTCONN   nothing was sent yet, for want of a connection or because
 *                        a copy of an earlier request may still set the lease it
 *                        asked for: the hold is good for what lk_mutex_remaining()
 *                        says, and renewals go on trying
 *             EIO        sent, answer lost, or fewer than wait_replicas replicas
 *                        acknowledged it: likewise
 *             EPROTO EACCES ECANCELED  refused; likewise
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_mutex_extend(lk_mutex_t *m, int64_t lease_ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_extend(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_mutex_extend()
 */
LK_API LK_SHOULD_CHECK int lk_mutex_extendby(lk_mutex_t *m, lk_owner_t *owner, int64_t lease_ms);

/*
 * Say that what a robust mutex guards is in order again, as
 * pthread_mutex_consistent().
 *
 * Returns     0
 *             EINVAL     m is not robust, or was not taken over from a dead holder
 *             EPERM ESTALE ECANCELED  as above
 * Threads     the one that was told EOWNERDEAD
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_mutex_consistent(lk_mutex_t *m);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_mutex_consistent(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_mutex_consistent()
 */
LK_API LK_SHOULD_CHECK int lk_mutex_consistentby(lk_mutex_t *m, lk_owner_t *owner);

/*
 * Take `m` away from whoever holds it: the one call that breaks the promise, for
 * operators. The robbed holder finds out at its next renewal. The next holder of a
 * robust mutex is told EOWNERDEAD; one that was ENOTRECOVERABLE is usable again: both
 * also where `m` was made without `robust`. If those who wait were made without it, too,
 * and a robust holder once died here unrepaired, EOWNERDEAD comes with the mutex to one
 * of them.
 *
 * Returns     0          nobody who held it before holds it now; the first waiter does
 *             EPROTO     the key holds something that is no lock, such as a hash of
 *                        the application: nothing was deleted
 *             ENOTCONN EIO EACCES ECANCELED EINVAL
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_mutex_forceunlock(lk_mutex_t *m);

typedef struct lk_mutexinfo {
    size_t size;          /* sizeof(lk_mutexinfo_t); see LK_MUTEXINFO_INIT, and api.h on sizes */
    int held;             /* 1: somebody holds it */
    int recoverable;      /* 0: robust, given back unrepaired */
    unsigned holds;       /* the holder's hold count; 0: given back, and kept for its min_hold_ms */
    unsigned waiters;     /* queued in Redis; a process queues once, not each thread */
    int64_t remaining_ms; /* of the lease on the server; -1: held without a lease */
    uint64_t token;       /* last one granted; 0: none in the last day */
    char holder[160];     /* its owner id: <client id>:<owner>:<acquisition>, or Redisson's;
                             cut to fit; "" when free */
} lk_mutexinfo_t;

/* clang-format off */
#define LK_MUTEXINFO_INIT { sizeof(lk_mutexinfo_t), 0, 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `m` on the server, whoever holds it.
 *
 *   info      its size set by LK_MUTEXINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_mutex_info(lk_mutex_t *m, lk_mutexinfo_t *info);

/*
 * Who waits for `m`, the next one first: a waiter's place is its index. Of a fair
 * mutex each waiting thread is there, of a plain one the first of each process.
 *
 *   waiters   room for `capacity` of them; NULL with a capacity of 0
 *   stride    sizeof(lk_waiter_t), so that the array of a program that was built with
 *             another version's header is filled as that program knows it
 *   count     receives how many wait, which may be more than `capacity`; both written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most for each round trip
 * Round trips 1 for each 50 waiters asked for. The queue may move between two of them
 */
LK_API LK_SHOULD_CHECK int lk_mutex_queue(lk_mutex_t *m, lk_waiter_t *waiters, size_t stride, unsigned capacity,
                                          unsigned *count);

#ifdef __cplusplus
}
#endif

#endif
