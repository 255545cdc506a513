/* SPDX-License-Identifier: MIT */
/*
 * stream.h - one socket and the parser of what comes out of it, and what makes a server of it that we may use
 */
#ifndef LK__STREAM_H
#define LK__STREAM_H

#include "config/options.h"
#include "redis/reply.h"
#include "redis/server.h"
#include "redis/transport.h"

/* --- stream.c -------------------------------------------------------------------------------------------- */

struct lk__stream {
    atomic_int refs;
    struct lk__socket socket;
    void *reader;              /* hiredis' redisReader */
    struct lk__reply *filling; /* what the parser fills next */
    unsigned epoch;            /* of the server at its end; set when it comes up */
    char *out;                 /* bytes not yet taken by the socket: out[out_begin..out_end) */
    size_t out_begin, out_end;
    uint64_t queued, sent; /* bytes ever appended, bytes ever given to the socket */
    char *in;
    bool no_echo; /* this server refuses ECHO: its errors are believed as they come */
};

/* To an address: 0, ETIMEDOUT, ECANCELED, ENOMEM, or what connect() says. */
int lk__stream_connect(struct lk__stream **stream, const struct lk__options *options, const struct addrinfo *address,
                       int64_t until_us, int cancel_fd);
/* Bytes may pass from then on: what the transport's connect() answers. */
int lk__stream_secure(struct lk__stream *stream, const struct lk__options *options, int64_t until_us, int cancel_fd,
                      char *errmsg, size_t size);
void lk__stream_unref(struct lk__stream *stream); /* the last one closes the socket; accepts NULL */
/*
 * What is not given to the socket yet waits in a buffer that never grows, so that sending needs no memory: for all
 * that the watchdog may have under way at once; and of others three quarters of it.
 */
enum {
    LK__COMMAND_MAX = 32 * 1024, /* of one with the text of its script and the longest keys */
    LK__RENEWALS_BYTES = 1 << 20,
    LK__OUT_BYTES = LK__RENEWALS_BYTES + 2 * LK__COMMAND_MAX
};
/* Room behind what is appended, or NULL: first the socket has to take some. It counts once it is committed. */
char *lk__stream_reserve(struct lk__stream *stream, size_t length);
void lk__stream_commit(struct lk__stream *stream, size_t length);
/* 0, or ENOBUFS: nothing appended. */
int lk__stream_append(struct lk__stream *stream, const char *bytes, size_t length);
bool lk__stream_readable(const struct lk__stream *stream); /* does anything lie there to be read? */
/* Bytes that the socket has not taken. */
static inline size_t lk__stream_waiting(const struct lk__stream *stream)
{
    return stream->out_end - stream->out_begin;
}
/* Something may lie there that poll() does not see. Who waits for the stream takes that first. */
static inline bool lk__stream_more(const struct lk__stream *stream)
{
    return atomic_load_explicit(&stream->socket.more, memory_order_relaxed);
}
/* What to poll the socket for: to read, and to give it what waits. */
static inline short lk__stream_wants(const struct lk__stream *stream)
{
    return (short)(stream->socket.read_on | (lk__stream_waiting(stream) > 0 ? stream->socket.write_on : 0));
}
/* Give the socket what it takes. 0, or EIO: the connection is gone. */
int lk__stream_give(struct lk__stream *stream);
/* Append one ECHO of `number`, in room that is kept for it. The one before must have been given to the socket. */
void lk__stream_echo(struct lk__stream *stream, uint64_t number);
/* Why it is gone, in words, and if it is no accident the code of that, unless `code` is NULL. */
const char *lk__stream_why(const struct lk__stream *stream, int *code);
/* Take what the socket has, once. 0 something came, EAGAIN nothing there, EIO gone, ENOMEM. */
int lk__stream_take(struct lk__stream *stream);
/* Next whole reply in stream->filling: 0, EAGAIN not yet, EPROTO unreadable, ENOMEM. */
int lk__stream_next(struct lk__stream *stream);

/* --- stream.c: is an answer in its place? ----------------------------------------------------------------- */

/* "*2 $4 ECHO $20 <number>", in the form of the protocol. */
enum { LK__ECHO_LENGTH = 41 };
void lk__echo_print(char bytes[LK__ECHO_LENGTH + 1], uint64_t number);

/*
 * Is `reply` what an ECHO of `number` is answered, so that all answers before it were in their places? So is a
 * refusal of ECHO itself, and BUSY or NOAUTH in the same words as `error`, the last answer before: the server
 * refuses everything. `error` is "" if that was none.
 */
bool lk__echo_proves(const struct lk__reply *reply, uint64_t number, const char *error);

/* --- handshake.c ----------------------------------------------------------------------------------------- */

enum { LK__ERRMSG_MAX = 384 };

struct lk__serverinfo {
    int64_t before_us, server_us;   /* the server's TIME, asked not before this local moment */
    char run_id[LK__RUNID_MAX + 1]; /* "": it does not tell */
    int64_t born_us;                /* by then, on our clock, it ran already; 0: it does not tell */
    bool replica;                   /* it says that it is one */
    bool refused;                   /* it knows no such user, or another password */
    unsigned epoch;                 /* filled in by the connector */
    char warning[112];              /* what its users should know of this server; "" for nothing */
    char missing[LK__ACL_MAX];      /* rights that some objects need and the user has not: "+zcard ~latchkey:*" */
    struct lk__survey *told;          /* NULL, or to be freed */
};

/*
 * AUTH, SELECT, role, time, run id, of a quorum's server its age, and with `inspect` version, eviction policy and the rights
 * that the library needs. EACCES: the user lacks some that all need. `errmsg` says why it failed.
 */
int lk__handshake(struct lk__stream *stream, const struct lk__server *server, bool inspect, int64_t until_us,
                  int cancel_fd, struct lk__serverinfo *info, char *errmsg, size_t size);

#endif
