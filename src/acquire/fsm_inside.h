/* SPDX-License-Identifier: MIT */
/*
 * fsm_inside.h - the fields of the acquire machine, and what its files share; for nobody else
 */
#ifndef LK__FSM_INSIDE_H
#define LK__FSM_INSIDE_H

#include "acquire/fsm.h"

/* These fields lie in the opaque bytes of a struct lk__acquirefsm, which may_alias allows. */
struct __attribute__((may_alias)) lk__acquirefsm_state {
    struct lk__acquirefsm_settings set;
    struct lk__acquirefsm_result result;
    enum lk__phase phase;
    enum lk__hearing hearing;
    enum lk__marking marking;
    bool sent;        /* a request is in flight */
    bool asked;       /* an ask was sent; cleared where another one is due even though the limit has passed */
    bool late;        /* an ask was sent though the limit had passed */
    bool listed;      /* the server may have this acquire in the queue, or as owner: it ends with a release */
    bool may_rest;    /* by the last answer, which no hint followed */
    bool rests;       /* the last ask said that it rests */
    bool again;       /* a hint came while the ask was in flight: ask soon after its answer */
    bool spelled;     /* the next request carries the script's text: a NOSCRIPT in answer to that is an error */
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
    int64_t rank;              /* its place in the last answer since then */
    int64_t pause_ms;          /* the back-off after refusals and cuts in a row; doubles */
    struct lk__grant grant;    /* a grant that came by message and is not used yet; server_us 0: none */
};

_Static_assert(sizeof(struct lk__acquirefsm_state) <= sizeof(struct lk__acquirefsm), "the machine has room for them");
_Static_assert(_Alignof(struct lk__acquirefsm_state) <= _Alignof(struct lk__acquirefsm), "where they lie");

static inline struct lk__acquirefsm_state *lk__fsm_state(struct lk__acquirefsm *machine)
{
    return (struct lk__acquirefsm_state *)machine;
}

static inline const struct lk__acquirefsm_state *lk__fsm_known(const struct lk__acquirefsm *machine)
{
    return (const struct lk__acquirefsm_state *)machine;
}

static inline int64_t lk__fsm_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline struct lk__step lk__fsm_step(enum lk__act act, int64_t until_us)
{
    return (struct lk__step){ act, until_us, false };
}

static inline struct lk__step lk__fsm_end(struct lk__acquirefsm_state *a, int code)
{
    a->phase = LK__ENDED;
    a->result.code = code;
    return lk__fsm_step(LK__FINISHED, 0);
}

/* May an ask that got no answer still take effect? */
static inline bool lk__fsm_hasduplicates(const struct lk__acquirefsm_state *a)
{
    return a->result.duplicates_until.date.us != 0;
}

/* What was sent is answered; `unheard_of`: by an error, the server does not know the script. */
static inline void lk__fsm_noteanswer(struct lk__acquirefsm_state *a, bool unheard_of)
{
    a->sent = a->cut = false;
    a->garbled = 0;
    a->spelled = unheard_of && !a->spelled;
}

/* --- fsm.c ------------------------------------------------------------------------------------------------ */

/* What to do now, with nothing new. */
struct lk__step lk__fsm_proceed(struct lk__acquirefsm_state *a, int64_t now_us);
/* End with `code`, after the server took us off its lists if we may be on one. */
struct lk__step lk__fsm_leave(struct lk__acquirefsm_state *a, int64_t now_us, int code);
/* End now, without another request: as unknown if the server may have us. */
struct lk__step lk__fsm_giveup(struct lk__acquirefsm_state *a);
/*
 * A grant that came by message counts from the server's moment of it, brought to our clock by an answered
 * ask: that was sent before the server read the time in its answer, so the sum is never too late.
 */
struct lk__step lk__fsm_usegrant(struct lk__acquirefsm_state *a, int64_t now_us);
/* Wait longer after each refusal or cut in a row; the first is answered at once. */
void lk__fsm_pausenext(struct lk__acquirefsm_state *a, int64_t now_us);

/* --- fsm_nap.c -------------------------------------------------------------------------------------------- */

/* 80 to 120 per cent, so that those who sleep equally long do not come at one moment. */
int64_t lk__fsm_jittered(int64_t us);
/* May it rest, after an answer with that lease and place? */
bool lk__fsm_mayrest(const struct lk__acquirefsm_state *a, int64_t left_ms, int64_t place);
/* How long it sleeps after one, us. */
int64_t lk__fsm_nap(struct lk__acquirefsm_state *a, int64_t left_ms, int64_t rank);

#endif
