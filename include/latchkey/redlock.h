/* SPDX-License-Identifier: MIT */
/*
 * redlock.h - a mutex that a majority of several servers grants, which know nothing of each other
 *
 * Quorum  A client of redis-quorum://h1,h2,h3 has 3, 5, 7 or 9 servers, each a master by
 *         itself: no replicas, no cluster. Such a client has these locks and no others.
 * Held    when more than half of the servers granted it, and until the moment at which so
 *         many of them may have forgotten that somebody else could get a majority: each
 *         grant counts from before its request was sent, less 1 % and 2 ms for clocks that
 *         go at other rates. A thread of the client renews at a third of the lease, at each
 *         server that granted it; what is left of a majority that falls is given back.
 * Alone   It outlives the loss of any minority of the servers. When a majority is away, nothing
 *         is granted, and what is held is lost with its lease.
 * Restart A server that lost its memory would grant again what it has granted already. So one
 *         that started a moment ago has no vote: see longest_lease_ms.
 * Clocks  A server whose clock jumps may forget a grant too soon: as many may do so as may fail.
 * Waiting is asking again after a random time: there is no queue, and no order.
 * Java    On each server it is the mutex of that name as Redisson's RLock has it, so a RedLock of
 *         Java over the same servers and this lock exclude each other.
 * Owner   as of a mutex: the thread that locked it, or an explicit owner (owner.h). It is reentrant;
 *         the servers see one hold.
 * Unlike  a mutex on one server with fencing tokens it may be granted twice if servers forget, or
 *         clocks fail, on a majority: docs/redlock.md says which one to take.
 */
#ifndef LATCHKEY_REDLOCK_H
#define LATCHKEY_REDLOCK_H

#include <latchkey/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LK_REDLOCK_RECURSIVE = 0,  /* the default: a thread may lock it again */
    LK_REDLOCK_ERRORCHECK = 1, /* locking it again is EDEADLK */
    LK_REDLOCK_NORMAL = 2      /* locking it again waits for oneself, as POSIX says */
};

/*
 * How a redlock behaves. All zero but the size is the default of everything. All who use a
 * name have to agree in `longest_lease_ms`, and in `fenced` if tokens are to rise. The rest
 * belongs to this lk_redlock_t alone.
 */
typedef struct lk_redlockattr {
    size_t size;     /* sizeof(lk_redlockattr_t); see LK_REDLOCKATTR_INIT */
    int type;        /* LK_REDLOCK_... */
    int fair;        /* 0: a quorum has no queue, so 1 is EINVAL */
    int robust;      /* 0: a minority may remember what the majority does not, so 1 is EINVAL */
    int fixed;       /* 1: the lease is not renewed */
    int fenced;      /* 1: each grant has a token, for a round trip more */
    int64_t lease_ms;         /* 0: the client's; at least 100 */
    int64_t max_hold_ms;      /* not renewed beyond this; at least 100; 0: no limit */
    int64_t longest_lease_ms; /* a server has no vote until it has run for so long: at least as long as any
                                 lease of this name; 0: as lease_ms. -1: all servers keep what they
                                 granted (appendonly yes, appendfsync always), and vote at once */
    int64_t node_timeout_ms;  /* a server that does not answer within it counts as away: at most a fifth of the
                                 lease, or of max_hold_ms if that is less; 0: a twentieth of it, at least 20 ms.
                                 Never longer than one command timeout */
} lk_redlockattr_t;

/* clang-format off */
#define LK_REDLOCKATTR_INIT { sizeof(lk_redlockattr_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * A redlock, to be made by lk_redlock_init(). There is no static one: the default client is
 * rarely one of a quorum.
 */
typedef struct lk_redlock {
    const char *lk_name;             /* private, as all of it */
    const lk_redlockattr_t *lk_attr;
    void *lk_impl;
    uintptr_t lk_process;
    uintptr_t lk_spare[4];
} lk_redlock_t;

/*
 * Make `r` a redlock of that name. Sends nothing, starts no thread.
 *
 *   r         memory of any content; neither copied nor moved while in use
 *   client    one of a quorum. NULL: the default client, which then has to be one, bound by
 *             the first call that needs it
 *   name      copied; as of a mutex: lk_mutex_init()
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules; a client that is not of a quorum
 *             ECANCELED  the client is closed, or belongs to another process
 *             ENOMEM     r is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_redlock_destroy()
 */
LK_API LK_MUST_CHECK int lk_redlock_init(lk_redlock_t *r, lk_client_t *client, const char *name,
                                         const lk_redlockattr_t *attr);

/*
 * Give back what `r` has in this process. Nothing happens at the servers.
 *
 *   r         no thread begins a call with it any more
 *
 * Returns     0
 *             EBUSY      a thread of this process, or an owner, holds it or waits for it through
 *                        this client; unchanged. A hold that nobody renews does not count
 *             EINVAL     r is NULL
 * Threads     any
 * Round trips 0
 */
LK_API int lk_redlock_destroy(lk_redlock_t *r);

/*
 * Take `r`, waiting as long as it takes: also for a majority of the servers to come back.
 *
 * Returns     0          held; the hold count went up by one
 *             EDEADLK    error-checking type, and this thread holds it; unchanged
 *             EAGAIN     this thread holds it INT_MAX times; unchanged
 *             ESTALE     this thread's hold was lost and still has to be unlocked
 *             EPROTO EACCES ENOSPC ENOTSUP  so many servers refuse that there is no majority: what the
 *                        first of them says, with its words in lk_errortext(); not held
 *             ECANCELED EINVAL ENOMEM  not held
 * Threads     any; blocks only the caller; not for signal handlers; no cancellation point;
 *             signals do not end the wait
 * Round trips 1, to all servers at once, and 1 more if it is fenced; 2 for each try that
 *             fails, the second of which nobody waits for. None if this thread holds it
 */
LK_API LK_MUST_CHECK int lk_redlock_lock(lk_redlock_t *r);

/*
 * Take `r` if a majority grants it now.
 *
 * Returns     as lk_redlock_lock(), and
 *             EBUSY      held by someone else, or several try at once and nobody got a majority;
 *                        not held
 *             ENOTCONN   fewer than a majority of the servers answer, or may vote; not held
 *             What a minority granted is given back in the background
 * Threads     any; takes node_timeout_ms at most, twice that if it is fenced
 * Round trips as lk_redlock_lock()
 */
LK_API LK_MUST_CHECK int lk_redlock_trylock(lk_redlock_t *r);

/*
 * Take `r`, waiting until `abstime` on CLOCK_REALTIME, as pthread_mutex_timedlock().
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has passed still
 *             takes a free lock
 *
 * Returns     as lk_redlock_lock(), and
 *             ETIMEDOUT  still held by someone else; not held
 *             ENOTCONN   at the end fewer than a majority of the servers answered; not held
 * Threads     as lk_redlock_lock(); returns by `abstime` plus two node_timeout_ms
 * Round trips as lk_redlock_lock(), for each try: at first every 10 to 20 ms, in the end every
 *             100 to 200 ms
 */
LK_API LK_MUST_CHECK int lk_redlock_timedlock(lk_redlock_t *r, const struct timespec *abstime);

/*
 * The same on another clock.
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_redlock_timedlock()
 * Threads     as lk_redlock_timedlock()
 * Round trips as lk_redlock_timedlock()
 */
LK_API LK_MUST_CHECK int lk_redlock_clocklock(lk_redlock_t *r, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 tries once, LK_FOREVER waits on; other negatives are EINVAL
 *
 * Returns     as lk_redlock_timedlock(): ETIMEDOUT also for 0
 * Threads     as lk_redlock_timedlock()
 * Round trips as lk_redlock_timedlock()
 */
LK_API LK_MUST_CHECK int lk_redlock_lockfor(lk_redlock_t *r, int64_t timeout_ms);

/*
 * The same as `how` says: for how long to wait, with which lease, and for which owner.
 *
 *   how       see lk_how_t; NULL: as lk_redlock_lock(). Its lease is that of the first level, and
 *             not above longest_lease_ms: EINVAL
 *
 * Returns     as lk_redlock_timedlock(): ETIMEDOUT also where another call of the owner was
 *             acquiring it all the time. "This thread" is the owner
 *             EINVAL     how, or an owner of another client
 *             ECANCELED  also: the owner belongs to the parent of a fork
 * Threads     as lk_redlock_timedlock()
 * Round trips as lk_redlock_timedlock()
 */
LK_API LK_MUST_CHECK int lk_redlock_lockwith(lk_redlock_t *r, const lk_how_t *how);

/*
 * Give `r` back once. At the last level all servers are told, those that did not answer before as
 * well; who does not answer now is told again in the background, until the lease ends.
 *
 * Returns     0          one level less; at the last one a majority confirmed it
 *             EPERM      this thread does not hold it; unchanged. In the child of a fork so is
 *                        every hold of the parent
 *             ESTALE     the hold had been lost: what was done since may have met another
 *                        holder. One level less
 *             EIO        no majority confirmed it, as servers are away or refuse; one level less. It is free in
 *                        lk_errorsettles() milliseconds at the latest
 * Threads     the one that locked it; takes one command timeout at most
 * Round trips 1, to all servers at once; none at an inner level
 */
LK_API int lk_redlock_unlock(lk_redlock_t *r);

/*
 * The same for an owner, from any thread: one level less of what it holds.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_redlock_unlock(), and
 *             EINVAL     an owner of another client; unchanged
 *             EPERM      also: the owner belongs to the parent of a fork
 * Threads     any; takes one command timeout at most, and as long for each other call of that
 *             owner on `r` that came before
 * Round trips as lk_redlock_unlock()
 */
LK_API int lk_redlock_unlockby(lk_redlock_t *r, lk_owner_t *owner);

/*
 * The fencing token of this thread's hold: larger than that of every earlier grant of this name. A
 * majority knew it before the hold was granted. A server that lost its memory goes on with the time
 * of its clock: where one did, an earlier token may be larger if it is of a server whose clock was
 * ahead by more than has passed since.
 *
 *   token     written on success only
 *
 * Returns     0, EPERM (not held by this thread), ESTALE (lost), EINVAL, ECANCELED
 *             ENOTSUP    r is not fenced
 * Threads     any; each sees its own hold
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_redlock_token(lk_redlock_t *r, uint64_t *token);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_redlock_token(), and EINVAL: an owner of another client
 * Threads     as lk_redlock_unlockby()
 * Round trips as lk_redlock_token()
 */
LK_API LK_SHOULD_CHECK int lk_redlock_tokenby(lk_redlock_t *r, lk_owner_t *owner, uint64_t *token);

/*
 * How long this thread's hold is good for if no renewal follows.
 *
 *   ms        written on success only; at least 1
 *
 * Returns     0, EPERM, ESTALE (lost: known without asking a server), EINVAL, ECANCELED
 * Threads     any; each sees its own hold
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_redlock_remaining(lk_redlock_t *r, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_redlock_remaining(), and EINVAL: an owner of another client
 * Threads     as lk_redlock_unlockby()
 * Round trips as lk_redlock_remaining()
 */
LK_API LK_SHOULD_CHECK int lk_redlock_remainingby(lk_redlock_t *r, lk_owner_t *owner, int64_t *ms);

/*
 * Ask the servers whether this thread's hold stands.
 *
 * Returns     0          a majority has it
 *             ESTALE     so many have not that it was lost; from now on every call of this
 *                        thread says so
 *             EPERM      this thread does not hold it
 *             ENOTCONN   too few answered: not known, nothing changed
 *             EPROTO EACCES ENOTSUP  so many servers refuse that there is no majority: likewise
 *             ECANCELED EINVAL
 * Threads     any; takes one command timeout at most
 * Round trips 1, to all servers at once
 */
LK_API LK_SHOULD_CHECK int lk_redlock_check(lk_redlock_t *r);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_redlock_check(), and EINVAL: an owner of another client
 * Threads     as lk_redlock_unlockby()
 * Round trips as lk_redlock_check()
 */
LK_API LK_SHOULD_CHECK int lk_redlock_checkby(lk_redlock_t *r, lk_owner_t *owner);

/*
 * Give this thread's hold a lease of `lease_ms` from now on, and renewals of that length unless it
 * is fixed. max_hold_ms still caps it.
 *
 *   lease_ms  at least 100; may be shorter than the lease it had
 *
 * Returns     0          a majority has set it
 *             ESTALE EPERM  as above
 *             EINVAL     as above, and: a lease above longest_lease_ms. Unchanged
 *             EIO        no majority answered yet: the hold is good for what
 *                        lk_redlock_remaining() says, and renewals go on trying
 *             ECANCELED  likewise
 * Threads     any; takes one command timeout at most
 * Round trips 1, to all servers at once
 */
LK_API LK_SHOULD_CHECK int lk_redlock_extend(lk_redlock_t *r, int64_t lease_ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_redlock_extend(), and EINVAL: an owner of another client
 * Threads     as lk_redlock_unlockby()
 * Round trips as lk_redlock_extend()
 */
LK_API LK_SHOULD_CHECK int lk_redlock_extendby(lk_redlock_t *r, lk_owner_t *owner, int64_t lease_ms);

typedef struct lk_redlockinfo {
    size_t size;          /* sizeof(lk_redlockinfo_t); see LK_REDLOCKINFO_INIT, and api.h on sizes */
    int held;             /* 1: so many servers granted it, or do not answer, that nobody could get it now */
    unsigned nodes;       /* servers of the quorum */
    unsigned answered;    /* those that answered */
    unsigned taken;       /* those of them at which somebody has it, not all of them the same one perhaps */
    int64_t remaining_ms; /* until leases have run out at so many of them that a majority is free;
                             0 when it is, -1 when that is not known */
    char holder[160];     /* the id of who has it at most of them, "<client id>:<owner>:<acquisition>:<server>", or
                             Redisson's; cut to fit; "" when nobody has it */
} lk_redlockinfo_t;

/* clang-format off */
#define LK_REDLOCKINFO_INIT { sizeof(lk_redlockinfo_t), 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `r` at all servers, whoever holds it.
 *
 *   info      its size set by LK_REDLOCKINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ECANCELED
 *             ENOTCONN   no server answered
 *             EPROTO EACCES ENOTSUP  none did, and so many refuse that there is no majority
 * Threads     any; takes one command timeout at most
 * Round trips 1, to all servers at once
 */
LK_API LK_SHOULD_CHECK int lk_redlock_info(lk_redlock_t *r, lk_redlockinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
