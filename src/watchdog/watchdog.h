/* SPDX-License-Identifier: MIT */
/*
 * watchdog.h - holds, and the thread that renews their leases
 *
 * It knows no primitive: a hold brings the commands that renew and release it. Everything on the way of
 * a renewal was allocated when the hold was made.
 */
#ifndef LK__WATCHDOG_H
#define LK__WATCHDOG_H

#include "redis/redis.h"

#include <latchkey/client.h>

/* "<client id>:<owner>:<acquisition>", of some primitives ":<mode>", or ":<n>" and ":<explicit id>", and a NUL. */
#define LK__OWNER_ID (LK__ID_LENGTH + 2 * 22 + 11 + 1 + LK__ID_LENGTH + 1)
/* Of those that have no number and no explicit id. */
#define LK__OWNER_ID_SHORT (LK__ID_LENGTH + 2 * 21 + 2 + 1)

#define LK__LEASE_MAX_MS (24LL * 60 * 60 * 1000)

enum lk__hold_state {
    LK__HELD,    /* good while valid_until_us is ahead */
    LK__AT_RISK, /* the same, but the last renewal failed */
    LK__LOST,    /* over, finally: nothing revives it */
    LK__OVER     /* being given back, or given back */
};

struct lk__watchdog;
struct lk__inflight;

/* One who hears of events; two of them: the listener's queue and the one behind the eventfd. */
enum { LK__AUDIENCES = 2 };

struct lk__notice {
    struct lk__link link; /* under the events' mu */
    int type, reason;     /* under the events' mu: the last thing that happened */
};

/* Wide members first and narrow ones together: many may be held at once. */
struct lk__hold {
    atomic_int refs;

    /* never change once the hold is taken */
    int kind;
    struct lk__watchdog *dog;
    uint64_t owner;
    const char *name; /* as the user gave it */
    uint64_t token;
    int64_t began_us; /* granted */
    int64_t
        ask_duplicates_until_us; /* server's clock: until then a copy of an ask that got no answer may come; 0: none */
    struct lk__command renew, release;
    struct lk__block *block; /* where the name is, and keys and arguments of these */

    /* under dog->mu */
    enum lk__hold_state state;
    int reason;                  /* of the loss, known or to come: LK_REASON_... */
    int64_t lease_ms;            /* that the last request asked for, or the grant; uncapped */
    int64_t wanted_ms;           /* of the next renewal: becomes lease_ms when that is sent */
    int64_t call_lease_ms;       /* that a request of the owner asks for, which is under way; 0: none is */
    int64_t cap_us;              /* not renewed beyond; LK__NEVER */
    int64_t renew_us;            /* next renewal; LK__NEVER: none */
    int64_t duplicates_until_us; /* copies of unanswered requests may take effect until then ... */
    int64_t duplicates_lease_ms; /* ... with this lease, or a longer one */
    int64_t sweep_past_us; /* of the release in the background: an answer counts only when it is later; 0: any does */
    int64_t sweep_end_us;  /* by then everything ended with its lease */
    struct lk__timer timer;
    struct lk__link all;           /* in dog->holds while held, in dog->lost from its loss on */
    struct lk__link news;          /* in dog->unlogged, with a reference */
    struct lk__link *nobodys;      /* list of its object: lost, and nobody is left to give it back; NULL: has none */
    struct lk__link for_nobody;    /* in that list */
    struct lk__link ready;         /* in dog->ready: a request is due, and too many are under way */
    struct lk__inflight *inflight; /* its request that is under way, or NULL */
    unsigned asked;                /* renewals somebody waited for ... */
    unsigned requested;            /* ... how many of them were sent ... */
    unsigned answered;             /* ... and how many are through */
    int result;                    /* of the last one */
    int parts;                     /* of one that is given back in parts: how many its renewals are for */

    /* private to the primitive */
    int holds; /* of this owner; of a read-write lock: for writing */
    int reads; /* of a read-write lock: for reading */

    unsigned release_flags; /* as release_keep_us */
    unsigned id_size;       /* never changes */
    bool fixed;             /* not renewed */
    bool tied;              /* to the thread that took it: not renewed once that ended */
    bool owner_died;        /* the primitive's: EOWNERDEAD was told, and nobody said yet that it is consistent */
    /* under dog->mu */
    bool put_off;   /* a renewal waits for the end of a request of the owner */
    bool ownerless; /* its thread ended */
    bool unsent;    /* a renewal waits for the connection */
    bool eval;      /* the server does not know the script: the next request has its text */
    bool sweeping;  /* its release is sent in the background */

    atomic_ullong renewals;         /* that succeeded */
    _Atomic int64_t valid_until_us; /* written under dog->mu; 0: nothing is held */
    struct lk__notice notices[LK__AUDIENCES];

    /* private to the primitive */
    struct lk__link mine;   /* under its object's mu */
    struct lk__entry owned; /* under its object's mu: the oldest of its owner, or a permit with an id */
    struct lk__link kin;    /* under its object's mu: younger ones of its owner follow the oldest */
    int64_t keep_until_us;  /* server's clock: min_hold_ms; 0: none */

    /* set once, when its owner gives it back: what its release says from then on, also in the background */
    int64_t release_keep_us;

    /* of a request that counts once, sent as a release: which one of its id this is, and its last deadline */
    int64_t nth, release_deadline_us;

    /* never changes; the last, as no more of it is there than was asked for */
    char id[LK__OWNER_ID];
};

/* A request of the watchdog's. There are as many as may be under way; they are made with its thread. */
struct lk__inflight {
    struct lk__link link; /* under dog->mu: in dog->idle, or dog->flying, or dog->beside */
    struct lk__request request;
    struct lk__hold *hold; /* with a reference */
    enum lk__lane via;
    int64_t lease_ms; /* what a renewal asks for */
    bool releasing;   /* it is the release, not a renewal */
    bool as_text;

    /* under the connection's mu until it has landed: the answer */
    bool good; /* it is one that its script gives: `said` */
    struct lk__answer said;
    bool error, unknown, redisson; /* an error: in general, of a script that is not known, of a key of another type */
    int code;                      /* of an error */
};

/* Called under dog->mu: allocates nothing, blocks on nothing. */
typedef void (*lk__notify_t)(void *arg, struct lk__hold *hold, int type);

struct lk__watchdog {
    struct lk__mu mu;
    pthread_cond_t renewed; /* with mu: a renewal or sweep that somebody waits for is through */
    size_t sweeps;          /* releases in the background that are not through */
    struct lk__node *node;  /* the lane of the callers carries renewals, too, while the own is not up */
    struct lk__heap heap;
    struct lk__link holds; /* held, not given back */
    struct lk__link lost;  /* not given back: nothing is left to do for them */
    struct lk__link ready; /* whose request is due, oldest first */
    struct lk__link
        spares;      /* memory of holds that are over, by their links `all`, so that the next ones ask for none ... */
    int spare_count; /* ... and how many these are */
    struct lk__inflight *inflights;
    struct lk__link idle;      /* flights that are not under way */
    struct lk__link in_flight; /* those on the own connection, oldest first ... */
    struct lk__link beside;    /* ... and those on that of the callers */
    bool unsent;               /* some renewal found neither up */
    size_t reserved;           /* holds that exist: as many timers have room */
    bool started, stopping;
    int64_t asleep_us;                /* under mu: the thread looks again by then; not woken for what is due later */
    struct lk__link unlogged;         /* under mu: lost ones that the log does not know yet */
    int64_t second_us;                /* thread only: end of the one in which ... */
    unsigned lines, more;             /* thread only: ... so many losses were logged, and so many others not */
    unsigned long long connects_seen; /* thread only */
    unsigned failures_seen;           /* thread only */
    int wake_fd;
    pthread_t thread;
    const struct lk__options *options;
    lk__notify_t notify;
    void *arg;
};

int lk__watchdog_init(struct lk__watchdog *dog, struct lk__node *node, lk__notify_t notify, void *arg);
/* Ends the thread and the connection. False: something was still to be swept and ends with its lease. */
bool lk__watchdog_stop(struct lk__watchdog *dog);
void lk__watchdog_destroy(struct lk__watchdog *dog); /* when no hold is left */

/* Under dog->mu: for one hold more, room on the heap, requests, and a thread to look at it. 0, or why not, with an error text. */
int lk__watchdog_reserve(struct lk__watchdog *dog);

/*
 * A hold to be, with room on the heap and the thread running, so that nothing can fail once it is granted.
 * Its id, in `id_size` bytes, block, name and commands are filled in by the caller. NULL: ENOMEM, with an error text.
 */
struct lk__hold *lk__hold_new(struct lk__watchdog *dog, size_t id_size);
struct lk__hold *lk__hold_ref(struct lk__hold *hold);
void lk__hold_unref(struct lk__hold *hold); /* accepts NULL */
void lk__hold_freespares(struct lk__watchdog *dog);

/*
 * From now on `hold` is held, until `valid_until_us` if nothing is renewed; `first_us`: the first renewal.
 */
void lk__watchdog_take(struct lk__watchdog *dog, struct lk__hold *hold, int64_t valid_until_us, int64_t first_us);

/* True while it is good; decides it if the moment came: then it is lost, for every thread and for ever. */
bool lk__watchdog_good(struct lk__watchdog *dog, struct lk__hold *hold, int64_t *remaining_us);

/* From the next one on its renewals are for that many parts of it. */
void lk__watchdog_shrink(struct lk__watchdog *dog, struct lk__hold *hold, int parts);

/*
 * A request of its owner that sets the lease, other than a renewal, is about to be sent: the lease that it may ask
 * for. No more is believed from now on. To be ended with lk__watchdog_endcall().
 */
int64_t lk__watchdog_begincall(struct lk__watchdog *dog, struct lk__hold *hold);
/*
 * It is through. `unsure`: a copy may still come. `sent_us` not 0: confirmed, and sent then; good from then on, if
 * that is later and it is not lost.
 */
void lk__watchdog_endcall(struct lk__watchdog *dog, struct lk__hold *hold, bool unsure, int64_t sent_us);

/* A copy of the ask, which sets this lease, may still come: requests with another one wait until it cannot. */
void lk__watchdog_expectduplicates(struct lk__watchdog *dog, struct lk__hold *hold, int64_t lease_ms);

/* The server no longer knows it. */
void lk__watchdog_lose(struct lk__watchdog *dog, struct lk__hold *hold, int reason);

/* Its release found nothing to release: it was lost before, and is told so. */
void lk__watchdog_wasgone(struct lk__watchdog *dog, struct lk__hold *hold);

/* Was it lost? */
bool lk__watchdog_waslost(struct lk__watchdog *dog, struct lk__hold *hold);
/* The next one of a list of those that are nobody's, with a reference, off the list; NULL: it is empty. */
struct lk__hold *lk__watchdog_nextofnobody(struct lk__watchdog *dog, struct lk__link *nobodys);
/* Did its thread end? It may be good for the rest of its lease. */
bool lk__watchdog_isownerless(struct lk__watchdog *dog, struct lk__hold *hold);

/* Its object goes: it is on no list of that any more. */
void lk__watchdog_forget(struct lk__watchdog *dog, struct lk__hold *hold);

/* No longer held; to be called before its release is sent. True: it was good until now. */
bool lk__watchdog_end(struct lk__watchdog *dog, struct lk__hold *hold);

/*
 * Send its release in the background: at once, and once more until the server's clock is past `past_us`, the
 * deadline of requests that got no answer. Give up at `end_us`, when it has ended with its lease anyway.
 */
void lk__watchdog_sweep(struct lk__watchdog *dog, struct lk__hold *hold, int64_t past_us, int64_t end_us);
/* Its release was answered at `server_us`: send it again after the last copy of its ask, if one may still come. */
void lk__watchdog_sweepduplicates(struct lk__watchdog *dog, struct lk__hold *hold, int64_t server_us);
/* Wait until all of these are through, or `until_us`. */
void lk__watchdog_settle(struct lk__watchdog *dog, int64_t until_us);

/*
 * Renew now with that lease and wait for the answer. 0 · ESTALE lost · ENOTCONN nothing sent · EIO · codes
 * of the server's refusal.
 */
int lk__watchdog_renew(struct lk__watchdog *dog, struct lk__hold *hold, int64_t lease_ms, int64_t until_us);

/* The thread of that owner ended: its holds are renewed no more. */
void lk__watchdog_ownergone(struct lk__watchdog *dog, uint64_t owner);

/* Its owner gives it back: from now on its release says what is known by then. */
void lk__hold_given(struct lk__hold *hold);
/* What its release is sent with. */
struct lk__sent lk__hold_torelease(const struct lk__hold *hold);

/* The latest end of its lease at the server, if nothing is renewed from now on; a renewal may be on its way. */
int64_t lk__hold_endsby(struct lk__hold *hold);
/* The longest lease that a request may have asked for that is under way, or will be. Under dog->mu. */
int64_t lk__hold_longest(const struct lk__hold *hold);

/* How much of a lease is not trusted: clock rates may differ, and a timer may fire late. */
int64_t lk__guard_us(int64_t lease_ms);

#endif
