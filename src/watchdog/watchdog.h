/* SPDX-License-Identifier: MIT */
/*
 * watchdog.h - the thread that renews leases, ends those that ran out, and sends the outbox
 *
 * The watchdog knows no primitive and no hold: a lease brings the commands that renew and release it. All memory that a
 * renewal needs was allocated when the lease was made.
 *
 * lease.c     a lease: made, taken, lost, ended          outbox.c    commands resent until answered
 * renewal.c   requests that set it again                 window.c    requests under way, and what may fail before them
 * watchdog.c  the thread, and its life                   quorum.c    a lease that several servers have
 * notice.c    who the client is, told to its servers
 */
#ifndef LK__WATCHDOG_H
#define LK__WATCHDOG_H

#include "base/histogram.h"
#include "watchdog/lease.h"
#include "watchdog/notice.h"
#include "watchdog/outbox.h"
#include "watchdog/window.h"

#include <sched.h>

/* Called under dog->mu: allocates nothing, blocks on nothing. `type`: LK_EVENT_... */
typedef void (*lk__notify_t)(void *arg, const struct lk__lease *lease, int type);

/* Lost leases that the log does not know yet. */
struct lk__losses {
    struct lk__link unlogged; /* under dog->mu: with a reference each */
    int64_t second_us;        /* thread only: end of the second in which ... */
    unsigned lines, more;     /* thread only: ... so many losses were logged, and so many others not */
};

struct lk__watchdog {
    struct lk__mu mu;
    atomic_int callers; /* threads of the program that want mu: the watchdog's lets them in after each piece of work */
    pthread_cond_t renewed; /* with mu: a renewal that a caller waits for is over */
    struct lk__node *node; /* the server, or the way to it; its lane of the callers carries requests, too, while the one
                              for renewals is not up */
    struct lk__heap heap;  /* under mu: leases that are held */
    struct lk__link leases; /* under mu: held, not ended by their owners */
    struct lk__link lost;   /* under mu: lost, not ended by their owners; nothing is left to do for them */
    struct lk__link released; /* under mu: ended and given back a while ago, the oldest first, with a reference each ... */
    unsigned released_count;  /* ... and how many */
    struct lk__link ready;  /* under mu: leases whose renewal is due, oldest first ... */
    size_t ready_count;     /* ... and how many */
    struct lk__outbox outbox;
    struct lk__notice *notice; /* set before there is a lease, and the watchdog's; NULL: none */
    struct lk__window window;
    struct lk__losses losses;
    struct lk__histogram margins; /* what was left of a lease when its renewal succeeded: shares of it */
    _Atomic(size_t *) kept;         /* memory for the next lease or entry; NULL: none */
    bool unsent;                    /* under mu: some renewal found no connection up; the node knows */
    struct lk__linepause held_long; /* of the log's lines of holds that are too long */
    int64_t warned_us;              /* under mu: when the log was last told of renewals that come too late */
    atomic_bool running;            /* written under mu: the thread runs, and is not to stop */
    bool stopping;                  /* under mu */
    int64_t asleep_us;     /* under mu: the thread looks again by then; not woken for what is due later */
    unsigned version_seen; /* thread only: of a cluster's map */
    int wake_fd;
    void *(*run)(void *dog); /* never changes: what the thread does */
    pthread_t thread;
    const struct lk__options *options;
    lk__notify_t notify;
    void *arg;
};

/* dog->mu, for a thread of the program. */
static inline void lk__watchdog_lock(struct lk__watchdog *dog)
{
    atomic_fetch_add(&dog->callers, 1);
    lk__mu_lock(&dog->mu);
    atomic_fetch_sub(&dog->callers, 1);
}

int lk__watchdog_init(struct lk__watchdog *dog, struct lk__node *node, lk__notify_t notify, void *arg);
/* Ends the thread and the connection. False: something was still in the outbox and ends with its lease. */
bool lk__watchdog_stop(struct lk__watchdog *dog);
void lk__watchdog_destroy(struct lk__watchdog *dog); /* when no lease and no outbox entry is left */

/* The owner's thread ended: its leases are not renewed any more. */
void lk__watchdog_ownergone(struct lk__watchdog *dog, uint64_t owner);
/* False: `owner` has a good lease. Else there will be no owner of that number: nobody gives its lost leases back. */
bool lk__watchdog_endowner(struct lk__watchdog *dog, uint64_t owner);
/* A held or lost lease that is not ended, with a reference; NULL: there is none. */
struct lk__lease *lk__watchdog_anylease(struct lk__watchdog *dog);
/* The next lease, taken off a holder's list of those that no thread will end, with a reference; or NULL. */
struct lk__lease *lk__watchdog_nextorphan(struct lk__watchdog *dog, struct lk__link *orphans);

/* --- for the watchdog's own files ---------------------------------------------------------------------------------- */

/* Have the thread run, with slots for its requests, before there is a lease. 0, or why not, with an error text. */
int lk__watchdog_start(struct lk__watchdog *dog);
/*
 * Memory of a lease or an entry, zeroed; NULL: there is none. The last block that was freed is kept for the next one:
 * a program that locks and unlocks in a loop allocates once.
 */
void *lk__watchdog_alloc(struct lk__watchdog *dog, size_t size);
void lk__watchdog_free(struct lk__watchdog *dog, void *memory, size_t size);

enum { LK__LETIN_US = 500 /* so long callers are waited for */ };

/* dog->mu, for the watchdog's thread: behind callers that want it. */
static inline void lk__watchdog_locklast(struct lk__watchdog *dog)
{
    int64_t until_us = atomic_load(&dog->callers) > 0 ? lk__now_us() + LK__LETIN_US : 0;
    while (atomic_load(&dog->callers) > 0 && lk__now_us() < until_us)
        sched_yield();
    lk__mu_lock(&dog->mu);
}

/* --- all under dog->mu --------------------------------------------------------------------------------------------- */

static inline void lk__watchdog_wake(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->running)
        lk__eventfd_set(dog->wake_fd);
}

/*
 * Renew leases that are due, as many as may be under way; tell of those at risk, lose those whose time is over. True: more
 * can be done at once.
 */
bool lk__renewal_serve(struct lk__watchdog *dog, int64_t now_us);
/*
 * A connection is up, or a cluster has another map: renewals that wait for that go out. Where another server answers than
 * before, all its leases are renewed within a moment, and what was given back is given back once more: that server may have
 * heard of neither.
 */
void lk__renewal_servemoved(struct lk__watchdog *dog, int64_t now_us);
/* A request for renewals is over. Its leases lead to each other until lk__renewal_drop(). */
void lk__renewal_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us);
/* Not under dog->mu: the references of a request to its leases. */
void lk__renewal_drop(struct lk__lease *lease);

/*
 * The lock is left and taken again: wait for the end of a renewal. False: the time is over. A thread that finds that late,
 * because the process was stopped say, waits for a command timeout more: the watchdog's thread is as late.
 */
static inline bool lk__lease_awaitrenewed(struct lk__watchdog *dog, int64_t *until_us)
{
    assert(lk__mu_held(&dog->mu));
    if (lk__cond_wait(&dog->renewed, &dog->mu, *until_us) != ETIMEDOUT)
        return true;
    int64_t now_us = lk__now_us(), timeout_us = dog->options->command_timeout_ms * 1000;
    if (now_us < lk__later(*until_us, timeout_us / 8))
        return false;
    *until_us = now_us + timeout_us;
    return true;
}

void lk__losses_add(struct lk__watchdog *dog, struct lk__lease *lease);
/* Leaves dog->mu and takes it again. `last`: do not wait for the end of the second. */
void lk__losses_log(struct lk__watchdog *dog, int64_t now_us, bool last);

#endif
