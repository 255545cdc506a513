/* SPDX-License-Identifier: MIT */
/*
 * options_check.h - what holds for options, wherever they were read from
 */
#ifndef TESTS_OPTIONS_CHECK_H
#define TESTS_OPTIONS_CHECK_H

#include "fuzz.h"
#include "config/name.h"
#include "config/options.h"

#include <strings.h>

#define SECRET "hunter2$word" /* stands for a password; no text may show it */

/* Codes that a reader of options may return; on failure the options must be as they were. */
static inline void check_outcome(int rc, const struct lk__options *options, const struct lk__options *before)
{
    require(rc == 0 || rc == EINVAL || rc == ENOTSUP || rc == ENOENT);
    require(errno == 4711); /* set by the target before the call */
    require(rc == 0 || memcmp(options, before, sizeof *options) == 0);
    require(rc == 0 || (lk_errortext()[0] != '\0' && is_one_line(lk_errortext())));
}

/* Are both at the same places? */
static inline bool same_servers(const struct lk__options *a, const struct lk__options *b)
{
    if (a->server_count != b->server_count)
        return false;
    for (unsigned i = 0; i < a->server_count; i++)
        if (strcmp(a->servers[i].host, b->servers[i].host) != 0 || a->servers[i].port != b->servers[i].port)
            return false;
    return true;
}

/* A quorum: each server has one vote, and nobody stands for it. */
static inline void check_quorum(const struct lk__options *o)
{
    require(o->server_count >= LK__QUORUM_LEAST && o->server_count <= LK__QUORUM_MAX && o->server_count % 2 == 1);
    require(o->service == NULL && !o->cluster && o->path == NULL && o->wait_replicas == 0);
    for (unsigned i = 0; i < o->server_count; i++)
        for (unsigned j = i + 1; j < o->server_count; j++)
            require(strcasecmp(o->servers[i].host, o->servers[j].host) != 0 || o->servers[i].port != o->servers[j].port);
}

/* What was read can be worked with. */
static inline void check_options(const struct lk__options *o)
{
    require((o->path != NULL) != (o->servers != NULL) && o->server_count <= LK__SERVERS_MAX);
    require((o->servers == NULL) == (o->server_count == 0));
    for (unsigned i = 0; i < o->server_count; i++)
        require(o->servers[i].host[0] != '\0' && o->servers[i].port >= 1 && o->servers[i].port <= 65535);
    require(o->service == NULL || (o->service[0] != '\0' && o->path == NULL));
    require(o->sentinel_user == NULL || o->sentinel_password != NULL);
    require(o->sentinel_password == NULL || o->service != NULL);
    require(o->lease_ms >= LK__SKEWS_MIN * o->clock_skew_ms);
    require(!lk__options_failover(o) || o->clock_skew_ms > 0);
    require(o->path == NULL || (o->path[0] != '\0' && strlen(o->path) <= 107));
    require(o->user == NULL || o->password != NULL);
    require(o->db >= 0);
    require(o->client_name == NULL || o->client_name[0] != '\0');
    require(o->prefix == NULL || lk__name_flaw(o->prefix, strlen(o->prefix)) == NULL);
    require(o->lease_ms >= 100 && o->lease_ms <= 24 * 60 * 60 * 1000);
    require(o->command_timeout_ms >= 1 && o->command_timeout_ms < o->lease_ms);
    require(o->connect_timeout_ms >= 1 && o->poll_ms >= 1);
    require(o->retry_min_ms >= 1 && o->retry_min_ms <= o->retry_max_ms);
    require(!o->tls.on || o->servers != NULL);
    require((o->tls.certificate != NULL) == (o->tls.key != NULL));
    require(o->tls.on || (!o->tls.unverified && o->tls.cacert == NULL && o->tls.capath == NULL &&
                          o->tls.certificate == NULL && o->tls.sni == NULL));
    require(o->keepalive_ms >= 1 || o->keepalive_ms == -1);
    if (o->quorum)
        check_quorum(o);
}

#endif
