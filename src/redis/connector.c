/* SPDX-License-Identifier: MIT */
/*
 * connector.c - the thread that resolves, connects and greets, so that no caller has to
 *
 * A resolver knows no deadline and a handshake wants stack; callers have little of either. The first
 * attempt is made at once; after a failure all connections to that server wait, doubling with jitter. A handshake alone is no success: a connection that ended before it brought an answer
 * waits by itself, likewise, and the others do not.
 *
 * Guards: connector->mu the list of wanted connections; the innermost lock but for a parker's. It is not
 * held while connecting.
 */
#include "redis/clocks.h"
#include "redis/login.h"
#include "redis/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SPREAD_US = 50000, CUT_US = 500, FAILOVER_US = 200000, SECURED_WITHIN_US = 500000 };

static struct lk__identity identity_of(const struct lk__stream *stream, const char *run_id)
{
    struct lk__identity found = { .address_size = sizeof found.address };
    if (getpeername(stream->socket.fd, (struct sockaddr *)&found.address, &found.address_size) != 0)
        found.address_size = 0;
    snprintf(found.run_id, sizeof found.run_id, "%s", run_id);
    return found;
}

/* Who is there says that it is a replica. */
static void demoted(struct lk__server *server, const struct lk__stream *stream)
{
    struct lk__identity found = identity_of(stream, "");
    lk__server_demoted(server, &found);
}

/* Add to the words where that was. Of several places what fails for good tells most, then the last one. */
static int tell(const struct lk__search *search, int told, int code, const char *why, char *errmsg, size_t size)
{
    char where[128], place[160] = "";
    if (told != 0 && told != ENOTCONN)
        return told;
    const struct lk__options *options = &search->server->options;
    lk__options_print(options, where, sizeof where);
    if (lk__options_failover(options) && search->place != NULL)
        snprintf(place, sizeof place, "%.128s:%d: ", search->place->host, search->place->port);
    snprintf(errmsg, size, "%s: %s%s", where, place, why);
    /* What was right once may be so again. */
    return code == EINVAL && search->server->epoch != 0 ? ENOTCONN : code;
}

/* When a client is opened all clocks are compared; later on that of the next master with the last one's. */
static int compare_clocks(const struct lk__search *search, const struct lk__conn *conn, struct lk__stream *stream,
                          const struct lk__serverinfo *info, char *why, size_t size)
{
    struct lk__server *server = search->server;
    const struct lk__ahead ahead = lk__clocks_ahead(info->before_us, lk__now_us(), info->server_us);
    if (!conn->inspect || !lk__options_failover(&server->options))
        return 0;
    int64_t differ_us = lk__clocks_differ(&server->ahead, &ahead);
    bool known = server->ahead.most_us != 0; /* a lane that is not inspected may have come up first */
    if (server->epoch != 0 && known && llabs(differ_us) > server->options.clock_skew_ms * 1000)
        lk__log(LK_LOG_WARNING, "the master's clock is %lld ms %s that of the last one, more than clock_skew=%lldms",
                llabs(differ_us) / 1000, differ_us > 0 ? "ahead of" : "behind",
                (long long)server->options.clock_skew_ms);
    server->ahead = ahead;
    return server->epoch == 0 ? lk__clocks_compare(search, stream, &ahead, why, size) : 0;
}

/* What it told is kept if it is of use, and the first that was told. */
static void keep_told(const struct lk__search *search, struct lk__serverinfo *info, bool good)
{
    struct lk__server *server = search->server;
    struct lk__survey *told = info->told;
    info->told = NULL;
    if (told == NULL)
        return;
    memcpy(told->missing, info->missing, sizeof told->missing);
    memcpy(told->warning, info->warning, sizeof told->warning);
    lk__mu_lock(&search->connector->mu);
    if (good && server->told == NULL) {
        server->told = told;
        told = NULL;
    }
    lk__mu_unlock(&search->connector->mu);
    lk__survey_free(told);
}

/* At the place that the search is at, with the password that is known. */
static int greet(const struct lk__search *search, const struct lk__conn *conn, struct lk__stream **stream,
                 struct lk__serverinfo *info, char *why, size_t size)
{
    struct lk__server *server = search->server;
    *info = (struct lk__serverinfo){ 0 };
    int rc = lk__reach(search->connector, server, search->place, search->place_until_us, search->cancel_fd, stream, why,
                       size);
    if (rc != 0)
        return rc;
    rc = lk__handshake(*stream, server, conn->inspect, search->place_until_us, search->cancel_fd, info, why, size);
    if (rc == 0) {
        lk__reach_remember(server, *stream);
        rc = compare_clocks(search, conn, *stream, info, why, size);
    }
    keep_told(search, info, rc == 0);
    if (rc == 0)
        return 0;
    if (info->replica)
        demoted(server, *stream);
    lk__stream_unref(*stream);
    *stream = NULL;
    return rc;
}

/* The same; a password that is refused may have been replaced meanwhile. */
static int attempt_there(const struct lk__search *search, const struct lk__conn *conn, struct lk__stream **stream,
                         struct lk__serverinfo *info, char *why, size_t size)
{
    int rc = lk__login_ask(search->server, LK__PEER_SERVER, why, size);
    if (rc != 0)
        return rc;
    rc = greet(search, conn, stream, info, why, size);
    if (rc == 0 || !info->refused || !lk__login_renew(search->server, LK__PEER_SERVER))
        return rc;
    return greet(search, conn, stream, info, why, size);
}

/* ECANCELED: the client is being closed, and the node may be gone; or the master may be elsewhere, as Sentinels say. */
static int attempt(struct lk__search *search, const struct lk__conn *conn, struct lk__stream **stream,
                   struct lk__serverinfo *info, char *errmsg, size_t size)
{
    char why[LK__ERRMSG_MAX];
    int rc, told = 0;
    while ((rc = lk__search_next(search, why, sizeof why)) == 0) {
        rc = attempt_there(search, conn, stream, info, why, sizeof why);
        if (rc == 0 || rc == ECANCELED)
            return rc;
        told = tell(search, told, rc, why, errmsg, size);
        if (rc == ENOMEM)
            return told;
    }
    if (rc == ECANCELED)
        return rc;
    return rc == ENOENT ? told : tell(search, told, rc, why, errmsg, size);
}

/* The next pause: doubled up to the longest, minus up to a quarter so that many clients do not come at once. */
static int64_t back_off(int64_t *pause_us, int64_t first_us, int64_t longest_us)
{
    *pause_us = lk__lesser(*pause_us == 0 ? first_us : 2 * *pause_us, longest_us);
    return lk__now_us() + *pause_us - (int64_t)lk__random_below((uint64_t)*pause_us / 4 + 1);
}

/*
 * When to make a connection that was up: soon, but not with all others that a restart has cut, if it was of
 * use, or at least stood for long. Else later and later, and still several times within a command timeout: a bad
 * network may cut a few in a row.
 */
static int64_t again_at(struct lk__conn *conn)
{
    const struct lk__options *options = &conn->server->options;
    int64_t now_us = lk__now_us(), longest_us = options->retry_max_ms * 1000;
    if (!atomic_load(&conn->serves) && now_us - conn->up_us < longest_us)
        return back_off(&conn->pause_us, CUT_US, lk__lesser(longest_us, options->command_timeout_ms * 1000 / 8));
    conn->pause_us = 0;
    return now_us + (int64_t)lk__random_below((uint64_t)lk__lesser(options->retry_min_ms * 1000, SPREAD_US) + 1);
}

/*
 * The connection to make now, or NULL, and when to look again. By their ranks; while attempts fail, by turns, so
 * that each hears why.
 */
static struct lk__conn *next_wanted(struct lk__connector *connector, int64_t *look_us)
{
    assert(lk__mu_held(&connector->mu));
    struct lk__conn *next = NULL;
    int64_t now_us = lk__now_us();
    *look_us = LK__NEVER;
    for (struct lk__link *l = lk__list_first(&connector->wanted); l != NULL; l = lk__list_next(&connector->wanted, l)) {
        struct lk__conn *conn = LK__CONTAINER(l, struct lk__conn, link);
        if (conn->due_us == 0)
            conn->due_us = conn->up_us == 0 ? now_us : again_at(conn);
        int64_t due_us = conn->due_us > conn->server->not_before_us ? conn->due_us : conn->server->not_before_us;
        if (due_us < *look_us)
            *look_us = due_us;
        if (due_us <= now_us && (next == NULL || (conn->server->pause_us == 0 && conn->rank < next->rank)))
            next = conn;
    }
    return next;
}

static bool stopping(struct lk__connector *connector)
{
    lk__mu_lock(&connector->mu);
    bool stop = connector->stopping;
    lk__mu_unlock(&connector->mu);
    return stop;
}

static void warn(const struct lk__conn *conn, const struct lk__serverinfo *info)
{
    char where[128];
    lk__options_print(&conn->server->options, where, sizeof where);
    if (conn->inspect && conn->server->options.tls.unverified)
        lk__log(LK_LOG_WARNING, "%s: verify=no: anybody could answer as this server, and read what it is told", where);
    if (info->warning[0] != '\0')
        lk__log(LK_LOG_WARNING, "%s", info->warning);
    if (info->missing[0] != '\0')
        lk__log(LK_LOG_WARNING,
                "the user's access rules (ACL) lack %s: what needs these commands and keys fails, waiters poll "
                "instead of hearing these channels, and without ECHO errors are believed unproven",
                info->missing);
}

/* Pauses of a server that may be replaced are short, so that the next master is found soon. */
static int64_t longest_pause(const struct lk__options *options)
{
    int64_t longest_us = options->retry_max_ms * 1000;
    return lk__options_failover(options) ? lk__lesser(longest_us, FAILOVER_US) : longest_us;
}

static void came_up(struct lk__search *search, struct lk__conn *conn, struct lk__stream *stream,
                    struct lk__serverinfo *info)
{
    struct lk__server *server = search->server;
    struct lk__identity found = identity_of(stream, info->run_id);
    if (atomic_load(&conn->connects) == 0) /* once, not at each reconnect */
        warn(conn, info);
    if (server->pause_us > 0)
        lk__log(LK_LOG_INFO, "%s connection is up again", conn->what);
    server->pause_us = server->not_before_us = 0;
    conn->up_us = lk__now_us();
    unsigned before = server->epoch;
    info->epoch = lk__server_meet(server, &found);
    info->born_us = lk__server_born(server, before, info->born_us);
    lk__search_found(search);
    lk__conn_up(conn, stream, info);
    if (before != 0 && info->epoch != before && lk__options_failover(&server->options))
        server->move(server, info->epoch);
}

static void failed(struct lk__conn *conn, int code, const char *errmsg)
{
    struct lk__server *server = conn->server;
    if (server->pause_us == 0)
        lk__log(LK_LOG_INFO, "%s connection: %s", conn->what, errmsg);
    server->not_before_us =
        back_off(&server->pause_us, server->options.retry_min_ms * 1000, longest_pause(&server->options));
    lk__conn_failed(conn, code, errmsg);
    if (server->doubt != NULL)
        server->doubt(server);
}

/* It is still wanted, and at once: the master may be elsewhere. */
static void again(struct lk__connector *connector, struct lk__conn *conn)
{
    lk__mu_lock(&connector->mu);
    if (!connector->stopping && conn->wanted) {
        conn->due_us = lk__now_us();
        lk__list_append(&connector->wanted, &conn->link);
    }
    lk__mu_unlock(&connector->mu);
}

static void serve(struct lk__connector *connector, struct lk__conn *conn)
{
    struct lk__search search;
    struct lk__stream *stream = NULL;
    struct lk__serverinfo info = { 0 };
    char errmsg[LK__ERRMSG_MAX];
    lk__search_begin(&search, connector, conn->server);
    int rc = attempt(&search, conn, &stream, &info, errmsg, sizeof errmsg);
    if (rc == ECANCELED && stopping(connector))
        return; /* the connection may be gone */
    if (rc == 0)
        came_up(&search, conn, stream, &info);
    else if (rc == ECANCELED)
        again(connector, conn);
    else
        failed(conn, rc, errmsg);
}

/* The same of one that looks after something else when that is due. */
static void rest_or_look(struct lk__connector *connector, int64_t until_us)
{
    assert(lk__mu_held(&connector->mu));
    const struct lk__lookout *lookout = connector->lookout;
    int64_t due_us = lookout->due_us(lookout);
    if (due_us > lk__now_us()) {
        lk__cond_wait(&connector->work, &connector->mu, lk__lesser(due_us, until_us));
        return;
    }
    lk__mu_unlock(&connector->mu);
    lookout->look(lookout);
    lk__mu_lock(&connector->mu);
}

/* Until a connection may be wanted, or `until_us`. Where there are Sentinels, they are heard meanwhile. */
static void rest(struct lk__connector *connector, int64_t until_us)
{
    assert(lk__mu_held(&connector->mu));
    if (connector->lookout != NULL) {
        rest_or_look(connector, until_us);
        return;
    }
    if (connector->sentinels == NULL) {
        lk__cond_wait(&connector->work, &connector->mu, until_us);
        return;
    }
    lk__mu_unlock(&connector->mu);
    lk__sentinels_watch(connector->sentinels, until_us);
    lk__mu_lock(&connector->mu);
}

static void *run(void *arg)
{
    struct lk__connector *connector = arg;
    lk__mu_lock(&connector->mu);
    while (!connector->stopping) {
        int64_t look_us;
        struct lk__conn *conn = next_wanted(connector, &look_us);
        if (conn == NULL) {
            rest(connector, look_us);
            continue;
        }
        lk__list_remove(&conn->link);
        conn->due_us = conn->up_us = 0;
        connector->serving = conn->server;
        lk__mu_unlock(&connector->mu);
        serve(connector, conn);
        lk__mu_lock(&connector->mu);
        connector->serving = NULL;
    }
    connector->ended = true;
    pthread_cond_signal(&connector->settled);
    lk__mu_unlock(&connector->mu);
    lk__connector_unref(connector);
    return NULL;
}

static void destroy(struct lk__connector *connector)
{
    if (connector->sentinels != NULL)
        lk__sentinels_free(connector->sentinels);
    pthread_cond_destroy(&connector->work);
    pthread_cond_destroy(&connector->settled);
    lk__mu_destroy(&connector->mu);
    lk__fd_close(connector->cancel_fd);
    lk__free(connector);
}

void lk__connector_unref(struct lk__connector *connector)
{
    if (atomic_fetch_sub(&connector->refs, 1) == 1)
        destroy(connector);
}

int lk__connector_start(struct lk__connector **connector)
{
    struct lk__connector *fresh = lk__alloc(sizeof *fresh);
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    fresh->cancel_fd = lk__eventfd_open();
    if (fresh->cancel_fd < 0) {
        lk__free(fresh);
        return lk__fail(ENOMEM, "no descriptor left for a client");
    }
    fresh->refs = 2;
    fresh->wake_fd = -1;
    lk__list_init(&fresh->wanted);
    lk__mu_init(&fresh->mu, LK__MU_CONNECTOR);
    lk__cond_init(&fresh->work);
    lk__cond_init(&fresh->settled);
    int rc = lk__thread_start(&fresh->thread, "lk-connector", run, fresh);
    if (rc != 0) {
        destroy(fresh);
        return rc;
    }
    *connector = fresh;
    return 0;
}

int lk__connector_watch(struct lk__connector *connector, struct lk__server *server)
{
    struct lk__sentinels *sentinels;
    if (server->options.service == NULL)
        return 0;
    int rc = lk__sentinels_new(&sentinels, connector, server);
    if (rc != 0)
        return rc;
    lk__mu_lock(&connector->mu);
    connector->sentinels = sentinels;
    connector->wake_fd = lk__sentinels_wakefd(sentinels);
    pthread_cond_signal(&connector->work); /* its thread may sleep there already */
    lk__mu_unlock(&connector->mu);
    return 0;
}

bool lk__connector_serves(struct lk__connector *connector, const struct lk__server *server)
{
    assert(lk__mu_held(&connector->mu));
    bool serves = connector->serving == server;
    for (struct lk__link *l = lk__list_first(&connector->wanted); l != NULL; l = lk__list_next(&connector->wanted, l))
        serves |= LK__CONTAINER(l, struct lk__conn, link)->server == server;
    return serves;
}

/* May lk__connector_stop() go on? All that the thread does elsewhere ends as `cancel_fd` is readable. */
static bool is_settled(const struct lk__connector *connector, int64_t until_us)
{
    return connector->ended || connector->resolving || (connector->securing && lk__now_us() >= until_us);
}

void lk__connector_stop(struct lk__connector *connector)
{
    int64_t until_us = lk__now_us() + SECURED_WITHIN_US;
    lk__mu_lock(&connector->mu);
    connector->stopping = true; /* before attempts end early, or the thread would make one after the other */
    lk__eventfd_set(connector->cancel_fd);
    lk__connector_wake(connector);
    while (!is_settled(connector, until_us))
        lk__cond_wait(&connector->settled, &connector->mu, connector->securing ? until_us : LK__NEVER);
    bool ended = connector->ended;
    lk__mu_unlock(&connector->mu);
    if (ended)
        pthread_join(connector->thread, NULL);
    else
        pthread_detach(connector->thread);
}
