/* SPDX-License-Identifier: MIT */
/*
 * api.h - what every public header stands on: export marks, words for codes,
 * log, memory that the library gave out
 */
#ifndef LATCHKEY_API_H
#define LATCHKEY_API_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/*
 * The compiler warns about an ignored code. LK_MUST_CHECK marks the calls after which a program goes on as if it held
 * something, had waited or had an object: they acquire, wait, open or initialize. It warns in C11 and C++11, too, where
 * GCC does so in spite of `(void)`: `if (lk_mutex_trylock(&m) != 0) {}` says that a failure does not matter.
 * LK_SHOULD_CHECK marks all other calls with a code that matters. It warns where the language has [[nodiscard]]
 * (C++17, C23), and `(void)` in front of the call turns the warning off.
 */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202000L)
#define LK_MUST_CHECK [[nodiscard]]
#define LK_SHOULD_CHECK [[nodiscard]]
#elif defined(__GNUC__)
#define LK_MUST_CHECK __attribute__((warn_unused_result))
#define LK_SHOULD_CHECK
#else
#define LK_MUST_CHECK
#define LK_SHOULD_CHECK
#endif

#if defined(__GNUC__) && (defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202000L))
#define LK_API [[gnu::visibility("default")]] /* in one order with [[nodiscard]] */
#elif defined(__GNUC__)
#define LK_API __attribute__((visibility("default")))
#else
#define LK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* As a relative time: wait as long as it takes. */
#define LK_FOREVER INT64_C(-1)

/* Longest name of an object, in bytes, with the client's prefix. */
#define LK_NAME_MAX 512

/*
 * Structs grow. One that the library reads or writes begins with its size, which its
 * LK_..._INIT sets to what it was when the program was compiled; later versions add
 * fields at the end. A shorter one than the library's is read as if the rest were
 * zero, and written without the rest. Of a longer one the rest must be zero where the
 * library reads it (EINVAL: it would be asked for what it cannot do), and is made
 * zero where it writes. A size of 0, or below that of the first version, is EINVAL.
 */

/* What a waiter in a queue wants. */
enum {
    LK_WANTS_LOCK = 1,   /* a mutex */
    LK_WANTS_READ = 2,   /* a read-write lock */
    LK_WANTS_WRITE = 3,  /* likewise */
    LK_WANTS_PERMITS = 4 /* `n` permits of a semaphore */
};

/* A waiter, as an element of an array: its size is the array's stride. */
typedef struct lk_waiter {
    char id[160]; /* its owner id: <client id>:<owner>:<acquisition>, and what its kind adds; cut to fit */
    int wants;    /* LK_WANTS_... */
    unsigned n;   /* how many of them; 1 but for permits */
} lk_waiter_t;

/*
 * Words for a code: what it means everywhere in this library.
 *
 *   code      what a function returned; 0 and unknown codes have words as well
 *
 * Returns     a constant string, never NULL
 * Threads     any
 */
LK_API const char *lk_strerror(int code);

/*
 * Words for the calling thread's last failure: what was asked, of which name or
 * server, what the matter is and, where that helps, what to do about it. Never
 * holds a password.
 *
 * Returns     a string that stays as it is until this thread's next failing call;
 *             "" before the first. Never NULL. Not to be freed.
 * Threads     any; each has its own
 */
LK_API const char *lk_errortext(void);

/*
 * When the calling thread's last failure is settled. A request without an answer may
 * have taken effect, or may still; the library takes back what it can, and the rest
 * ends with its lease. This tells the latest moment at which something of the failed
 * call may be at the server: a hold that nobody has, a release or a count that is
 * still on its way. A place in a queue that was left behind is taken out as soon as a
 * server is reached. Until then it may be granted the object for a few seconds, if
 * other threads of this client wait there.
 *
 * Returns     milliseconds from now; 0: nothing is left, or can come any more, as after
 *             every code that says "not held" or "unchanged". More than 0 after EIO,
 *             and after other codes that may come when a request was under way: EPROTO
 *             and EACCES of a lock, any code of an unlock. Permits of a counting
 *             semaphore and counts of a latch have no lease: if no server is reached
 *             until then, the request may be done or not, for ever
 * Threads     any; each has its own
 * Round trips 0
 */
LK_API int64_t lk_errorsettles(void);

/*
 * How long the lease lasts that was in the way of the calling thread's last failure:
 * after EBUSY, ETIMEDOUT, or EAGAIN of a try for a permit. It is what the server's last
 * refusal said, less the time since then. A holder that renews its lease has it for
 * longer; one that unlocks leaves earlier.
 *
 * Returns     milliseconds from now: of a read-write lock until the last of its present
 *             leases ends, of a leased semaphore until the next one does. 0: it should be
 *             over by now. -1: not known, as after every other failure, for what has
 *             no lease (a mutex that Java holds without one, a counting semaphore), or
 *             where the server was not asked and no thread of this process holds it
 * Threads     any; each has its own
 * Round trips 0
 */
LK_API int64_t lk_errorleft(void);

/*
 * The version of the library that runs, as "0.1.0".
 *
 * Threads     any
 */
LK_API const char *lk_version(void);

/*
 * Give back memory that a function of this library handed out and said so.
 *
 *   memory    may be NULL
 *
 * Threads     any
 */
LK_API void lk_free(void *memory);

enum {
    LK_LOG_ERROR = 1,   /* something the caller was told, too */
    LK_LOG_WARNING = 2, /* a lost lease, an unsafe server, a long wait */
    LK_LOG_INFO = 3,    /* connected, reconnected */
    LK_LOG_DEBUG = 4    /* each step of the connection */
};

/*
 * Takes one line of log, without a newline and without secrets.
 *
 *   arg       as given to lk_addlog()
 *
 * Runs on     the calling thread when a call is over, for what it failed at; for all
 *             else a thread that does nothing but log. No lock of the library is
 *             held. While it blocks leases are renewed, waits end at their limits
 *             and clients close; up to 256 lines wait for it, and how many more there
 *             were it is told in a line of their own. May be called by several threads
 *             at once. Returns, and calls nothing of the library but lk_addlog() and
 *             lk_removelog().
 */
typedef void (*lk_log_t)(void *arg, int level, const char *line);

/*
 * Send log lines to `log`, too, from now on: each line goes to every function that was
 * added and wants its level. Until the first is added warnings and errors go to stderr;
 * the environment variable LATCHKEY_LOG (error, warning, info, debug, off), read once,
 * moves that threshold. A fork's child has the functions of its parent.
 *
 *   log       NULL: one that says nothing, so that nothing goes to stderr any more
 *   level     the least important level wanted, LK_LOG_ERROR..LK_LOG_DEBUG
 *   arg       handed to `log`
 *   handle    receives what lk_removelog() takes, before the first line; never 0, and
 *             never given out again. NULL: it is not to be removed
 *
 * Returns     0, EINVAL for an unknown level, ENOMEM: nothing changed
 * Threads     any, also a log function
 * Frees       lk_removelog()
 */
LK_API int lk_addlog(lk_log_t log, int level, void *arg, uint64_t *handle);

/*
 * Send no more lines to a function. Whatever this returns, no thread is running it then
 * with what it was added with, and none will: its code and memory may go. Called from
 * within a log function it waits for none of them.
 *
 *   handle    from lk_addlog(). When the last function is removed, lines go nowhere
 *
 * Returns     0, ENOENT: there is none of this handle, or it was removed before
 * Threads     any; waits for calls of the function to end, so the caller must not have
 *             what these wait for
 */
LK_API int lk_removelog(uint64_t handle);

#ifdef __cplusplus
}
#endif

#endif
