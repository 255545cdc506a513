/* SPDX-License-Identifier: MIT */
/*
 * rig.h - a client behind a bad network and another beside it, with an object of each kind between them
 *
 * One fault then meets all kinds at once, in each phase of a hold: asked for, waited for, held, given
 * back. What the far client does goes past the proxy.
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "proxy.h"
#include "subject.h"

enum {
    RIG_PLACES = 6,
    RIG_LEASE_MS = 2400,
    RIG_COMMAND_MS = 200,
    RIG_POLL_MS = 200,
    RIG_LONG_MS = 20000,
    RIG_RETRY_MS = 240
};

/* How much later than planned, with many servers, clients and proxies at once on a busy machine. */
#define RIG_SLACK_MS (3 * SLACK_MS)

#define RIG_OPTIONS "lease=2400ms&command_timeout=200ms&poll=200ms"

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
    lk_latch_t gate, their_gate;  /* of both clients, one latch */
    int at_risk, recovered, lost; /* events of `here`; atomic builtins */
};

/* `url` leads through the proxy; `options` are those of the other client. The rig ends with the test. */
struct rig *rig_begin(struct world *w, const char *url, const char *options);

/* Both clients with the same options, and the proxy between one of them and the server: `*p`. */
struct rig *rig_begin_behind(struct world *w, struct proxy **p, const char *options);

/* Each place in turn, its kind printed, so that a failure names it. */
#define for_each_place(place, rig) for (struct place *place = (rig)->places; place_here(rig, place); place++)
bool place_here(const struct rig *rig, const struct place *place);

/* Returns once our client has its connection for commands. */
void rig_connected(struct rig *rig);

int rig_count(const int *events); /* &rig->lost and its neighbours */

/* Ours is taken and held with a token above the last. */
void place_take(struct place *place);

/* The fault is over: nothing is held or queued, and everything works, on both sides. */
void rig_works(struct rig *rig);

#endif
