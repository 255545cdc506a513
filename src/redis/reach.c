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

/* The address is named for the certificate's sake. */
static int secure(struct lk__stream *stream, const struct lk__options *options, const struct lk__address *address,
                  int64_t until_us, int cancel_fd, char *errmsg, size_t size)
{
    stream->socket.host = address != NULL ? address->host : NULL;
    int rc = lk__stream_secure(stream, options, until_us, cancel_fd, errmsg, size);
    stream->socket.host = NULL;
    return rc;
}

int lk__reach(struct lk__connector *connector, struct lk__server *server, const struct lk__address *address,
              int64_t until_us, int cancel_fd, struct lk__stream **stream, char *errmsg, size_t size)
{
    const struct lk__options *options = &server->options;
    struct target target = { 0 };
    int64_t began_us = lk__now_us();
    int rc = address == NULL ? resolve_path(options->path, &target) : resolve_host(connector, server, address, &target);
    if (rc == 0)
        rc = lk__stream_connect(stream, options, target.found != NULL ? target.found : &target.local, until_us,
                                cancel_fd);
    if (target.found != NULL)
        freeaddrinfo(target.found);
    if (rc == ECANCELED) { /* the node may be gone */
        snprintf(errmsg, size, "the client was closed");
        return rc;
    }
    if (rc != 0)
        return explain(options, rc, lk__now_us() - began_us, errmsg, size);
    rc = secure(*stream, options, address, until_us, cancel_fd, errmsg, size);
    if (rc == 0)
        return 0;
    lk__stream_unref(*stream);
    *stream = NULL;
    return rc;
}
