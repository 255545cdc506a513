/* SPDX-License-Identifier: MIT */
/*
 * base.h - the ground floor: time, randomness, memory, words, log, containers,
 * parking. Nothing here knows Redis. Mutexes and their order are in mu.h.
 */
#ifndef LK__BASE_H
#define LK__BASE_H

#include "base/mu.h"

#include <latchkey/api.h>
#include <latchkey/version.h>

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#define LK__CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define LK__PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Of the lists of list.c. */
struct lk__link {
    struct lk__link *next, *prev; /* both NULL: in no list */
};

/* --- clock.c, api.c: one clock for everything that is counted here ------------------ */

/* Microseconds on CLOCK_BOOTTIME, which counts suspended time too: no lease outlives a suspend unseen. */
int64_t lk__now_us(void);
int64_t lk__clock_us(clockid_t clock); /* of another one that the system always has */

/* Later than every moment. */
#define LK__NEVER INT64_MAX

static inline int64_t lk__lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t lk__greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* `a` + `b`, neither negative, or LK__NEVER where that overflows. */
int64_t lk__later(int64_t a_us, int64_t b_us);

/*
 * The moment lk__now_us() will show at `abstime` of `clock` (REALTIME, MONOTONIC or BOOTTIME), as
 * these clocks stand now. A moment in the past stays in the past. EINVAL for other clocks and for
 * nanoseconds out of range.
 */
int lk__deadline_at(clockid_t clock, const struct timespec *abstime, int64_t *deadline_us);

/* The moment `timeout_ms` from now; LK_FOREVER gives LK__NEVER; EINVAL for other negatives. */
int lk__deadline_in(int64_t timeout_ms, int64_t *deadline_us);

/* Whole milliseconds until `moment_us`, rounded up, at most INT_MAX; 0 when it has passed: for poll(). */
int lk__ms_until(int64_t moment_us, int64_t now_us);

/* --- random.c --------------------------------------------------------------------------------- */

/* 128 random bits as 32 lower-case hex digits and a NUL. 0 or ENOMEM (the kernel has none to give). */
#define LK__ID_LENGTH 32
int lk__random_id(char id[LK__ID_LENGTH + 1]);

/* For jitter, not for secrets: a number in 0..bound-1, 0 for a bound of 0. Any thread, no lock. */
uint64_t lk__random_below(uint64_t bound);

/* The first pause between two questions of a waiter that no message reaches. */
enum { LK__BACKOFF_MIN_MS = 10 };

/* The pause after one of `ms`, 0 if there was none: it doubles from `least` to `longest`. */
static inline int64_t lk__backoff(int64_t ms, int64_t least, int64_t longest)
{
    ms = ms < least ? least : 2 * ms;
    return ms < longest ? ms : longest;
}

/* --- process.c: which process and which thread is this? --------------------------------------- */

/*
 * A number that no other process has, nor one forked from this; never 0, always even, as a handle keeps
 * a mark of its own in the lowest bit.
 */
uintptr_t lk__process(void);

/* The number of forks so far, in this process and its ancestors; and that number when the process was made, told once. */
uint64_t lk__forks(void);
uint64_t lk__forks_atbirth(void);

/* A number that no thread and no other owner of this process has, or will have. */
uint64_t lk__owner_fresh(void);

/* What the library knows of the calling thread; made on the thread's first call, freed when the thread ends. */
struct lk__thread {
    uint64_t owner;    /* implicit owner: never used again by another thread of this process */
    uintptr_t process; /* a fork's child is another owner with no holds */
    unsigned holds;    /* held by the implicit owner, in all clients */
    unsigned rounds;   /* rounds of destructors of thread-specific data that have run, at the thread's end */
    char errortext[384];
    int64_t others_until_us; /* the lease that the last failed call met ends by then; 0: not known */
    int64_t settled_us;      /* nothing of the last failed call is left at the server by then; 0: nothing is now */
    unsigned inside;         /* public calls under way: one, and those that it is made of */
    bool unlogged;           /* the log does not know errortext yet */
    _Atomic(const void *) follows; /* what the thread found in a pointer that others replace; NULL: it follows none */
    struct lk__link link;          /* process.c */
};

/* Does a thread follow that? Of what no pointer leads to any more: whether it has to stay. */
bool lk__thread_follows(const void *what);

/* NULL when out of memory. */
struct lk__thread *lk__thread_self(void);

/* Like lk__thread_self(), but never makes one for a thread that has none. */
struct lk__thread *lk__thread_known(void);

/* Call `exited(owner)` on each thread that ends with holds > 0. Set once, by the client module. */
void lk__thread_onexit(void (*exited)(uint64_t owner));

/*
 * Call `ended` on each thread that ends, those of the library as well: in each round of destructors, and after the last thing
 * that the library does there. Set once, by what keeps something for a thread.
 */
void lk__thread_onend(void (*ended)(void));

/* Call `last` when the last user ended while helpers run. Set once, by last_thread.c. */
void lk__thread_onlast(void (*last)(void));
int lk__thread_users(void);   /* threads of the program that know the library */
int lk__thread_helpers(void); /* threads of the library */

/*
 * Start a thread of the library: all signals blocked, `name` (15 bytes) for debuggers. ENOMEM when
 * the system has no more threads to give.
 */
int lk__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);
/* The same without an error text: 0 or the system's error. */
int lk__thread_spawn(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* Is this a thread of the library, or one in the middle of a public call? It may hold locks then. */
bool lk__thread_isinside(void);

/* --- last_thread.c: a process ends with the last thread of the program --------------------------- */

/*
 * Have the process end with the last thread of the program: `end` is called when these are all over, before exit(0).
 * Set once, by the client module.
 */
void lk__process_onend(void (*end)(void));

/* --- error.c: words of the last failure ------------------------------------------------------- */

/*
 * Keep the words of this thread's failure and return `code`, so that `return lk__fail(...)` reads well. Under any
 * lock: the log has them when the public call is over.
 */
int lk__fail(int code, const char *format, ...) LK__PRINTF(2, 3);
void lk__log_failure(struct lk__thread *thread); /* now */

/* Add to lk__fail(): an effect of the failed call may still be at the server, unseen, until `settled_us`. */
void lk__error_settles(int64_t settled_us);
/* Add to lk__fail(): somebody else has it, whose lease ends by `until_us`, as far as is known; 0: not known. */
void lk__error_leaves(int64_t until_us);
/* Other words for the failure that the thread just had; all else that is known of it stays. */
int lk__error_reword(int code, const char *format, ...) LK__PRINTF(2, 3);

/* What the thread knows of its last failure: of a call that goes on after one, it is as before when that succeeds. */
struct lk__failure {
    char errortext[384];
    int64_t others_until_us, settled_us;
    bool unlogged;
};
void lk__failure_keep(struct lk__failure *failure);
void lk__failure_restore(const struct lk__failure *failure);

/* --- sinks.c: where lines go, functions of the user's ------------------------------------------- */

enum { LK__LINE_SIZE = 512 };

bool lk__sinks_want(int level);
/*
 * Hand a line to all that want it, between two calls of the library and under no lock. False: it is for stderr, which
 * takes nothing within the time (-1: any time).
 */
bool lk__sinks_write(int level, const char *text, int patience_ms);
bool lk__sinks_ishere(void); /* is the calling thread in one? */
/* As lk_addlog() and lk_removelog(), without an error text. */
int lk__sinks_add(lk_log_t log, int level, void *arg, uint64_t *handle);
int lk__sinks_remove(uint64_t handle);

/* --- log.c: lines on their way ------------------------------------------------------------------ */

/* Log a line if a sink wants that level. Any thread, under any lock: the line is written elsewhere. */
void lk__log(int level, const char *format, ...) LK__PRINTF(2, 3);

/* Lines of which there may be very many: some in a second are written. */
struct lk__linepause {
    _Atomic int64_t until_us; /* 0: none was written yet */
};
bool lk__linepause_over(struct lk__linepause *pause, int64_t now_us); /* true: the caller writes one now */

/* "3 s", "1500 ms", for a line. */
struct lk__timetext {
    char text[24];
};
struct lk__timetext lk__time_text(int64_t ms);

/* Wait until all lines are written, but not for long where a sink blocks. Not under a lock. */
void lk__log_flush(void);

/* Print one line; control characters, which a server's or a file's words may contain, become '?'. */
void lk__line_print(char *line, size_t size, const char *format, va_list args);

/* --- sized.c: public structs that begin with their size ------------------------------------------ */

/* How many bytes a struct has up to and with a member: those of the first version are the fewest that are taken. */
#define LK__THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/*
 * Copy a struct that the caller filled into `ours` of `known` bytes, which is zeroed. That of an older header is
 * shorter, and the rest stays zero; that of a newer one may say nothing more. `given` NULL: nothing is copied. 0, or
 * EINVAL for a size that no version has; `type` is what it is in C, as "lk_mutexattr_t".
 */
int lk__sized_read(void *ours, size_t known, const void *given, size_t least, const char *type);

/* Has a struct that is to be written a size? 0, or EINVAL, also for NULL; to be asked before anything is done. */
int lk__sized_check(const void *given, size_t least, const char *type);
/* Write one that was checked, whatever its size: without what it has no room for, and zero where ours has nothing. */
void lk__sized_write(void *given, const void *ours, size_t known);
/* The same for a struct that does not begin with its size, an element of an array of the caller's. */
void lk__sized_fill(void *given, size_t size, const void *ours, size_t known);

/* --- memory.c --------------------------------------------------------------------------------- */

/* Zeroed memory, or NULL. All of the library's own allocations come from here. */
void *lk__alloc(size_t size);
void *lk__realloc(void *memory, size_t size);
char *lk__strdup(const char *text);
void lk__free(void *memory); /* accepts NULL */
void lk__wipe(char *secret); /* overwrites a string and frees it; accepts NULL */

/* --- list.c: intrusive, circular, doubly linked ------------------------------------------------ */

void lk__list_init(struct lk__link *list);
bool lk__list_empty(const struct lk__link *list);
void lk__list_append(struct lk__link *list, struct lk__link *link);
void lk__list_remove(struct lk__link *link);                                              /* harmless when in no list */
struct lk__link *lk__list_first(const struct lk__link *list);                             /* NULL when empty */
struct lk__link *lk__list_last(const struct lk__link *list);                              /* likewise */
struct lk__link *lk__list_next(const struct lk__link *list, const struct lk__link *link); /* NULL at the end */
static inline bool lk__listed(const struct lk__link *link)
{
    return link->next != NULL;
}

/* --- heap.c: the earliest of many moments ------------------------------------------------------- */

struct lk__timer {
    int64_t due_us;
    struct lk__timer *child, *next; /* the first of those that come later; the next one of the same parent */
    struct lk__timer *previous;     /* the one before, or the parent; the first of all: itself; NULL: in no heap */
};

struct lk__heap {
    struct lk__timer *first; /* NULL: it is empty */
};

static inline bool lk__timer_isset(const struct lk__timer *timer)
{
    return timer->previous != NULL;
}

void lk__heap_set(struct lk__heap *heap, struct lk__timer *timer, int64_t due_us); /* inserts or moves */
void lk__heap_remove(struct lk__heap *heap, struct lk__timer *timer);              /* harmless when absent */
struct lk__timer *lk__heap_first(const struct lk__heap *heap);                     /* NULL when empty */

/* --- map.c: strings to things ------------------------------------------------------------------- */

struct lk__entry {
    struct lk__entry *next;
    const char *key; /* lives in what contains the entry */
    unsigned length; /* of names, channels and ids: all are short */
    int kind;
};

enum { LK__BUCKETS_FEW = 2 };

/* All zeroes: empty. It grows as it can; finding and removing need no memory, and inserting does not fail for want of it. */
struct lk__map {
    struct lk__entry *few[LK__BUCKETS_FEW];
    struct lk__entry **many; /* NULL: few serves */
    unsigned capacity;       /* buckets in many */
    unsigned count;
};

/* A kind and a name are one key: kinds never share an entry. */
struct lk__entry *lk__map_find(const struct lk__map *map, int kind, const char *key, size_t length);
void lk__map_insert(struct lk__map *map, struct lk__entry *entry);
void lk__map_remove(struct lk__map *map, struct lk__entry *entry); /* harmless when absent */
/* Calls `visit` for each entry, which may remove that one. */
void lk__map_each(struct lk__map *map, void (*visit)(struct lk__entry *entry, void *arg), void *arg);
void lk__map_free(struct lk__map *map); /* the entries are not touched; the map is empty then */

/* --- parker.c: where a thread sleeps until told --------------------------------------------------- */

/*
 * A wake-up given before the park ends it at once, as in java.util.concurrent's LockSupport. There are two
 * kinds, so that a connection can make a parked thread its reader without the caller of that thread noticing.
 * A wake-up is a hint: the thread looks again at what it waits for.
 *
 * A parker that is reading a connection for others sleeps in poll() instead; `wake_fd` is then the
 * eventfd that ends the poll.
 */
enum { LK__WOKEN = 1, LK__NUDGED = 2 };

struct lk__parker {
    struct lk__mu mu;
    unsigned signals;   /* under mu; LK__WOKEN, LK__NUDGED, not taken yet */
    unsigned promised;  /* under mu: how many wake-ups were noted ... */
    unsigned came;      /* its own thread's: ... and how many of them came */
    int wake_fd;        /* under mu; -1: not in a poll */
    bool interruptible; /* its own thread's: a signal handler ends a sleep */
    bool interrupted;   /* its own thread's: one ran while that slept */
    sem_t tick;         /* a wake-up */
};

void lk__parker_init(struct lk__parker *parker);
/* Nobody signals any more; waits for wake-ups that were noted and did not come yet. */
void lk__parker_destroy(struct lk__parker *parker);
void lk__parker_signal(struct lk__parker *parker, unsigned signal);
/*
 * The same in two steps: to note it, perhaps under a lock, and to wake the sleeper when the lock was left. The second one
 * must follow, without waiting for anybody, and whatever has become of the parker: it is not destroyed before. NULL:
 * there is nobody to be woken, and nothing to follow. What the sleeper waits for is set under the lock of the note, and the
 * sleeper takes that before it sleeps again: it may have found the note before, and the wake-up alone ends no park.
 */
sem_t *lk__parker_note(struct lk__parker *parker, unsigned signal);
void lk__parker_wake(sem_t *tick); /* accepts NULL */

/*
 * Its own thread: from now on notice signal handlers that run on this thread while it sleeps, whatever their flags, or
 * not any more. Only lk__parker_parkopen() ends with that, and returns 0.
 */
void lk__parker_beinterruptible(struct lk__parker *parker, bool interruptible);
static inline bool lk__parker_wasinterrupted(const struct lk__parker *parker)
{
    return parker->interrupted;
}
/* Its own thread slept elsewhere, and a signal handler ran. */
static inline void lk__parker_interrupted(struct lk__parker *parker)
{
    parker->interrupted = parker->interruptible;
}

/* Until a signal comes or `until_us`; takes all signals and returns them, 0 when the time passed. */
unsigned lk__parker_park(struct lk__parker *parker, int64_t until_us);

/*
 * The same as a cancellation point, if `cancel_state` says so: that of the caller's caller, as cancelability is
 * off inside the library. The parker is at rest when cleanup handlers run.
 */
unsigned lk__parker_parkopen(struct lk__parker *parker, int64_t until_us, int cancel_state);

/* From now on a signal sets the eventfd `fd` (-1: none, the thread may park). Takes and returns earlier signals. */
unsigned lk__parker_pollwith(struct lk__parker *parker, int fd);

/* An eventfd, CLOEXEC and non-blocking; -1 when out of descriptors. */
int lk__eventfd_open(void);
void lk__eventfd_set(int fd);
void lk__eventfd_clear(int fd);

/* --- descriptor.c ---------------------------------------------------------------------------------- */

/*
 * The same open file under a descriptor that is not 0, 1 or 2, close-on-exec; every descriptor of the library
 * passes through here as soon as it is made. -1 with errno when there is none left, and then `fd` is closed;
 * a negative `fd` is returned as it is, with errno.
 */
int lk__fd_ours(int fd);
void lk__fd_close(int fd); /* a descriptor from lk__fd_ours() */
/* In the child of a fork, before anything else runs there: close all of the parent's. Safe in a signal handler. */
void lk__fd_closeall(void);

/* --- api.c ------------------------------------------------------------------------------------- */

/* What a public call leaves as it found it: errno, and the caller's cancelability, which is off meanwhile. */
struct lk__apistate {
    int error, cancel_state;
    struct lk__thread *thread; /* NULL when out of memory */
};

struct lk__apistate lk__api_enter(void);
/* Returns `code`, so that `return lk__api_leave(&api, rc)` reads well. */
int lk__api_leave(const struct lk__apistate *api, int code);

#endif
