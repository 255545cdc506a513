/* SPDX-License-Identifier: MIT */
/*
 * cond.h - a condition variable shared by all processes that know its name
 *
 * Use     With a mutex of the same client: lock it, wait while what it guards is not as it
 *         should be, go on. Whoever changes that signals, on any machine.
 * Wait    gives the mutex back, all its levels, and queues, in one step at the server; so a
 *         signal is never missed in between. It comes back with the mutex held as often as
 *         before, by a new token.
 * Signal  moves the first who waits, a broadcast all, to the queue of the mutex: they get it
 *         one after the other as it is given back, and nobody is woken in vain. Signalling
 *         needs no mutex; while holding it, order is as one expects. After the unlock it costs
 *         those who wait for the mutex no round trip: docs/performance.md has the difference.
 * Wakes   without a signal are legal, as with pthreads: look again whether to go on. There is
 *         one where a waiter was not heard of for some seconds and its signal went on to
 *         another one, or where the server lost its data. A signal is not lost: one whose
 *         waiter died, timed out or was cancelled with it goes to the next.
 * Names   A condition and its mutex lie in one slot of a cluster: give both the same name, or
 *         one {tag}, as "{jobs}" and "{jobs}nonempty". It is checked on every server.
 * Unlike  pthread_cond_t, a mutex can be lost: while held before a wait (ESTALE), or by the
 *         one who had it before, if it is robust (EOWNERDEAD).
 */
#ifndef LATCHKEY_COND_H
#define LATCHKEY_COND_H

#include <latchkey/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a condition variable behaves. All zero but the size is the default of everything. */
typedef struct lk_condattr {
    size_t size;    /* sizeof(lk_condattr_t); see LK_CONDATTR_INIT */
    int clock;      /* of lk_cond_timedwait(): CLOCK_REALTIME, which is 0, CLOCK_MONOTONIC or CLOCK_BOOTTIME */
    int lk_room[3]; /* zero */
} lk_condattr_t;

/* clang-format off */
#define LK_CONDATTR_INIT { sizeof(lk_condattr_t), 0, { 0, 0, 0 } }
/* clang-format on */

/*
 * A condition variable. For example:
 *
 *     static lk_mutex_t jobs = LK_MUTEX_INITIALIZER("{jobs}");
 *     static lk_cond_t some = LK_COND_INITIALIZER("{jobs}some");
 *
 *     int take_job(int (*take)(void)) // take(): 0 when there is none
 *     {
 *         int rc = lk_mutex_lock(&jobs);
 *         while (rc == 0 && take() == 0)
 *             rc = lk_cond_wait(&some, &jobs);
 *         return rc != 0 ? rc : lk_mutex_unlock(&jobs);
 *     }
 *
 *     int add_job(void (*add)(void))
 *     {
 *         int rc = lk_mutex_lock(&jobs);
 *         if (rc != 0)
 *             return rc;
 *         add();
 *         rc = lk_cond_signal(&some);
 *         int unlocked = lk_mutex_unlock(&jobs);
 *         return rc != 0 ? rc : unlocked;
 *     }
 */
typedef struct lk_cond {
    const char *lk_name;          /* copied by lk_cond_init(); a literal in a static initialiser */
    const lk_condattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                /* private: NULL until first use */
    uintptr_t lk_process;         /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];        /* private: room to grow within one ABI */
} lk_cond_t;

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_COND_INITIALIZER(name) { (name), NULL, NULL, 0, { 0, 0, 0, 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_COND_INITIALIZER_ATTR(name, attr) { (name), (attr), NULL, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/*
 * Make `c` a condition variable of that name. Sends nothing, starts no thread.
 *
 *   c         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; rules as for lk_mutex_init()
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     c is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_cond_destroy()
 */
LK_API LK_MUST_CHECK int lk_cond_init(lk_cond_t *c, lk_client_t *client, const char *name,
                                      const lk_condattr_t *attr);

/*
 * Give back what `c` has in this process. Nothing happens in Redis: who waits goes on waiting,
 * and is woken by whoever signals that name.
 *
 *   c         no thread begins a call with it any more. As POSIX has it, right after a
 *             broadcast it may be destroyed, even while those whom that woke are still
 *             returning. Afterwards as if never initialised (a static one may be used again)
 *
 * Returns     0, or EINVAL: c is NULL
 * Threads     any
 * Round trips 0
 */
LK_API int lk_cond_destroy(lk_cond_t *c);

/*
 * Give `m` back, all its levels, and wait for a signal; come back with `m` held as often as
 * before. Look then whether to go on: there are wake-ups without a signal.
 *
 *   c         all who wait for it at one time do so with the same mutex
 *   m         held by the calling thread; of the same client; in the same slot, see above.
 *             Its lease is renewed: not with `fixed`, nor with `min_hold_ms`
 *
 * Returns     0          woken, and held
 *             EOWNERDEAD woken or not, and held; its previous holder died holding it
 *             EINVAL     the mutex is held: c and m are of two clients or two slots, m is held
 *                        with a fixed lease or min_hold_ms, or after EOWNERDEAD without
 *                        lk_mutex_consistent(): nothing was done. Or others wait with another
 *                        mutex: it was given back and taken again
 *             EPERM      the calling thread does not hold m; nothing was done
 *             After the following ones the mutex is not held, and is not to be unlocked:
 *             ESTALE     the lease was lost before the wait, or was taken away
 *             ENOTRECOVERABLE  m was given back unrepaired meanwhile
 *             ENOTCONN   no server would serve it, nothing was done but that m is given back, in
 *                        lk_errorsettles() milliseconds at the latest
 *             EIO        the outcome is unknown; what there is left is given back
 *             EPROTO     a key is of another type
 *             ECANCELED  the client was closed
 *             EACCES ENOSPC
 *             ENOMEM     this one tells nothing: held as before, unless memory ran out on the way
 *                        back; lk_mutex_check() says which
 * Threads     any; blocks only the caller; not for signal handlers; signals do not end the
 *             wait. A cancellation point while it waits: cleanup handlers run with m held,
 *             as after ETIMEDOUT, if a server answers within a command timeout;
 *             else without, as after ENOTCONN. lk_mutex_check() says which
 * Round trips 1; then one a poll ceiling (URL: poll), and 1 when it is woken
 */
LK_API LK_MUST_CHECK int lk_cond_wait(lk_cond_t *c, lk_mutex_t *m);

/*
 * Wait until `abstime` on the clock of the attributes, as pthread_cond_timedwait(). The moment is
 * converted once, on entry: setting the clock meanwhile has no effect.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has passed still
 *             gives the mutex back for a moment
 *
 * Returns     as lk_cond_wait(), and
 *             ETIMEDOUT  no signal within the time; the mutex is held. A signal that came at
 *                        the last moment went on to the next waiter
 *             ENOTCONN   the time is over, and no server gave the mutex back for a lease: not held
 * Threads     as lk_cond_wait(). After the time it waits for the mutex, as long as others hold it
 * Round trips as lk_cond_wait(); 2 more after ETIMEDOUT, 3 with several levels
 */
LK_API LK_MUST_CHECK int lk_cond_timedwait(lk_cond_t *c, lk_mutex_t *m, const struct timespec *abstime);

/*
 * The same on another clock, as pthread_cond_clockwait().
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_cond_timedwait()
 * Threads     as lk_cond_timedwait()
 * Round trips as lk_cond_timedwait()
 */
LK_API LK_MUST_CHECK int lk_cond_clockwait(lk_cond_t *c, lk_mutex_t *m, clockid_t clock,
                                           const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; LK_FOREVER waits on; other negatives are EINVAL
 *
 * Returns     as lk_cond_timedwait()
 * Threads     as lk_cond_timedwait()
 * Round trips as lk_cond_timedwait()
 */
LK_API LK_MUST_CHECK int lk_cond_waitfor(lk_cond_t *c, lk_mutex_t *m, int64_t timeout_ms);

/*
 * Wake the first who waits, if somebody does. Who was not heard of for some seconds is passed
 * over while others are.
 *
 * Returns     0          somebody is on the way to the mutex, or nobody waited
 *             EINVAL     the mutex changed again and again while it was asked for
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: signal again, as one wake-up too many is legal
 *             EPROTO     a key is of another type
 *             EACCES ENOSPC ECANCELED ENOMEM  nothing was done
 * Threads     any, with the mutex or without; takes one command timeout at most; no
 *             cancellation point
 * Round trips 1, however many wait; 2 by a client that did not know their mutex
 */
LK_API LK_SHOULD_CHECK int lk_cond_signal(lk_cond_t *c);

/*
 * Wake all who wait. They get the mutex one after the other.
 *
 * Returns     as lk_cond_signal()
 * Threads     as lk_cond_signal(); takes one command timeout at most for each round trip
 * Round trips 1 for each 100 who wait; one more by a client that did not know their mutex
 */
LK_API LK_SHOULD_CHECK int lk_cond_broadcast(lk_cond_t *c);

typedef struct lk_condinfo {
    size_t size;      /* sizeof(lk_condinfo_t); see LK_CONDINFO_INIT, and api.h on sizes */
    unsigned waiters; /* threads of all processes that wait for a signal */
    unsigned woken;   /* signals that were not confirmed yet, while others wait */
    char mutex[160];  /* the name of their mutex, with the client's prefix; cut to fit; "": nobody waits */
} lk_condinfo_t;

/* clang-format off */
#define LK_CONDINFO_INIT { sizeof(lk_condinfo_t), 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `c` on the server.
 *
 *   info      its size set by LK_CONDINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_cond_info(lk_cond_t *c, lk_condinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
