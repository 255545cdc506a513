/* SPDX-License-Identifier: MIT */
/*
 * lease.h - what the server knows of something that is held: an id, and until when
 *
 * A lease belongs to a thread, with which it ends, to an explicit owner, or to the process. What is held by it is the
 * business of the floors above: the watchdog tells `holder` what happens, and knows no more.
 */
#ifndef LK__LEASE_H
#define LK__LEASE_H

#include "watchdog/outbox.h"

/* "<client id>:<owner>:<acquisition>", of some primitives ":<mode>", or ":<n>" and ":<explicit id>", and a NUL. */
#define LK__OWNER_ID (LK__ID_LENGTH + 2 * 22 + 11 + 1 + LK__ID_LENGTH + 1)
/* Without a number and an explicit id. */
#define LK__OWNER_ID_SHORT (LK__ID_LENGTH + 2 * 21 + 2 + 1)

#define LK__LEASE_MAX_MS (24LL * 60 * 60 * 1000)

enum lk__lease_state {
    LK__HELD,    /* good while valid_until_us is ahead */
    LK__AT_RISK, /* the same, but its renewal is long overdue */
    LK__LOST,    /* lost for good: nothing revives it */
    LK__OVER     /* not taken yet, or being given back, or given back */
};

/* Wide members first and narrow ones together: many may be held at once. */
struct lk__lease {
    struct lk__watchdog *dog;

    /* never change once it is taken; keys of the renewal are those of the release */
    void *holder;     /* is told what happens; NULL: nobody */
    const char *name; /* for the log */
    uint64_t owner;   /* whose it is, who may give it back; a thread's ends with that; 0: the process', or by its id */
    const struct lk__script *renewal;
    const void *renewal_args;

    /* under dog->mu */
    int lease_ms;                /* of the last request, or of the grant; uncapped */
    int wanted_ms;               /* for the next renewal: becomes lease_ms when that is sent */
    int64_t cap_us;              /* not renewed beyond; LK__NEVER */
    int64_t renew_us;            /* next renewal; LK__NEVER: none */
    int64_t risk_us;             /* at risk from then on if it is not renewed before; LK__NEVER */
    int64_t long_us;             /* then it is held for too long; LK__NEVER: that was told, or is not to be */
    int64_t duplicates_until_us; /* copies of unanswered requests may take effect until then ... */
    int duplicates_lease_ms;     /* ... with this lease, or a longer one */
    unsigned epoch;              /* of the server that said last that it is held; 0: not known */
    int call_lease_ms;           /* of a request of the owner that is under way; 0: there is none */
    int longer_s;                /* until this second the server may have a longer lease than asked for; 0: it has not */
    struct lk__link all; /* in dog->leases while held, in dog->lost from its loss on, in dog->released once given back */
    struct lk__link *orphans;    /* its holder's list of lost leases that no thread will end; NULL: none */
    struct lk__link orphan;      /* in that list */
    /* while held, in dog->ready: its renewal is due, and too many are under way; once lost, in dog->losses */
    struct lk__link queue;
    struct lk__lease *together;    /* the next lease whose renewal is under way with the same request */
    struct lk__quorum *quorum;     /* NULL, or of which it is the whole, or a part; never changes */
    int flight_ms;                 /* what the renewal under way asks for */
    unsigned asked;                /* renewals that a caller waits for ... */
    unsigned requested;            /* ... how many of them were sent ... */
    unsigned answered;             /* ... and how many are over */
    atomic_uint renewals;          /* renewals that succeeded */
    short result;                  /* result of the last renewal */
    unsigned short parts;          /* of a lease that is given back in parts: how many its renewals are for */
    unsigned short ahead;          /* never changes: size of the holder's memory in front of the lease */
    unsigned char id_size;         /* never changes */
    unsigned char reason;          /* reason of the loss, known or to come: LK_REASON_... */

    atomic_uchar state;  /* enum lk__lease_state; written under dog->mu */
    bool fixed : 1;      /* never changes: not renewed */
    bool by_id : 1;      /* never changes: another client may end it, by its id */
    bool : 0;            /* what never changes is read by itself */
    bool recheck : 1;    /* its renewal asks whether it is there, and for no more than is left of it */
    bool put_off : 1;    /* a renewal waits for the end of a request of the owner */
    bool ownerless : 1;  /* its owner ended */
    bool unsent : 1;     /* a renewal waits for the connection */
    bool inflight : 1;   /* a renewal is under way */
    bool alone : 1;      /* its renewal failed among others: the next one goes by itself */
    bool lingers : 1;    /* the server has it for longer than it is valid: replicas did not acknowledge that */
    unsigned char manner : 2; /* enum lk__manner, of the next renewal */
    bool doubted : 1;    /* of a part of a quorum: nobody said that it is there, so it does not count yet */

    _Atomic int64_t valid_until_us; /* written under dog->mu; 0: nothing is held */

    /* The command that ends it at the server; its references are the lease's, and its timer while it is held. */
    struct lk__outboxentry release;

    char id[LK__OWNER_ID]; /* never changes once it is taken; the last, as no more of it is there than was asked for */
};

/*
 * A lease to be, with its timer and the thread running, so that nothing can fail once it is granted; its id
 * is to be filled in. `ahead`: so many bytes, zeroed, in front of it in the same memory are the holder's, and stay as
 * long. NULL: ENOMEM or ECANCELED, with an error text.
 */
struct lk__lease *lk__lease_new(struct lk__watchdog *dog, size_t ahead, size_t id_size);

static inline void lk__lease_ref(struct lk__lease *lease)
{
    lk__outboxentry_ref(&lease->release);
}

/* Not under dog->mu. */
static inline void lk__lease_unref(struct lk__lease *lease)
{
    lk__outboxentry_unref(&lease->release);
}

/*
 * The lease is held from now on, until `valid_until_us` without a renewal; `first_us`: the first renewal. True: its
 * holder's list of leases that no thread will end is not empty.
 */
bool lk__lease_take(struct lk__lease *lease, int64_t valid_until_us, int64_t first_us);
/* Likewise of a lease without a holder: the request that set it was sent at `sent_us`. */
void lk__lease_takesent(struct lk__lease *lease, int64_t sent_us);

/* True while the lease is good. Past its validity the call makes it lost, for every thread and for ever. */
bool lk__lease_isgood(struct lk__lease *lease, int64_t *remaining_us);

/* Renewals, from the next one on, are for that many parts of the lease. */
void lk__lease_shrink(struct lk__lease *lease, int parts);

/*
 * The owner is about to send a request, other than a renewal, that sets the lease. Returns the lease that it may ask
 * for; no more is trusted from now on. To be ended with lk__lease_endcall().
 */
int64_t lk__lease_begincall(struct lk__lease *lease);
/*
 * The owner's request is over. `unsure`: a copy may still come. `sent_us` not 0: it was sent then and confirmed the
 * lease, which is good from then on, if that is later and the lease is not lost.
 */
void lk__lease_endcall(struct lk__lease *lease, bool unsure, int64_t sent_us);

/* A copy of the ask, which sets this lease, may still come: requests for another lease wait until it cannot. */
void lk__lease_expectduplicates(struct lk__lease *lease, int64_t lease_ms);

/* The server does not know the lease any more. */
void lk__lease_lose(struct lk__lease *lease, int reason);

/* The release found nothing to release: the lease was lost before, and its holder is told. */
void lk__lease_wasgone(struct lk__lease *lease);

/* Was the lease lost? */
static inline bool lk__lease_waslost(const struct lk__lease *lease)
{
    return lease->state == LK__LOST;
}
/* Was it lost because no renewal succeeded in time? */
bool lk__lease_ranout(struct lk__lease *lease);
/* Did the owner end? The lease may be good for the rest of its time. */
bool lk__lease_isownerless(struct lk__lease *lease);

/* Its release is not to end it before then, nor before what was said so far; of one that is lost it says nothing. */
void lk__lease_keep(struct lk__lease *lease, const struct lk__until *until);

/* Take the lease off its holder's list. */
void lk__lease_forget(struct lk__lease *lease);

/*
 * End the lease, before its release is sent. True: it was good until now. `ends_us`: NULL, or gets what
 * lk__lease_endsby() says.
 */
bool lk__lease_end(struct lk__lease *lease, int64_t *ends_us);
/* The release was answered at `date`: send it again after the last copy of the ask, if one may still come. */
void lk__lease_released(struct lk__lease *lease, struct lk__date date);

/*
 * Renew now with that lease and wait for the answer. 0 · ESTALE lost · ENOTCONN nothing sent · EIO · codes
 * of the server's refusal.
 */
int lk__lease_renew(struct lk__lease *lease, int64_t lease_ms, int64_t until_us);

/* Of a fixed lease: is it what the server has? Not while the claim that it began with is to be confirmed. */
bool lk__lease_issettled(struct lk__lease *lease);
/* Confirm it, as lk__lease_renew(). */
int lk__lease_settle(struct lk__lease *lease, int64_t until_us);

/* The latest end of the lease at the server, without renewals from now on; one may be on its way. Not for a whole. */
int64_t lk__lease_endsby(struct lk__lease *lease);
/* The latest end at all servers that have a part of it; 0: none has. An extend may not have come to each. */
int64_t lk__quorum_endsby(struct lk__lease *whole);

/*
 * The server of `epoch` confirmed its release. A server that takes its place may not have that: until `end_us`, when the
 * lease is over there as well, it is told again; of each client the last four thousand.
 */
void lk__lease_remember(struct lk__lease *lease, unsigned epoch, int64_t end_us);

/*
 * Until when a lease can be trusted that lasts `lasts_us` and was set by a request sent at `sent_us`: see the proof in
 * lease.c. Clocks of servers that replace each other differ by up to `skew_ms`.
 */
int64_t lk__valid_until(int64_t sent_us, int64_t lasts_us, int64_t skew_ms);
/* The other way round: a lease that lasts so long, and whose end there is `until_us` or earlier, has ended by then. */
int64_t lk__ended_by(int64_t until_us, int64_t lasts_us, int64_t skew_ms);
/* Until when the lease can be trusted, if a request with `lease_ms` is sent at `sent_us`. */
int64_t lk__lease_validuntil(const struct lk__lease *lease, int64_t sent_us, int64_t lease_ms);

/* --- quorum.c: a lease that several servers have ------------------------------------------------------------------ */

/*
 * The whole is a lease that no server knows: it is good as long as a majority of its parts are, until the moment at which
 * the next of them could end. Each part is the lease of one server, with renewals and a release of its own; its holder
 * is nobody, and it is the whole of which everybody is told. A part that is lost stays lost.
 */
struct lk__quorum {
    const struct lk__quorumrole *role;
    atomic_int refs; /* of its leases */
    unsigned count;
    struct lk__lease *whole; /* under dog->mu; NULL: freed */
    struct lk__lease *parts[LK__QUORUM_MAX];
};

static inline unsigned lk__majority_of(unsigned count)
{
    return count / 2 + 1;
}

/* Make `whole`, which is not taken yet, one of `count` parts. 0; or ENOMEM, ECANCELED, with an error text: it has some of them. */
int lk__quorum_make(struct lk__lease *whole, unsigned count);
/* Leases were taken: those parts that are, and then the whole. From now on it is as good as they are. */
void lk__quorum_taken(struct lk__lease *whole);

/* --- for the watchdog's own files; all under dog->mu ------------------------------------------------------------- */

static inline bool lk__lease_isheld(const struct lk__lease *lease)
{
    return lease->state == LK__HELD || lease->state == LK__AT_RISK;
}

/* The next renewal is due at `renew_us`, LK__NEVER for none; counts from what is valid now. */
void lk__lease_renewat(struct lk__lease *lease, int64_t renew_us);
/* Another server is to know of the lease: its renewal, which asks whether that is so, is due. Its timer is not set. */
void lk__lease_recheck(struct lk__lease *lease, int64_t now_us);
/* Set the lease's timer. */
void lk__lease_schedule(struct lk__watchdog *dog, struct lk__lease *lease);
/* Forget the oldest release, if it is over. Leaves dog->mu and takes it again. False: it is not. */
bool lk__lease_forgetreleased(struct lk__watchdog *dog, int64_t now_us);
/* Its renewal is due, but not under way yet, or is so no longer. */
void lk__lease_ready(struct lk__watchdog *dog, struct lk__lease *lease);
void lk__lease_unready(struct lk__watchdog *dog, struct lk__lease *lease);
/* lk__lease_isgood(), lk__lease_lose() and lk__lease_endsby() under dog->mu. */
bool lk__lease_goodat(struct lk__watchdog *dog, struct lk__lease *lease, int64_t now_us);
void lk__lease_loseit(struct lk__watchdog *dog, struct lk__lease *lease, int reason);
int64_t lk__lease_endsthere(const struct lk__lease *lease);
/* When what is believed of it ends at the server. */
int64_t lk__lease_believedthere(const struct lk__lease *lease);
/* Make it held or at risk; its holder is told of a change. */
void lk__lease_setstate(struct lk__watchdog *dog, struct lk__lease *lease, enum lk__lease_state state);
/* Tell the first `upto` callers that wait for a renewal how it went, but those that know. */
void lk__lease_answer(struct lk__watchdog *dog, struct lk__lease *lease, unsigned upto, int result);
/* The lease that a request at `now_us` may ask for: `lease_ms`, but not beyond the cap. */
int64_t lk__lease_capped(const struct lk__lease *lease, int64_t lease_ms, int64_t now_us);
/* Copies of a request without an answer may come until then, and set this lease. */
void lk__lease_duplicatesuntil(struct lk__lease *lease, int64_t now_us, int64_t until_us, int64_t lease_ms);
/* A request with this lease is about to be sent: no more is trusted, as the server may execute it at once. */
void lk__lease_believeless(struct lk__lease *lease, int64_t now_us, int64_t lease_ms);
/* What a lease of a quorum does beside all others. */
struct lk__quorumrole {
    void (*follow)(struct lk__watchdog *dog, struct lk__lease *lease);
    void (*lost)(struct lk__watchdog *dog, struct lk__lease *lease);
    void (*free)(struct lk__lease *lease);
};
/* The validity of a lease changed, or it was lost: if it is a part, that may be so of its whole. Nothing for others. */
static inline void lk__quorum_follow(struct lk__watchdog *dog, struct lk__lease *lease)
{
    if (lease->quorum != NULL)
        lease->quorum->role->follow(dog, lease);
}
/* It is lost. If it is a whole, what is left of its parts ends and is given back. */
static inline void lk__quorum_lost(struct lk__watchdog *dog, struct lk__lease *lease)
{
    if (lease->quorum != NULL)
        lease->quorum->role->lost(dog, lease);
}
/* Not under dog->mu: a lease is about to be freed; of a whole, its parts are its own. */
static inline void lk__quorum_free(struct lk__lease *lease)
{
    if (lease->quorum != NULL)
        lease->quorum->role->free(lease);
}
/* lk__lease_renew() of a whole: so many parts as make it good. */
int lk__quorum_renew(struct lk__lease *whole, int64_t lease_ms, int64_t until_us);
/* Is it a whole? */
static inline bool lk__lease_iswhole(const struct lk__lease *lease)
{
    return lease->quorum != NULL && lease->holder != NULL;
}
/* The owner ended. */
void lk__lease_orphan(struct lk__watchdog *dog, struct lk__lease *lease);

#endif
