/* SPDX-License-Identifier: MIT */
/*
 * client.h - a client: one server, one identity, and the threads that keep its
 * holds alive
 *
 * Server   Redis 7.0 or Valkey 7.2 and newer.
 * Threads  a client has a thread that connects, from its first hold on one that
 *          renews leases, from its first wait on one that listens for wake-ups,
 *          and with a listener one that calls its listeners. They block all signals,
 *          and a process ends without them, as by exit(0), when the last
 *          thread of the program ended.
 * Fork     the child of a fork owns nothing: an explicitly opened client and its
 *          objects answer ECANCELED there, objects of the default client bind
 *          anew on their first use, unless that was set by lk_client_setdefault().
 *          No byte goes out on the parent's sockets, which are closed in the child
 *          while it is being made, as all descriptors of the library. A fork
 *          waits for connections that are being made in OpenSSL, for 500 ms; if one
 *          takes longer, TLS is ENOTCONN in the child until it calls exec().
 */
#ifndef LATCHKEY_CLIENT_H
#define LATCHKEY_CLIENT_H

#include <latchkey/api.h>
#include <latchkey/events.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_client lk_client_t;

/* Longest user and password that a function for them may give, in bytes. */
#define LK_USER_MAX 255
#define LK_PASSWORD_MAX 8191

/* Who a client is to its server: what a lk_provider_t is asked for. */
typedef struct lk_credentials {
    size_t size;                        /* sizeof(lk_credentials_t) of the library's version; see api.h on sizes */
    int sentinel;                       /* 1: at a Sentinel; 0: at a server */
    int refused;                        /* 1: what it gave last was refused just now; 0: a connection is to be made */
    char user[LK_USER_MAX + 1];         /* to be filled in: "", none, as for requirepass */
    char password[LK_PASSWORD_MAX + 1]; /* likewise: "", none, nobody is named */
} lk_credentials_t;

/*
 * Says who the client is: a function of the program's, for passwords that change, and
 * tokens that end.
 *
 *   credentials  to be filled in; both texts are empty before. The library copies them
 *                at once and overwrites them, and its copy when it is replaced
 *   arg          as given to lk_client_openwith()
 *
 * Returns      0          filled in
 *              errno code there are none now: the attempt to connect fails with EACCES,
 *                         lk_errortext() has the words of the code, and it is made again
 *                         later, as all that fail
 * Runs on      a thread of the library that connects and does nothing else, with no lock
 *              held, one call at a time; all signals are blocked. Called for each
 *              connection that is made, and when the server refuses what it gave once
 *              more, with `refused` set: other credentials are tried at once. It has to
 *              return, soon: meanwhile nothing connects, its time is part of
 *              connect_timeout, and lk_client_openwith() and lk_client_close() wait for
 *              it. So what takes long it has ready from elsewhere. It calls nothing of
 *              this library
 */
typedef int (*lk_provider_t)(lk_credentials_t *credentials, void *arg);

/* What a client is opened with. */
typedef struct lk_clientattr {
    size_t size;            /* sizeof(lk_clientattr_t); see LK_CLIENTATTR_INIT */
    const char *url;        /* as of lk_client_open(); with a file it is NULL */
    const char *json_path;  /* as of lk_client_open_file(); NULL: there is none */
    lk_provider_t provider; /* NULL: user and password are those of the URL or file */
    void *arg;              /* handed to it */
    /* What the client says of itself, for people: lk_inspect_who(). NULL or "": as URL or file
       say. Where these have describe=no, nothing is said, and these three are left alone */
    const char *program;   /* its name; else the one that it was called by, without its folder */
    const char *arguments; /* those it was called with, if they may be known: whoever reads the server reads them */
    const char *why;       /* a reason: "nightly export" */
} lk_clientattr_t;

/* clang-format off */
#define LK_CLIENTATTR_INIT { sizeof(lk_clientattr_t), NULL, NULL, NULL, NULL, NULL, NULL, NULL }
/* clang-format on */

/*
 * Open a client and connect it once.
 *
 *   client    receives the client, on success only
 *   url       NULL: $LATCHKEY_URL, else $REDIS_URL, else redis://127.0.0.1:6379. That
 *             last default is another server on each host, so the log warns of it, once
 *             per process.
 *             redis://[user:password@]host[:port][/db][?key=value...],
 *             valkey:// likewise, unix:///path/to/socket[?db=n&...]. With TLS
 *             rediss:// or valkeys://, and cacert=FILE for who is trusted. Several
 *             servers that replace each other: redis://host,host,host, or their
 *             Sentinels: redis-sentinel://host,host,host/master.
 *             Durations carry a unit: lease=1500ms. The keys are described in
 *             docs/configuration.md; one that is not known is an error, but in
 *             $REDIS_URL, which other libraries read, too: there what only they know is
 *             left out with a warning.
 *
 * Returns     0          connected
 *             EINVAL     the URL cannot be read, its times cannot work together, or a file
 *                        that it names for TLS is of no use
 *             ENOTCONN   no server there would serve it, within the connect timeout, or
 *                        with TLS it did not show who it is
 *             EACCES     the server refuses the credentials or, with TLS, the client's
 *                        certificate; or access rules keep the user
 *                        from what every object needs: the words name what to add.
 *                        What only some objects need is a warning in the log; with
 *                        strict=yes, to be kept from INFO
 *             EPROTO     what answers is no Redis
 *             ENOTSUP    what is asked for a cluster's map is no cluster; a server
 *                        older than the floor; with strict=yes also one that may
 *                        evict live locks, or has fewer replicas than
 *                        wait_replicas, or does not tell
 *             ENOMEM     out of memory, descriptors or threads
 * Threads     any
 * Round trips 1 to connect, 1 pipeline of probes
 * Frees       lk_client_close()
 */
LK_API LK_MUST_CHECK int lk_client_open(lk_client_t **client, const char *url);

/*
 * The same with the options of a JSON file; docs/configuration.md lists its keys.
 *
 *   json_path read once, now
 *
 * Returns     as lk_client_open(); EINVAL also for a file that cannot be read: the
 *             words name file, line and key. ENOENT: no such file
 * Threads     as lk_client_open()
 * Round trips as lk_client_open()
 */
LK_API LK_MUST_CHECK int lk_client_open_file(lk_client_t **client, const char *json_path);

/*
 * The same with attributes, among them a function that says who the client is.
 *
 *   attr      NULL: all defaults, as lk_client_open(client, NULL). Copied, as are its
 *             texts. With a provider neither URL nor file has a password; that of
 *             Sentinels they may have, and the provider is not asked for it then
 *
 * Returns     as lk_client_open() and lk_client_open_file(). EINVAL also for attributes
 *             whose size no version has, for a URL and a file, and for a password beside
 *             a provider. EACCES also if the provider gave nothing, or what it gave was
 *             refused
 * Threads     as lk_client_open(); not from a provider
 * Round trips as lk_client_open(); one more if the server refuses at first
 * Frees       lk_client_close(), after which the provider is not called any more
 */
LK_API LK_MUST_CHECK int lk_client_openwith(lk_client_t **client, const lk_clientattr_t *attr);

/*
 * The client that static initialisers and a NULL client mean: the one that
 * lk_client_setdefault() set, else one that is opened by the first call that needs it, as
 * lk_client_open(&client, url) with what lk_client_setdefaulturl() set, else with NULL.
 * Each call counts as a user, beside who opened it: the client ends with the last
 * lk_client_close(). So a library that has static objects asks for it when it is loaded,
 * and closes it when it is unloaded; nobody ends it under the others.
 *
 *   client    receives it, on success only
 *
 * Returns     as lk_client_open(). A failure is reported to whoever needed the
 *             client at that time; the next call tries again. EINVAL: client is NULL.
 *             ECANCELED: the one that was set was closed, or is the parent's of this
 *             fork's child. No other is opened in its place, which might be elsewhere
 * Threads     any; one opens it, the others wait for that and get the same client.
 *             Those who have time left when such an attempt fails slowly try once
 *             more, again one of them for all
 * Frees       lk_client_close(), once for each call. It need not be closed: a process may
 *             simply end. After it was closed by all, the next call opens a new one.
 */
LK_API LK_MUST_CHECK int lk_client_default(lk_client_t **client);

/*
 * Make an open client the default one, before anybody used the default client.
 *
 *   client    stays its opener's to close: static objects do not keep it open, other users
 *             of lk_client_default() do. NULL: none, as if none had been set
 *
 * Returns     0
 *             EBUSY      there is a default client that was used, or one is just being
 *                        opened; nothing changed. Once it is closed by all, another may
 *                        be set
 *             ECANCELED  client is closed, or belongs to another process
 *             ENOMEM     nothing changed
 * Threads     any
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_client_setdefault(lk_client_t *client);

/*
 * Set the URL with which the default client will be opened, before anybody used it. A
 * fork's child has the URL of its parent. It replaces a client that was set.
 *
 *   url       copied; read as by lk_client_open(), but not opened. NULL: as if none had
 *             been set, $LATCHKEY_URL and so on
 *
 * Returns     0
 *             EINVAL     the URL cannot be read, or its times cannot work together
 *             EBUSY      as lk_client_setdefault()
 *             ENOMEM     nothing changed, as after each error
 * Threads     any
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_client_setdefaulturl(const char *url);

/*
 * End a client: its waiting calls return ECANCELED, its holds are released, its
 * threads end; its listeners are told of what happened until then. A robust hold of
 * a thread that ended ends with its lease, and the next holder is told EOWNERDEAD. The
 * caller sees to it that no thread begins a new call with `client` itself; objects of
 * it may still be used and answer ECANCELED, and stay valid until each is destroyed.
 *
 *   client    gone after this call, whatever it returns (but EBUSY and EDEADLK); NULL is
 *             allowed and does nothing
 *
 * Returns     0          all holds are confirmed released; or others still have it from
 *                        lk_client_default(), and nothing ended
 *             EIO        something ends with its lease instead
 *             EBUSY      a thread did not leave a call with it in time: it stands still
 *                        there, in a signal handler or a debugger, and would use what
 *                        is freed. The holds are released, in the background where
 *                        the server did not confirm that in time, and all calls answer
 *                        ECANCELED; close it once more when that thread is through, and
 *                        unload nothing before
 *             EDEADLK    called from a listener, and nobody else has it; nothing was done
 * Threads     any but a listener's, one at a time; takes two command timeouts at most, and
 *             waits for a listener that is running to return. Threads in calls have
 *             five seconds to leave, if that is longer; EBUSY then takes one more command
 *             timeout
 * Round trips 1 for all holds together
 */
LK_API int lk_client_close(lk_client_t *client);

/*
 * Call `listener` for each event from now on, beside those that others added: each of
 * them hears of every event. Several changes of one hold that a listener had no time
 * for come as the last one. LK_EVENT_LOST always comes: while it waits, it keeps the
 * memory of its hold, and one that is more than 4096 events behind is told of the oldest
 * losses as one event, with their number in `count`.
 *
 *   listener  not NULL
 *   arg       handed to it
 *   handle    receives what lk_client_removelistener() takes, before the first call;
 *             never 0, and never given out again. NULL: it is not to be removed
 *
 * Returns     0, EINVAL, ENOMEM (memory, or no thread could be started), ECANCELED
 * Threads     any, also a listener. All listeners of a client run on one thread of it,
 *             one after another: a slow one delays the others
 * Round trips 0
 * Frees       lk_client_removelistener(), or lk_client_close(), which tells it the rest
 */
LK_API int lk_client_addlistener(lk_client_t *client, lk_listener_t listener, void *arg, uint64_t *handle);

/*
 * Call a listener no more. Whatever this returns, the listener is not running then and
 * will not be called again: its code and memory may go. Called from a listener of the
 * same client it does not wait for that one.
 *
 *   handle    from lk_client_addlistener() with this client. What the listener was not
 *             told yet it is not told any more
 *
 * Returns     0          removed
 *             ENOENT     there is none of this handle, or it was removed before
 *             ECANCELED  the client belongs to another process, or its close has begun:
 *                        when that returns no listener is running, or called again
 * Threads     any; waits for a call of this listener to end, so the caller must not have
 *             what that call waits for
 * Round trips 0
 */
LK_API int lk_client_removelistener(lk_client_t *client, uint64_t handle);

/* A queue of events, for poll(), epoll and event loops. */
typedef struct lk_events lk_events_t;

/*
 * Open a queue, which gets every event from now on, whatever other queues and listeners
 * get. As to a listener, several changes of one hold come as the last one, losses always
 * come, and one that is not read for long tells of the oldest losses by their number.
 *
 *   queue     receives it, on success only
 *
 * Returns     0, EINVAL, ENOMEM, ECANCELED
 * Threads     any
 * Round trips 0
 * Frees       lk_events_close(), before lk_client_close() or after
 */
LK_API LK_MUST_CHECK int lk_events_open(lk_client_t *client, lk_events_t **queue);

/*
 * A descriptor that is readable while lk_events_next() has something to say, be it that
 * the client was closed.
 *
 *   fd        receives the descriptor, the same each time. Only to be polled, never
 *             read, written or closed; it lives as long as the queue, and a fork's child
 *             does not have it. A queue that is never asked for it has none
 *
 * Returns     0, EINVAL, ENOMEM (no descriptor left), ECANCELED
 * Threads     any
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_events_fd(lk_events_t *queue, int *fd);

/*
 * Fetch the oldest event of a queue that was not fetched yet.
 *
 *   event     its size set by LK_EVENT_INIT; the rest written on success only
 *
 * Returns     0          fetched
 *             EAGAIN     there is none
 *             ECANCELED  the client was closed, and there is nothing more; or it belongs
 *                        to another process. Losses that were not fetched when it was
 *                        closed come before this, as one event with their number
 *             EINVAL     no queue, or an event whose size no version has
 * Threads     any; each event of a queue is fetched once
 * Round trips 0
 */
LK_API LK_SHOULD_CHECK int lk_events_next(lk_events_t *queue, lk_event_t *event);

/*
 * Close a queue, with its descriptor.
 *
 *   queue     gone after this call; NULL is allowed and does nothing. No thread begins a
 *             call with it any more
 *
 * Returns     0
 * Threads     any
 * Round trips 0
 */
LK_API int lk_events_close(lk_events_t *queue);

/*
 * What this client did so far, as a JSON text: docs/statistics.md has the fields.
 *
 *   json      receives the text, on success only
 *
 * Returns     0, ENOMEM, ECANCELED
 * Threads     any
 * Round trips 0
 * Frees       lk_free(*json)
 */
LK_API LK_SHOULD_CHECK int lk_client_stats(lk_client_t *client, char **json);

/* So many objects may have metrics of their own. */
#define LK_METRICS_OBJECTS_MAX 1000

/*
 * The same for Prometheus: a text in its exposition format (text/plain; version=0.0.4),
 * to be the answer to a scrape. docs/statistics.md has the names.
 *
 *   objects   how many objects have metrics of their own, with their names as a label, at
 *             most: 0 to LK_METRICS_OBJECTS_MAX. Each is five series, for as long as
 *             Prometheus keeps them, so 0 where names are made as the program runs.
 *             Objects beyond that, and those whose name is no UTF-8, are a number. All
 *             others are by the kind of object, however many there are
 *   text      receives the text, on success only. That of another client has the same
 *             names: a page has one of them
 *
 * Returns     0          written
 *             EINVAL     objects is out of range, or text is NULL
 *             ENOMEM     out of memory
 *             ECANCELED  the client is closed, or belongs to another process
 * Threads     any
 * Round trips 0
 * Frees       lk_free(*text)
 */
LK_API LK_SHOULD_CHECK int lk_client_metrics(lk_client_t *client, int objects, char **text);

#ifdef __cplusplus
}
#endif

#endif
