/* SPDX-License-Identifier: MIT */
/*
 * redis.h - scripts, commands, replies, and connections that many threads share
 *
 * A connection is full duplex and has no thread of its own: a caller appends its command and writes it;
 * the first one that waits reads for all (the leader) and hands that role on when it leaves. What is sent
 * has a place in the connection until it is answered: who leaves early abandons it, and its answer is dropped.
 */
#ifndef LK__REDIS_H
#define LK__REDIS_H

#include "base/base.h"
#include "config/options.h"
#include "redis/vocabulary.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

/* --- scripts: made by the build from the .lua files, see cmake/scripts.py ------------------------ */

enum lk__argument_kind {
    LK__ARG_TEXT,        /* a member of the script's args ... */
    LK__ARG_NUMBER,      /* ... likewise */
    LK__ARG_FLAGS,       /* `flags` of its args and those that are sent, as one number */
    LK__ARG_SENT_TEXT,   /* a member of struct lk__sent ... */
    LK__ARG_SENT_NUMBER, /* ... likewise */
    LK__ARG_SENT_FLAGS,  /* the flags of that alone */
    LK__ARG_REQUEST      /* the number of the request */
};

/* One ARGV of a script, and where in its struct the value is. */
struct lk__argument {
    unsigned char kind; /* enum lk__argument_kind */
    unsigned short at;
};

/* How a reply goes on with this verdict, a letter an element: n, t; behind ? they may be missing, * repeats. */
struct lk__shape {
    enum lk__verdict verdict;
    const char *elements;
};

struct lk__script {
    const char *name;   /* "lock/acquire" */
    const char *source; /* with its shared parts in it */
    size_t length;
    const char *sha1; /* of source */
    int keys;         /* number of KEYS */

    /* NULL and 0 of one whose callers make the call and read the reply themselves */
    const unsigned short *key_at; /* offsets in the module's struct of keys */
    const struct lk__argument *args;
    int arg_count;
    unsigned flags, sent_flags; /* those that it takes */
    const struct lk__shape *shapes;
    int shape_count;
};

/* --- command.c: a call of a script ------------------------------------------------------------------ */

/*
 * What is to be called with what. Nothing of it is formatted until it is sent, so it has to stay until no copy can
 * be sent any more.
 */
struct lk__command {
    const struct lk__script *script;
    const void *keys; /* the module's struct of keys */
    const void *args; /* the script's struct of arguments; NULL if it takes none */
};

/* Where keys and arguments of commands lie: of an object, which may go before the last of them is sent. */
struct lk__block {
    atomic_int refs;
    struct lk__block *under; /* NULL, or one that stays as long as this: what lies here points into it */
};

struct lk__block *lk__block_ref(struct lk__block *block); /* accepts NULL */
void lk__block_unref(struct lk__block *block);            /* the last one frees it; accepts NULL */
/* A copy of `size` bytes of arguments, in a block of its own over `under`. NULL: ENOMEM, with an error text. */
struct lk__block *lk__block_copy(const void *args, size_t size, struct lk__block *under, const void **copy);

/* The first key; there is one. `length` is its length. */
const char *lk__command_key(const struct lk__command *command, size_t *length);

/* A call in words, as they are written into a connection: made anew each time it is sent, on the caller's stack. */
enum { LK__WIRE_WORDS = 32, LK__WIRE_DIGITS = 20 };

struct lk__wire {
    int count;
    size_t size; /* of the whole */
    struct {
        const char *text;
        size_t length;
    } words[LK__WIRE_WORDS];
    char numbers[LK__WIRE_WORDS][LK__WIRE_DIGITS]; /* those among the words */
};

/*
 * The words of a call, by its script's SHA1 or `as_text`. `request` is the number that the answer has to say. It
 * points into the command's structs, and into itself.
 */
void lk__wire_make(struct lk__wire *wire, const struct lk__command *command, const struct lk__sent *sent,
                   int64_t request, bool as_text);
void lk__wire_write(const struct lk__wire *wire, char *out); /* wire->size bytes */

/* --- reply.c: one reply, flat ---------------------------------------------------------------------- */

enum { LK__REPLY_MAX = 64, LK__REPLY_BYTES_MAX = 1 << 20 };

enum lk__type { LK__NONE, LK__NIL, LK__INTEGER, LK__TEXT, LK__ERROR, LK__ARRAY };

struct lk__value {
    enum lk__type type;
    unsigned length; /* of a text */
    union {
        int64_t number; /* of an integer */
        size_t at;      /* of a text: its offset in the reply's memory */
    };
};

struct lk__reply {
    enum lk__type type;
    unsigned count;                         /* elements of an array; 1 for anything else */
    struct lk__value values[LK__REPLY_MAX]; /* what an array holds in arrays of its own is left out */
    char *text;                             /* NUL after each text */
    size_t text_used, text_capacity;
    bool cut_short;  /* there was no memory for a text */
    int64_t came_us; /* when it was read */
};

struct lk__reply *lk__reply_new(void);        /* for a parser: its text grows. NULL when out of memory */
void lk__reply_free(struct lk__reply *reply); /* accepts NULL */

/*
 * Make `copy`, whose text has a room, the same as `reply`. A text that does not go in is shortened: what our scripts
 * answer does, and errors are told apart by how they begin.
 */
void lk__reply_copy(struct lk__reply *copy, const struct lk__reply *reply);

/* Where one who asks has an answer put: on its stack. */
enum { LK__REPLYBUF_BYTES = 384 };

struct lk__replybuf {
    struct lk__reply reply;
    char text[LK__REPLYBUF_BYTES];
};
/* The reply of one that is empty. */
struct lk__reply *lk__replybuf_reply(struct lk__replybuf *buf);

const char *lk__reply_text(const struct lk__reply *reply, unsigned index); /* "" for what is no text */
int64_t lk__reply_number(const struct lk__reply *reply, unsigned index);   /* 0 for what is no integer */
/* True when it is an array that begins with `count` integers. */
bool lk__reply_integers(const struct lk__reply *reply, unsigned count);

/* What every script answers first; the number of the request comes third. */
struct lk__answer {
    enum lk__verdict verdict;
    int64_t server_us; /* the server's time in it */
};
enum { LK__ANSWER_LEAST = 3 };

/* Does it take a deadline? */
bool lk__script_islimited(const struct lk__script *script);
/* False: this is no answer that the script gives. */
bool lk__answer_read(const struct lk__script *script, const struct lk__reply *reply, struct lk__answer *answer);

/* The code for an error reply; `retry` tells that nothing was done and it may work later. */
int lk__reply_error(const struct lk__reply *reply, bool *retry);
bool lk__reply_is(const struct lk__reply *reply, const char *error_code); /* "NOSCRIPT" */

/* --- stream.c: one socket and the parser of what comes out of it ------------------------------------ */

struct lk__stream {
    atomic_int refs;
    int fd;
    void *reader;              /* hiredis' redisReader */
    struct lk__reply *filling; /* what the parser fills next */
    char *out;                 /* bytes not yet taken by the socket: out[out_begin..out_end) */
    size_t out_begin, out_end;
    uint64_t queued, sent; /* bytes ever appended, bytes ever given to the socket */
    char *in;
    bool no_echo; /* this server refuses ECHO: its errors are believed as they come */
};

/* To the first of `addresses` that takes it: 0, ETIMEDOUT, ECANCELED, ENOMEM, or what connect() says. */
int lk__stream_connect(struct lk__stream **stream, const struct lk__options *options, const struct addrinfo *addresses,
                       int64_t until_us, int cancel_fd);
void lk__stream_unref(struct lk__stream *stream); /* the last one closes the socket; accepts NULL */
/*
 * What is not given to the socket yet waits in a buffer that never grows, so that sending needs no memory: for all
 * that the watchdog may have under way at once, as text; and of others three quarters of it.
 */
enum { LK__OUT_BYTES = 1 << 20, LK__COMMAND_MAX = 20 * 1024 /* of one, as text */ };
/* Room behind what is appended, or NULL: first the socket has to take some. It counts once it is committed. */
char *lk__stream_reserve(struct lk__stream *stream, size_t length);
void lk__stream_commit(struct lk__stream *stream, size_t length);
/* 0, or ENOBUFS: nothing appended. */
int lk__stream_append(struct lk__stream *stream, const char *bytes, size_t length);
size_t lk__stream_waiting(const struct lk__stream *stream); /* bytes that the socket has not taken */
/* Give the socket what it takes. 0, or EIO: the connection is gone. */
int lk__stream_give(struct lk__stream *stream);
bool lk__stream_pending(const struct lk__stream *stream);
/* Append one ECHO of `number`, in room that is kept for it. The one before must have been given to the socket. */
void lk__stream_echo(struct lk__stream *stream, uint64_t number);
/* Take what the socket has, once. 0 something came, EAGAIN nothing there, EIO gone, ENOMEM. */
int lk__stream_take(struct lk__stream *stream);
/* Next whole reply in stream->filling: 0, EAGAIN not yet, EPROTO unreadable, ENOMEM. */
int lk__stream_next(struct lk__stream *stream);

/* --- echo.c: is an answer in its place? --------------------------------------------------------------- */

/* "*2 $4 ECHO $20 <number>", in the form of the protocol. */
enum { LK__ECHO_LENGTH = 41 };
void lk__echo_print(char bytes[LK__ECHO_LENGTH + 1], uint64_t number);

/*
 * Is `reply` what an ECHO of `number` is answered, so that all answers before it were in their places? So is a
 * refusal of ECHO itself, and BUSY or NOAUTH in the same words as `error`, the last answer before: the server
 * refuses everything. `error` is "" if that was none.
 */
bool lk__echo_proves(const struct lk__reply *reply, uint64_t number, const char *error);

/* --- handshake.c: from a socket to a server that we may use ------------------------------------------ */

enum { LK__ACL_MAX = 256, LK__ERRMSG_MAX = 320 };

struct lk__serverinfo {
    int64_t before_us, server_us; /* the server's TIME, asked not before this local moment */
    char warning[112];            /* what its users should know of this server; "" for nothing */
    char missing[LK__ACL_MAX];    /* rights that some objects need and the user has not: "+zcard ~latchkey:*" */
};

/*
 * AUTH, SELECT, role, time, and with `inspect` version, eviction policy and the rights that the library
 * needs. EACCES: the user lacks some that all need. Words in `words`.
 */
int lk__handshake(struct lk__stream *stream, const struct lk__options *options, bool inspect, int64_t until_us,
                  int cancel_fd, struct lk__serverinfo *info, char *errmsg, size_t size);

/* --- connector.c: the thread that resolves, connects and greets, so that no caller has to ------------- */

struct lk__conn;

struct lk__connector {
    atomic_int refs; /* the client's and the thread's */
    struct lk__options options;
    struct lk__mu mu;
    pthread_cond_t work;             /* with mu: something is wanted, or stop */
    pthread_cond_t settled;          /* with mu: the thread ended, or is in the resolver */
    struct lk__link wanted;          /* under mu: connections to bring up */
    bool stopping;                   /* under mu: the thread touches no connection any more */
    bool ended;                      /* under mu */
    bool resolving;                  /* under mu: in the resolver, which cannot be interrupted */
    int cancel_fd;                   /* readable once stopping */
    int64_t pause_us, not_before_us; /* thread only: back-off after a failure */
    struct sockaddr_storage last;    /* thread only: where a server answered, should the resolver fail */
    socklen_t last_size;             /* thread only; 0: nowhere yet */
    pthread_t thread;
};

/* Takes what `options` holds, on success only. 0 or ENOMEM. */
int lk__connector_start(struct lk__connector **connector, struct lk__options *options);
/* Its thread ends, now or when the resolver lets it; connections are not touched afterwards. */
void lk__connector_stop(struct lk__connector *connector);
void lk__connector_unref(struct lk__connector *connector);

/* --- connection.c ---------------------------------------------------------------------------------------- */

enum lk__request_state {
    LK__IDLE,     /* never sent */
    LK__INFLIGHT, /* sent, or about to be */
    LK__ANSWERED, /* its reply is there */
    LK__CUT,      /* the connection went before a reply came: may be executed */
    LK__GARBLED,  /* the same, because the server's answer could not be read */
    LK__UNSENT    /* the connection went before it was sent whole: not executed */
};

/*
 * What somebody asked, who keeps it until it flies no longer, or abandons it. It may lie on a stack: what the
 * connection has to remember of it, also when it is abandoned, is in a place of the connection's own.
 */
struct lk__request {
    _Atomic int state;         /* enum lk__request_state; leaves FLYING under the connection's mu */
    bool waiting;              /* under mu: a thread is parked on it and could lead */
    bool urgent;               /* it may take what is kept for renewals */
    uint64_t place;            /* under mu: which one it has among the pending */
    struct lk__parker *parker; /* whose owner wants to know; NULL: nobody parks on it */
    /* Under mu, and maybe some time before it leaves FLYING: this is the answer. Keeps what its owner needs of it. */
    void (*take)(struct lk__request *request, const struct lk__reply *reply);
    struct lk__reply *reply; /* where lk__request_copy() puts the answer */
    int64_t sent_us;         /* before its first byte was written */
};

/* Its answer is copied into `reply`. */
void lk__request_init(struct lk__request *request, struct lk__parker *parker, struct lk__reply *reply);
void lk__request_copy(struct lk__request *request, const struct lk__reply *reply);

/* A request that was sent and has no answer yet, or one that is not believed. */
struct lk__pending {
    struct lk__request *request; /* NULL: abandoned, or an ECHO of our own */
    bool echo;
    int64_t number;  /* what its answer says third */
    int64_t sent_us; /* as the request's */
    uint64_t end;    /* position of its last byte in the stream */
};

/* Who is brought up first: leases end, callers wait, waiters poll. */
enum lk__rank { LK__RANK_WATCHDOG, LK__RANK_COMMAND, LK__RANK_HUB };

enum { LK__DOUBT_BYTES = 256 };

struct lk__conn {
    struct lk__mu mu;
    struct lk__stream *stream; /* under mu; NULL: down */
    /* under mu: a ring, by their numbers; answered ones that are believed when the ECHO is, and unanswered ones */
    struct lk__pending *pending;
    unsigned places;                  /* as many; a power of two, one of them is the ECHO's */
    uint64_t oldest, unanswered, end; /* under mu: the first of each, and who comes next */
    bool echoing;                     /* under mu: an ECHO is among them ... */
    uint64_t echo_number;             /* under mu: ... which says this; a new number each time */
    char expect_duplicates
        [LK__DOUBT_BYTES];       /* under mu: the last answer that is not believed, if it is an error; or "" */
    struct lk__request *leader;  /* under mu: who reads, or is about to; NULL: nobody */
    bool leading;                /* under mu: the leader is at it */
    bool dispatching;            /* under mu: the leader gives out replies and will flush */
    uint64_t term;               /* under mu: a new number for each leader; who has an old one leads no more */
    uint64_t moves;              /* under mu: how often a leader came back from its poll */
    bool full;                   /* under mu: somebody found no room, and is told when there is some */
    bool closed;                 /* under mu: for good */
    int64_t ended_us;            /* under mu: when a stream last ended; 0: never */
    unsigned failures;           /* under mu: attempts that failed since it was last up */
    int last_error;              /* under mu: code of the last of them */
    char errmsg[LK__ERRMSG_MAX]; /* under mu: words of it */
    char missing[LK__ACL_MAX];   /* under mu: as its greeting told */
    struct lk__link expecting;   /* under mu: who waits for it to come up */
    int wake_fd;                 /* ends the leader's poll */
    int owner_wake_fd;           /* eventfd of the thread that owns this connection, -1: none */
    bool wanted;                 /* under the connector's mu */
    struct lk__link link;        /* under the connector's mu: in wanted */
    enum lk__rank rank;
    atomic_bool serves;              /* the present stream brought an answer: it is worth to be made anew at once */
    int64_t up_us, due_us, pause_us; /* the connector thread's: up since, to be made at, the pause before that */
    struct lk__connector *connector;
    atomic_ullong numbers; /* drawn for requests */
    const char *what;      /* "command", for logs */
    bool inspect;          /* look at version and policy when it comes up */
    /* A message that answers no request; owner's thread, no lock held. NULL: replies answer requests. */
    void (*message)(void *arg, const struct lk__reply *reply);
    void *arg;
    /* under mu: where the server's clock was; an upper bound of its time is server + (now - before) */
    int64_t clock_before_us, clock_server_us;
    int64_t clock_slack_us; /* under mu: by so much that bound may be too high, as long as the answer took */
    atomic_ullong connects, round_trips, reloads; /* statistics */
};

/* At most `places` requests, a power of two, are under way at once; 0: its answers are messages. 0 or ENOMEM. */
int lk__conn_init(struct lk__conn *conn, struct lk__connector *connector, const char *what, unsigned places);
void lk__conn_want(struct lk__conn *conn);    /* have it brought up if it is down; returns at once */
void lk__conn_close(struct lk__conn *conn);   /* for good; cuts what flies */
void lk__conn_destroy(struct lk__conn *conn); /* closed, and no thread uses it */

/*
 * Append a command and write it, unless the leader will. `eval` sends the script's text instead of
 * its SHA1. `sent`: what its script takes of that.
 * Returns 0 · ENOTCONN down: it is being brought up; or there is no room before the server took something: see
 * lk__conn_awaitup() · ECANCELED closed. But for 0 the request is IDLE and nothing was sent. Needs no memory.
 * Locks: takes conn->mu.
 */
int lk__conn_send(struct lk__conn *conn, struct lk__request *request, const struct lk__command *command,
                  const struct lk__sent *sent, bool eval);
/* The same for bytes whose answer comes as a message. ENOTCONN also if this is not the `connects`-th connection. */
int lk__conn_post(struct lk__conn *conn, unsigned long long connects, const char *bytes, size_t length);
void lk__conn_serves(struct lk__conn *conn); /* a message was an answer */

/*
 * Wait until `request` no longer flies, its parker gets LK__WOKEN, or `until_us`; reads for all meanwhile
 * if nobody else does. The caller looks itself at what happened. True: woken.
 */
bool lk__conn_await(struct lk__conn *conn, struct lk__request *request, int64_t until_us);

/* Nobody wants the reply any more: the request is its owner's, and IDLE if it flew. */
void lk__conn_abandon(struct lk__conn *conn, struct lk__request *request);

/*
 * Wait until the connection is up and has room for a request, an attempt failed, `parker` gets LK__WOKEN, or
 * `until_us`. Returns 0 up · ENOTCONN (or what the trouble's code is, but ENOMEM) an attempt failed since `failures` was
 * read, or the time is up and the last one had failed · ECANCELED closed · EINTR woken · ETIMEDOUT.
 */
int lk__conn_awaitup(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us);
/* Likewise, and a cancellation point with that state while it sleeps. */
int lk__conn_awaitopen(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us,
                       int cancel_state);
unsigned lk__conn_failures(struct lk__conn *conn);
int64_t lk__conn_ended(struct lk__conn *conn); /* when it was last up and ended; 0: never */
/* Words of the last failed attempt; returns its code, 0 if none failed since it was up. */
int lk__conn_lasterror(struct lk__conn *conn, char *errmsg, size_t size);

/*
 * For the one thread that owns a connection nobody else awaits: poll it together with `extra`, then read
 * and hand out what came; have it brought up while it is down. Fills extra[].revents.
 */
void lk__conn_serve(struct lk__conn *conn, struct pollfd *extra, int extra_count, int64_t until_us);

/*
 * For a thread that shares a connection and does not wait on it: read what came for `request` and others, unless
 * somebody else reads. Never waits.
 */
void lk__conn_look(struct lk__conn *conn, struct lk__request *request);

/* End the present stream because it is dead or of no use; it is brought up again when wanted. */
void lk__conn_reset(struct lk__conn *conn, const char *why);
bool lk__conn_isup(struct lk__conn *conn);

/* Called by the connector. */
void lk__conn_up(struct lk__conn *conn, struct lk__stream *stream, const struct lk__serverinfo *info);
void lk__conn_failed(struct lk__conn *conn, int code, const char *errmsg);

/* Could a server's clock show that? What could not is left alone, so that sums of times stay in range. */
bool lk__is_servertime(int64_t server_us);
/* The latest time the server's clock can show at `now_us`. */
int64_t lk__conn_servertime(struct lk__conn *conn, int64_t now_us);
/* By when, on our clock, the server's has certainly passed what lk__conn_servertime() says of `moment_us`. */
int64_t lk__conn_passedby(struct lk__conn *conn, int64_t moment_us);

/* --- call.c: a command that waits for nobody ---------------------------------------------------------------- */

struct lk__call {
    struct lk__conn *conn;
    const char *what; /* words begin with it */
    const struct lk__command *command;
    struct lk__sent sent;    /* but for the deadline, which is filled in at each sending */
    int64_t lasts_us;        /* how far ahead that is; 0: until the end of the call, one command timeout */
    bool only_once;          /* a copy would do harm: after a lost connection it is not sent again */
    struct lk__reply *reply; /* NULL, or where to put an answer with longer texts */
    bool repeated;           /* told: an earlier copy may have taken effect */
    int64_t sent_us;         /* told: when the one was sent that is answered */
    struct lk__replybuf own; /* the answer, unless that is put elsewhere */
};

/*
 * Send a command and await its answer for one command timeout; the answer is in call->reply. Returns 0: an answer that is no error · ENOTCONN
 * nothing was sent, or the server would not · EIO the outcome is unknown · what the server's refusal means · ECANCELED
 * · ENOMEM. With an error text.
 */
int lk__call_run(struct lk__call *call);
/* EPROTO, with an error text: this is no answer that the script gives. */
int lk__call_garbled(const char *what);

/* --- acl.c: what access rules keep from us ------------------------------------------------------------- */

/*
 * 0, or EACCES when the user of this connection lacks one of `commands` ("del exists ..."), as far as it is
 * known since it came up. With an error text that begins with `what`.
 */
int lk__acl_check(struct lk__conn *conn, const char *what, const char *commands);

/* The server refused a script with an error of this code. Words for it; returns `code`. */
int lk__acl_refused(int code, const char *what, const struct lk__command *command, const struct lk__reply *reply);

/* Did access rules refuse the script as a whole, for a key, so that nothing of it was done? */
bool lk__acl_unbegun(const struct lk__reply *reply);

#endif
