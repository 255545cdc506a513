/* SPDX-License-Identifier: MIT */
/*
 * latch.h - a countdown latch shared by all processes that know its name
 *
 * Use     Somebody sets a count; others count down; everybody who waits, on any
 *         machine, goes on when it is zero. With a count of 1 it is a start gate,
 *         with one for each worker a finish line.
 * Again   After zero a new count may be set, under the same name. For the rounds of
 *         a barrier take a name each: see docs/pthreads.md.
 * Memory  For ten minutes the server knows that a latch opened, so who comes late
 *         is let through. After that it is ENOENT, as if it had never been.
 * Java    A Redisson RCountDownLatch of the same name is the same latch.
 * Unlike  pthread_barrier_t, counting down and waiting are two calls, by whoever
 *         likes. Unlike holds, a count has no lease: who dies does not count down.
 */
#ifndef LATCHKEY_LATCH_H
#define LATCHKEY_LATCH_H

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How a latch behaves. All zero but the size is the default of everything. `anonymous`
 * belongs to the name: all processes have to agree, and nobody notices where they do not.
 * The rest belongs to this lk_latch_t alone.
 *
 * An anonymous one lives from its first use on, and as long as a client uses it: a
 * client that opened it by this name renews that as a held lock, with its lease, and with
 * the last one every key of it goes, its count and that it opened included; at the latest a
 * lease after the last process died, but for what its requests leave for a minute. Until then
 * it is known that it opened, or was deleted, without the limit of ten minutes. A client that
 * could not renew for a lease is told ESTALE by every call on it, from then on: destroy it then.
 */
typedef struct lk_latchattr {
    size_t size;    /* sizeof(lk_latchattr_t); see LK_LATCHATTR_INIT */
    int64_t ttl_ms; /* a count set by this one ends after so long if it did not open; at least 100; 0: never */
    int appear;     /* 1: waiting where nothing is known of a count waits for one to be set, instead of ENOENT */
    int anonymous;  /* 1: gone from the server with the last process that uses it; not with ttl_ms */
    int lk_room[2]; /* zero */
} lk_latchattr_t;

/* clang-format off */
#define LK_LATCHATTR_INIT { sizeof(lk_latchattr_t), 0, 0, 0, { 0, 0 } }
/* clang-format on */

/*
 * A countdown latch. For example:
 *
 *     static lk_latch_t loaded = LK_LATCH_INITIALIZER("loaded");
 *
 *     int begin(void) // once, before anybody counts or waits
 *     {
 *         return lk_latch_trysetcount(&loaded, 3);
 *     }
 *
 *     int load_part(void (*work)(void)) // each of three workers, anywhere
 *     {
 *         work();
 *         return lk_latch_countdown(&loaded);
 *     }
 *
 *     int await_all(void) // whoever needs all parts
 *     {
 *         return lk_latch_waitfor(&loaded, 60000); // ETIMEDOUT: not all yet
 *     }
 */
typedef struct lk_latch {
    const char *lk_name;           /* copied by lk_latch_init(); a literal in a static initialiser */
    const lk_latchattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                 /* private: NULL until first use */
    uintptr_t lk_process;          /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];         /* private: room to grow within one ABI */
} lk_latch_t;

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_LATCH_INITIALIZER(name) { (name), NULL, NULL, 0, { 0, 0, 0, 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_LATCH_INITIALIZER_ATTR(name, attr) { (name), (attr), NULL, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/*
 * Make `l` a latch of that name. Sends nothing, starts no thread, sets no count; a
 * latch of the default client needs no server yet.
 *
 *   l         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; rules as for lk_mutex_init(). Semaphores and latches look
 *             alike in Redis: give them names of their own. NULL, with the attribute
 *             `anonymous`: one that nobody else has; l->lk_name tells it
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     l is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_latch_destroy()
 */
LK_API LK_MUST_CHECK int lk_latch_init(lk_latch_t *l, lk_client_t *client, const char *name,
                                       const lk_latchattr_t *attr);

/*
 * Give back what `l` has in this process. Nothing happens in Redis: its count
 * stays, and others may wait on; lk_latch_delete() ends those. Only of an anonymous one
 * the client's last lk_latch_t says there that this client uses it no longer, without
 * waiting for an answer.
 *
 *   l         no thread begins a call with it any more. As POSIX has it,
 *             who waited may destroy it, even while the countdown that opened it is
 *             still returning. Afterwards as if never initialised (a static one
 *             may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process waits for it through this client;
 *                        unchanged
 *             EINVAL     l is NULL
 * Threads     any
 * Round trips 0
 */
LK_API int lk_latch_destroy(lk_latch_t *l);

/*
 * Close the latch with a count of `n`, if it has none. That it opened before is
 * forgotten, except by those who wait already: they return. Whoever calls
 * lk_latch_wait() from now on waits for this count; so if others are to wait for
 * the last one, see that they have come before setting a new one. With `ttl_ms` the
 * count ends by itself after that time, counted from now, if it is not zero by then:
 * as if it had never been set, but who waits is told ESTALE.
 *
 *   n         1 to 1000000
 *
 * Returns     0          the count is `n`
 *             EEXIST     it has a count, which stays as it is
 *             EINVAL     n out of range; nothing was done
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: it may have been set
 *             EPROTO     the key holds something that is no count; unchanged
 *             ESTALE     it is anonymous, and over; nothing was done
 *             EACCES ENOSPC ECANCELED ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_trysetcount(lk_latch_t *l, unsigned n);

/*
 * Close the latch with a count of `n`, whatever count it has: that is replaced, with its
 * end (`ttl_ms`). Who waits for the old count goes on, and waits for this one.
 * A countdown that is under way counts down whichever of the two it finds.
 *
 *   n         1 to 1000000
 *
 * Returns     0          the count is `n`
 *             EINVAL     n out of range; nothing was done
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: it may have been set
 *             EPROTO     the key holds something that is no count; unchanged
 *             ESTALE     it is anonymous, and over; nothing was done
 *             EACCES ENOSPC ECANCELED ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_setcount(lk_latch_t *l, unsigned n);

/*
 * Count down by one. At zero it opens and everybody who waits wakes.
 *
 * Returns     0          counted, exactly once, also if it had to be sent again
 *             ENOENT     it has no count: open already, deleted, lost, or never
 *                        set; nothing was done
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost; do not repeat it: the library goes on
 *                        trying for half a minute, and it counts once. If no server
 *                        is reached by then (lk_errorsettles()), once or not at all
 *             EPROTO     the key holds something that is no count; unchanged
 *             ESTALE     it is anonymous, and this client's lease of it was lost: there
 *                        is nothing to count down any more
 *             EACCES ENOSPC ECANCELED EINVAL ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_countdown(lk_latch_t *l);

/*
 * Count down by `n`; by more than is left means down to zero.
 *
 *   n         1 to 1000000; EINVAL otherwise, and nothing was done
 *
 * Returns     as lk_latch_countdown()
 * Threads     as lk_latch_countdown()
 * Round trips as lk_latch_countdown()
 */
LK_API LK_SHOULD_CHECK int lk_latch_countdownby(lk_latch_t *l, unsigned n);

/*
 * Read the count.
 *
 *   n         written on success only; 0: open, or there is none
 *
 * Returns     0, EINVAL (n is NULL), ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM;
 *             ESTALE: it is anonymous, and this client's lease of it was lost
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_getcount(lk_latch_t *l, unsigned *n);

/*
 * Wait until the latch opens, as long as it takes. Returns at once if it is open.
 *
 * Returns     0          it opened. With several counts one after the other: the one
 *                        that was there when this call began, or a later one
 *             ENOENT     it has no count, and none that opened in the last ten
 *                        minutes is known: set it before others wait. 0 instead
 *                        with redisson=yes, as Java has it. Never with `appear`, which
 *                        waits for a count to be set, and then for that
 *             ECANCELED  it was deleted (with `appear`: since this call began); or the
 *                        client was closed, or belongs to another process
 *             ESTALE     the count that this call waited for vanished: its `ttl_ms` is
 *                        over, or the server lost its data, and whether it opened is
 *                        not known. 0 instead with redisson=yes, as Java has it.
 *                        Or it is anonymous, and this client's lease of it was lost
 *             ENOTCONN   the default client could not be opened, or this client had not
 *                        used an anonymous latch before and could not begin to (then
 *                        also EIO); otherwise it goes on trying, and logs what is wrong
 *             EPROTO EACCES EINVAL ENOMEM  not known
 * Threads     any; blocks only the caller; not for signal handlers; signals do not
 *             end the wait. A cancellation point while it sleeps, as POSIX semaphore
 *             waits are, and within one command timeout without a server: nothing is
 *             left behind
 * Round trips 1 if it is open; otherwise 2 or 3, and then one for each message and one
 *             a poll ceiling (URL: poll), for all threads of the client together
 */
LK_API LK_MUST_CHECK int lk_latch_wait(lk_latch_t *l);

/*
 * Wait until `abstime` on CLOCK_REALTIME, as sem_timedwait(). The moment is converted
 * once, on entry: setting the clock meanwhile has no effect.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has
 *             passed still sees an open latch
 *
 * Returns     as lk_latch_wait(), and
 *             ETIMEDOUT  it did not open within the time
 *             ENOTCONN   no server could be asked
 * Threads     as lk_latch_wait(); returns by `abstime` plus one command timeout
 * Round trips as lk_latch_wait(), one more at the end
 */
LK_API LK_MUST_CHECK int lk_latch_timedwait(lk_latch_t *l, const struct timespec *abstime);

/*
 * The same on another clock, as sem_clockwait().
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_latch_timedwait()
 * Threads     as lk_latch_timedwait()
 * Round trips as lk_latch_timedwait()
 */
LK_API LK_MUST_CHECK int lk_latch_clockwait(lk_latch_t *l, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 looks once, LK_FOREVER waits on; other negatives
 *               are EINVAL
 *
 * Returns     as lk_latch_timedwait(): ETIMEDOUT also for 0
 * Threads     as lk_latch_timedwait()
 * Round trips as lk_latch_timedwait()
 */
LK_API LK_MUST_CHECK int lk_latch_waitfor(lk_latch_t *l, int64_t timeout_ms);

/*
 * Remove the count. Everybody who waits is told ECANCELED, and so is for ten minutes
 * who comes late, unless a new count is set. (Java waiters sleep on: Redisson's
 * delete() does not wake them either.) Of an open latch, remove that it opened: who
 * waits already still returns 0, and whoever comes from now on finds nothing, so that
 * those of a next run do not take it for theirs.
 *
 * Returns     0          there is no count any more, and it is not open
 *             ENOENT     it had no count and was not open; nothing was done
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: it may have been deleted
 *             EPROTO     the key holds something that is no count; unchanged
 *             EACCES ENOSPC ECANCELED EINVAL ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_delete(lk_latch_t *l);

typedef struct lk_latchinfo {
    size_t size;    /* sizeof(lk_latchinfo_t); see LK_LATCHINFO_INIT */
    int set;        /* 1: closed, with a count */
    int opened;     /* 1: open; known for ten minutes */
    int deleted;    /* 1: deleted; known for ten minutes */
    unsigned count; /* left to count down; 0 unless set */
} lk_latchinfo_t;

/* clang-format off */
#define LK_LATCHINFO_INIT { sizeof(lk_latchinfo_t), 0, 0, 0, 0 }
/* clang-format on */

/*
 * Look at `l` on the server. Who waits is not known there.
 *
 *   info      its size set by LK_LATCHINFO_INIT; the rest written on success only.
 *             None of set, opened, deleted: nothing is known of it
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_latch_info(lk_latch_t *l, lk_latchinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
