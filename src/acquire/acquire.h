/* SPDX-License-Identifier: MIT */
/*
 * wait.h - how something is acquired: the state machine, what it parks on, who else waits here
 *
 * One way for all primitives. They bring a script that asks and one that gives back; both speak the
 * language of queue.lua: see the replies below.
 */
#ifndef LK__WAIT_H
#define LK__WAIT_H

#include "hub/hub.h"
#include "redis/redis.h"
#include "watchdog/lease.h"

/* --- acquire.c: an acquire as a state machine. It has no thread, blocks nowhere, allocates nothing ------- */

/* What an ask is answered; what its verdict does not come with is 0 or NULL. */
struct lk__asked {
    enum lk__verdict verdict;
    int64_t server_us;
    int64_t token;      /* GRANTED */
    int64_t arrival;    /* QUEUED: own number in the queue ... */
    int64_t left_ms;    /* ... how long the present lease lasts, -1: nobody knows ... */
    int64_t place;      /* ... how many are before; -1: see place_of() of queue.lua ... */
    const char *holder; /* ... and who holds it, if that was asked for */
};

struct lk__grant {
    int64_t server_us; /* when the server made us the owner */
    int64_t lease_ms;
    uint64_t token;
    bool owner_died;
};

enum lk__act {
    LK__ASK,     /* send the ask, then await its reply */
    LK__LEAVE,   /* send the release, then await its reply */
    LK__AWAIT,   /* the reply of what was sent, until until_us */
    LK__CONNECT, /* the connection, until until_us */
    LK__PARK,    /* a grant, a hint, or until_us */
    LK__FINISHED /* with `code` */
};

struct lk__step {
    enum lk__act act;
    int64_t until_us;
    bool eval; /* the server does not know the script */
};

struct lk__acquirefsm {
    /* set before it starts */
    int64_t limit_us; /* of waiting for other holders; LK__NEVER */
    int64_t lease_ms;
    int64_t poll_ms, liveness_ms, command_us, retry_min_ms, retry_max_ms;
    bool try_only; /* the script queues nobody */
    bool recorded; /* the server remembers requests: an ask confirms a grant, and an answered release is the end */

    /* its state */
    enum { LK__WAITING, LK__LEAVING, LK__ENDED } phase;
    bool sent;         /* a request is under way */
    bool asked;        /* at least once */
    bool listed;       /* the server may have us in the queue, or as owner */
    bool again;        /* a hint came while the ask was under way */
    bool unsubscribed; /* nobody will wake us: poll */
    bool joining;      /* nobody wakes us yet: ask soon, then less and less often */
    bool spelled;      /* the next request is the script's text: a server that does not know this errs for good */
    int64_t hard_us;   /* the call returns by then, whatever happens */
    int64_t duplicates_until_us; /* server's clock: until then an unanswered ask may take effect; 0: none does */
    int64_t deadline_us;         /* server's clock: of the ask under way, set by whoever sends it */
    int64_t arrival;             /* our place, from the first answer on */
    int64_t anchor_us, anchor_server_us; /* of the last answered ask: when sent, server's time */
    int64_t next_us;                     /* not before that the next request */
    int64_t join_ms;                     /* while joining: doubles */
    int64_t pause_ms;                    /* after refusals and cuts in a row: doubles */
    struct lk__grant grant;              /* came, not used yet; server_us 0: none */
    int limit_code;                      /* what to end with at the limit: ETIMEDOUT, or why we were told to give up */
    int last_error;                      /* why nothing can be had at present; 0: others are before us */

    /* its end */
    int code;
    int garbled;  /* answers in a row that could not be read */
    bool unknown; /* the server may still have us: send the release in the background */
    int64_t valid_until_us;
    uint64_t token;
    int64_t first_us;        /* first renewal: a third of the lease, or of the claim that it confirms */
    bool claimed;            /* granted by hand-over: the lease is a claim's */
    int64_t grant_server_us; /* server's clock: when it became ours, or a little later */
};

struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *a, int64_t now_us);
/* The ask was answered, NULL: with something else; `sent_us` is when it was sent. */
struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *a, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked);
/* The release was answered, NULL: with something else; that is the end. */
struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *a, const struct lk__answer *left);
/* The ask or the release was answered with an error. */
struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *a, int64_t now_us, const struct lk__reply *error);
/* What was sent got no answer; how that came: CUT or GARBLED, when it may have taken effect, or UNSENT. */
struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *a, int64_t now_us, enum lk__request_state how);
/* It could not be sent, the connection is down. */
struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *a, int64_t now_us);
/* 0: the connection is up again; else why it is not. */
struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *a, int64_t now_us, int code);
/* A grant that names this acquisition. */
struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *a, int64_t now_us, const struct lk__grant *grant);
/* Something may have changed: ask. */
struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *a, int64_t now_us);
/* Time passed. */
struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *a, int64_t now_us);
/* Give up now and end with `code`. */
struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *a, int64_t now_us, int code);

/* --- waiters.c: where the acquires of a client wait ----------------------------------------------------------- */

struct lk__waiters {
    struct lk__mu mu;     /* after hub->mu, before a connection's */
    struct lk__map by_id; /* under mu, by owner id */
    struct lk__node *node;
    struct lk__hub *hub;
    const struct lk__options *options;
    struct lk__subscription subscription; /* this client's channel */
    char channel[16 + LK__ID_LENGTH + 1];
    bool listening; /* under mu: the ear is with the hub */
    bool closed;    /* under mu: everybody leaves */
};

struct lk__waiter {
    struct lk__acquirefsm machine;
    struct lk__parker parker;
    const struct lk__outboxentry *release; /* its id, and the command that gives it back */
    struct lk__command ask;
    bool (*read)(const struct lk__reply *reply, struct lk__asked *asked); /* the answer to that; false: it is none */
    struct lk__request request;
    struct lk__replybuf answer;
    const char *what;       /* "mutex orders", for the log */
    struct lk__entry entry; /* under waiters->mu */
    struct lk__link hint;   /* under the mu of whatever hints at it; private to the primitive */
    /*
     * Not NULL: parked, the wait is a cancellation point with the caller's `cancel_state`. On the cancelled
     * thread, which has left the queue by then, this takes down what the calls above it would have.
     */
    void (*unwind)(struct lk__waiter *waiter);
    int cancel_state;
    /* under waiters->mu: what came in since it looked last */
    bool hinted, cancelled;
    struct lk__grant granted; /* server_us 0: none */
};

void lk__waiters_init(struct lk__waiters *waiters, const char *client_id, struct lk__node *node, struct lk__hub *hub,
                      const struct lk__options *options);
/* Everybody gives up with ECANCELED, now and from now on. */
void lk__waiters_close(struct lk__waiters *waiters);
void lk__waiters_destroy(struct lk__waiters *waiters);

/*
 * Run an acquire to its end; this is where a thread blocks. The machine's settings, release, ask and read are filled
 * in. Returns machine.code, with an error text; the machine then tells the rest.
 */
int lk__waiters_wait(struct lk__waiters *waiters, struct lk__waiter *waiter);

/* Make it ready, or take it down. */
void lk__waiter_init(struct lk__waiter *waiter);
void lk__waiter_destroy(struct lk__waiters *waiters, struct lk__waiter *waiter);

/* Tell a waiter that asking now may help. Any thread; the waiter is in the room. */
void lk__waiter_hint(struct lk__waiters *waiters, struct lk__waiter *waiter);

/* --- handover.c: what a client asks of those who hand something over to it ------------------------------------ */

/* As arguments of the scripts. */
struct lk__handover {
    int64_t claim_ms;         /* how long a claim lasts that this client hands over to who does not say */
    int64_t liveness_2048ths; /* of ms, how long an ask of this client counts; beside them, what claims it wants */
};

/* `leased`: a claim is a hold, and lasts no longer than this client's leases. */
void lk__handover_init(struct lk__handover *terms, const struct lk__options *options, bool leased);

/* --- local_queue.c: threads of one process wait for their turn to wait in Redis -------------------------------------- */

struct lk__localqueue {
    struct lk__mu *mu;
    struct lk__link places; /* under mu; the first one's turn it is */
    unsigned length;        /* under mu: how many these are */
};

struct lk__qnode {
    struct lk__link link;
    struct lk__parker *parker;
    bool cancelled; /* under queue->mu */
};

void lk__localqueue_init(struct lk__localqueue *line, struct lk__mu *mu);
void lk__localqueue_destroy(struct lk__localqueue *line);
/* 0: it is our turn · ETIMEDOUT · ECANCELED: not in the line. */
int lk__localqueue_enter(struct lk__localqueue *line, struct lk__qnode *place, struct lk__parker *parker,
                         int64_t until_us);
void lk__localqueue_leave(struct lk__localqueue *line, struct lk__qnode *place);
void lk__localqueue_cancel(struct lk__localqueue *line); /* those in it now */
unsigned lk__localqueue_length(struct lk__localqueue *line);

#endif
