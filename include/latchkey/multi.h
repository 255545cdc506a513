/* SPDX-License-Identifier: MIT */
/*
 * multi.h - several mutexes and read-write locks at once: all of them or none
 *
 * Members A set of locks that are taken together: mutexes, and read-write locks to read or to write. They stay
 *         what they are: whoever locks one of them alone is kept out, in any language, and
 *         each has its own lease, token, events and statistics. They may be of several clients and servers.
 * Order   All are tried at once, without waiting. What is behind the first one that somebody else has is given back,
 *         that one is waited for in its own queue, and the rest is tried again. So who waits holds only
 *         what is before that in one order that all programs have: mutexes before read-write locks, each by
 *         the bytes of its name with the client's prefix. Servers do not count, so that two programs
 *         that spell one differently agree. Nobody waits in a circle, in whichever order members
 *         were added. Who also locks by hand keeps to that order, or holds nothing else.
 * Equal   Locks of one name on two servers (or databases) have no order that all agree on. While one of them is held
 *         none of the others is waited for: it is given back, there is a pause of random length, up to
 *         64 ms, and the one that was in the way is waited for first.
 * Starve  Whoever waits keeps its place in the queue of that member, a fair one's in order of arrival, and goes
 *         forward from member to member, for each at most as long as that is held by those
 *         before it; nobody is passed over. Only among equal names is it a matter of luck.
 * Lost    Each member can be lost by itself: lk_multi_remaining() is the least of all, and words and
 *         events name the one that was lost. A lease that ended while others were waited for is
 *         noticed before the lock returns, and taken anew.
 * Owner   The calling thread, or an explicit owner (owner.h); then all members are of its client.
 * Again   What the owner holds already of a recursive mutex, or to read, is held once more, as by
 *         lk_mutex_lock(); EDEADLK where that says so.
 * Robust  lk_multi_lock() returns EOWNERDEAD with all members held if the holder of any died: repair what
 *         they guard, then lk_mutex_consistent() of those. Where the others are not to be had, the
 *         next one is told instead.
 * Not     in it: mutexes with min_hold_ms, which would stay taken when they are given back on the way
 *         (EINVAL); permits, which have no order. What only one server grants is no
 *         quorum: a set with a member on each of three servers is refused when one of them is away.
 */
#ifndef LATCHKEY_MULTI_H
#define LATCHKEY_MULTI_H

#include <latchkey/mutex.h>
#include <latchkey/rwlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most members of a set. */
#define LK_MULTI_MAX 32U

/*
 * A set of locks. For example:
 *
 *     int transfer(lk_mutex_t *from, lk_mutex_t *to, int (*move)(void))
 *     {
 *         lk_multi_t both;
 *         int rc = lk_multi_init(&both);
 *         if (rc != 0)
 *             return rc;
 *         rc = lk_multi_addmutex(&both, from);
 *         if (rc == 0)
 *             rc = lk_multi_addmutex(&both, to); // EINVAL: it is the same one
 *         if (rc == 0)
 *             rc = lk_multi_lock(&both);
 *         if (rc == 0) {
 *             rc = move();
 *             int lost = lk_multi_unlock(&both);
 *             rc = rc != 0 ? rc : lost;
 *         }
 *         lk_multi_destroy(&both);
 *         return rc;
 *     }
 */
typedef struct lk_multi {
    void *lk_impl;         /* private; NULL: never initialised, or destroyed */
    uintptr_t lk_made;     /* private: in which process; checked before lk_impl is followed */
    uintptr_t lk_spare[6]; /* private: room to grow within one ABI */
} lk_multi_t;

/*
 * Make `s` a set without members. Sends nothing, starts no thread.
 *
 *   s         memory of any content; neither copied nor moved while in use
 *
 * Returns     0, EINVAL (s is NULL), ENOMEM
 * Threads     any
 * Round trips 0
 * Frees       lk_multi_destroy()
 */
LK_API LK_MUST_CHECK int lk_multi_init(lk_multi_t *s);

/*
 * Add a mutex. The set is complete with the first call that locks it.
 *
 *   m         stays where it is until the set is destroyed. That of stripes
 *             (lk_stripes_at()) may be one
 *
 * Returns     0          it is a member
 *             EINVAL     m or s is none; the set was locked before, or is full (LK_MULTI_MAX); m has
 *                        min_hold_ms; the set has it already: this object, another of its name and client, or
 *                        one of another client whose URL names the same server and database. Where two
 *                        URLs spell one server differently, the call that locks finds out, unless both
 *                        are to be read, which harms nobody
 *             ECANCELED  s, or the client of m, belongs to another process, or that client is closed
 *             ENOMEM     unchanged, as after each error
 *             of one of the default client also what lk_client_default() returns, as the first use of it
 * Threads     one at a time
 * Round trips 0; for the default client those of its opening
 */
LK_API LK_SHOULD_CHECK int lk_multi_addmutex(lk_multi_t *s, lk_mutex_t *m);

/*
 * Add a read-write lock that is to be read.
 *
 * Returns     as lk_multi_addmutex(); EINVAL also if the set has it to write
 * Threads     one at a time
 * Round trips as lk_multi_addmutex()
 */
LK_API LK_SHOULD_CHECK int lk_multi_addread(lk_multi_t *s, lk_rwlock_t *rw);

/*
 * Add a read-write lock that is to be written.
 *
 * Returns     as lk_multi_addmutex(); EINVAL also if the set has it to read
 * Threads     one at a time
 * Round trips as lk_multi_addmutex()
 */
LK_API LK_SHOULD_CHECK int lk_multi_addwrite(lk_multi_t *s, lk_rwlock_t *rw);

/*
 * Give back the memory of `s`. Its members are as they were: what is held stays held, and each
 * can be unlocked by itself.
 *
 *   s         no thread begins a call with it any more
 *
 * Returns     0
 *             EBUSY      a thread is locking it; unchanged
 *             EINVAL     s is NULL
 * Threads     any. In a child of a fork it changes nothing
 * Round trips 0
 */
LK_API int lk_multi_destroy(lk_multi_t *s);

/*
 * Take all members, waiting as long as it takes. Whatever the code, but for 0 and EOWNERDEAD, this call leaves none
 * of them held that was not held before.
 *
 * Returns     0          all are held, and each lease is good
 *             EOWNERDEAD likewise, but the previous holder of one died holding it, which
 *                        lk_errortext() names; others may be so as well:
 *                        lk_mutex_consistent() tells by EINVAL which are not
 *             EIO        one of them was sent for and not answered, or one was taken and its give-back not
 *                        answered: count it as not held; at the latest it ends
 *                        with its lease, in lk_errorsettles() milliseconds
 *             EDEADLK EAGAIN ESTALE ENOTRECOVERABLE  one of them says so, see lk_mutex_lock() and
 *                        lk_rwlock_wrlock()
 *             EINVAL     the set is none, or has no members; two members are one lock, by clients that
 *                        spell its server differently, unless both are to be read
 *             ENOTCONN EPROTO EACCES ENOSPC ECANCELED ENOTSUP ENOMEM  as lk_mutex_lock(), by the member
 *                        that lk_errortext() names
 * Threads     any, several at once, each for itself; blocks only the caller; not for signal handlers; as
 *             lk_mutex_lock() no cancellation point: a thread that is cancelled meanwhile goes on
 *             waiting, and may give all back in its cleanup handlers
 * Round trips 1 if all are free, however many: the tries go out together, to each server. One more for a member that
 *             the owner holds already. For each that is waited for its own, one more to try
 *             the rest again, and one to give back all that had been free behind it
 */
LK_API LK_MUST_CHECK int lk_multi_lock(lk_multi_t *s);

/*
 * Take all members if they are free now.
 *
 * Returns     as lk_multi_lock(), and
 *             EBUSY      one of them is held by someone else, which lk_errortext() names: maybe just by
 *                        another such call, which gives it back. lk_errorleft() has its lease. EIO where another one
 *                        was not answered
 *             ENOTCONN   a server would not serve one, and what was taken of the others is given back
 * Threads     as lk_multi_lock(); takes one command timeout at most, and as long for what is given back
 * Round trips 1, and one for what is given back
 */
LK_API LK_MUST_CHECK int lk_multi_trylock(lk_multi_t *s);

/*
 * Take all members, waiting until `abstime` on CLOCK_REALTIME, for all together.
 *
 *   abstime   as lk_mutex_timedlock() has it
 *
 * Returns     as lk_multi_lock(), and
 *             ETIMEDOUT  one was still held by someone else, which lk_errortext() names
 *             ENOTCONN   no server would serve one of them
 * Threads     as lk_multi_lock(); returns by `abstime` plus one command timeout, and as long for what is
 *             given back
 * Round trips as lk_multi_lock()
 */
LK_API LK_MUST_CHECK int lk_multi_timedlock(lk_multi_t *s, const struct timespec *abstime);

/*
 * The same on another clock.
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_multi_timedlock()
 * Threads     as lk_multi_timedlock()
 * Round trips as lk_multi_lock()
 */
LK_API LK_MUST_CHECK int lk_multi_clocklock(lk_multi_t *s, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 tries once, LK_FOREVER waits on; other negatives are EINVAL
 *
 * Returns     as lk_multi_timedlock(): ETIMEDOUT also for 0
 * Threads     as lk_multi_timedlock()
 * Round trips as lk_multi_lock()
 */
LK_API LK_MUST_CHECK int lk_multi_lockfor(lk_multi_t *s, int64_t timeout_ms);

/*
 * The same as `how` says: for how long to wait for all together, with which lease for each, and for which owner.
 *
 *   how       see lk_how_t; NULL: as lk_multi_lock(). A lease that is fixed counts from the moment when its member was
 *             taken; one that ended before the last was there is taken anew
 *
 * Returns     as lk_multi_timedlock(), and EINVAL: how, or an owner who is not of the client of each member
 * Threads     as lk_multi_timedlock()
 * Round trips as lk_multi_lock()
 */
LK_API LK_MUST_CHECK int lk_multi_lockwith(lk_multi_t *s, const lk_how_t *how);

/*
 * Give each member back once, all at the same time.
 *
 * Returns     0          one level less of each; at the last one confirmed released
 *             EPERM      this thread does not hold one of them, which lk_errortext() names; all are unchanged. In the
 *                        child of a fork so is every hold of the parent
 *             ESTALE     one of them had been lost, which lk_errortext() names; one level less of each
 *             ENOTCONN EIO EPROTO EACCES ECANCELED  as lk_mutex_unlock() of the one that lk_errortext() names; one
 *                        level less of each
 * Threads     the one that locked it; takes one command timeout at most, and as long for each member that stays held
 * Round trips 1, however many: the releases go out together, to each server. One more for each member of which a level
 *             stays held. Without memory for that one for each member
 */
LK_API int lk_multi_unlock(lk_multi_t *s);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_multi_unlock(), and EINVAL: an owner of another client; unchanged
 * Threads     any
 * Round trips as lk_multi_unlock()
 */
LK_API int lk_multi_unlockby(lk_multi_t *s, lk_owner_t *owner);

/*
 * How long all of this thread's holds are good for if no renewal follows: the least of all members. Of one member
 * alone, and for its token, ask that: lk_mutex_remaining(), lk_mutex_token().
 *
 *   ms        written on success only; at least 1
 *
 * Returns     0, EPERM, ESTALE (one is lost, which lk_errortext() names), EINVAL, ECANCELED
 * Threads     any; each sees its own holds
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_multi_remaining(lk_multi_t *s, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_multi_remaining(), and EINVAL: an owner of another client
 * Threads     any
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_multi_remainingby(lk_multi_t *s, lk_owner_t *owner, int64_t *ms);

/*
 * Ask the servers whether this thread's holds stand, up to one that does not.
 *
 * Returns     0          all do
 *             ESTALE     one was lost, which lk_errortext() names
 *             EPERM      this thread does not hold one of them
 *             ENOTCONN EIO EPROTO EACCES ECANCELED EINVAL  as lk_mutex_check()
 * Threads     any; takes one command timeout at most for each member
 * Round trips 1 for each member
 */
LK_API LK_SHOULD_CHECK int lk_multi_check(lk_multi_t *s);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_multi_check(), and EINVAL: an owner of another client
 * Threads     any
 * Round trips as lk_multi_check()
 */
LK_API LK_SHOULD_CHECK int lk_multi_checkby(lk_multi_t *s, lk_owner_t *owner);

typedef struct lk_multiinfo {
    size_t size;          /* sizeof(lk_multiinfo_t); see LK_MULTIINFO_INIT */
    unsigned members;     /* of the set */
    unsigned taken;       /* of these held so that the set cannot be locked: one that is to be read, by a writer */
    unsigned waiters;     /* in the queues of all */
    int recoverable;      /* 0: one is robust, and was given back unrepaired */
    int64_t remaining_ms; /* until the last lease of those that are taken ends; -1: one has no lease */
    char name[160];       /* of the first one in the order that is taken; cut to fit; "" if none is */
    char holder[160];     /* who has that one, see lk_mutexinfo_t; "" for readers, or if none is taken */
} lk_multiinfo_t;

/* clang-format off */
#define LK_MULTIINFO_INIT { sizeof(lk_multiinfo_t), 0, 0, 0, 0, 0, { 0 }, { 0 } }
/* clang-format on */

/*
 * Look at all members on their servers, one after the other, whoever holds them.
 *
 *   info      its size set by LK_MULTIINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED
 * Threads     any; takes one command timeout at most for each member
 * Round trips 1 for each member
 */
LK_API LK_SHOULD_CHECK int lk_multi_info(lk_multi_t *s, lk_multiinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
