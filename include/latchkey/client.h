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
 *          while it is being made, as all descriptors of the library.
 */
#ifndef LATCHKEY_CLIENT_H
#define LATCHKEY_CLIENT_H

#include <latchkey/api.h>
#include <latchkey/events.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_client lk_client_t;

/*
 * Open a client and connect it once.
 *
 *   client    receives the client, on success only
 *   url       NULL: $LATCHKEY_URL, else $REDIS_URL, else redis://127.0.0.1:6379.
 *             redis://[user:password@]host[:port][/db][?key=value...],
 *             valkey:// likewise, unix:///path/to/socket[?db=n&...].
 *             Durations carry a unit: lease=1500ms. The keys are described in
 *             docs/configuration.md; one that is not known is an error, but in
 *             $REDIS_URL, which other libraries read, too: there what only they know is
 *             left out with a warning.
 *
 * Returns     0          connected
 *             EINVAL     the URL cannot be read, or its times cannot work together
 *             ENOTCONN   no server there would serve it, within the connect timeout
 *             EACCES     the server refuses the credentials, or access rules keep the user
 *                        from what every object needs: the words name what to add.
 *                        What only some objects need is a warning in the log; with
 *                        strict=yes, to be kept from INFO
 *             EPROTO     what answers is no Redis
 *             ENOTSUP    a scheme that this build or version cannot serve; a server
 *                        older than the floor; with strict=yes also one that may
 *                        evict live locks, or does not tell
 *             ENOMEM     out of memory, descriptors or threads
 * Threads     any
 * Round trips 1 to connect, 1 pipeline of probes
 * Frees       lk_client_close()
 */
LK_API LK_MUST_CHECK_INIT int lk_client_open(lk_client_t **client, const char *url);

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
LK_API LK_MUST_CHECK_INIT int lk_client_open_file(lk_client_t **client, const char *json_path);

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
LK_API LK_MUST_CHECK_INIT int lk_client_default(lk_client_t **client);

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
LK_API LK_MUST_CHECK int lk_client_setdefault(lk_client_t *client);

/*
 * Set the URL with which the default client will be opened, before anybody used it. A
 * fork's child has the URL of its parent. It replaces a client that was set.
 *
 *   url       copied; read as by lk_client_open(), but not opened. NULL: as if none had
 *             been set, $LATCHKEY_URL and so on
 *
 * Returns     0
 *             EINVAL     the URL cannot be read, or its times cannot work together
 *             ENOTSUP    a scheme that this build or version cannot serve
 *             EBUSY      as lk_client_setdefault()
 *             ENOMEM     nothing changed, as after each error
 * Threads     any
 * Round trips 0
 */
LK_API LK_MUST_CHECK int lk_client_setdefaulturl(const char *url);

/*
 * End a client: its waiting calls return ECANCELED, its holds are released, its
 * threads end; its listeners are told of what happened until then. The caller sees
 * to it that no thread begins a new call with `client` itself; objects of it may
 * still be used and answer ECANCELED, and stay valid until each is destroyed.
 *
 *   client    gone after this call, whatever it returns (but EDEADLK); NULL is
 *             allowed and does nothing
 *
 * Returns     0          all holds are confirmed released; or others still have it from
 *                        lk_client_default(), and nothing ended
 *             EIO        something ends with its lease instead
 *             EDEADLK    called from a listener, and nobody else has it; nothing was done
 * Threads     any but a listener's; takes two command timeouts at most, and waits for a
 *             listener that is running to return
 * Round trips 1 for all holds together
 */
LK_API int lk_client_close(lk_client_t *client);

/*
 * Call `listener` for each event from now on, beside those that others added: each of
 * them hears of every event. Several changes of one hold that a listener had no time
 * for come as the last one. LK_EVENT_LOST always comes: while it waits, it keeps the
 * memory of its hold, and one that is more than 4096 holds behind is told of the oldest
 * as one event, with their number in `count`.
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
LK_API LK_MUST_CHECK_INIT int lk_events_open(lk_client_t *client, lk_events_t **queue);

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
LK_API LK_MUST_CHECK int lk_events_fd(lk_events_t *queue, int *fd);

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
LK_API LK_MUST_CHECK int lk_events_next(lk_events_t *queue, lk_event_t *event);

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
LK_API LK_MUST_CHECK int lk_client_stats(lk_client_t *client, char **json);

#ifdef __cplusplus
}
#endif

#endif
