/* SPDX-License-Identifier: MIT */
/*
 * reach.c - a connection to one place: resolved, connected, secured
 *
 * Runs on the connector's thread. The resolver cannot be interrupted, and who stops the connector does not wait for it:
 * so what it needs is the connector's own, and behind it nothing of the node is touched if it was stopped.
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

/* ECANCELED: stopped meanwhile, and the node may not be touched. */
static int resolve_host(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
                        struct target *target)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    snprintf(port, sizeof port, "%d", address->port);
    snprintf(connector->host, sizeof connector->host, "%s", address->host);

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

/* How much the words tell of why an address is of no use. */
enum telling { UNREACHED = 1, UNSECURED, DISTRUSTED, FOR_GOOD };

/* Of several reasons the one that tells most, then the last one. */
struct reason {
    enum telling telling;
    int code;
    char words[LK__ERRMSG_MAX];
};

/* A session of TLS, if there is to be one. The host is named for the certificate's sake. */
static int secure(struct lk__stream *stream, const struct lk__options *options, const char *host, int64_t until_us,
                  int cancel_fd, struct reason *reason)
{
    stream->socket.host = host;
    int rc = lk__stream_secure(stream, options, until_us, cancel_fd, reason->words, sizeof reason->words);
    stream->socket.host = NULL;
    reason->code = rc;
    reason->telling = rc != ENOTCONN ? FOR_GOOD : stream->socket.distrusted ? DISTRUSTED : UNSECURED;
    return rc;
}

/* 0, or `reason` says why not. ECANCELED: the node may be gone. */
static int reach_one(struct lk__stream **stream, const struct lk__options *options, const char *host,
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
    rc = secure(*stream, options, host, until_us, cancel_fd, reason);
    if (rc != 0)
        lk__stream_unref(*stream);
    return rc;
}

/* Each address has its share of the time left, so that one that is dead leaves time for the next. */
static int reach_any(struct lk__stream **stream, const struct lk__options *options, const char *host,
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
        rc = reach_one(stream, options, host, a, now_us + share_us, cancel_fd, &reason);
        if (rc != 0 && reason.telling >= told->telling)
            *told = reason;
    }
    return rc == 0 || rc == ECANCELED ? rc : told->code;
}

int lk__reach(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
              int64_t until_us, int cancel_fd, struct lk__stream **stream, char *errmsg, size_t size)
{
    const struct lk__options *options = &server->options;
    const char *host = address != NULL ? address->host : NULL;
    struct target target = { 0 };
    struct reason reason;
    int rc = address == NULL ? resolve_path(options->path, &target) : resolve_host(connector, server, address, &target);
    if (rc == 0)
        rc = reach_any(stream, options, host, target.found != NULL ? target.found : &target.local, until_us, cancel_fd,
                       &reason);
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
