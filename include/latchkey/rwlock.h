/* SPDX-License-Identifier: MIT */
/*
 * rwlock.h - a read-write lock shared by all processes that know its name:
 * many readers or one writer
 *
 * Lease   Each holder has one of its own. A reader that stops renewing keeps
 *         writers out until its own lease ends, whoever else goes on reading.
 * Owner   The thread, as with pthreads, or an explicit owner (owner.h). It may read again and write again what it
 *         holds so, and a writer may read as well; with `nonreentrant` only read again
 *         while it reads. Such levels are counted in the process, without a round
 *         trip; the server sees one hold of each thread.
 * Up      A reader that wants to write as well would wait for itself: EDEADLK at
 *         once. Down: lk_rwlock_downgrade() goes from writing to reading.
 * Order   Readers and writers that have to wait queue in order of arrival, over
 *         all threads of all processes; see `prefer`. A writer has a place of its own;
 *         readers of a client that come in a row, with nobody between them, share
 *         one: one of them asks for all, so they cost the server as much as one.
 *         Waiters of clients that receive no messages (pubsub=no) have their turn like
 *         all others; what they are handed is kept until they ask, for 300 ms at most.
 *         Locks of two clients are two owners, also in one thread: who reads with
 *         one and writes with the other waits for itself, and nobody says EDEADLK.
 * Token   Each writer has a number larger than all before it of this name.
 * Java    Redisson's RReadWriteLock keeps its data elsewhere: the two do not
 *         exclude each other, nor do a mutex and a read-write lock of one name.
 * Unlike  pthread_rwlock_t, it can be lost while held. More in docs/pthreads.md.
 */
#ifndef LATCHKEY_RWLOCK_H
#define LATCHKEY_RWLOCK_H

#include <latchkey/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LK_RWLOCK_PREFER_FAIR = 0,      /* the default: in order of arrival. A release lets in the next
                                       writer, or all readers up to the next writer; none starves */
    LK_RWLOCK_PREFER_READER = 1,    /* readers come in whenever nobody writes; writers may starve */
    LK_RWLOCK_PREFER_WRITER = 2,    /* a waiting writer goes before readers; they may starve */
    LK_RWLOCK_PREFER_PHASE_FAIR = 3 /* all readers that wait, and one writer, take turns: a reader waits for
                                       one writer at most, writers come in order of arrival; none starves */
};

/*
 * How a read-write lock behaves. All zero but the size is the default of
 * everything. `prefer` and `robust` belong to the name: two locks of one name and
 * client that differ there are EINVAL, and all processes have to agree. A client
 * notices with its first acquire that others do not, says so once, by a warning in the
 * log and LK_EVENT_DISAGREES, and goes on: whoever releases serves by its own `prefer`,
 * and who is not robust neither leaves nor sees word of a dead writer. A client with
 * strict=yes is refused with EINVAL instead. The rest belongs to this lk_rwlock_t alone.
 */
typedef struct lk_rwlockattr {
    size_t size;         /* sizeof(lk_rwlockattr_t); see LK_RWLOCKATTR_INIT */
    int prefer;          /* LK_RWLOCK_PREFER_... */
    int robust;          /* 1: after a writer that died, who comes is told EOWNERDEAD */
    int fixed;           /* 1: leases are not renewed */
    int64_t lease_ms;    /* 0: the client's; at least 100 */
    int64_t max_hold_ms; /* not renewed beyond this; at least 100; 0: no limit */
    int nonreentrant;    /* 1: whoever writes may neither write nor read again, as with pthreads */
    int lk_room;         /* zero */
} lk_rwlockattr_t;

/* clang-format off */
#define LK_RWLOCKATTR_INIT { sizeof(lk_rwlockattr_t), 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * A read-write lock. For example:
 *
 *     static lk_rwlock_t config = LK_RWLOCK_INITIALIZER("config");
 *
 *     int read_config(void (*work)(void))
 *     {
 *         int rc = lk_rwlock_rdlock(&config); // to change it: _wrlock()
 *         if (rc != 0)
 *             return rc; // not held; lk_errortext() says why
 *         work();
 *         return lk_rwlock_unlock(&config); // ESTALE: lost, a writer may be in
 *     }
 */
typedef struct lk_rwlock {
    const char *lk_name;            /* copied by lk_rwlock_init(); a literal in a static initialiser */
    const lk_rwlockattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                  /* private: NULL until first use */
    uintptr_t lk_process;           /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];          /* private: room to grow within one ABI */
} lk_rwlock_t;

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_RWLOCK_INITIALIZER(name) { (name), NULL, NULL, 0, { 0, 0, 0, 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_RWLOCK_INITIALIZER_ATTR(name, attr) { (name), (attr), NULL, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/*
 * Make `rw` a read-write lock of that name. Sends nothing, starts no thread; one of
 * the default client needs no server yet.
 *
 *   rw        memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; the rules are those of lk_mutex_init()
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules, or against
 *                        another read-write lock of this name and client
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     rw is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_rwlock_destroy()
 */
LK_API LK_MUST_CHECK int lk_rwlock_init(lk_rwlock_t *rw, lk_client_t *client, const char *name,
                                        const lk_rwlockattr_t *attr);

/*
 * Give back what `rw` has in this process. Nothing happens in Redis: the name and
 * other objects of it live on.
 *
 *   rw        no thread begins a call with it any more. As POSIX has it,
 *             who locks it next may destroy it, even while the unlock that let it in
 *             is still returning. Afterwards as if never initialised (a static one
 *             may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process, or an owner, holds it or waits for
 *                        it through this client; unchanged. A hold that nobody
 *                        renews does not count, fixed or of a thread that ended
 *             EINVAL     rw is NULL
 * Holds       that nobody renews are detached, as by lk_mutex_destroy()
 * Threads     any
 * Round trips as lk_mutex_destroy()
 */
LK_API int lk_rwlock_destroy(lk_rwlock_t *rw);

/*
 * Take `rw` for reading, waiting as long as it takes. By default a reader waits
 * behind a writer that waits already; who holds it comes in at once.
 *
 * Returns     0          held for reading; one level more
 *             EOWNERDEAD robust, and held likewise, but a writer died and no other
 *                        has repaired yet what it left: each reader is told so
 *             EDEADLK    `nonreentrant`, and this thread holds it for writing;
 *                        unchanged
 *             EAGAIN     100,000 readers hold it and nobody waits (behind others it
 *                        waits); or this thread, INT_MAX times; unchanged
 *             ESTALE     this thread's hold was lost and still has to be unlocked
 *             ENOTRECOVERABLE  robust, and a writer unlocked it without repair
 *             ENOTCONN   the default client could not be opened; an open client
 *                        goes on trying, and logs what is wrong
 *             EIO        sent, answer lost: count it as not held; an unseen grant is
 *                        given back by the library or ends with its lease, at the
 *                        latest in lk_errorsettles() milliseconds
 *             EPROTO EACCES ENOSPC ECANCELED EINVAL ENOMEM  not held;
 *                        EINVAL with strict=yes if others differ in prefer or robust,
 *                        and if a version with another protocol uses the name
 * Threads     any; blocks only the caller; not for signal handlers; no cancellation
 *             point; signals do not end the wait
 * Round trips 1 if there is room; 1 and a message if it has to wait, and one more a
 *             poll ceiling (URL: poll), after some seconds one in 13; none if this
 *             thread holds it
 */
LK_API LK_MUST_CHECK int lk_rwlock_rdlock(lk_rwlock_t *rw);

/*
 * Take `rw` for writing, waiting as long as it takes.
 *
 * Returns     0          held for writing; one level more
 *             EOWNERDEAD robust, and held likewise, but a writer died before: repair
 *                        what it guards, then lk_rwlock_consistent()
 *             EDEADLK    this thread holds it for reading only, or, `nonreentrant`, at
 *                        all; unchanged
 *             EAGAIN     this thread writes INT_MAX times; unchanged
 *             ESTALE ENOTRECOVERABLE ENOTCONN EIO EPROTO EACCES ENOSPC ECANCELED
 *             EINVAL ENOMEM  as lk_rwlock_rdlock()
 * Threads     as lk_rwlock_rdlock()
 * Round trips as lk_rwlock_rdlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_wrlock(lk_rwlock_t *rw);

/*
 * Take `rw` for reading if there is room now.
 *
 * Returns     as lk_rwlock_rdlock(), but
 *             EBUSY      somebody writes, this thread too if `nonreentrant` (here
 *                        instead of EDEADLK), or waits to and goes first; not held for
 *                        reading, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     any; takes one command timeout at most
 * Round trips 1; none if this thread holds it
 */
LK_API LK_MUST_CHECK int lk_rwlock_tryrdlock(lk_rwlock_t *rw);

/*
 * Take `rw` for writing if it is free now.
 *
 * Returns     as lk_rwlock_wrlock(), but
 *             EBUSY      held by someone else, or by this thread for reading or, if
 *                        `nonreentrant`, at all (here instead of EDEADLK); no level
 *                        more for writing, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     any; takes one command timeout at most
 * Round trips 1; none if this thread writes
 */
LK_API LK_MUST_CHECK int lk_rwlock_trywrlock(lk_rwlock_t *rw);

/*
 * Take `rw` for reading, waiting until `abstime` on CLOCK_REALTIME, as
 * pthread_rwlock_timedrdlock(). The moment is converted once, on entry.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; after a time that
 *             has passed there may still be room
 *
 * Returns     as lk_rwlock_rdlock(), and
 *             ETIMEDOUT  still no room; not held, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     as lk_rwlock_rdlock(); returns by `abstime` plus one command timeout
 * Round trips as lk_rwlock_rdlock(), one more to leave the queue
 */
LK_API LK_MUST_CHECK int lk_rwlock_timedrdlock(lk_rwlock_t *rw, const struct timespec *abstime);

/*
 * The same for writing, as pthread_rwlock_timedwrlock().
 *
 *   abstime   as lk_rwlock_timedrdlock()
 *
 * Returns     as lk_rwlock_wrlock(), and ETIMEDOUT, ENOTCONN as above
 * Threads     as above
 * Round trips as above
 */
LK_API LK_MUST_CHECK int lk_rwlock_timedwrlock(lk_rwlock_t *rw, const struct timespec *abstime);

/*
 * lk_rwlock_timedrdlock() on another clock, as pthread_rwlock_clockrdlock().
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_rwlock_timedrdlock()
 * Threads     as lk_rwlock_timedrdlock()
 * Round trips as lk_rwlock_timedrdlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_clockrdlock(lk_rwlock_t *rw, clockid_t clock, const struct timespec *abstime);

/*
 * lk_rwlock_timedwrlock() on another clock, as pthread_rwlock_clockwrlock().
 *
 *   clock     as lk_rwlock_clockrdlock()
 *
 * Returns     as lk_rwlock_timedwrlock()
 * Threads     as lk_rwlock_timedwrlock()
 * Round trips as lk_rwlock_timedwrlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_clockwrlock(lk_rwlock_t *rw, clockid_t clock, const struct timespec *abstime);

/*
 * lk_rwlock_timedrdlock() with a relative time.
 *
 *   timeout_ms  milliseconds; 0 tries once, LK_FOREVER waits on; other negatives
 *               are EINVAL
 *
 * Returns     as lk_rwlock_timedrdlock(): ETIMEDOUT also for 0
 * Threads     as lk_rwlock_timedrdlock()
 * Round trips as lk_rwlock_timedrdlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_rdlockfor(lk_rwlock_t *rw, int64_t timeout_ms);

/*
 * lk_rwlock_timedwrlock() with a relative time.
 *
 *   timeout_ms  as lk_rwlock_rdlockfor()
 *
 * Returns     as lk_rwlock_timedwrlock(): ETIMEDOUT also for 0
 * Threads     as lk_rwlock_timedwrlock()
 * Round trips as lk_rwlock_timedwrlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_wrlockfor(lk_rwlock_t *rw, int64_t timeout_ms);

/*
 * Both as `how` says: for how long to wait, with which lease, and for which owner.
 *
 *   how       see lk_how_t; NULL: as lk_rwlock_rdlock() and _wrlock(). Its lease is that
 *             of the first level
 *
 * Returns     as lk_rwlock_timedrdlock() and _timedwrlock(): ETIMEDOUT also where another
 *             call of the owner was acquiring it all the time. "This thread" is the
 *             owner
 *             EINVAL     how, or an owner of another client
 *             ECANCELED  also: the owner belongs to the parent of a fork
 * Threads     as lk_rwlock_timedrdlock()
 * Round trips as lk_rwlock_timedrdlock()
 */
LK_API LK_MUST_CHECK int lk_rwlock_rdlockwith(lk_rwlock_t *rw, const lk_how_t *how);
LK_API LK_MUST_CHECK int lk_rwlock_wrlockwith(lk_rwlock_t *rw, const lk_how_t *how);

/*
 * Give `rw` back once: a level of reading if this thread has one, else a level of
 * writing. A writer that wants to keep only its reading calls
 * lk_rwlock_downgrade(). At the last level those who wait and find room now hold it
 * within the same step on the server.
 *
 * Returns     0          one level less; at the last one confirmed released
 *             EPERM      this thread does not hold it; unchanged. In the child of a
 *                        fork so is every hold of the parent
 *             ESTALE     the hold had been lost: what was done since may have met
 *                        a writer. One level less
 *             ENOTCONN   nothing could be sent; one level less. The library goes on
 *                        trying until the lease ends
 *             EIO        sent, answer lost; one level less. The library goes on
 *                        trying until the lease ends, in lk_errorsettles()
 *                        milliseconds at the latest
 *             EPROTO EACCES  refused; one level less; ends with its lease
 * Threads     the one that locked it; takes one command timeout at most
 * Round trips 1; none at an inner level
 */
LK_API int lk_rwlock_unlock(lk_rwlock_t *rw);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_unlock(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_unlock()
 */
LK_API int lk_rwlock_unlockby(lk_rwlock_t *rw, lk_owner_t *owner);

/*
 * Go from writing to reading: at no moment does anybody else write. Readers that
 * wait come in, up to the next writer. All levels become levels of reading, so as
 * many unlocks are due as before. The lease begins anew.
 *
 * After EOWNERDEAD without lk_rwlock_consistent() the lock stays unrepaired: whoever
 * comes is told EOWNERDEAD, until a writer repairs it.
 *
 * Returns     0          held for reading
 *             EPERM      this thread does not write; unchanged
 *             ESTALE     the hold was lost
 *             ENOTCONN   nothing was done; still held for writing
 *             EIO        sent, answer lost: held for reading, though the others may
 *                        have to wait for the unlock
 *             EAGAIN     reading and writing together more than INT_MAX times;
 *                        unchanged
 *             ENOSPC ENOMEM  still held for writing
 *             EPROTO EACCES ECANCELED  as EIO
 * Threads     the writer; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_downgrade(lk_rwlock_t *rw);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_downgrade(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_downgrade()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_downgradeby(lk_rwlock_t *rw, lk_owner_t *owner);

/*
 * The fencing token of this thread's hold for writing: larger than that of every
 * earlier writer of this name, and of every mutex of it, as lk_mutex_token() says.
 *
 *   token     written on success only
 *
 * Returns     0, EPERM (this thread does not write), ESTALE (lost), EINVAL,
 *             ECANCELED
 * Threads     any; each sees its own hold
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_token(lk_rwlock_t *rw, uint64_t *token);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_token(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_token()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_tokenby(lk_rwlock_t *rw, lk_owner_t *owner, uint64_t *token);

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
LK_API LK_SHOULD_CHECK int lk_rwlock_remaining(lk_rwlock_t *rw, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_remaining(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_remaining()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_remainingby(lk_rwlock_t *rw, lk_owner_t *owner, int64_t *ms);

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
LK_API LK_SHOULD_CHECK int lk_rwlock_check(lk_rwlock_t *rw);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_check(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_check()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_checkby(lk_rwlock_t *rw, lk_owner_t *owner);

/*
 * Give this thread's hold a lease of `lease_ms` from now on, and renewals of that
 * length unless it is fixed. max_hold_ms still caps it. The leases of other readers
 * stay as they are.
 *
 *   lease_ms  milliseconds; at least 100, at most a day; may be shorter than the lease
 *             it had
 *
 * Returns     0          the lease is set
 *             ESTALE     it was lost
 *             EPERM      this thread does not hold it
 *             EINVAL     lease_ms is out of range
 *             ENOTCONN   nothing was sent yet, for want of a connection or because
 *                        a copy of an earlier request may still set the lease it
 *                        asked for: the hold is good for what lk_rwlock_remaining()
 *                        says, and renewals go on trying
 *             EIO        sent, answer lost, or fewer than wait_replicas replicas
 *                        acknowledged it: likewise
 *             EPROTO EACCES ECANCELED  refused; likewise
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_extend(lk_rwlock_t *rw, int64_t lease_ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_extend(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_extend()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_extendby(lk_rwlock_t *rw, lk_owner_t *owner, int64_t lease_ms);

/*
 * Say that what a robust lock guards is in order again, as
 * pthread_mutex_consistent(). Until this writer unlocks or downgrades, others have
 * not been told.
 *
 * Returns     0
 *             EINVAL     rw is not robust, or was not taken over from a writer that
 *                        died
 *             EPERM      this thread does not write; readers repair nothing
 *             ESTALE ECANCELED  as above
 * Threads     the writer that was told EOWNERDEAD
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_consistent(lk_rwlock_t *rw);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_rwlock_consistent(), and EINVAL: an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_rwlock_consistent()
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_consistentby(lk_rwlock_t *rw, lk_owner_t *owner);

/*
 * Take `rw` away from the writer or all readers: the one call that breaks the
 * promise, for operators. The robbed find out at their next renewal. If that was the
 * writer of a robust lock, who comes next is told EOWNERDEAD; one that was
 * ENOTRECOVERABLE is usable again: both also where `rw` was made without `robust`. If
 * those who wait were made without it, too, and a robust writer once died here
 * unrepaired, EOWNERDEAD comes with the lock to one of them.
 *
 * Returns     0          nobody who held it before holds it now; who waited first
 *                        does
 *             ENOTCONN EIO EPROTO EACCES ECANCELED EINVAL
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_forceunlock(lk_rwlock_t *rw);

enum { LK_RWLOCK_FREE = 0, LK_RWLOCK_READING = 1, LK_RWLOCK_WRITING = 2 };

typedef struct lk_rwlockinfo {
    size_t size;              /* sizeof(lk_rwlockinfo_t); see LK_RWLOCKINFO_INIT */
    int mode;                 /* LK_RWLOCK_FREE, _READING, _WRITING */
    int recoverable;          /* 0: robust, given back unrepaired */
    unsigned readers;         /* threads that read; a writer is none, also if it reads */
    unsigned waiters;         /* places in the queues */
    unsigned waiting_writers; /* of these */
    int64_t remaining_ms;     /* until the last lease on the server ends; 0 when free */
    uint64_t token;           /* last one granted; 0: none in the last day */
    char writer[160];         /* its owner id: <client id>:<owner>:<acquisition>:w; "" if nobody writes */
} lk_rwlockinfo_t;

/* clang-format off */
#define LK_RWLOCKINFO_INIT { sizeof(lk_rwlockinfo_t), 0, 0, 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `rw` on the server, whoever holds it.
 *
 *   info      its size set by LK_RWLOCKINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_rwlock_info(lk_rwlock_t *rw, lk_rwlockinfo_t *info);

/*
 * Who waits for `rw`, in order of arrival, each thread or owner with LK_WANTS_READ or
 * LK_WANTS_WRITE; of readers of a client that come in a row the one that asks for all.
 * With LK_RWLOCK_PREFER_FAIR a waiter's index is its turn.
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
LK_API LK_SHOULD_CHECK int lk_rwlock_queue(lk_rwlock_t *rw, lk_waiter_t *waiters, size_t stride, unsigned capacity,
                                           unsigned *count);

#ifdef __cplusplus
}
#endif

#endif
