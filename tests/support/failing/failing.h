/* SPDX-License-Identifier: MIT */
/*
 * failing.h - makes the n-th allocation or system call of this process fail, and tries every n
 *
 * Which    calls of the library, in whatever thread, and allocations of hiredis and jansson too. The C library's
 *          own are left alone: of getaddrinfo() or pthread_create() the call as a whole fails. What cannot fail
 *          on Linux is not made to: clock_gettime(), writing an eventfd, making a mutex or a condition variable.
 * How      this part of the program defines malloc(), send() and so on in front of the C library. A test asks
 *          for it by a line `support: failing` in its first comment.
 * Replay   a failure prints its name and where the failed call was made. LATCHKEY_FAILING=<name> runs that one
 *          alone: LATCHKEY_FAILING=lock/call/once/2/17 is the 17th call that can fail in the third way.
 * Threads  failing_begin() and failing_end() are for the thread that runs the test.
 */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include "subject.h"

#include <stdatomic.h>

enum failing { FAIL_ALLOCATION, FAIL_CALL };

/* What fails between failing_begin() and failing_end(). */
struct failure {
    enum failing kind;
    int way;      /* of a call with several ways to fail: which; calls with fewer are not counted */
    int nth;      /* 1: the next one */
    bool lasting; /* and all after it */
};

/*
 * Options of clients: times longer than a busy machine needs for an answer, or short ones where a system call
 * fails again and again and each answer is waited for in vain.
 */
#define FAILING_LEASE_MS 3000
#define FAILING_LONG_MS (FAILING_LEASE_MS + 3000)
const char *failing_options(void);

/* As world_run(); a test that ends badly says what failed. */
#define failing_run(...) world_run_with(failing_teardown, __VA_ARGS__)
int failing_teardown(void **state);

/*
 * Run `scenario` with the first allocation or call failing, the second, ... until none fails, once each, then with
 * that one and all later ones. It opens what it needs, calls failing_begin(), uses the library by tried(), calls
 * failing_end(), uses it again with nothing failing, and closes all. After each run nothing may be left: no
 * memory, no descriptor, no thread, no key; where the outcome was unknown, no key after FAILING_LEASE_MS.
 */
void each_failure(struct world *w, const char *name, enum failing kind, void (*scenario)(struct world *w));

/* From now on one of `every` so many is tried, other ones for each way to fail. With LATCHKEY_TEST_FULL set all are, with
 * LATCHKEY_TEST_PART, a number from 0 to 15, that sixteenth of these. */
void failing_sparsely(int every);

/*
 * Run `scenarios`, which calls each_failure(), for each way to fail in a process and a world of its own, all at
 * once: most of the time they wait. Only asserts for children may be used there.
 */
void each_way(enum failing kind, void (*scenarios)(struct world *w, enum failing kind));

/* A whole program of that: allocations, then calls. What its main() returns. */
int all_failures(void (*scenarios)(struct world *w, enum failing kind));

/* As each_failure() without a world and without looking at what is left: `scenario` sees to that. */
void each_failure_of(const char *name, enum failing kind, void (*scenario)(void *arg), void *arg);

void failing_begin(void);
void failing_end(void);
bool failing_happened(void); /* something was made to fail since failing_begin() */

/* By hand: what the next failing_begin() is to do. */
void failing_plan(const struct failure *failure);

/* Nothing fails for this thread while `expression` is evaluated. */
#define spared(expression) (failing_spare(1), failing_spare_end(expression))
void failing_spare(int more);
int64_t failing_spare_end(int64_t value);

/*
 * The call returns `expected` or, if something failed by then, one of the other codes; of these only ENOMEM where
 * allocations fail. Where calls fail again and again waits are short, and nothing is expected. On a busy machine an answer
 * may be waited for in vain, too. errno stays as it is. What is unknown or goes on in the background excuses a key for a
 * while.
 */
#define tried(expected, call, ...)                                                                                     \
    (failing_clock(), errno = ERRNO_MARK,                                                                              \
     failing_judge((call), (const int[]){ (expected), ##__VA_ARGS__, -1 }, #call, __FILE__, __LINE__))
void failing_clock(void);
int failing_judge(int code, const int allowed[], const char *call, const char *file, int line);

/* Such codes: nothing was sent, or nobody knows. */
#define UNREACHABLE ENOTCONN, EIO

void failing_tell(bool happened); /* in a child of this process, instead */

/* A limit for waits: longer than they take, or short where a system call fails again and again. */
int64_t failing_patience_ms(void);

/* Somebody else, spared, who has something while the test wants it: `give` comes `hold_ms` after `take`. */
struct rival {
    struct worker worker;
    int (*take)(void), (*give)(void);
    int64_t hold_ms;
    atomic_bool holds;
};

void rival_start(struct rival *rival, int (*take)(void), int (*give)(void), int64_t hold_ms); /* returns when held */
void rival_end(struct rival *rival);

/*
 * A wait while somebody else has the object: for a moment, or (`in_vain`) for longer than the wait may last. As a
 * scenario of each_failure(), one after the other, up to one without a name.
 */
struct wait {
    const char *name;
    const char *mine, *theirs; /* kinds of subjects */
    bool in_vain;
};
void each_failure_of_waits(struct world *w, enum failing kind, const struct wait *waits);

/* Blocks in use that were asked for by the library, hiredis, jansson or the test itself. */
long failing_blocks(void);
long failing_bytes(void);              /* how much memory these are */
long failing_serial(void);             /* how many there were so far */
void failing_print_blocks(long since); /* where those after them, and still in use, were asked for */

/* Has this text been freed, by the library, as it was? */
void failing_secret(const char *secret);
bool failing_spilled(void);

/* --- between the parts of this folder ---------------------------------------------------------------- */

/* Is this code of the program itself, or of a library that it stands on? */
enum { CODE_ELSEWHERE, CODE_HERE, CODE_BELOW };
int failing_code(const void *caller);

/* Count a call; true: it is to fail. */
bool failing_now(enum failing kind, const char *name);
int failing_way(void);
bool failing_lasts(void);

/* How often a scenario was run so far. */
int failing_runs(void);

/* May what failed leave something for as long as a lease? */
bool failing_uncertain(void);

#endif
