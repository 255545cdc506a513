/* SPDX-License-Identifier: MIT */
/*
 * connector.c - the thread that resolves, connects and greets, so that no caller has to
 *
 * A resolver knows no deadline and a handshake wants stack; callers have little of either. The first
 * attempt is made at once; after a failure all connections of the client wait, doubling with jitter, as
 * they go to one server.
 *
 * Guards: connector->mu the list of wanted connections; the innermost lock but for a parker's. It is not
 * held while connecting.
 */
#include "redis/redis.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Where to connect: what the resolver found, or the one address of a unix socket. */
struct target {
    struct addrinfo *found; /* to be freed; NULL for a unix socket */
    struct addrinfo local;
    struct sockaddr_un address;
};

/* Words that tell a user what to do about a connect() that failed. */
static int explain(const struct lk__options *options, int error, char *words, size_t size)
{
    char where[128];
    lk__options_print(options, where, sizeof where);
    switch (error) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
        snprintf(words, size, "%s: no memory or descriptor left for a connection", where);
        return ENOMEM;
    case ENAMETOOLONG:
        snprintf(words, size, "%s: the path of a unix socket has at most 107 bytes", where);
        return EINVAL;
    case EHOSTUNREACH:
        snprintf(words, size, "%s: no such host, or no way to it", where);
        return ENOTCONN;
    case ETIMEDOUT:
        snprintf(words, size, "%s: no answer within %lld ms (connect_timeout)", where,
                 (long long)options->connect_timeout_ms);
        return ENOTCONN;
    default:
        snprintf(words, size, "%s: %s; is a server running there?", where, strerrordesc_np(error));
        return error == ECANCELED ? ECANCELED : ENOTCONN;
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

/* ECANCELED: stopped meanwhile, and no connection may be touched. */
static int resolve_host(struct lk__connector *connector, struct target *target)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    snprintf(port, sizeof port, "%d", connector->options.port);

    pthread_mutex_lock(&connector->mu);
    connector->resolving = true;
    pthread_cond_signal(&connector->settled);
    pthread_mutex_unlock(&connector->mu);
    int failed = getaddrinfo(connector->options.host, port, &hints, &target->found);
    pthread_mutex_lock(&connector->mu);
    connector->resolving = false;
    bool stopping = connector->stopping;
    pthread_mutex_unlock(&connector->mu);

    if (failed != 0)
        target->found = NULL;
    if (stopping)
        return ECANCELED;
    return failed == 0 ? 0 : failed == EAI_MEMORY ? ENOMEM : EHOSTUNREACH;
}

static int connect_in_time(struct lk__connector *connector, struct lk__stream **stream, int64_t until_us)
{
    const struct lk__options *options = &connector->options;
    struct target target = { 0 };
    int rc = options->path != NULL ? resolve_path(options->path, &target) : resolve_host(connector, &target);
    if (rc == 0)
        rc = lk__stream_connect(stream, options, target.found != NULL ? target.found : &target.local, until_us,
                                connector->cancel_fd);
    if (target.found != NULL)
        freeaddrinfo(target.found);
    return rc;
}

static int attempt(struct lk__connector *connector, struct lk__conn *conn, struct lk__stream **stream,
                   struct lk__greeting *greeting, char *words, size_t size)
{
    const struct lk__options *options = &connector->options;
    int64_t until_us = lk__now_us() + options->connect_timeout_ms * 1000;
    int rc = connect_in_time(connector, stream, until_us);
    if (rc != 0)
        return explain(options, rc, words, size);
    char where[128], why[LK__WORDS_MAX];
    rc = lk__handshake(*stream, options, conn->inspect, until_us, connector->cancel_fd, greeting, why, sizeof why);
    if (rc == 0)
        return 0;
    lk__options_print(options, where, sizeof where);
    snprintf(words, size, "%s: %s", where, why);
    lk__stream_drop(*stream);
    return rc;
}

/* The next pause: doubled up to the longest, minus up to a quarter so that many clients do not come at once. */
static void back_off(struct lk__connector *connector)
{
    const struct lk__options *options = &connector->options;
    int64_t pause_us = connector->pause_us == 0 ? options->retry_min_ms * 1000 : 2 * connector->pause_us;
    if (pause_us > options->retry_max_ms * 1000)
        pause_us = options->retry_max_ms * 1000;
    connector->pause_us = pause_us;
    connector->not_before_us = lk__now_us() + pause_us - (int64_t)lk__random_below((uint64_t)pause_us / 4 + 1);
}

static bool stopping(struct lk__connector *connector)
{
    pthread_mutex_lock(&connector->mu);
    bool stop = connector->stopping;
    pthread_mutex_unlock(&connector->mu);
    return stop;
}

static void warn(const struct lk__greeting *greeting)
{
    if (greeting->warning[0] != '\0')
        lk__log(LK_LOG_WARNING, "%s", greeting->warning);
    if (greeting->lacking[0] != '\0')
        lk__log(LK_LOG_WARNING,
                "the user's access rules (ACL) lack %s: what needs these commands and keys fails, waiters poll "
                "instead of hearing these channels, and without ECHO errors are believed unproven",
                greeting->lacking);
}

static void serve(struct lk__connector *connector, struct lk__conn *conn)
{
    struct lk__stream *stream = NULL;
    struct lk__greeting greeting = { 0 };
    char words[LK__WORDS_MAX];
    int rc = attempt(connector, conn, &stream, &greeting, words, sizeof words);
    if (rc == ECANCELED && stopping(connector))
        return; /* the connection may be gone */
    if (rc == 0) {
        if (atomic_load(&conn->connects) == 0) /* once, not at each reconnect */
            warn(&greeting);
        if (connector->pause_us > 0)
            lk__log(LK_LOG_INFO, "%s connection is up again", conn->what);
        connector->pause_us = connector->not_before_us = 0;
        lk__conn_up(conn, stream, &greeting);
        return;
    }
    if (connector->pause_us == 0)
        lk__log(LK_LOG_INFO, "%s connection: %s", conn->what, words);
    back_off(connector);
    lk__conn_failed(conn, rc, words);
}

static void *run(void *arg)
{
    struct lk__connector *connector = arg;
    pthread_mutex_lock(&connector->mu);
    while (!connector->stopping) {
        struct lk__link *link = lk__list_first(&connector->wanted);
        if (link == NULL || lk__now_us() < connector->not_before_us) {
            lk__cond_wait(&connector->work, &connector->mu, link == NULL ? LK__NEVER : connector->not_before_us);
            continue;
        }
        lk__list_remove(link);
        pthread_mutex_unlock(&connector->mu);
        serve(connector, LK__CONTAINER(link, struct lk__conn, link));
        pthread_mutex_lock(&connector->mu);
    }
    connector->ended = true;
    pthread_cond_signal(&connector->settled);
    pthread_mutex_unlock(&connector->mu);
    lk__connector_drop(connector);
    return NULL;
}

static void destroy(struct lk__connector *connector)
{
    pthread_cond_destroy(&connector->work);
    pthread_cond_destroy(&connector->settled);
    pthread_mutex_destroy(&connector->mu);
    lk__fd_close(connector->cancel_fd);
    lk__options_clear(&connector->options);
    lk__release(connector);
}

void lk__connector_drop(struct lk__connector *connector)
{
    if (atomic_fetch_sub(&connector->refs, 1) == 1)
        destroy(connector);
}

int lk__connector_start(struct lk__connector **connector, struct lk__options *options)
{
    struct lk__connector *fresh = lk__alloc(sizeof *fresh);
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    fresh->cancel_fd = lk__eventfd_open();
    if (fresh->cancel_fd < 0) {
        lk__release(fresh);
        return lk__fail(ENOMEM, "no descriptor left for a client");
    }
    fresh->refs = 2;
    lk__list_init(&fresh->wanted);
    pthread_mutex_init(&fresh->mu, NULL);
    lk__cond_init(&fresh->work);
    lk__cond_init(&fresh->settled);
    fresh->options = *options;
    int rc = lk__thread_start(&fresh->thread, "lk-connector", run, fresh);
    if (rc != 0) {
        fresh->options = (struct lk__options){ 0 };
        destroy(fresh);
        return rc;
    }
    *options = (struct lk__options){ 0 };
    *connector = fresh;
    return 0;
}

void lk__connector_stop(struct lk__connector *connector)
{
    lk__eventfd_set(connector->cancel_fd);
    pthread_mutex_lock(&connector->mu);
    connector->stopping = true;
    pthread_cond_signal(&connector->work);
    while (!connector->ended && !connector->resolving)
        pthread_cond_wait(&connector->settled, &connector->mu);
    bool ended = connector->ended;
    pthread_mutex_unlock(&connector->mu);
    if (ended)
        pthread_join(connector->thread, NULL);
    else
        pthread_detach(connector->thread);
}
