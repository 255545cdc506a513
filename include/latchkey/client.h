/* SPDX-License-Identifier: MIT */
/*
 * client.h - a client: one server, one identity, and the threads that keep its
 * holds alive
 *
 * Server   Redis 7.0 or Valkey 7.2 and newer.
 * Threads  a client has a thread that connects, from its first hold on one that
 *          renews leases, from its first wait on one that listens for wake-ups,
 *          and with a listener one that calls it. They block all signals,
 *          and a process ends without them, as by exit(0), when the last
 *          thread of the program ended.
 * Fork     the child of a fork owns nothing: an explicitly opened client and its
 *          objects answer ECANCELED there, objects of the default client bind
 *          anew on their first use. No byte goes out on the parent's sockets,
 *          which are closed in the child while it is being made, as all
 *          descriptors of the library.
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
 *             docs/configuration.md; one that is not known is an error.
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
 * The client that static initialisers and a NULL client mean: opened by the
 * first call that needs it, as lk_client_open(&client, NULL).
 *
 * Returns     as lk_client_open(). A failure is reported to whoever needed the
 *             client at that time; the next call tries again.
 * Threads     any; one opens it, the others wait for that and get the same client.
 *             Those who have time left when such an attempt fails slowly try once
 *             more, again one of them for all
 * Frees       need not be closed; a process may simply end. lk_client_close()
 *             closes it, and the next call opens a new one.
 */
LK_API LK_MUST_CHECK int lk_client_default(lk_client_t **client);

/*
 * End a client: its waiting calls return ECANCELED, its holds are released, its
 * threads end; its listener is told of what happened until then. The caller sees
 * to it that no thread begins a new call with `client` itself; objects of it may
 * still be used and answer ECANCELED, and stay valid until each is destroyed.
 *
 *   client    gone after this call, whatever it returns (but EDEADLK); NULL is
 *             allowed and does nothing
 *
 * Returns     0          all holds are confirmed released
 *             EIO        something ends with its lease instead
 *             EDEADLK    called from a listener; nothing was done
 * Threads     any but a listener's; takes two command timeouts at most
 * Round trips 1 for all holds together
 */
LK_API int lk_client_close(lk_client_t *client);

/*
 * Call `listener` for each event from now on. Several changes of one hold that
 * the listener had no time for come as the last one; LK_EVENT_LOST always comes.
 *
 *   listener  NULL: none any more. When this returns, the previous listener is
 *             not running and will not be called again (from within a listener:
 *             will not be called again)
 *   arg       handed to it
 *
 * Returns     0, ENOMEM (no thread could be started), ECANCELED
 * Threads     any
 */
LK_API int lk_client_listen(lk_client_t *client, lk_listener_t listener, void *arg);

/*
 * The same events for poll(), epoll and event loops: a descriptor that is readable
 * while lk_client_nextevent() has something. Events count from this call on.
 *
 *   fd        receives the descriptor. Only to be polled, never read, written or
 *             closed; it lives as long as the client, and a fork's child does not
 *             have it
 *
 * Returns     0, ENOMEM, ECANCELED
 * Threads     any
 */
LK_API LK_MUST_CHECK int lk_client_eventfd(lk_client_t *client, int *fd);

/*
 * Fetch the oldest event that was not fetched yet.
 *
 *   event     its size set by LK_EVENT_INIT; the rest written on success only
 *
 * Returns     0, EAGAIN when there is none, ECANCELED, EINVAL
 * Threads     any; each event is fetched once
 */
LK_API LK_MUST_CHECK int lk_client_nextevent(lk_client_t *client, lk_event_t *event);

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
