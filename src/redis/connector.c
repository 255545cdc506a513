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
#include "redis/connection.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SPREAD_US = 50000, CUT_US = 500 };

/* Where to connect: what the resolver found, or the one address of a unix socket. */
struct target {
    struct addrinfo *found; /* to be freed; NULL for a unix socket */
    struct addrinfo local;
    struct sockaddr_un address;
};

/* Words that tell a user what to do about a connect() that failed. */
static int explain(const struct lk__options *options, int error, char *errmsg, size_t size)
{
    char where[128];
    lk__options_print(options, where, sizeof where);
    switch (error) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
        snprintf(errmsg, size, "%s: no memory or descriptor left for a connection", where);
        return ENOMEM;
    case ENAMETOOLONG:
        snprintf(errmsg, size, "%s: the path of a unix socket has at most 107 bytes", where);
        return EINVAL;
    case EHOSTUNREACH:
        snprintf(errmsg, size, "%s: no such host, or no way to it", where);
        return ENOTCONN;
    case ETIMEDOUT:
        snprintf(errmsg, size, "%s: no answer within %lld ms (connect_timeout)", where,
                 (long long)options->connect_timeout_ms);
        return ENOTCONN;
    default:
        snprintf(errmsg, size, "%s: %s; is a server running there?", where, strerrordesc_np(error));
        return ENOTCONN;
    }
}

static int resolve_path(const char *path, struct target *target)
{
    if (strlen(path) >= sizeof target->address.sun_path)
        return ENAMETOOLONG;
    target->address.sun_family = AF_UNIX;
    strcpy(target->address.sun_path, path);
    target->local = (struct addrinfo){ .ai_family = AF_UNIX,
                                       .ai_addr = (struct sockaddr *)&target->address,
                                       .ai_addrlen = sizeof target->address };
    return 0;
}

/* Has the resolver failed to answer, rather than said that there is no such name? */
static bool is_silent(int failed)
{
    return failed == EAI_AGAIN || failed == EAI_FAIL || failed == EAI_SYSTEM;
}

/* Where the server was last, which is better than nowhere. */
static bool recall(struct lk__server *server, struct target *target)
{
    target->local = (struct addrinfo){ .ai_family = server->last.ss_family,
                                       .ai_addr = (struct sockaddr *)&server->last,
                                       .ai_addrlen = server->last_size };
    return server->last_size > 0;
}

static void remember(struct lk__server *server, const struct lk__stream *stream)
{
    socklen_t size = sizeof server->last;
    if (server->options.path == NULL && getpeername(stream->fd, (struct sockaddr *)&server->last, &size) == 0)
        server->last_size = size;
}

/* ECANCELED: stopped meanwhile, and neither connection nor node may be touched. */
static int resolve_host(struct lk__connector *connector, struct lk__server *server, struct target *target)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    snprintf(port, sizeof port, "%d", server->options.port);
    snprintf(connector->host, sizeof connector->host, "%s", server->options.host);

    lk__mu_lock(&connector->mu);
    connector->resolving = true;
    pthread_cond_signal(&connector->settled);
    lk__mu_unlock(&connector->mu);
    int failed = getaddrinfo(connector->host, port, &hints, &target->found);
    lk__mu_lock(&connector->mu);
    connector->resolving = false;
    bool stopping = connector->stopping;
    lk__mu_unlock(&connector->mu);

    if (failed != 0)
        target->found = NULL;
    if (stopping)
        return ECANCELED;
    if (failed == 0 || (is_silent(failed) && recall(server, target)))
        return 0;
    return failed == EAI_MEMORY ? ENOMEM : EHOSTUNREACH;
}

static int connect_in_time(struct lk__connector *connector, struct lk__server *server, struct lk__stream **stream,
                           int64_t until_us)
{
    const struct lk__options *options = &server->options;
    struct target target = { 0 };
    int rc = options->path != NULL ? resolve_path(options->path, &target) : resolve_host(connector, server, &target);
    if (rc == 0)
        rc = lk__stream_connect(stream, options, target.found != NULL ? target.found : &target.local, until_us,
                                connector->cancel_fd);
    if (target.found != NULL)
        freeaddrinfo(target.found);
    return rc;
}

static int attempt(struct lk__connector *connector, struct lk__conn *conn, struct lk__stream **stream,
                   struct lk__serverinfo *info, char *errmsg, size_t size)
{
    const struct lk__options *options = &conn->server->options;
    int64_t until_us = lk__now_us() + options->connect_timeout_ms * 1000;
    int rc = connect_in_time(connector, conn->server, stream, until_us);
    if (rc == ECANCELED) { /* the node may be gone */
        snprintf(errmsg, size, "the client was closed");
        return rc;
    }
    if (rc != 0)
        return explain(options, rc, errmsg, size);
    char where[128], why[LK__ERRMSG_MAX];
    rc = lk__handshake(*stream, conn->server, conn->inspect, until_us, connector->cancel_fd, info, why, sizeof why);
    if (rc == 0) {
        remember(conn->server, *stream);
        return 0;
    }
    lk__options_print(options, where, sizeof where);
    snprintf(errmsg, size, "%s: %s", where, why);
    lk__stream_unref(*stream);
    return rc;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next pause: doubled up to the longest, minus up to a quarter so that many clients do not come at once. */
static int64_t back_off(int64_t *pause_us, int64_t first_us, int64_t longest_us)
{
    *pause_us = lesser(*pause_us == 0 ? first_us : 2 * *pause_us, longest_us);
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
        return back_off(&conn->pause_us, CUT_US, lesser(longest_us, options->command_timeout_ms * 1000 / 8));
    conn->pause_us = 0;
    return now_us + (int64_t)lk__random_below((uint64_t)lesser(options->retry_min_ms * 1000, SPREAD_US) + 1);
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

static void warn(const struct lk__serverinfo *info)
{
    if (info->warning[0] != '\0')
        lk__log(LK_LOG_WARNING, "%s", info->warning);
    if (info->missing[0] != '\0')
        lk__log(LK_LOG_WARNING,
                "the user's access rules (ACL) lack %s: what needs these commands and keys fails, waiters poll "
                "instead of hearing these channels, and without ECHO errors are believed unproven",
                info->missing);
}

/* A connection came up: whose epoch is it? */
static unsigned epoch_of(struct lk__server *server, const struct lk__stream *stream, const struct lk__serverinfo *info)
{
    struct lk__identity found = { .address_size = sizeof found.address };
    if (getpeername(stream->fd, (struct sockaddr *)&found.address, &found.address_size) != 0)
        found.address_size = 0;
    memcpy(found.run_id, info->run_id, sizeof found.run_id);
    return lk__server_meet(server, &found);
}

static void serve(struct lk__connector *connector, struct lk__conn *conn)
{
    struct lk__stream *stream = NULL;
    struct lk__serverinfo info = { 0 };
    char errmsg[LK__ERRMSG_MAX];
    int rc = attempt(connector, conn, &stream, &info, errmsg, sizeof errmsg);
    if (rc == ECANCELED && stopping(connector))
        return; /* the connection may be gone */
    conn->server->demoted |= info.replica;
    if (rc == 0) {
        if (atomic_load(&conn->connects) == 0) /* once, not at each reconnect */
            warn(&info);
        if (conn->server->pause_us > 0)
            lk__log(LK_LOG_INFO, "%s connection is up again", conn->what);
        conn->server->pause_us = conn->server->not_before_us = 0;
        conn->up_us = lk__now_us();
        info.epoch = epoch_of(conn->server, stream, &info);
        lk__conn_up(conn, stream, &info);
        return;
    }
    if (conn->server->pause_us == 0)
        lk__log(LK_LOG_INFO, "%s connection: %s", conn->what, errmsg);
    conn->server->not_before_us = back_off(&conn->server->pause_us, conn->server->options.retry_min_ms * 1000,
                                           conn->server->options.retry_max_ms * 1000);
    lk__conn_failed(conn, rc, errmsg);
}

static void *run(void *arg)
{
    struct lk__connector *connector = arg;
    lk__mu_lock(&connector->mu);
    while (!connector->stopping) {
        int64_t look_us;
        struct lk__conn *conn = next_wanted(connector, &look_us);
        if (conn == NULL) {
            lk__cond_wait(&connector->work, &connector->mu, look_us);
            continue;
        }
        lk__list_remove(&conn->link);
        conn->due_us = conn->up_us = 0;
        lk__mu_unlock(&connector->mu);
        serve(connector, conn);
        lk__mu_lock(&connector->mu);
    }
    connector->ended = true;
    pthread_cond_signal(&connector->settled);
    lk__mu_unlock(&connector->mu);
    lk__connector_unref(connector);
    return NULL;
}

static void destroy(struct lk__connector *connector)
{
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

void lk__connector_stop(struct lk__connector *connector)
{
    lk__eventfd_set(connector->cancel_fd);
    lk__mu_lock(&connector->mu);
    connector->stopping = true;
    pthread_cond_signal(&connector->work);
    while (!connector->ended && !connector->resolving)
        lk__cond_wait(&connector->settled, &connector->mu, LK__NEVER);
    bool ended = connector->ended;
    lk__mu_unlock(&connector->mu);
    if (ended)
        pthread_join(connector->thread, NULL);
    else
        pthread_detach(connector->thread);
}
