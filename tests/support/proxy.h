/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - a bad network between a client and its server
 *
 * A child process listens on a unix socket, or on a port of 127.0.0.1, and passes everything on to the
 * server of the world, until told otherwise. Each function returns when its fault is in force. Begin the proxy before the test
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
    PROXY_COPY_REQUEST, /* it goes its way, and a copy of it waits for proxy_release() */
    PROXY_DROP_MESSAGE, /* of the way down: a chunk from the server with `text` in it vanishes */
};

struct proxy *proxy_begin(struct world *w);
struct proxy *proxy_begin_tcp(struct world *w); /* for faults that unix sockets do not have */
void proxy_end(struct proxy *p);                /* and of its clients; at the end of the test it comes by itself */

/* As world_url() and world_client(), by way of the proxy. */
const char *proxy_url(struct proxy *p, const char *options);
lk_client_t *proxy_client(struct proxy *p, const char *options);
int proxy_port(struct proxy *p); /* of proxy_begin_tcp() */

/* Deliver nothing in these directions; what comes is kept. proxy_resume() delivers it. */
void proxy_stall(struct proxy *p, int directions);
void proxy_resume(struct proxy *p);

/* Everything takes that long, in each direction. */
void proxy_delay(struct proxy *p, int64_t ms);

/* From now on one byte at a time, with a pause after each; a pause below 0 ends it. */
void proxy_dribble(struct proxy *p, int directions, int64_t pause_ms);

/* End all connections now; likewise with an RST (TCP); or our half of them, and go on taking what comes. */
void proxy_cut(struct proxy *p);
void proxy_reset(struct proxy *p);
void proxy_half_close(struct proxy *p);

/* Deliver so many more bytes in this direction, then end the connection that brings the next one; -1: never. */
void proxy_cut_after(struct proxy *p, int direction, int64_t bytes);

/* Once: on the k-th chunk of requests from now on (1: the next) that contains `text` (NULL: any chunk). */
void proxy_once(struct proxy *p, enum proxy_fault fault, int k, const char *text);
void proxy_release(struct proxy *p); /* the server can read what was held when this returns */

/*
 * From now on these bytes come instead of the reply to each request that contains `text`, which the
 * server carries out all the same, and instead of all that follow on its connection. NULL ends that, and
 * these connections.
 */
void proxy_forge(struct proxy *p, const char *text, const char *bytes, size_t length);

/*
 * Once: before the k-th answer from now on (1: the next) that comes on a connection for scripts, `bytes` come as if
 * they were one; NULL: that answer vanishes, and the connection stays. Answers to errors count, messages do not.
 */
void proxy_misplace(struct proxy *p, int k, const char *bytes);

/* Do not accept connections (true), or do again. Silently, of TCP: nobody answers their SYN. */
void proxy_refuse(struct proxy *p, bool refuse);
void proxy_refuse_silently(struct proxy *p, bool refuse);

/* New connections go to that server from now on; those that are there stay where they are. */
void proxy_serve(struct proxy *p, const struct world *other);

/* Since the start; the bytes as they came in, delivered or not. */
int64_t proxy_connections(struct proxy *p);
int64_t proxy_bytes(struct proxy *p, int direction);
int64_t proxy_faults(struct proxy *p); /* how often a proxy_once() or proxy_misplace() has happened */

#endif
