/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - a bad network between a client and its server
 *
 * A child process listens on a unix socket and passes everything on to the server of the world, until
 * told otherwise. Each function returns when its fault is in force. Begin the proxy before the test
 * opens a client: the child would keep copies of the client's descriptors open.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include "world.h"

struct proxy;

enum { PROXY_UP = 1, PROXY_DOWN = 2, PROXY_BOTH = 3 }; /* up: from client to server */

/* What befalls one request, or the reply to it. A chunk is what one read() of the proxy brought. */
enum proxy_fault {
    PROXY_CUT_REQUEST,  /* the connection ends, the server never sees the request */
    PROXY_CUT_REPLY,    /* the server runs it, then the connection ends instead of the reply */
    PROXY_DROP_REPLY,   /* the server runs it, the reply vanishes, the connection stays */
    PROXY_HOLD_REQUEST, /* it and all that follows on its connection wait for proxy_release(), even if the
                           client gives the connection up meanwhile */
    PROXY_PARK_REQUEST, /* likewise, and the client's connection ends now: a copy that is still on its way */
};

struct proxy *proxy_begin(struct world *w);
void proxy_end(struct proxy *p);

/* As world_url(), by way of the proxy. */
const char *proxy_url(struct proxy *p, const char *options);

/* Deliver nothing in these directions; what comes is kept. proxy_resume() delivers it. */
void proxy_stall(struct proxy *p, int directions);
void proxy_resume(struct proxy *p);

/* Everything takes that long, in each direction. */
void proxy_delay(struct proxy *p, int64_t ms);

/* End all connections now. */
void proxy_cut(struct proxy *p);

/* Deliver so many more bytes in this direction, then end the connection that brings the next one. */
void proxy_cut_after(struct proxy *p, int direction, int64_t bytes);

/* Once: on the k-th chunk of requests from now on (1: the next) that contains `text` (NULL: any chunk). */
void proxy_once(struct proxy *p, enum proxy_fault fault, int k, const char *text);
void proxy_release(struct proxy *p);

/* Do not accept connections (true), or do again. */
void proxy_refuse(struct proxy *p, bool refuse);

/* Since the start; the bytes as they came in, delivered or not. */
int64_t proxy_connections(struct proxy *p);
int64_t proxy_bytes(struct proxy *p, int direction);
int64_t proxy_faults(struct proxy *p); /* how often a proxy_once() has happened */

#endif
