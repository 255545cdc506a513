/* SPDX-License-Identifier: MIT */
/*
 * semaphore.h - semaphores shared by all processes that know their name
 *
 * Counting  A number of permits, as a POSIX semaphore: no owner, anybody may post. A
 *           process that dies with permits takes them along. Redisson's RSemaphore
 *           of the same name is the same semaphore.
 * Leased    Attribute `leased`: each permit is renewed by a thread of the client, as
 *           a mutex is, and comes back by itself when its process or thread dies.
 *           free + held = total. Another object than the counting one of that name.
 * Order     Waiters are served in order of arrival over all processes; nobody passes
 *           one who wants more permits. Redisson's clients do pass. Waiters of
 *           clients that receive no messages (pubsub=no) have their turn like all others;
 *           what they are handed is kept until they ask, for 300 ms at most.
 * Once      A request whose answer got lost is sent again and counts once.
 * Unlike    sem_t, an operation can fail: check it. More in docs/pthreads.md.
 */
#ifndef LATCHKEY_SEMAPHORE_H
#define LATCHKEY_SEMAPHORE_H

#include <latchkey/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LK_SEM_VALUE_MAX 2147483647 /* free permits of a counting semaphore; given back by one call */
#define LK_SEM_PERMITS_MAX 1000000  /* asked for by one call; total of a leased semaphore */
#define LK_SEM_LEASED_MAX 1000      /* leased permits taken by one call */
#define LK_PERMIT_ID 33             /* bytes of a permit's id: 32 hex digits and a NUL */

/*
 * How a semaphore behaves. All zero but the size is the default of everything.
 * `leased`, `max` and `anonymous` belong to the name: all processes have to agree. Where
 * others do not agree in `leased`, both have permits of their own; a client notices with
 * its first acquire, and says so once, by a warning in the log and LK_EVENT_DISAGREES; one
 * with strict=yes is refused with EINVAL. Nobody notices where they do not agree in `max`,
 * which each applies to what it asks itself, or in `anonymous`, by which a semaphore ends
 * that others rely on. The rest belongs to this lk_sem_t alone; the times are for leased
 * ones.
 *
 * An anonymous one is there from its first use on, and as long as a client uses it: a
 * thread of each puts off its end, as it renews a lease. It is gone with the last
 * lk_sem_t of the last of them, or when they died, after a lease (URL: lease). Only what
 * its requests leave is there for a minute and a half more; of a leased one, whose permits
 * ended, for ten minutes and the longest lease. A client that is cut off for a lease is told
 * ESTALE by each call from then on.
 */
typedef struct lk_semattr {
    size_t size;         /* sizeof(lk_semattr_t); see LK_SEMATTR_INIT */
    int leased;          /* 1: permits have leases */
    int64_t lease_ms;    /* 0: the client's; at least 100 */
    int64_t max_hold_ms; /* not renewed beyond this; at least 100; 0: no limit */
    unsigned max;        /* no more permits than that, free or asked for at once; 0: no limit of its own */
    int interruptible;   /* 1: a signal handler ends a wait, with EINTR, as that of sem_wait() */
    int anonymous;       /* 1: gone from the server with the last process that uses it */
} lk_semattr_t;

/* clang-format off */
#define LK_SEMATTR_INIT { sizeof(lk_semattr_t), 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * A semaphore. For example:
 *
 *     static lk_sem_t printers = LK_SEM_INITIALIZER("printers", 3);
 *
 *     int print(void (*work)(void)) // three at once, over all machines
 *     {
 *         int rc = lk_sem_wait(&printers);
 *         if (rc != 0)
 *             return rc; // no permit; lk_errortext() says why
 *         work();
 *         return lk_sem_post(&printers);
 *     }
 */
typedef struct lk_sem {
    const char *lk_name;         /* copied by lk_sem_init(); a literal in a static initialiser */
    const lk_semattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;               /* private: NULL until first use */
    uintptr_t lk_process;        /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];       /* private: [2] is the value to begin with */
} lk_sem_t;

/* private: the value to begin with, as lk_sem_init() takes it, for an initialiser in braces */
#ifdef __cplusplus
constexpr uintptr_t lk_sem_word(unsigned value)
{
    return value;
}
#else
#define lk_sem_word(value) ((unsigned)(value))
#endif

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_SEM_INITIALIZER(name, value) { (name), NULL, NULL, 0, { 0, 0, lk_sem_word(value), 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_SEM_INITIALIZER_ATTR(name, value, attr) { (name), (attr), NULL, 0, { 0, 0, lk_sem_word(value), 0 } }
/* clang-format on */

/*
 * Make `s` a semaphore of that name. Sends nothing, starts no thread; a semaphore of
 * the default client needs no server yet.
 *
 *   s         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; the rules are those of lk_mutex_init(). NULL, with the attribute
 *             `anonymous`: one that nobody else has; s->lk_name tells it
 *   value     permits to begin with: set by the first operation that finds no number
 *             in Redis, whoever makes it; so all should say the same: a warning in
 *             the log, once, says that there are others in all. 0: sets
 *             nothing, which counts as no permits. At most LK_SEM_VALUE_MAX; of a
 *             leased one, where it is the total, LK_SEM_PERMITS_MAX; at most `max`
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name, value or attributes against the rules
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     s is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_sem_destroy()
 */
LK_API LK_MUST_CHECK int lk_sem_init(lk_sem_t *s, lk_client_t *client, const char *name, unsigned value,
                                     const lk_semattr_t *attr);

/*
 * The same, and see to it on the server that there is one, in one step, as sem_open().
 *
 *   oflag     0: there has to be one. O_CREAT: it is made if there is none.
 *             O_CREAT | O_EXCL: it is made, and there may be none
 *   value     permits to begin with, where it is made. Unlike lk_sem_init()'s, 0 makes
 *             one of no permits. With O_CREAT alone it is also what a later use begins
 *             with that finds none; otherwise a use makes none, but for what is given
 *
 * Returns     0          usable
 *             ENOENT     0: there is none
 *             EEXIST     O_EXCL: there is one
 *             EINVAL     oflag is none of these, or as lk_sem_init()
 *             ENOTCONN   nothing was done
 *             EIO        sent, answer lost: with O_CREAT it may have been made
 *             EPROTO EACCES ENOSPC ECANCELED ENOMEM  not made
 *                        After each error `s` is as after lk_sem_destroy()
 * Threads     any; takes one command timeout at most
 * Round trips 1
 * Frees       lk_sem_destroy(), as sem_close()
 */
LK_API LK_MUST_CHECK int lk_sem_open(lk_sem_t *s, lk_client_t *client, const char *name, int oflag, unsigned value,
                                     const lk_semattr_t *attr);

/*
 * Remove the semaphore from the server, as sem_unlink(), for all processes. Those who
 * wait for it end with ECANCELED, what had been granted to them goes with it. Leased
 * permits that are held end: their holders learn of it as of a lost lease (ESTALE,
 * LK_REASON_GONE), with their next renewal or call. Tokens go on rising. An operation
 * that gives it a value to begin with makes it anew.
 *
 * Permits of a counting semaphore have no owners, as with POSIX: who took some before may
 * give them back to the one that is made anew, which then has more than it was made with.
 * What the library itself gives back goes to no other one than it came from: a take or a
 * drain whose answer got lost. A post, an addition or a new total that got no answer is
 * sent again, and if it was not done before the deletion it counts for what it finds.
 *
 * Returns     0          deleted
 *             ENOENT     there was none
 *             ENOTCONN   nothing was done
 *             EIO        sent, answer lost: unknown
 *             EPROTO EACCES ECANCELED EINVAL ENOMEM  unchanged
 * Threads     any; takes one command timeout at most. Of more than 1000 waiters
 *             some learn of it with their next poll
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_delete(lk_sem_t *s);

/*
 * Give back what `s` has in this process. Nothing happens in Redis: the number of
 * permits and other objects of that name live on.
 *
 *   s         no thread begins a call with it any more. As POSIX has it,
 *             who was let in by a post may destroy it, even while that is still
 *             returning. Afterwards as if never initialised (a static one
 *             may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process waits for it, or holds leased
 *                        permits of it, through this client; unchanged. Permits that
 *                        nobody renews do not count, of a thread that ended or with
 *                        a fixed lease
 *             EINVAL     s is NULL
 * Holds       of permits that nobody renews are detached, as by lk_mutex_destroy()
 * Threads     any
 * Round trips as lk_mutex_destroy()
 */
LK_API int lk_sem_destroy(lk_sem_t *s);

/*
 * Take one permit, waiting as long as it takes, as sem_wait().
 *
 * Returns     0          taken; a leased one is held by this thread
 *             ENOTCONN   the default client could not be opened; an open client
 *                        goes on trying, and logs what is wrong
 *             EIO        sent, answer lost: count it as not taken. If it was taken,
 *                        the library gives it back, once, within half a minute; if
 *                        it cannot reach the server for so long, a permit of a
 *                        counting semaphore may be lost
 *             EINTR      `interruptible`: a signal handler ran on this thread while it
 *                        waited, whatever SA_RESTART says; not taken, not queued. So
 *                        it is of all forms that wait. A permit that is granted in
 *                        the same moment is taken, or goes to the next one
 *             ECANCELED  the client was closed, or the semaphore deleted; not taken
 *             ESTALE     `anonymous`: this client was cut off for a lease; not taken
 *             EPROTO EACCES ENOSPC EINVAL ENOMEM  not taken;
 *                        EINVAL with strict=yes if others differ in leased,
 *                        and if a version with another protocol uses the name
 * Threads     any; blocks only the caller; not for signal handlers; signals do not
 *             end the wait of one that is not `interruptible`. A cancellation point, on entry and while it waits for
 *             permits or for a connection: a cancelled thread has no permit and no
 *             place in the queue. (Not while it waits for an answer, which takes one
 *             command timeout at most; so does leaving the queue.)
 * Round trips 1 if a permit is free (2 if it has to wait, and a message), and one
 *             more a poll ceiling (URL: poll), after some seconds one in 13
 */
LK_API LK_MUST_CHECK int lk_sem_wait(lk_sem_t *s);

/*
 * Take one permit if that is possible now, as sem_trywait(). It passes nobody: while
 * somebody waits for more permits than are free, there is none.
 *
 * Returns     as lk_sem_wait(), and
 *             EAGAIN     none is free; not taken, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_MUST_CHECK int lk_sem_trywait(lk_sem_t *s);

/*
 * Take one permit, waiting until `abstime` on CLOCK_REALTIME, as sem_timedwait().
 * The moment is converted once, on entry.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has
 *             passed still takes a free permit
 *
 * Returns     as lk_sem_wait(), and
 *             ETIMEDOUT  not within the time; not taken, not queued
 *             ENOTCONN   no server would serve it, nothing was done
 * Threads     as lk_sem_wait(); returns by `abstime` plus one command timeout
 * Round trips as lk_sem_wait(), one more to leave the queue
 */
LK_API LK_MUST_CHECK int lk_sem_timedwait(lk_sem_t *s, const struct timespec *abstime);

/*
 * The same on another clock, as sem_clockwait().
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_sem_timedwait()
 * Threads     as lk_sem_timedwait()
 * Round trips as lk_sem_timedwait()
 */
LK_API LK_MUST_CHECK int lk_sem_clockwait(lk_sem_t *s, clockid_t clock, const struct timespec *abstime);

/*
 * The same with a relative time.
 *
 *   timeout_ms  milliseconds; 0 tries once, LK_FOREVER waits on; other negatives
 *               are EINVAL
 *
 * Returns     as lk_sem_timedwait(): ETIMEDOUT also for 0
 * Threads     as lk_sem_timedwait()
 * Round trips as lk_sem_timedwait()
 */
LK_API LK_MUST_CHECK int lk_sem_waitfor(lk_sem_t *s, int64_t timeout_ms);

/*
 * Take n permits at once, or none. Waiters for many are served in their turn and do
 * not starve behind waiters for one: those who came later wait until the first one
 * has its n, so ask for no more than can become free.
 *
 *   n         1 to LK_SEM_PERMITS_MAX; of a leased semaphore to LK_SEM_LEASED_MAX; at
 *             most `max`
 *
 * Returns     as lk_sem_waitfor(), and
 *             EINVAL     n out of range, or above the total of a leased semaphore
 *                        (unless that is 0, which may be a pause)
 * Threads     as lk_sem_waitfor()
 * Round trips as lk_sem_waitfor()
 */
LK_API LK_MUST_CHECK int lk_sem_acquire(lk_sem_t *s, unsigned n, int64_t timeout_ms);

/*
 * The same, waiting until `abstime` on CLOCK_REALTIME, or on another clock.
 *
 *   n         as lk_sem_acquire()
 *   clock     as lk_sem_clockwait()
 *   abstime   as lk_sem_timedwait()
 *
 * Returns     as lk_sem_acquire()
 * Threads     as lk_sem_timedwait()
 * Round trips as lk_sem_timedwait()
 */
LK_API LK_MUST_CHECK int lk_sem_timedacquire(lk_sem_t *s, unsigned n, const struct timespec *abstime);
LK_API LK_MUST_CHECK int lk_sem_clockacquire(lk_sem_t *s, unsigned n, clockid_t clock, const struct timespec *abstime);

/*
 * The same as `how` says: for how long to wait, and of a leased semaphore with which
 * lease, for which owner. Each call has a lease of its own, also where one owner makes
 * several.
 *
 *   how       see lk_how_t; NULL: as long as it takes
 *
 * Returns     as lk_sem_acquire(), and
 *             EINVAL     how, or an owner of another client
 *             ENOTSUP    an owner or a lease, and s is not leased
 *             ECANCELED  also: the owner belongs to the parent of a fork
 * Threads     as lk_sem_acquire()
 * Round trips as lk_sem_acquire()
 */
LK_API LK_MUST_CHECK int lk_sem_acquirewith(lk_sem_t *s, unsigned n, const lk_how_t *how);

/*
 * Give one permit back, as sem_post(): lk_sem_release(s, 1).
 *
 * Returns     as lk_sem_release()
 * Threads     as lk_sem_release()
 * Round trips as lk_sem_release()
 */
LK_API int lk_sem_post(lk_sem_t *s);

/*
 * Give n permits back; those who wait get them within the same step on the server.
 * Counting: anybody may, also more than were taken. Leased: those that this thread
 * took without an id, the oldest first.
 *
 *   n         0 to LK_SEM_VALUE_MAX; 0 gives nothing back
 *
 * Returns     0          given back
 *             EINVAL     n out of range; unchanged
 *             EOVERFLOW  counting: more than LK_SEM_VALUE_MAX, or `max`, would be free;
 *                        unchanged
 *             EPERM      leased: this thread holds fewer than n; unchanged. In the
 *                        child of a fork so is whatever the parent holds
 *             ESTALE     leased: the lease of some of them had been lost; this thread
 *                        holds n fewer
 *             ENOTCONN   counting: nothing was sent, unchanged. Leased: given back,
 *                        as after an unlock: the library goes on trying
 *             EIO        sent, answer lost; do not repeat it: the library goes on
 *                        trying for half a minute, or until the lease ends, and it
 *                        counts once
 *             EPROTO     a key of another type: refused; an answer that could not be
 *                        read: as EIO
 *             EACCES ECANCELED ENOMEM  refused: counting: unchanged; leased: ends
 *                        with its lease
 * Threads     any (leased: the one that took them); takes one command timeout at most;
 *             not for signal handlers, which sem_post() is
 * Round trips 1; leased: one for each lk_sem_wait() or _acquire() that is given back; 0: none
 */
LK_API int lk_sem_release(lk_sem_t *s, unsigned n);

/*
 * Give back n leased permits of an owner, from any thread.
 *
 *   owner     NULL: the calling thread, as lk_sem_release()
 *
 * Returns     as lk_sem_release(), and
 *             EINVAL     an owner of another client; unchanged
 *             ENOTSUP    an owner, and s is not leased; unchanged
 *             EPERM      also: the owner belongs to the parent of a fork
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_sem_release()
 */
LK_API int lk_sem_releaseby(lk_sem_t *s, lk_owner_t *owner, unsigned n);

/*
 * How many permits are free, as sem_getvalue(); 0 when there are fewer.
 *
 *   value     written on success only; may be old by the time it is looked at
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_getvalue(lk_sem_t *s, int *value);

/*
 * Set the number of permits (leased: the total), if no number is set yet.
 *
 *   n         0 to LK_SEM_VALUE_MAX; leased: to LK_SEM_PERMITS_MAX
 *
 * Returns     0          set; those who wait get them
 *             EEXIST     there is a number; unchanged
 *             EINVAL     n out of range
 *             ENOTCONN   nothing was done
 *             EIO        sent, answer lost: unknown
 *             EPROTO EACCES ENOSPC ECANCELED ENOMEM  not set
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_trysetpermits(lk_sem_t *s, unsigned n);

/*
 * Set how many permits there are in all, free and taken, if there are as many as
 * expected: the number of free ones changes by the difference, and may become negative.
 * In a loop, for a deployment with another number:
 *
 *   unsigned old = 5;
 *   do
 *       rc = lk_sem_setpermits(&s, &old, 50);
 *   while (rc == EEXIST && old != 50);
 *
 * Of a counting semaphore Redis has the number of free permits alone. The total is what
 * it was made with or set to, and what lk_sem_addpermits() added; giving back more than
 * was taken does not change it. Redisson knows nothing of it: where more are free than
 * that, as after its addPermits(), or nobody said how many there are, it is the number
 * of free ones.
 *
 *   expected  the total; after EEXIST what was found
 *   n         0 to LK_SEM_VALUE_MAX; leased: to LK_SEM_PERMITS_MAX; at most `max`
 *
 * Returns     0          set; those who wait get what was added
 *             EEXIST     the total is another one; unchanged
 *             EINVAL     n out of range, or expected is NULL
 *             ENOTCONN   nothing was done
 *             EIO        sent, answer lost: unknown
 *             EPROTO EACCES ENOSPC ECANCELED ENOMEM  not set
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_setpermits(lk_sem_t *s, unsigned *expected, unsigned n);

/*
 * Add to the number of permits (leased: the total), or with a negative n reduce it.
 * A counting semaphore may become negative: as many have to be given back before one
 * is free. A total shrinks at once, while held permits are left alone: none is
 * granted until enough came back.
 *
 *   n         not 0, at most LK_SEM_VALUE_MAX either way
 *
 * Returns     0          done; those who wait get what was added
 *             EINVAL     n out of range, or the total would be below 0; unchanged
 *             EOVERFLOW  the number would be above its maximum; unchanged
 *             EIO        as lk_sem_release()
 *             ENOTCONN EPROTO EACCES ENOSPC ECANCELED ENOMEM  unchanged
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_addpermits(lk_sem_t *s, long n);

/*
 * Take all permits that are free now. It passes those who wait for more than that.
 *
 *   taken     how many; written on success only. lk_sem_release() gives back as many
 *
 * Returns     0, also when none was free
 *             ENOTSUP    s is leased
 *             EIO        sent, answer lost: what it took is given back, once, within
 *                        half a minute, as after lk_sem_wait()
 *             EINVAL ENOTCONN EPROTO EACCES ENOSPC ECANCELED ENOMEM  none taken
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_drain(lk_sem_t *s, unsigned *taken);

/*
 * How long all leased permits that this thread took without an id are good for if no
 * renewal follows: the least, where several calls took them. The library's promise
 * stands while this is above zero.
 *
 *   ms        written on success only; at least 1
 *
 * Returns     0, EPERM (this thread holds none), ESTALE (some were lost: known without
 *             asking the server), EINVAL, ECANCELED, ENOTSUP (s is not leased)
 * Threads     any; each sees its own
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_sem_remaining(lk_sem_t *s, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_sem_remaining(); EINVAL also for an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_sem_remaining()
 */
LK_API LK_SHOULD_CHECK int lk_sem_remainingby(lk_sem_t *s, lk_owner_t *owner, int64_t *ms);

/*
 * Ask the server whether the leased permits stand that this thread took without an id.
 *
 * Returns     0          they do
 *             ESTALE     some were lost; lk_sem_remaining() says so from now on
 *             EPERM      this thread holds none
 *             ENOTSUP    s is not leased
 *             ENOTCONN EIO EPROTO EACCES ECANCELED EINVAL  not known; nothing changed
 * Threads     any; each asks for its own; takes one command timeout at most for each
 *             round trip
 * Round trips one for each lk_sem_wait() or _acquire() that took them, the oldest first,
 *             up to one that fails
 */
LK_API LK_SHOULD_CHECK int lk_sem_check(lk_sem_t *s);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_sem_check(); EINVAL also for an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_sem_check()
 */
LK_API LK_SHOULD_CHECK int lk_sem_checkby(lk_sem_t *s, lk_owner_t *owner);

/*
 * Give the leased permits that this thread took without an id a lease of `lease_ms` from
 * now on, and renewals of that length unless they are fixed. max_hold_ms still caps it.
 * Where several calls took them, it begins with the oldest and ends with one that fails:
 * those taken before that one have the new lease, those after it the one they had.
 *
 *   lease_ms  milliseconds; at least 100, at most a day; may be shorter than the lease
 *             they had
 *
 * Returns     0          the lease is set, of all of them
 *             ESTALE     some were lost
 *             EPERM      this thread holds none
 *             EINVAL     lease_ms is out of range
 *             ENOTSUP    s is not leased
 *             ENOTCONN   nothing was sent yet, for want of a connection or because
 *                        a copy of an earlier request may still set the lease it
 *                        asked for: they are good for what lk_sem_remaining() says,
 *                        and renewals go on trying
 *             EIO        sent, answer lost, or fewer than wait_replicas replicas
 *                        acknowledged it: likewise
 *             EPROTO EACCES ECANCELED  refused; likewise
 * Threads     any; each its own; takes one command timeout at most for each round trip
 * Round trips as lk_sem_check()
 */
LK_API LK_SHOULD_CHECK int lk_sem_extend(lk_sem_t *s, int64_t lease_ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_sem_extend(); EINVAL also for an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_sem_extend()
 */
LK_API LK_SHOULD_CHECK int lk_sem_extendby(lk_sem_t *s, lk_owner_t *owner, int64_t lease_ms);

/*
 * Take one leased permit that belongs to nobody but who knows its id. The client
 * renews it until it is given back, max_hold_ms is over, or the client is closed or
 * its process dies; the thread may end.
 *
 *   id        LK_PERMIT_ID bytes: 16 random bytes in hex; written on success only
 *
 * Returns     as lk_sem_waitfor(), and
 *             ENOTSUP    s is not leased
 * Threads     as lk_sem_waitfor()
 * Round trips as lk_sem_waitfor()
 */
LK_API LK_MUST_CHECK int lk_sem_acquireid(lk_sem_t *s, int64_t timeout_ms, char id[LK_PERMIT_ID]);

/*
 * The same, waiting until `abstime` on CLOCK_REALTIME, or on another clock.
 *
 *   clock     as lk_sem_clockwait()
 *   abstime   as lk_sem_timedwait()
 *   id        as lk_sem_acquireid()
 *
 * Returns     as lk_sem_acquireid()
 * Threads     as lk_sem_timedwait()
 * Round trips as lk_sem_timedwait()
 */
LK_API LK_MUST_CHECK int lk_sem_timedacquireid(lk_sem_t *s, const struct timespec *abstime, char id[LK_PERMIT_ID]);
LK_API LK_MUST_CHECK int lk_sem_clockacquireid(lk_sem_t *s, clockid_t clock, const struct timespec *abstime,
                                               char id[LK_PERMIT_ID]);

/*
 * The same as `how` says: for how long to wait, and with which lease.
 *
 *   how       see lk_how_t; NULL: as long as it takes. Its owner is NULL: the permit is
 *             nobody's
 *   id        as lk_sem_acquireid()
 *
 * Returns     as lk_sem_acquireid(), and EINVAL: how
 * Threads     as lk_sem_acquireid()
 * Round trips as lk_sem_acquireid()
 */
LK_API LK_MUST_CHECK int lk_sem_acquireidwith(lk_sem_t *s, const lk_how_t *how, char id[LK_PERMIT_ID]);

/*
 * Give a permit back by its id, from any thread or process. A client in another
 * process that renews it finds out at its next renewal (LK_REASON_RELEASED).
 *
 * Returns     0          given back
 *             EPERM      there is no such permit: it was given back, or ended more
 *                        than ten minutes ago
 *             ESTALE     it had ended with its lease
 *             EINVAL     no id of a permit
 *             ENOTSUP    s is not leased
 *             ENOTCONN EIO  as lk_sem_release() for one of this client; for others
 *                        nothing was done, or it is unknown
 *             EPROTO EACCES ECANCELED ENOMEM  refused
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API int lk_sem_releaseid(lk_sem_t *s, const char *id);

/*
 * How long the permit with that id is good for if no renewal follows. Of one that this
 * client took, the library's promise stands while this is above zero; of any other it is
 * what the server says.
 *
 *   ms        written on success only; at least 1
 *
 * Returns     0
 *             EPERM      there is no such permit: it was given back, or ended more
 *                        than ten minutes ago
 *             ESTALE     its lease ended
 *             EINVAL     no id of a permit, or ms is NULL
 *             ENOTSUP    s is not leased
 *             ENOTCONN EIO EPROTO EACCES ECANCELED  not known
 * Threads     any; takes one command timeout at most
 * Round trips 0 if this client took it, else 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_remainingid(lk_sem_t *s, const char *id, int64_t *ms);

/*
 * Ask the server whether the permit with that id stands, from any process.
 *
 * Returns     0          it does
 *             EPERM ESTALE EINVAL ENOTSUP  as lk_sem_remainingid()
 *             ENOTCONN EIO EPROTO EACCES ECANCELED  not known; nothing changed
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_checkid(lk_sem_t *s, const char *id);

/*
 * Give the permit with that id a lease of `lease_ms` from now on.
 *
 * One that this client took is renewed with that length from then on, unless it is
 * fixed, and max_hold_ms still caps it. Of any other the lease is only ever made longer,
 * as the client that took it relies on what it has; its renewals go on with the length
 * that they had. So it is for a permit whose process may have ended.
 *
 *   lease_ms  milliseconds; at least 100, at most a day
 *
 * Returns     0          the lease is set; of a permit of another client, it lasts as
 *                        long at least
 *             EINVAL     no id of a permit, or lease_ms is out of range
 *             EPERM ESTALE ENOTSUP  as lk_sem_remainingid()
 *             ENOTCONN   nothing was done; of one that this client took also as
 *                        lk_sem_extend()
 *             EIO        sent, answer lost: as lk_sem_extend(); of a permit of another
 *                        client it is unknown whether it was made longer
 *             EPROTO EACCES ECANCELED  refused
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_extendid(lk_sem_t *s, const char *id, int64_t lease_ms);

/*
 * The fencing token of this thread's oldest leased permit: larger than those of all
 * permits of this name that were taken before it. A resource that remembers with which
 * tokens a permit's holder came can refuse one whose lease was lost. See lk_mutex_token().
 *
 *   token     written on success only
 *
 * Returns     0, EPERM (this thread holds none), ESTALE (lost), EINVAL, ECANCELED,
 *             ENOTSUP (s is not leased)
 * Threads     any; each sees its own
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_sem_token(lk_sem_t *s, uint64_t *token);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_sem_token(); EINVAL also for an owner of another client
 * Threads     as lk_mutex_unlockby()
 * Round trips as lk_sem_token()
 */
LK_API LK_SHOULD_CHECK int lk_sem_tokenby(lk_sem_t *s, lk_owner_t *owner, uint64_t *token);

/*
 * The same of a permit with an id, for any thread of the client that took it.
 *
 * Returns     as lk_sem_token(), and
 *             EPERM      this client has no such permit
 * Threads     any
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_sem_tokenid(lk_sem_t *s, const char *id, uint64_t *token);

typedef struct lk_seminfo {
    size_t size;       /* sizeof(lk_seminfo_t); see LK_SEMINFO_INIT */
    int64_t available; /* free permits; negative: as many have to come back first */
    unsigned held;     /* leased: held ones; counting: granted to waiters that did not notice yet */
    unsigned total;    /* leased: free and held ones; counting: as lk_sem_setpermits() has it */
    unsigned waiters;  /* queued in Redis */
    int exists;        /* 0: there is none; the numbers are those that its first use would make */
} lk_seminfo_t;

/* clang-format off */
#define LK_SEMINFO_INIT { sizeof(lk_seminfo_t), 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * Look at `s` on the server.
 *
 *   info      its size set by LK_SEMINFO_INIT; the rest written on success only
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_sem_info(lk_sem_t *s, lk_seminfo_t *info);

/*
 * Who waits for permits of `s`, the next one first, each with LK_WANTS_PERMITS and how
 * many it asked for: a waiter's place is its index. The id of a permit that a waiter is
 * to get (lk_sem_acquireid()) is left out, as who knows it may give the permit back.
 * Redisson's clients do not queue.
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
LK_API LK_SHOULD_CHECK int lk_sem_queue(lk_sem_t *s, lk_waiter_t *waiters, size_t stride, unsigned capacity,
                                        unsigned *count);

#ifdef __cplusplus
}
#endif

#endif
