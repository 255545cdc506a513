/* SPDX-License-Identifier: MIT */
/*
 * barrier.h - a barrier at which the threads of all processes meet that know its name
 *
 * Use     So many parties wait, wherever they run; with the last one all go on, and the
 *         next round begins. One of them is told that it is the serial one.
 * Lease   A party that waits has a lease. One that dies, or that does not wait as long as it
 *         takes, breaks the round: all parties are told ECANCELED, now and from then on,
 *         until lk_barrier_reset().
 * Unlike  pthread_barrier_t, a round may fail, so look at each result; and a wait may have
 *         a limit.
 */
#ifndef LATCHKEY_BARRIER_H
#define LATCHKEY_BARRIER_H

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one party of each round is told, as PTHREAD_BARRIER_SERIAL_THREAD: the one negative result there is. */
#define LK_BARRIER_SERIAL (-1)

#define LK_BARRIER_MAX 10000 /* parties */

/* How a barrier behaves, of this lk_barrier_t alone. All zero but the size is the default of everything. */
typedef struct lk_barrierattr {
    size_t size;      /* sizeof(lk_barrierattr_t); see LK_BARRIERATTR_INIT */
    int64_t lease_ms; /* of a party that waits; 0: the client's; at least 100 */
    int lk_room[2];   /* zero */
} lk_barrierattr_t;

/* clang-format off */
#define LK_BARRIERATTR_INIT { sizeof(lk_barrierattr_t), 0, { 0, 0 } }
/* clang-format on */

/*
 * A barrier. The others go on while the serial party works; a second wait keeps them from the
 * next step until that work is done. For example:
 *
 *     static lk_barrier_t phase = LK_BARRIER_INITIALIZER("phase", 3);
 *
 *     int compute(int steps, void (*step)(int), void (*collect)(int)) // each of three workers, anywhere
 *     {
 *         for (int i = 0; i < steps; i++) {
 *             step(i);
 *             int rc = lk_barrier_waitfor(&phase, 60000); // all three have done step i
 *             if (rc == LK_BARRIER_SERIAL)
 *                 collect(i); // one of the three, while the others wait below
 *             if (rc == 0 || rc == LK_BARRIER_SERIAL)
 *                 rc = lk_barrier_waitfor(&phase, 60000); // collect(i) is done
 *             if (rc != 0 && rc != LK_BARRIER_SERIAL)
 *                 return rc; // ECANCELED: another one is lost; lk_errortext() says more
 *         }
 *         return 0;
 *     }
 */
typedef struct lk_barrier {
    const char *lk_name;             /* copied by lk_barrier_init(); a literal in a static initialiser */
    const lk_barrierattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                   /* private: NULL until first use */
    uintptr_t lk_process;            /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];           /* private: [2] is the number of parties */
} lk_barrier_t;

/* private: the number of parties, as lk_barrier_init() takes it, for an initialiser in braces */
#ifdef __cplusplus
constexpr uintptr_t lk_barrier_word(unsigned parties)
{
    return parties;
}
#else
#define lk_barrier_word(parties) ((unsigned)(parties))
#endif

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_BARRIER_INITIALIZER(name, parties) { (name), NULL, NULL, 0, { 0, 0, lk_barrier_word(parties), 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_BARRIER_INITIALIZER_ATTR(name, parties, attr) { (name), (attr), NULL, 0, { 0, 0, lk_barrier_word(parties), 0 } }
/* clang-format on */

/*
 * Make `b` a barrier of that name. Sends nothing, starts no thread.
 *
 *   b         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; rules as for lk_mutex_init()
 *   parties   how many have to wait: 1 to LK_BARRIER_MAX, and the same for all who use the
 *             name
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name, a number or attributes against the rules
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     b is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_barrier_destroy()
 */
LK_API LK_MUST_CHECK int lk_barrier_init(lk_barrier_t *b, lk_client_t *client, const char *name, unsigned parties,
                                         const lk_barrierattr_t *attr);

/*
 * Give back what `b` has in this process. Nothing happens in Redis.
 *
 *   b         no thread begins a call with it any more. As POSIX has it, the serial party
 *             may destroy it right after its wait, while the others are still returning.
 *             Afterwards as if never initialised (a static one may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process waits at it through this client; unchanged
 *             EINVAL     b is NULL
 * Threads     any
 * Round trips 0
 */
LK_API int lk_barrier_destroy(lk_barrier_t *b);

/*
 * Wait for all others of the round, as long as it takes.
 *
 * Returns     0          all parties came
 *             LK_BARRIER_SERIAL  likewise, and this one is the serial party of the round
 *             ECANCELED  the round is broken: a party died, was cancelled or did not wait as
 *                        long as it took, or somebody called lk_barrier_reset(); so is each
 *                        wait from then on until that call. Or the client was closed, or
 *                        belongs to another process
 *             EINVAL     others wait for another number of parties; this one did not come
 *             ESTALE     the server lost its data while this one waited, or that it waited:
 *                        whether all came is not known. A round that the server still
 *                        knows breaks
 *             EIO        sent, answer lost: whether this one came, or all, is not known; if all
 *                        did not, the round will break
 *             ENOTCONN   the default client could not be opened; otherwise it goes on trying,
 *                        and logs what is wrong
 *             EPROTO EACCES ENOSPC ENOMEM  this one did not come; or it came, and was refused
 *                        while it waited: the round breaks
 * Threads     any; blocks only the caller; not for signal handlers; signals do not end the
 *             wait. A cancellation point while it sleeps, unlike pthread_barrier_wait(): a
 *             thread that is cancelled breaks the round
 * Round trips 1 and a message, and 1 for each message and one a poll ceiling (URL: poll) for
 *             all threads of the client together
 */
LK_API LK_MUST_CHECK int lk_barrier_wait(lk_barrier_t *b);

/*
 * Wait until `abstime` on CLOCK_REALTIME. The moment is converted once, on entry: setting
 * the clock meanwhile has no effect.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999
 *
 * Returns     as lk_barrier_wait(), and
 *             ETIMEDOUT  not all came within the time: the round is broken. With a time that
 *                        has passed on entry this one did not come, unless it was the last,
 *                        and nothing is broken
 *             ENOTCONN   no server could be asked
 * Threads     as lk_barrier_wait(); returns by `abstime` plus one command timeout for each of
 *             the up to three last requests, which look, leave, and look how the round ended
 * Round trips as lk_barrier_wait(), one or two more at the end
 */
LK_API LK_MUST_CHECK int lk_barrier_timedwait(lk_barrier_t *b, const struct timespec *abstime);

/*
 * The same on another clock.
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_barrier_timedwait()
 * Threads     as lk_barrier_timedwait()
 * Round trips as lk_barrier_timedwait()
 */
LK_API LK_MUST_CHECK int lk_barrier_clockwait(lk_barrier_t *b, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 passes only as the last one, LK_FOREVER waits on; other
 *               negatives are EINVAL
 *
 * Returns     as lk_barrier_timedwait(): ETIMEDOUT also for 0
 * Threads     as lk_barrier_timedwait()
 * Round trips as lk_barrier_timedwait()
 */
LK_API LK_MUST_CHECK int lk_barrier_waitfor(lk_barrier_t *b, int64_t timeout_ms);

/*
 * Begin anew, whether the round is broken or not. Who waits is told ECANCELED.
 *
 * Returns     0          the next who waits is the first of a new round
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: it may have been done
 *             EPROTO EACCES ENOSPC ECANCELED EINVAL ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_barrier_reset(lk_barrier_t *b);

typedef struct lk_barrierinfo {
    size_t size;         /* sizeof(lk_barrierinfo_t); see LK_BARRIERINFO_INIT */
    unsigned parties;    /* of the present round; 0: nothing is known of it */
    unsigned arrived;    /* how many wait */
    int broken;          /* 1: the round is broken */
    uint64_t generation; /* number of the round: a later one has a larger number */
    char missing[160];   /* client ids of parties of the last round that have not come to this one, divided by
                            blanks, a few of them; of a broken round, whose party broke it */
} lk_barrierinfo_t;

/* clang-format off */
#define LK_BARRIERINFO_INIT { sizeof(lk_barrierinfo_t), 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `b` on the server.
 *
 *   info      its size set by LK_BARRIERINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_barrier_info(lk_barrier_t *b, lk_barrierinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
