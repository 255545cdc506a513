/* SPDX-License-Identifier: MIT */
/*
 * fsm.h - an acquire as a state machine: no thread, blocks nowhere, allocates nothing, reads no clock
 *
 * Events go in with the time, a step comes out: what to do next. So a thread can park on it, an event loop can drive
 * it, and a table can test it. What each event does in each phase, where "leaves" is LEAVING, or ENDED at once when the
 * server can have nothing of us:
 *
 *              WAITING                                        LEAVING                            ENDED
 *   start      asks
 *   sent       awaits the answer                              awaits the answer
 *   answered   granted: ENDED; queued: parks;
 *              too late: asks again; else leaves
 *   left                                                      ENDED
 *   refused    for now: asks again, later; for good: leaves   for now: releases again; else ENDED
 *   cut        a grant came: as granted; else asks again      releases again
 *   unsent     awaits the connection                          awaits the connection
 *   connected  up: asks; refused for good: ENDED              up: releases; else awaits it again
 *   granted    good: ENDED; else asks                         nothing                            nothing
 *              (beside an ask: with its answer)
 *   hinted     asks (beside an ask: after its answer)         nothing                            nothing
 *   tick       next ask due: asks; limit: leaves              next release due: releases         nothing
 *              no time left for an answer: ENDED              no time left: ENDED
 *   cancel     leaves (beside an ask: after its answer)       nothing                            nothing
 *
 *             ask ── granted ───────────────────────────► held
 *   start ──►  │ ◄── poll due, hint, reconnect ─┐            ▲
 *              └── queued ──► parked ── grant ──┼── good ────┘
 *                                │              └── too old: a hint
 *                                └── limit, cancel ──► leave ──► not held
 */
#ifndef LK__FSM_H
#define LK__FSM_H

#include "redis/redis.h"

/* What an ask is answered; what its verdict does not come with is 0 or NULL. */
struct lk__asked {
    enum lk__verdict verdict;
    unsigned epoch; /* of the server that answered */
    int64_t server_us;
    int64_t token;      /* GRANTED */
    int64_t arrival;    /* QUEUED: own number in the queue ... */
    int64_t left_ms;    /* ... and BUSY: how long the present lease lasts, -1: nobody knows ... */
    int64_t place;      /* ... how many are before; -1: see place_of() of queue.lua ... */
    const char *holder; /* ... and who holds it, if that was asked for */
};

struct lk__grant {
    int64_t server_us; /* when the server made us the owner */
    int64_t lease_ms;
    uint64_t token;
    bool owner_died;
    unsigned epoch; /* of the server that told */
};

enum lk__act {
    LK__ASK,     /* send the ask, then await its reply */
    LK__LEAVE,   /* send the release, then await its reply */
    LK__AWAIT,   /* the reply of what was sent, until until_us */
    LK__CONNECT, /* the connection, until until_us */
    LK__PARK,    /* a grant, a hint, or until_us */
    LK__FINISHED /* with the result's code */
};

struct lk__step {
    enum lk__act act;
    int64_t until_us;
    bool eval; /* the server does not know the script */
};

/* What an acquire is, from its start on. */
struct lk__acquirefsm_settings {
    int64_t limit_us; /* of waiting for other holders; LK__NEVER */
    int64_t lease_ms;
    int64_t poll_ms, liveness_ms, command_us, retry_min_ms, retry_max_ms;
    bool try_only; /* the script queues nobody */
    bool recorded; /* the server remembers requests: an ask confirms a grant, and an answered release is the end */
};

/* How it ended. Meanwhile `arrival` and `duplicates_until` are as they are known by then. */
struct lk__acquirefsm_result {
    int code;                /* 0 or EOWNERDEAD: held */
    bool unknown;            /* the server may still have us: send the release in the background */
    bool claimed;            /* granted by hand-over: the lease is a claim's */
    int64_t valid_until_us;  /* if nothing is renewed */
    int64_t first_us;        /* first renewal: a third of the lease, or of the claim that it confirms */
    struct lk__date granted; /* when it became ours, or a little later */
    uint64_t token;
    int64_t arrival;         /* our place, from the first answer on */
    int64_t others_until_us; /* by then the lease that is before us ends, by the last answer; 0: nobody knows */
    struct lk__until duplicates_until; /* until then an unanswered ask may take effect */
};

/* Do messages reach the waiter? LK__JOINING: not yet. It asks soon, then less and less often. */
enum lk__hearing { LK__HEARD, LK__JOINING, LK__UNHEARD };

enum lk__phase { LK__WAITING, LK__LEAVING, LK__ENDED };

struct lk__acquirefsm {
    struct lk__acquirefsm_state { /* fsm.c's, and nobody else's */
        struct lk__acquirefsm_settings set;
        struct lk__acquirefsm_result result;
        enum lk__phase phase;
        enum lk__hearing hearing;
        bool sent;        /* a request is under way */
        bool asked;       /* at least once */
        bool listed;      /* the server may have us in the queue, or as owner */
        bool again;       /* a hint came while the ask was under way */
        bool spelled;     /* the next request is the script's text: a server that does not know this errs for good */
        int garbled;      /* answers in a row that could not be read */
        int limit_code;   /* what to end with at the limit: ETIMEDOUT, or why we were told to give up */
        int last_error;   /* why nothing can be had at present; 0: others are before us */
        int64_t limit_us; /* the setting, or when we were told to give up */
        int64_t hard_us;  /* the call returns by then, whatever happens */
        struct lk__until deadline; /* of the ask under way */
        int64_t anchor_us;         /* of the last answered ask: when it was sent ... */
        struct lk__date anchor;    /* ... and the server's time in the answer */
        int64_t next_us;           /* not before that the next request */
        int64_t join_ms;           /* while joining: doubles */
        int64_t pause_ms;          /* after refusals and cuts in a row: doubles */
        struct lk__grant grant;    /* came, not used yet; server_us 0: none */
    } private;
};

void lk__acquirefsm_init(struct lk__acquirefsm *machine, const struct lk__acquirefsm_settings *settings);
const struct lk__acquirefsm_settings *lk__acquirefsm_settings(const struct lk__acquirefsm *machine);
const struct lk__acquirefsm_result *lk__acquirefsm_result(const struct lk__acquirefsm *machine);
enum lk__phase lk__acquirefsm_phase(const struct lk__acquirefsm *machine);

/* What it is to reckon with from now on; LK__HEARD unless said. */
void lk__acquirefsm_hears(struct lk__acquirefsm *machine, enum lk__hearing hearing);

struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *machine, int64_t now_us);
/* The request that was to be sent is on its way; an ask is void after `deadline`; NULL: it is a release. */
struct lk__step lk__acquirefsm_sent(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__until *deadline);
/* The ask was answered, NULL: with something else; `sent_us` is when it was sent. */
struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *machine, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked);
/* The release was answered by the server of that epoch, NULL: with something else; that is the end. */
struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *machine, int64_t now_us, unsigned epoch,
                                    const struct lk__answer *left);
/* The ask or the release was answered with an error. */
struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__reply *error);
/* What was sent got no answer; how that came: CUT or GARBLED, when it may have taken effect, or UNSENT. */
struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *machine, int64_t now_us, enum lk__request_state how);
/* It could not be sent, the connection is down. */
struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *machine, int64_t now_us);
/* 0: the connection is up again; else why it is not. */
struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *machine, int64_t now_us, int code);
/* A grant that names this acquisition. */
struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__grant *grant);
/* Something may have changed: ask. */
struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *machine, int64_t now_us);
/* Time passed. */
struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *machine, int64_t now_us);
/* Give up now and end with `code`. */
struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *machine, int64_t now_us, int code);

#endif
