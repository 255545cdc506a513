/* SPDX-License-Identifier: MIT */
/*
 * rig.h - a client behind a bad network and another beside it, with an object of each kind between them
 *
 * One fault then meets all kinds at once, in each phase of a hold: asked for, waited for, held, given
 * back. What the far client does goes past the proxy. At the barrier two meet, one of each client: ours in a thread of its
 * own, as a party.
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "proxy.h"
#include "subject.h"

enum {
    RIG_PLACES = 7,
    RIG_LEASE_MS = 3600, /* of which a machine that stalls for a second takes no renewal */
    RIG_COMMAND_MS = 200,
    RIG_POLL_MS = 200,
    RIG_LONG_MS = 20000,
    RIG_RETRY_MS = 240
};

/* How much later than planned, with many servers, clients and proxies at once on a busy machine. */
#define RIG_SLACK_MS (3 * SLACK_MS)

#define RIG_OPTIONS "lease=3600ms&command_timeout=200ms&poll=200ms"

struct place {
    struct subject mine;    /* of the client behind the proxy */
    struct subject patient; /* the same with a lease of RIG_LONG_MS */
    struct subject theirs;  /* of the other one, and of a kind that keeps ours out */
    uint64_t token;         /* of the last grant that was looked at */
};

struct rig {
    struct world *w;
    lk_client_t *here, *there;
    struct place places[RIG_PLACES];
    lk_latch_t gate, their_gate;              /* of both clients, one latch */
    lk_barrier_t stage, lasting, their_stage; /* one barrier of two; at `lasting` a party has a lease of RIG_LONG_MS */
    lk_once_t work, their_work;               /* of both, one run, with a lease of RIG_LONG_MS: to be ended */
    int at_risk, recovered, lost;             /* events of `here`; atomic builtins. Of a party there are none */
};

/* Somebody who waits at a barrier, in a thread of its own. */
struct party {
    struct worker worker;
    lk_barrier_t *barrier;
    int64_t timeout_ms;
    int64_t came_ms, went_ms;
    int result;
};

/* `url` leads through the proxy; `options` are those of the other client. The rig ends with the test. */
struct rig *rig_begin(struct world *w, const char *url, const char *options);

/* The proxy between our client, with these options, and the server: `*p`. The other one has time. */
struct rig *rig_begin_behind(struct world *w, struct proxy **p, const char *options);

/* Each place in turn, its kind printed, so that a failure names it. */
#define for_each_place(place, rig) for (struct place *place = (rig)->places; place_here(rig, place); place++)
bool place_here(const struct rig *rig, const struct place *place);

/* Returns once our client has its connection for commands. */
void rig_connected(struct rig *rig);

int rig_count(const int *events); /* &rig->lost and its neighbours */

/* Ours is taken and held with a token above the last. */
void place_take(struct place *place);

/*
 * Given back with that code in so many milliseconds: right where no fault is, if on a busy machine all of a command timeout
 * was used up, which is as if no answer had come. The library goes on with it then.
 */
bool rig_gave(int code, int64_t ms);

/* It is given back without a fault; what the library goes on with is seen to be free. */
void place_give(struct rig *rig, struct subject *subject);

/* It had its subject, and gave it back. */
void errand_had_it(struct errand *errand);

/* party_wait() returns once the server knows of it, and it of that. */
void party_start(struct party *party, lk_barrier_t *barrier, int64_t timeout_ms);
void party_wait(struct rig *rig, struct party *party, lk_barrier_t *barrier, int64_t timeout_ms);
int party_join(struct party *party); /* its result */

int64_t rig_parties(const struct rig *rig); /* who wait at the barrier with a good lease, as the server sees it */
int rig_meet(struct rig *rig);              /* theirs comes */

/* Our run was ended, or will be soon, by the library: it is done with that result. Then it is forgotten. */
void rig_done(struct rig *rig, const char *result, int64_t within_ms);

/* The round is broken, or will be soon; a new one begins. */
void rig_mend(struct rig *rig, int64_t within_ms);

/* The fault is over: nothing is held or queued, and everything works, on both sides. */
void rig_works(struct rig *rig);

#endif
