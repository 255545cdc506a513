/* SPDX-License-Identifier: MIT */
/*
 * connection.h - connections that many threads share, and the thread that brings them up
 *
 * A connection is full duplex and has no thread of its own: a caller appends its command and writes it;
 * the first one that waits reads for all, and hands that role on when it leaves. What is sent
 * has a place in the connection until it is answered: a caller that leaves early abandons it, and its answer is
 * dropped.
 */
#ifndef LK__CONNECTION_H
#define LK__CONNECTION_H

#include "redis/command.h"
#include "redis/server.h"
#include "redis/server_clock.h"
#include "redis/stream.h"

#include <poll.h>

/* --- connector.c ----------------------------------------------------------------------------------------- */

/* What the thread of a connector does beside, at times: the map of a cluster. Its owner may be gone when look() comes back. */
struct lk__lookout {
    int64_t (*due_us)(const struct lk__lookout *lookout); /* when look() is to be called; LK__NEVER */
    void (*look)(const struct lk__lookout *lookout);
};

struct lk__connector {
    atomic_int refs; /* the client's and the thread's */
    struct lk__mu mu;
    pthread_cond_t work;    /* with mu: something is wanted, or stop */
    pthread_cond_t settled; /* with mu: the thread ended, or is in the resolver or in OpenSSL */
    struct lk__link wanted; /* under mu: connections to bring up */
    const struct lk__server *serving; /* under mu: where its thread brings one up; NULL: it does not */
    bool stopping;          /* under mu: the thread touches no connection any more */
    bool ended;             /* under mu */
    bool resolving;         /* under mu: in the resolver, which cannot be interrupted */
    bool securing;          /* under mu: in OpenSSL, which rarely takes long */
    /* under mu, set once: who knows where the master is; NULL: the options do */
    struct lk__sentinels *sentinels;
    int wake_fd;                       /* under mu: wakes the thread beside `work` where there are Sentinels; -1 */
    const struct lk__lookout *lookout; /* under mu: something else that its thread looks after; NULL: nothing */
    int cancel_fd;                     /* readable once stopping */
    char host[NI_MAXHOST];             /* thread only: what is resolved and secured, also when its node is gone */
    pthread_t thread;
};

int lk__connector_start(struct lk__connector **connector); /* 0 or ENOMEM */
/* Before a connection to it is wanted: ask the Sentinels of its options, if there are any, where it is. 0 or ENOMEM. */
int lk__connector_watch(struct lk__connector *connector, struct lk__server *server);
/* Its thread ends, now or when the resolver or OpenSSL lets it; connections are not touched afterwards. */
void lk__connector_stop(struct lk__connector *connector);
void lk__connector_unref(struct lk__connector *connector);
/* Under its mutex: has its thread to do with that server, or will have? Else it begins only when that was left. */
bool lk__connector_serves(struct lk__connector *connector, const struct lk__server *server);

/* There is something for its thread to do. */
static inline void lk__connector_wake(struct lk__connector *connector)
{
    assert(lk__mu_held(&connector->mu));
    pthread_cond_signal(&connector->work);
    if (connector->wake_fd >= 0)
        lk__eventfd_set(connector->wake_fd);
}

/* --- connection.c ---------------------------------------------------------------------------------------- */

enum lk__request_state {
    LK__IDLE,     /* never sent */
    LK__INFLIGHT, /* sent, or about to be */
    LK__ANSWERED, /* its reply is there */
    LK__CUT,      /* the connection went before a reply came: may be executed */
    LK__GARBLED,  /* the same, because the server's answer could not be read */
    LK__UNSENT    /* the connection went before it was sent whole: not executed */
};

enum { LK__GARBLED_MAX = 2 }; /* so many in a row are EPROTO: the first may be an accident of its connection */

/* A thread that waits on a connection. */
struct lk__waiting {
    struct lk__link link;      /* under mu: in conn->waiting while it sleeps */
    struct lk__parker *parker; /* where; NULL: it never does */
    bool open;                 /* a signal handler ends its sleep, and it is a cancellation point with that state: */
    int cancel_state;
    int64_t until_us;          /* of one that waits for a message: it leaves by then */
};

/* How a request names its script: by its SHA1, or by its text. ASKING stands before one that an ASK sent elsewhere. */
enum lk__manner { LK__BY_SHA1, LK__BY_TEXT, LK__BY_ASKING };

/* What a server's answer means for the request that it answers: see judge.h. */
enum lk__ruling {
    LK__UNANSWERED, /* there is none */
    LK__ANSWER,   /* one that its script gives */
    LK__AGAIN,    /* nothing was done: it is sent again at once, to where lk__node_for() says now */
    LK__PASSES,   /* nothing was done, or a part: it is sent again after a pause */
    LK__REFUSED,  /* the same would be said again */
    LK__SENSELESS /* no error, and no answer that its script gives: what was done is unknown */
};

struct lk__judged {
    enum lk__ruling ruling;
    int code;               /* of all but ANSWER and AGAIN: what the request ends with, if that is its end */
    bool elsewhere;         /* of AGAIN and PASSES: another node has the key ... */
    bool ask;               /* ... and takes it from who says ASKING */
    bool half;              /* of all but ANSWER and AGAIN: it may have been done, or a part of it */
    bool scattered;         /* of PASSES: the cluster moves some of its keys */
    bool uncovered;         /* of REFUSED: access rules do not cover one of its keys */
    bool wrong_type;        /* of REFUSED: a key is of another type */
    bool no_master;         /* of PASSES: the server became a replica */
};

/*
 * What somebody asked, who keeps it until it is in flight no longer, or abandons it. It may lie on a stack: what the
 * connection has to remember of it, also when it is abandoned, is in a place of the connection's own.
 */
struct lk__request {
    _Atomic int state;         /* enum lk__request_state; leaves INFLIGHT under the connection's mu */
    bool urgent;               /* it may take what is kept for renewals */
    bool admitted;             /* it waited for room, or was sent before: it passes those who wait for their turn */
    bool acknowledged;         /* under mu: enough replicas have what it wrote */
    enum lk__manner manner;    /* how it goes, or went; an answer that it has to go again says how */
    unsigned hops;             /* how often in a row it was told to go elsewhere */
    uint64_t place;            /* under mu: which one it has among the pending */
    struct lk__waiting waiting; /* whose thread wants to know */
    /* Under mu, and maybe some time before it leaves INFLIGHT: this is the answer. Keeps what its owner needs. */
    void (*take)(struct lk__request *request, const struct lk__reply *reply);
    struct lk__reply *reply;         /* NULL, or where the answer is copied to */
    char *says;                      /* NULL, or where an error's words are put, or the first text of an answer ... */
    size_t says_size;                /* ... and how much room there is */
    const struct lk__script *script; /* that answers */
    struct lk__judged judged;        /* what its answer means ... */
    struct lk__answer answer;        /* ... and how that begins */
    unsigned garbled;                /* how often in a row its answer could not be read */
    struct lk__conn *conn;       /* where it was sent last; NULL: nowhere yet */
    int64_t sent_us;             /* before its first byte was written */
    unsigned long long connects; /* the number of the stream that it was sent on ... */
    unsigned epoch;              /* ... and the epoch of the server there */
    unsigned size;               /* bytes that it has as it is sent */
};

/* A request that was sent and has no answer yet, or one that is not believed. */
struct lk__pending {
    struct lk__request *request; /* NULL: abandoned, or an ECHO, a WAIT or ASKING of our own */
    bool echo, wait, asking;
    int64_t number;  /* what its answer says third */
    int64_t sent_us; /* as the request's */
    uint64_t end;    /* position of its last byte in the stream */
};

enum { LK__DOUBT_BYTES = 256 };

/* What those who wait saw when they last looked at the reader. */
struct lk__readerlook {
    uint64_t moves;
    int64_t since_us;  /* so long there was something to do, and it was not done; 0: never looked */
    int64_t looked_us; /* when they last looked */
};

/*
 * A message that answers no request came by the `connects`-th connection, which is to a server of `epoch`: the present one
 * may be to another by now. On the thread that reads; no lock held.
 */
typedef void lk__message_t(void *arg, unsigned long long connects, unsigned epoch, const struct lk__reply *reply);

struct lk__conn {
    struct lk__mu mu;
    struct lk__stream *stream; /* under mu; NULL: down */
    /* under mu: a ring, by their numbers; answered ones that are believed when the ECHO is, and unanswered ones */
    struct lk__pending *pending;
    unsigned capacity;                /* how many; a power of two, one of them for the ECHO */
    uint64_t oldest, unanswered, end; /* under mu: the first of each, and who comes next */
    bool echoing;                     /* under mu: an ECHO is among them ... */
    uint64_t echo_number;             /* under mu: ... which says this; a new number each time */
    char doubted[LK__DOUBT_BYTES];    /* under mu: the last answer that is not believed, if it is an error; or "" */
    int replicas;                     /* 0, or how many are to acknowledge each answer; see answers.c, as of: */
    bool gathers;                     /* under mu: a WAIT is under way, ... */
    uint64_t wait_end;                /* under mu: ... whose last byte has this position in the stream */
    uint64_t gathered, settled;       /* under mu: the first one without a WAIT, and whose WAIT has no answer */
    struct lk__link waiting;          /* under mu: threads that sleep until somebody reads, and could read; see read.c */
    struct lk__waiting *reader;       /* under mu: who reads, or is about to; NULL: the owner, or nobody */
    bool dispatching;                 /* under mu: who reads gives out replies and will flush */
    int64_t flushed_us;               /* under mu: when one last did: what waited for that has no answer sooner */
    uint64_t term;                    /* under mu: a new number for each reader; who has an old one reads no more */
    uint64_t moves;                   /* under mu: how often somebody came back from a poll, or had an answer to give */
    struct lk__readerlook look;       /* under mu */
    bool full;                        /* under mu: somebody waits for room, and others do not pass */
    unsigned admitted;                /* under mu: threads that were told of room and did not come yet ... */
    size_t admitted_bytes;            /* under mu: ... and what they will send */
    bool closed;                      /* under mu: for good */
    int64_t ended_us;                 /* under mu: when a stream last ended; 0: never */
    unsigned failures;                /* under mu: attempts that failed since it was last up */
    int last_error;                   /* under mu: code of the last of them */
    char errmsg[LK__ERRMSG_MAX];      /* under mu: words of it */
    char missing[LK__ACL_MAX];        /* under mu: as its greeting told */
    struct lk__link expecting;        /* under mu: who waits for it to come up */
    int wake_fd;                      /* ends the reader's poll */
    int owner_wake_fd;                /* eventfd of the thread that owns this connection, -1: none */
    /* under mu, of a connection with an owner; see read.c */
    int64_t left_us;                 /* when the last reader left */
    bool owner_polls;                /* the owner is at the stream itself */
    bool expects;                    /* nobody read since something was posted */
    int64_t owner_until_us;          /* when the owner looks again by itself; 0: now */
    bool wanted;                     /* under the connector's mu */
    struct lk__link link;            /* under the connector's mu: in wanted */
    int rank;                        /* lower ones are brought up first */
    atomic_bool serves;              /* the present stream brought an answer: it is worth to be made anew at once */
    int64_t up_us, due_us, pause_us; /* the connector thread's: up since, to be made at, the pause before that */
    struct lk__connector *connector;
    struct lk__server *server;
    atomic_ullong numbers;  /* drawn for requests */
    const char *what;       /* "command", for logs */
    bool inspect;           /* look at version and policy when it comes up */
    lk__message_t *message; /* NULL: replies answer requests */
    void *arg;
    unsigned epoch; /* under mu: of the server that it is or was up to; the same are: */
    int64_t born_us;                /* by then, on our clock, it ran already */
    char run_id[LK__RUNID_MAX + 1]; /* "": it does not tell */
    /* under mu: where the server's clock was; an upper bound of its time is server + (now - before) */
    int64_t clock_before_us, clock_server_us;
    int64_t clock_slack_us; /* under mu: by so much that bound may be too high, as long as the answer took */
    atomic_ullong connects, round_trips, reloads; /* statistics */
};

/* At most `capacity` requests, a power of two, are under way at once; 0: its answers are messages. 0 or ENOMEM. */
int lk__conn_init(struct lk__conn *conn, struct lk__connector *connector, struct lk__server *server, const char *what,
                  unsigned capacity);
/* A thread of its own serves it: see lk__node_own(). */
void lk__conn_own(struct lk__conn *conn, int wake_fd, lk__message_t *message, void *arg);
void lk__conn_want(struct lk__conn *conn);    /* have it brought up if it is down; returns at once */
void lk__conn_close(struct lk__conn *conn);   /* for good; cuts what is in flight */
void lk__conn_destroy(struct lk__conn *conn); /* closed, and no thread uses it */

/*
 * Append a command and write it, in the request's manner, unless who reads will. `sent`: what its script takes of that.
 * Returns 0 · ENOTCONN down: it is being brought up; or there is no room before the server took something: see
 * lk__conn_awaitup(); or what is sent has dates of another epoch, which cannot be said anew · ECANCELED closed. But for
 * 0 the request is IDLE and nothing was sent. Needs no memory.
 * Locks: takes conn->mu.
 */
int lk__conn_send(struct lk__conn *conn, struct lk__request *request, const struct lk__command *command,
                  const struct lk__sent *sent);
/* The same for bytes whose answer comes as a message. ENOTCONN also if this is not the `connects`-th connection. */
int lk__conn_post(struct lk__conn *conn, unsigned long long connects, const char *bytes, size_t length);
/* A message was an answer. */
static inline void lk__conn_serves(struct lk__conn *conn)
{
    atomic_store_explicit(&conn->serves, true, memory_order_relaxed);
}

/*
 * Wait until `request` is in flight no longer, its parker gets LK__WOKEN, or `until_us`; reads for all meanwhile
 * if nobody else does. What lies in the socket by then is read first. The caller looks itself at what happened. True: woken.
 */
bool lk__request_await(struct lk__request *request, int64_t until_us);
/*
 * Likewise for those who come again and again, each time for a moment: what lies in the socket then waits for the next one.
 */
bool lk__request_awaitbriefly(struct lk__request *request, int64_t until_us);

/* Nobody wants the reply any more: the request is its owner's, and IDLE if it flew. */
void lk__request_abandon(struct lk__request *request);

/*
 * Wait until the connection is up and has room for a request, an attempt failed, `parker` gets LK__WOKEN, or
 * `until_us`. Returns 0 up · ENOTCONN (or what the trouble's code is, but ENOMEM) an attempt failed since `failures` was
 * read, or the time is up and the last one had failed · ECANCELED closed · EINTR woken · ETIMEDOUT.
 */
int lk__conn_awaitup(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us);
/* Likewise with room for that request, whose turn it is then; a cancellation point with that state while it sleeps. */
int lk__conn_awaitopen(struct lk__conn *conn, struct lk__request *request, unsigned failures, int64_t until_us,
                       int cancel_state);
unsigned lk__conn_failures(struct lk__conn *conn);
int64_t lk__conn_ended(struct lk__conn *conn); /* when it was last up and ended; 0: never */
/* Words of the last failed attempt; returns its code, 0 if none failed since it was up. */
int lk__conn_lasterror(struct lk__conn *conn, char *errmsg, size_t size);

/*
 * For the one thread that owns these connections: poll them together with `extra`, then read and hand out what came, unless
 * a thread that waits does. Fills extra[].revents, and may return sooner.
 */
void lk__conn_serve(struct lk__conn *const conns[], int count, struct pollfd *extra, int extra_count, int64_t until_us);

/*
 * lk__parker_parkopen() of a thread that a message of such a connection may wake: it may read the connection meanwhile,
 * and hand out what comes for all, so that no other thread has to be woken first. No lock is held.
 */
unsigned lk__conn_listen(struct lk__conn *conn, struct lk__parker *parker, int64_t until_us, int cancel_state);

/*
 * For a thread that shares a connection and does not wait on it: read what came for `request` and others, unless
 * somebody else reads. Never waits.
 */
void lk__request_look(struct lk__request *request);

/* Likewise if it goes to a server of another epoch than that. */
void lk__conn_leave(struct lk__conn *conn, unsigned epoch, const char *why);
void lk__conn_rest(struct lk__conn *conn); /* an idle stream ends */
void lk__conn_endifclosed(struct lk__conn *conn); /* likewise if the server ended it: what is sent then is unknown */
/* It is of no use at present: the same, and who waits for one is told so. */
void lk__conn_retire(struct lk__conn *conn, const char *why);
/*
 * End the `connects`-th stream because it is dead or of no use, and have another one made. Who found out late, when there
 * is another one by then, leaves that alone.
 */
void lk__conn_reset(struct lk__conn *conn, unsigned long long connects, const char *why);
bool lk__conn_isup(struct lk__conn *conn);

/* Who is, or was, at the other end. */
struct lk__peerinfo {
    unsigned epoch;                 /* 0: nobody yet */
    int64_t born_us;                /* by then, on our clock, it ran already */
    char run_id[LK__RUNID_MAX + 1]; /* "": it does not tell */
};
void lk__conn_peer(struct lk__conn *conn, struct lk__peerinfo *peer);

/* Called by the connector. */
void lk__conn_up(struct lk__conn *conn, struct lk__stream *stream, const struct lk__serverinfo *info);
void lk__conn_failed(struct lk__conn *conn, int code, const char *errmsg);

/*
 * From `now_us` on for `lasts_us`: the latest time that the clock of the server to which the connection last went can
 * show then, and by when, on ours, it has certainly passed that.
 */
struct lk__until lk__conn_until(struct lk__conn *conn, int64_t now_us, int64_t lasts_us);

#endif
