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
 *   led        parks                                          nothing                            nothing
 *   sent       awaits the answer                              awaits the answer
 *   answered   granted: ENDED; queued: parks;
 *              too late, or settings that disagree: asks
 *              again; else leaves
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

/* The claim of a waiter that no message reaches. Near the front it asks again before such a claim ends. */
enum { LK__QUIET_CLAIM_MS = 300 };

/* What an ask is answered; what its verdict does not come with is 0 or NULL. */
struct lk__asked {
    enum lk__verdict verdict;
    unsigned epoch; /* the epoch of the server that answered */
    int64_t server_us;
    int64_t token;      /* GRANTED: the fencing token */
    int64_t arrival;    /* QUEUED, BEHIND: the arrival number ... */
    int64_t left_ms;    /* ... the rest of the present lease, -1: unknown ... */
    int64_t place;      /* ... how many waiters are ahead ... */
    const char *holder; /* ... and the holder's id, if the ask wanted it */
    int64_t total;      /* if the ask wanted it: how many there are in all; 0: it did not */
    const char *first;  /* or the id of the first in the queue ... */
    int64_t wants;      /* ... how many that one wants ... */
    int64_t since_ms;   /* ... and for how long it has been there */
    const char *ours;   /* BEHIND: the id of the waiter whose place, with `arrival`, is good for both */
    const char *found;  /* DISAGREES: the settings that others use ... */
    bool refused;       /* ... and they are the end, not only a warning */
};

struct lk__grant {
    int64_t server_us; /* the server's time at which it made this waiter the owner */
    int64_t lease_ms;
    uint64_t token;
    bool owner_died;
    unsigned epoch; /* the epoch of the server that sent the message */
};

/* What an ask does with the settings mark of the name. */
enum lk__marking { LK__UNMARKED, LK__COMPARE, LK__REPLACE };

enum lk__act {
    LK__ASK,     /* send the ask, then await its reply */
    LK__LEAVE,   /* send the release, then await its reply */
    LK__AWAIT,   /* wait for the reply to the request in flight, until until_us */
    LK__CONNECT, /* wait for the connection, until until_us */
    LK__PARK,    /* sleep until a grant, a hint, or until_us */
    LK__FINISHED /* return the result's code */
};

struct lk__step {
    enum lk__act act;
    int64_t until_us;
};

/* What an acquire is told at its start. */
struct lk__acquirefsm_settings {
    int64_t limit_us; /* the end of waiting for other holders, or LK__NEVER */
    int64_t lease_ms;
    int64_t poll_ms, liveness_ms, command_us, retry_min_ms, retry_max_ms;
    int skew_ms;                            /* clock_skew */
    bool try_only;                          /* do not queue: what is taken is BUSY */
    bool compare;                           /* the first ask compares the settings mark */
    bool confirmed;                         /* an ask confirms a grant: the server is to know that it arrived */
    bool recorded; /* there is an idempotency record: an ask confirms a grant, and an answered release is the end */
};

/* How an acquire ended. Until then `arrival` and `duplicates_until` are what is known so far. */
struct lk__acquirefsm_result {
    int code;                /* 0 or EOWNERDEAD: held */
    bool unknown;            /* the server may still have it queued or as owner: the release goes to the outbox */
    bool claimed;            /* granted by hand-over: the lease is a claim's */
    bool marked;             /* the settings mark says what this acquire brought, and it said so before ... */
    bool disagreed;          /* ... or something else, and LK__DISAGREES was answered */
    int64_t valid_until_us;  /* end of validity, unless it is renewed */
    int64_t first_us;        /* when to renew first: after a third of the lease, or of the claim that this confirms */
    struct lk__date granted; /* the server's time of the grant, or a little later */
    uint64_t token;
    int64_t arrival;                   /* the arrival number, from the first answer on */
    int64_t others_until_us;           /* when the lease of the present holder ends, by the last answer; 0: unknown */
    struct lk__until duplicates_until; /* until then an unanswered ask may take effect */
};

enum lk__phase { LK__WAITING, LK__LEAVING, LK__ENDED };

/* Its callers read set, result, phase and marking, and say in heard what they know; the rest is its own. */
struct lk__acquirefsm {
    struct lk__acquirefsm_settings set;
    struct lk__acquirefsm_result result;
    enum lk__phase phase;
    enum lk__marking marking;
    bool heard;       /* messages reach the waiter */
    bool sent;        /* a request is in flight */
    bool asked;       /* an ask was sent; cleared where another one is due even though the limit has passed */
    bool late;        /* an ask was sent though the limit had passed */
    bool listed;      /* the server may have this acquire in the queue, or as owner: it ends with a release */
    bool again;       /* a hint came while the ask was in flight: ask soon after its answer */
    bool cut;         /* the last request got no answer */
    uint8_t garbled;  /* answers in a row that could not be read */
    int limit_code;   /* the code to end with at the limit: ETIMEDOUT, or the one that came with a cancel */
    int last_error;   /* why the server grants nothing at present; 0: others are ahead in the queue */
    int64_t limit_us; /* when waiting for other holders ends: the setting's limit, or the time of a cancel */
    int64_t hard_us;  /* the call returns by then, whatever happens */
    struct lk__until deadline; /* past it the ask in flight does nothing */
    int64_t anchor_us;         /* when the last answered ask was sent, by our clock ... */
    struct lk__date anchor;    /* ... and the server's time in its answer */
    int64_t next_us;           /* no request is sent before */
    int64_t due_us;            /* the thread is parked, and was to wake then; LK__NEVER: it is not parked */
    int64_t backoff_ms;        /* the last pause between two asks while no message reaches it; doubles */
    int64_t place;             /* its place in the last answer since then */
    int64_t pause_ms;          /* the back-off after refusals and cuts in a row; doubles */
    struct lk__grant grant;    /* a grant that came by message and is not used yet; server_us 0: none */
};

void lk__acquirefsm_init(struct lk__acquirefsm *a, const struct lk__acquirefsm_settings *settings);
struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *a, int64_t now_us);
/* An ask is due, but another waiter of this client asks for this one, too. */
struct lk__step lk__acquirefsm_led(struct lk__acquirefsm *a, int64_t now_us);
/* The request was sent. An ask does nothing after `deadline`; NULL: the request is a release. */
struct lk__step lk__acquirefsm_sent(struct lk__acquirefsm *a, int64_t now_us, const struct lk__until *deadline);
/* The ask, sent at `sent_us`, was answered; NULL: with what its script never answers. */
struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *a, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked);
/* The release was answered by the server of `epoch`, which is the end; NULL: with what its script never answers. */
struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *a, int64_t now_us, unsigned epoch,
                                    const struct lk__answer *left);
/* The ask or the release was answered with an error. */
struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *a, int64_t now_us, const struct lk__judged *judged);
/* The request got no answer: CUT or GARBLED, and it may have been executed, or UNSENT. */
struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *a, int64_t now_us, enum lk__request_state how);
/* The request could not be sent: the connection is down. */
struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *a, int64_t now_us);
/* `code` 0: the connection is up again; else why it is not. */
struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *a, int64_t now_us, int code);
/* A message came with a grant for this acquire. */
struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *a, int64_t now_us, const struct lk__grant *grant);
/* A hint came: the object may be free, or a message was missed. */
struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *a, int64_t now_us);
/* Nothing happened but the time of the last step. */
struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *a, int64_t now_us);
/* Give up now and end with `code`. */
struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *a, int64_t now_us, int code);

#endif
