/* SPDX-License-Identifier: MIT */
/*
 * once.h - work that is done once by all processes that know its name
 *
 * Use     Whoever comes first runs it, and says that it is complete; all others wait for
 *         that, and go on. A migration, say, or the filling of a cache.
 * Lease   A runner that stops renewing loses the run, and the next one begins anew: at
 *         most one run completes. The late runner's lk_once_end() then says ESTALE;
 *         its fencing token lets what it writes to refuse it before.
 * Memory  That it is done stays in Redis, with its result, until lk_once_reset().
 * Unlike  pthread_once(), which is about the memory of one process, and cannot fail.
 */
#ifndef LATCHKEY_ONCE_H
#define LATCHKEY_ONCE_H

#include <latchkey/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LK_ONCE_RESULT_MAX 4096 /* bytes of a result, but for its NUL */

/* How a run behaves, of this lk_once_t alone. All zero but the size is the default of everything. */
typedef struct lk_onceattr {
    size_t size;      /* sizeof(lk_onceattr_t); see LK_ONCEATTR_INIT */
    int64_t lease_ms; /* of a run begun by this one; 0: the client's; at least 100 */
    int lk_room[2];   /* zero */
} lk_onceattr_t;

/* clang-format off */
#define LK_ONCEATTR_INIT { sizeof(lk_onceattr_t), 0, { 0, 0 } }
/* clang-format on */

/*
 * What is to be done once. For example:
 *
 *     static lk_once_t migrated = LK_ONCE_INITIALIZER("migrated-to-7");
 *
 *     int migrate_once(int (*migrate)(uint64_t token))
 *     {
 *         uint64_t token;
 *         int rc = lk_once_begin(&migrated, 60000);
 *         if (rc == EALREADY)
 *             return 0; // done, by this process or another one
 *         if (rc != 0)
 *             return rc; // not known; lk_errortext() says why
 *         if (lk_once_token(&migrated, &token) == 0 && migrate(token) == 0)
 *             return lk_once_end(&migrated, "version 7");
 *         return lk_once_fail(&migrated); // the next one tries
 *     }
 */
typedef struct lk_once {
    const char *lk_name;          /* copied by lk_once_init(); a literal in a static initialiser */
    const lk_onceattr_t *lk_attr; /* NULL: defaults; read on first use */
    void *lk_impl;                /* private: NULL until first use */
    uintptr_t lk_process;         /* private: whose lk_impl is; checked before it is followed */
    uintptr_t lk_spare[4];        /* private: room to grow within one ABI */
} lk_once_t;

/* clang-format off */
/*
 * Fit for file scope; uses the default client from the first call on. A call that opens it, or
 * finds another thread doing so, takes up to connect_timeout more, whatever its own limit.
 */
#define LK_ONCE_INITIALIZER(name) { (name), NULL, NULL, 0, { 0, 0, 0, 0 } }

/* The same with attributes, which must stay as they are until the first call. */
#define LK_ONCE_INITIALIZER_ATTR(name, attr) { (name), (attr), NULL, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/*
 * Make `o` the work of that name. Sends nothing, starts no thread.
 *
 *   o         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied; rules as for lk_mutex_init()
 *   attr      NULL: defaults; copied
 *
 * Returns     0          usable
 *             EINVAL     a name or attributes against the rules
 *             ECANCELED  the client is closed, or belongs to another process
 *             EACCES     access rules keep the user from a command that it needs;
 *                        of the default client: so says the first use
 *             ENOMEM     o is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_once_destroy()
 */
LK_API LK_MUST_CHECK int lk_once_init(lk_once_t *o, lk_client_t *client, const char *name,
                                      const lk_onceattr_t *attr);

/*
 * Give back what `o` has in this process. Nothing happens in Redis.
 *
 *   o         no thread begins a call with it any more. Afterwards as if never
 *             initialised (a static one may be used again)
 *
 * Returns     0
 *             EBUSY      a thread of this process runs it or waits for it through this
 *                        client; unchanged
 *             EINVAL     o is NULL
 * Threads     any
 * Round trips 0
 */
LK_API int lk_once_destroy(lk_once_t *o);

/*
 * Begin to run it, unless it is done; while another one runs it, wait. After 0 the
 * calling thread runs it, and ends that by lk_once_end() or lk_once_fail(). If the thread
 * ends before, or its process dies, the next one is let in when the lease is over.
 *
 *   timeout_ms  milliseconds to wait for another one; 0 looks once, LK_FOREVER waits on;
 *               other negatives are EINVAL
 *
 * Returns     0          run it
 *             EALREADY   it is done: a run completed
 *             ETIMEDOUT  somebody else runs it still; also for 0
 *             EDEADLK    this thread runs it already
 *             ESTALE     this thread ran it and lost its lease, and has ended it by neither
 *                        lk_once_end() nor lk_once_fail()
 *             ECANCELED  the client was closed, or belongs to another process
 *             ENOTCONN   no server could be asked within the time
 *             EIO        with 0 for a limit: sent, answer lost; count it as not begun: a run
 *                        begun unseen ends by itself
 *             EPROTO EACCES ENOSPC EINVAL ENOMEM  not begun
 * Threads     any; blocks only the caller; not for signal handlers; signals do not end the
 *             wait. A cancellation point while it sleeps: nothing is left behind. Returns by
 *             the limit plus one command timeout, and one more if it could be begun at the limit
 * Round trips 1 if it is done or nobody runs it; otherwise 3 or 4, and then one for each
 *             message and one a poll ceiling (URL: poll), for all threads of the client
 *             together
 */
LK_API LK_MUST_CHECK int lk_once_begin(lk_once_t *o, int64_t timeout_ms);

/*
 * The same until `abstime` on CLOCK_REALTIME. The moment is converted once, on entry:
 * setting the clock meanwhile has no effect.
 *
 *   abstime   EINVAL if its nanoseconds are not in 0..999999999; a time that has
 *             passed looks once
 *
 * Returns     as lk_once_begin()
 * Threads     as lk_once_begin()
 * Round trips as lk_once_begin()
 */
LK_API LK_MUST_CHECK int lk_once_timedbegin(lk_once_t *o, const struct timespec *abstime);

/*
 * The same on another clock.
 *
 *   clock     CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME; EINVAL otherwise
 *
 * Returns     as lk_once_begin()
 * Threads     as lk_once_begin()
 * Round trips as lk_once_begin()
 */
LK_API LK_MUST_CHECK int lk_once_clockbegin(lk_once_t *o, clockid_t clock, const struct timespec *abstime);

/*
 * The same as `how` says: for how long to wait, with which lease, and for which owner. The
 * run of an owner ends with no thread: it is renewed until lk_once_endby() or
 * lk_once_failby(), or until the client is closed.
 *
 *   how       see lk_how_t; NULL: as lk_once_begin() that waits on. A fixed lease is not
 *             renewed: at its end the next one is let in
 *
 * Returns     as lk_once_begin(): ETIMEDOUT also where another call of the owner was
 *             beginning it all the time. "This thread" is the owner
 *             EINVAL     how, or an owner of another client
 *             ECANCELED  also: the owner belongs to the parent of a fork
 * Threads     as lk_once_begin()
 * Round trips as lk_once_begin()
 */
LK_API LK_MUST_CHECK int lk_once_beginwith(lk_once_t *o, const lk_how_t *how);

/*
 * Say that the run of this thread is complete. It is done from now on, for all, and who
 * waits is told.
 *
 *   result    copied; NULL: "". At most LK_ONCE_RESULT_MAX bytes
 *
 * Returns     0          done
 *             ESTALE     the lease was lost before, or the run taken back: this run is not the
 *                        one that completed, and another one may run it or have done so
 *             EPERM      this thread does not run it, or the process was forked since
 *             EINVAL     the result is too long; it runs on
 *             ENOMEM     it runs on
 *             EIO        sent, answer lost: the library goes on trying until the lease ends,
 *                        and then it is done, or the next one runs it
 *             ENOTCONN EACCES ENOSPC ECANCELED  likewise, and nothing was sent or done yet
 *             EPROTO     likewise
 *             After all but EINVAL and ENOMEM this thread does not run it any more
 * Threads     the one that runs it; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_end(lk_once_t *o, const char *result);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_once_end(), and
 *             EINVAL     also: an owner of another client; unchanged
 *             EPERM      also: the owner belongs to the parent of a fork
 * Threads     any; takes one command timeout at most, and as long for each other call of
 *             that owner on `o` that came before; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_endby(lk_once_t *o, lk_owner_t *owner, const char *result);

/*
 * Give the run of this thread up, as if it had not begun. The next one begins: who waits
 * is told.
 *
 * Returns     0          this thread runs it no more
 *             ESTALE     the lease was lost before
 *             EPERM      this thread does not run it, or the process was forked since
 *             ENOTCONN EIO EPROTO EACCES ECANCELED  this thread runs it no more; the library
 *                        goes on giving it up until the lease ends
 *             EINVAL     o is NULL
 * Threads     the one that runs it; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API int lk_once_fail(lk_once_t *o);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_once_fail(), and
 *             EINVAL     also: an owner of another client; unchanged
 *             EPERM      also: the owner belongs to the parent of a fork
 * Threads     as lk_once_endby()
 * Round trips 1
 */
LK_API int lk_once_failby(lk_once_t *o, lk_owner_t *owner);

/*
 * Have it done: run `fn`, unless it is done; while another one runs it, wait. If `fn`
 * returns 0 it is done, else it is given up and the next one begins; likewise if the thread
 * is cancelled in `fn`, or leaves by pthread_exit().
 *
 *   fn        called at most once, by this thread, whose run it is: for work that goes on
 *             on other threads there is lk_once_beginwith(). It must neither throw nor jump out
 *   arg       passed on to it
 *
 * Returns     0          it is done, by this call or before
 *             what fn returns, if that is not 0: given up
 *             else       as lk_once_begin() or, after `fn`, as lk_once_end()
 * Threads     as lk_once_begin()
 * Round trips 2 if `fn` is called, else as lk_once_begin()
 */
LK_API LK_MUST_CHECK int lk_once_call(lk_once_t *o, int (*fn)(void *arg), void *arg);

/*
 * What lk_once_end() was given.
 *
 *   text      written on success only; "" if it was given none
 *
 * Returns     0          it is done
 *             ENOENT     it is not done
 *             EINVAL ENOTCONN EIO EPROTO EACCES ECANCELED ENOMEM  not known
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 * Frees       lk_free() the text
 */
LK_API LK_SHOULD_CHECK int lk_once_result(lk_once_t *o, char **text);

/*
 * Forget that it is done: the next one runs it again, with a larger token.
 *
 * Returns     0          forgotten
 *             ENOENT     it was not done; nothing was done
 *             ENOTCONN   no server would serve it, nothing was done
 *             EIO        sent, answer lost: it may have been forgotten
 *             EPROTO EACCES ENOSPC ECANCELED EINVAL ENOMEM  nothing was done
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_reset(lk_once_t *o);

/*
 * The fencing token of this thread's run: larger than that of every earlier run of
 * this name, as lk_mutex_token() says.
 *
 *   token     written on success only
 *
 * Returns     0, EPERM (not run by this thread), ESTALE (lost), EINVAL, ECANCELED
 * Threads     any; each sees its own run
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_once_token(lk_once_t *o, uint64_t *token);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_once_token(), and EINVAL: an owner of another client
 * Threads     as lk_once_endby()
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_once_tokenby(lk_once_t *o, lk_owner_t *owner, uint64_t *token);

/*
 * How long this thread's lease is good without another renewal.
 *
 *   ms        written on success only
 *
 * Returns     as lk_once_token()
 * Threads     as lk_once_token()
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_once_remaining(lk_once_t *o, int64_t *ms);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_once_remaining(), and EINVAL: an owner of another client
 * Threads     as lk_once_endby()
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_once_remainingby(lk_once_t *o, lk_owner_t *owner, int64_t *ms);

/*
 * Ask the server whether this thread runs it.
 *
 * Returns     0          it does
 *             EPERM      not run by this thread
 *             ESTALE     the lease was lost
 *             ENOTCONN EIO EPROTO EACCES ECANCELED EINVAL  not known
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_check(lk_once_t *o);

/*
 * The same for an owner, from any thread.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_once_check(), and EINVAL: an owner of another client
 * Threads     as lk_once_endby()
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_checkby(lk_once_t *o, lk_owner_t *owner);

typedef struct lk_onceinfo {
    size_t size;          /* sizeof(lk_onceinfo_t); see LK_ONCEINFO_INIT */
    int done;             /* 1: a run completed */
    int running;          /* 1: somebody runs it */
    int64_t remaining_ms; /* of the runner's lease on the server */
    uint64_t token;       /* of the run that there is, or that completed */
    char runner[160];     /* whose run that is or was: <client id>:<owner>:<number>; "" if there is none */
} lk_onceinfo_t;

/* clang-format off */
#define LK_ONCEINFO_INIT { sizeof(lk_onceinfo_t), 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Look at `o` on the server.
 *
 *   info      its size set by LK_ONCEINFO_INIT; the rest written on success only.
 *             Neither done nor running: the next one begins
 *
 * Returns     0, EINVAL, ENOTCONN, EIO, EPROTO, EACCES, ECANCELED, ENOMEM
 * Threads     any; takes one command timeout at most; no cancellation point
 * Round trips 1
 */
LK_API LK_SHOULD_CHECK int lk_once_info(lk_once_t *o, lk_onceinfo_t *info);

#ifdef __cplusplus
}
#endif

#endif
