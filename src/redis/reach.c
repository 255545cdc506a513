/* SPDX-License-Identifier: MIT */
/*
 * reach.c - a connection to one place: resolved, connected, secured
 *
 * Runs on the connector's thread. The resolver cannot be interrupted, nor can OpenSSL, which may read files of a slow disk.
 * lk__connector_stop() does not wait for the one, and not for long for the other. So what they need is the connector's own,
 * and behind them nothing of the node is touched if it was stopped.
 */
#include "redis/reach.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Where to connect: what the resolver found, or the one address of a unix socket. */
struct target {
    struct addrinfo *found; /* to be freed; NULL for a unix socket */
    struct addrinfo local;
    struct sockaddr_un address;
};

/* Words that tell a user what to do about a connect() that failed. */
static int explain(const struct lk__options *options, int error, int64_t took_us, char *errmsg, size_t size)
{
    switch (error) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
        snprintf(errmsg, size, "no memory or descriptor left for a connection");
        return ENOMEM;
    case ENAMETOOLONG:
        snprintf(errmsg, size, "the path of a unix socket has at most 107 bytes");
        return EINVAL;
    case EHOSTUNREACH:
        snprintf(errmsg, size, "no such host, or no way to it");
        return ENOTCONN;
    case ETIMEDOUT:
        if (lk__options_failover(options)) /* each has a share */
            snprintf(errmsg, size, "no answer within %lld ms", (long long)took_us / 1000);
        else
            snprintf(errmsg, size, "no answer within %lld ms (connect_timeout)",
                     (long long)options->connect_timeout_ms);
        return ENOTCONN;
    default:
        snprintf(errmsg, size, "%s; is a server running there?", strerrordesc_np(error));
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
    return server->last_size > 0 && !lk__options_failover(&server->options);
}

void lk__reach_remember(struct lk__server *server, const struct lk__stream *stream)
{
    socklen_t size = sizeof server->last;
    if (server->options.path == NULL && getpeername(stream->socket.fd, (struct sockaddr *)&server->last, &size) == 0)
        server->last_size = size;
}

static void begin_foreign(struct lk__connector *connector, bool *flag)
{
    lk__mu_lock(&connector->mu);
    *flag = true;
    pthread_cond_signal(&connector->settled);
    lk__mu_unlock(&connector->mu);
}

/* True: the connector was stopped meanwhile. */
static bool end_foreign(struct lk__connector *connector, bool *flag)
{
    lk__mu_lock(&connector->mu);
    *flag = false;
    bool stopping = connector->stopping;
    lk__mu_unlock(&connector->mu);
    return stopping;
}

/* ECANCELED: stopped meanwhile, and the node may not be touched. */
static int resolve_host(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
                        struct target *target)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    snprintf(port, sizeof port, "%d", address->port);
    snprintf(connector->host, sizeof connector->host, "%s", address->host);

    begin_foreign(connector, &connector->resolving);
    int failed = getaddrinfo(connector->host, port, &hints, &target->found);
    bool stopping = end_foreign(connector, &connector->resolving);

    if (failed != 0)
        target->found = NULL;
    if (stopping)
        return ECANCELED;
    if (failed == 0 || (is_silent(failed) && recall(server, target)))
        return 0;
    return failed == EAI_MEMORY ? ENOMEM : EHOSTUNREACH;
}

/* How much the words tell of why an address is of no use. */
enum telling { UNREACHED = 1, UNSECURED, DISTRUSTED, FOR_GOOD };

/* Of several reasons the one that tells most, then the last one. */
struct reason {
    enum telling telling;
    int code;
    char words[LK__ERRMSG_MAX];
};

static int copy_text(char **copy, const char *text)
{
    *copy = text != NULL ? lk__strdup(text) : NULL;
    return text == NULL || *copy != NULL ? 0 : ENOMEM;
}

/* What OpenSSL needs of `options`. */
static int copy_tls(struct lk__tlsoptions *copy, const struct lk__tlsoptions *options)
{
    *copy = (struct lk__tlsoptions){ .on = options->on, .unverified = options->unverified };
    if (copy_text(&copy->cacert, options->cacert) != 0 || copy_text(&copy->capath, options->capath) != 0 ||
        copy_text(&copy->certificate, options->certificate) != 0 || copy_text(&copy->key, options->key) != 0)
        return ENOMEM;
    return copy_text(&copy->sni, options->sni);
}

/* A session of TLS, if there is to be one, with the host that was resolved: its certificate is to name it. */
static int secure(struct lk__connector *connector, struct lk__stream *stream, const struct lk__options *options,
                  int64_t until_us, int cancel_fd, struct reason *reason)
{
    struct lk__options own = { 0 };
    if (!options->tls.on)
        return 0;
    snprintf(reason->words, sizeof reason->words, "out of memory for TLS");
    int rc = copy_tls(&own.tls, &options->tls);
    if (rc == 0) {
        stream->socket.host = connector->host;
        begin_foreign(connector, &connector->securing);
        rc = lk__stream_secure(stream, &own, until_us, cancel_fd, reason->words, sizeof reason->words);
        if (end_foreign(connector, &connector->securing))
            rc = ECANCELED;
        stream->socket.host = NULL;
    }
    lk__options_clear(&own);
    reason->code = rc;
    reason->telling = rc != ENOTCONN ? FOR_GOOD : stream->socket.distrusted ? DISTRUSTED : UNSECURED;
    return rc;
}

/* 0, or `reason` says why not. ECANCELED: the node may be gone. */
static int reach_one(struct lk__connector *connector, struct lk__stream **stream, const struct lk__options *options,
                     const struct addrinfo *at, int64_t until_us, int cancel_fd, struct reason *reason)
{
    int64_t began_us = lk__now_us();
    int rc = lk__stream_connect(stream, options, at, until_us, cancel_fd);
    if (rc == ECANCELED)
        return rc;
    if (rc != 0) {
        reason->telling = UNREACHED;
        return reason->code = explain(options, rc, lk__now_us() - began_us, reason->words, sizeof reason->words);
    }
    rc = secure(connector, *stream, options, until_us, cancel_fd, reason);
    if (rc != 0)
        lk__stream_unref(*stream);
    return rc;
}

/* Each address has its share of the time left, so that one that is dead leaves time for the next. */
static int reach_any(struct lk__connector *connector, struct lk__stream **stream, const struct lk__options *options,
                     const struct addrinfo *addresses, int64_t until_us, int cancel_fd, struct reason *told)
{
    int left = 0, rc = ENOTCONN;
    struct reason reason;
    told->telling = UNREACHED;
    told->code = explain(options, EHOSTUNREACH, 0, told->words, sizeof told->words);
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next)
        left++;
    for (const struct addrinfo *a = addresses; a != NULL && rc != 0 && rc != ECANCELED; a = a->ai_next, left--) {
        int64_t now_us = lk__now_us(), share_us = until_us > now_us ? (until_us - now_us) / left : 0;
        rc = reach_one(connector, stream, options, a, now_us + share_us, cancel_fd, &reason);
        if (rc != 0 && reason.telling >= told->telling)
            *told = reason;
    }
    return rc == 0 || rc == ECANCELED ? rc : told->code;
}

int lk__reach(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
              int64_t until_us, int cancel_fd, struct lk__stream **stream, char *errmsg, size_t size)
{
    const struct lk__options *options = &server->options;
    struct target target = { 0 };
    struct reason reason;
    int rc = address == NULL ? resolve_path(options->path, &target) : resolve_host(connector, server, address, &target);
    if (rc == 0)
        rc = reach_any(connector, stream, options, target.found != NULL ? target.found : &target.local, until_us,
                       cancel_fd, &reason);
    else if (rc != ECANCELED)
        rc = explain(options, rc, 0, reason.words, sizeof reason.words);
    if (target.found != NULL)
        freeaddrinfo(target.found);
    if (rc != 0) {
        snprintf(errmsg, size, "%s", rc == ECANCELED ? "the client was closed" : reason.words);
        *stream = NULL;
    }
    return rc;
}
