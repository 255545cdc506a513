/* SPDX-License-Identifier: MIT */
/*
 * outage.h - a server that serves nobody for a while: what each phase of each kind must answer
 *
 * Phases   an acquire in flight, a wait, a hold that the watchdog renews, a release in flight.
 * Shorter  an outage that ends before the lease does: the holder is at risk and recovers, waiters wait on,
 *          what was given back meanwhile is given back when it is over.
 * Longer   one that outlives the lease: the holder learns of its loss by its own clock, while it lasts.
 */
#ifndef TESTS_OUTAGE_H
#define TESTS_OUTAGE_H

#include "subject.h"

struct outage {
    const char *name;     /* "busy" */
    int code;             /* what a call is told when its time is up */
    bool unsure;          /* or EIO, ENOTCONN: the server may have had a request, and does not say */
    bool reads_pass;      /* scripts that change nothing are served */
    bool ends_tries;      /* an acquire is told at once, not at its limit */
    bool ends_waits;      /* and so is one that is queued already */
    bool computes;        /* the server keeps a processor busy: one kind after the other, else all at once */
    const char *words[2]; /* one of them is in the error text; NULL: none in particular */
    const char *user;     /* "name:password" of the clients; NULL: none */
    const char *server_args;
    void (*prepare)(struct world *w); /* before any client is opened; NULL: nothing */
    void (*begin)(struct world *w);   /* may be in a child, as `end`: assert_lk.h */
    void (*end)(struct world *w);
};

/* All scenarios for all kinds, the latch, runs and barriers, as a group of tests; what a main() returns. */
int outage_tests(const struct outage *outage);

/* For `begin`: returns when the server answers PING with this error code, as "BUSY". */
void outage_await(struct world *w, const char *error_code);

/* For `prepare`: the user app with the password "old", who may do everything. */
void outage_user(struct world *w);

/* For `begin` and `end`: a command, as redisCommand() takes it, whose answer is awaited later. */
void outage_send(struct world *w, const char *format, ...);
void outage_answered(void);

#endif
