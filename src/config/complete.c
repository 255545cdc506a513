/* SPDX-License-Identifier: MIT */
/* complete.c - what was not said follows from what was, and what was said has to work together */
#include "config/builder.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LEASE_MS (30 * LK__SECOND_MS)
#define LEASE_MIN_MS 100
#define CLOCK_SKEW_MS 500
#define WARN_WAIT_MS (3 * LK__SECOND_MS)
#define NEVER_MS (-1)

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void complete(int64_t *ms, int64_t otherwise_ms)
{
    if (*ms == 0)
        *ms = otherwise_ms;
}

/*
 * The longest command timeout with which a renewal, sent after a third of the lease, may fail once and
 * succeed the second time before the lease ends, less what clocks may differ by.
 */
static int64_t longest_command(int64_t lease_ms, int64_t clock_skew_ms)
{
    return (lease_ms - lease_ms / 3 - (lease_ms / 100 + 2) - clock_skew_ms - 1) / 2;
}

/* Times follow the lease, so that a shorter lease alone is still a working set. */
static void complete_times(struct lk__options *o)
{
    complete(&o->lease_ms, LEASE_MS);
    if (lk__options_failover(o))
        complete(&o->clock_skew_ms, CLOCK_SKEW_MS);
    complete(&o->command_timeout_ms,
             lesser(lesser(1 * LK__SECOND_MS, o->lease_ms / 5), longest_command(o->lease_ms, o->clock_skew_ms)));
    complete(&o->connect_timeout_ms, lesser(2 * LK__SECOND_MS, o->lease_ms / 3));
    complete(&o->poll_ms, lesser(1 * LK__SECOND_MS, o->lease_ms / 2));
    complete(&o->retry_max_ms, greater(o->lease_ms / 10, o->retry_min_ms));
    complete(&o->retry_min_ms, lesser(20, o->retry_max_ms));
    complete(&o->keepalive_ms, 15 * LK__SECOND_MS);
    complete(&o->warn_wait_ms, WARN_WAIT_MS);
    complete(&o->warn_hold_ms, NEVER_MS);
}

struct written {
    char text[24];
};

static struct written written(int64_t ms)
{
    struct written w;
    if (ms % LK__SECOND_MS == 0)
        snprintf(w.text, sizeof w.text, "%llds", (long long)(ms / LK__SECOND_MS));
    else
        snprintf(w.text, sizeof w.text, "%lldms", (long long)ms);
    return w;
}

/* How the builder's source calls the setting that URLs call `name`. */
static const char *called(const struct lk__builder *builder, const char *name)
{
    return lk__setting_name(builder->source, lk__setting_find(LK__FROM_URL, name, strlen(name)));
}

/* That of the settings for Sentinels which was given. */
static const char *called_sentinels(const struct lk__builder *builder)
{
    return called(builder, builder->options.sentinel_user != NULL ? "sentinel_user" : "sentinel_password");
}

static int too_long(struct lk__builder *builder, const char *name, int64_t ms, const char *measure, int64_t measure_ms)
{
    return lk__builder_fail(builder, EINVAL, called(builder, name), "%s is longer than %s=%s", written(ms).text,
                            called(builder, measure), written(measure_ms).text);
}

static int check_command(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    int64_t most_ms = longest_command(o->lease_ms, o->clock_skew_ms);
    if (o->command_timeout_ms <= most_ms)
        return 0;
    return lk__builder_fail(builder, EINVAL, called(builder, "command_timeout"),
                            "%s does not fit into lease=%s twice: at most %s, or a longer lease",
                            written(o->command_timeout_ms).text, written(o->lease_ms).text, written(most_ms).text);
}

/* Only settings that were given can be wrong here: defaults are chosen to fit. */
static int check_times(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->lease_ms < LEASE_MIN_MS)
        return lk__builder_fail(builder, EINVAL, "lease", "must be at least %dms", LEASE_MIN_MS);
    if (o->lease_ms < LK__SKEWS_MIN * o->clock_skew_ms)
        return lk__builder_fail(builder, EINVAL, "lease",
                                "must be at least %d x %s=%s, by which the clocks of servers may "
                                "differ that replace each other: %s",
                                LK__SKEWS_MIN, called(builder, "clock_skew"), written(o->clock_skew_ms).text,
                                written(LK__SKEWS_MIN * o->clock_skew_ms).text);
    if (o->connect_timeout_ms > o->lease_ms)
        return too_long(builder, "connect_timeout", o->connect_timeout_ms, "lease", o->lease_ms);
    if (o->poll_ms > o->lease_ms)
        return too_long(builder, "poll", o->poll_ms, "lease", o->lease_ms);
    if (o->retry_min_ms > o->retry_max_ms)
        return too_long(builder, "retry_min", o->retry_min_ms, "retry_max", o->retry_max_ms);
    return check_command(builder);
}

/* One file of the client's without the other is of no use, and a unix socket has no TLS. */
static int check_tls(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->tls.certificate != NULL && o->tls.key == NULL)
        return lk__builder_fail(builder, EINVAL, called(builder, "cert"), "needs %s, the file of its private key",
                                called(builder, "key"));
    if (o->tls.key != NULL && o->tls.certificate == NULL)
        return lk__builder_fail(builder, EINVAL, called(builder, "key"), "needs %s, the file of its certificate",
                                called(builder, "cert"));
    if (o->tls.on && o->path != NULL)
        return lk__builder_fail(builder, EINVAL, "path", "a unix socket has no TLS: give an address, or leave tls out");
    return 0;
}

/* Sentinels and the name of the master belong together. */
static int check_sentinels(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    bool wanted = builder->sentinels || o->service != NULL;
    if (!wanted && (o->sentinel_password != NULL || o->sentinel_user != NULL))
        return lk__builder_fail(builder, EINVAL, called_sentinels(builder), "is for Sentinels, and there are none");
    if (!wanted)
        return 0;
    if (builder->single)
        return lk__builder_fail(builder, EINVAL, "mode", "must be sentinel where there is a master's name");
    if (o->service == NULL)
        return lk__builder_fail(builder, EINVAL, "mode",
                                "sentinel needs master, the name that the Sentinels know it by");
    if (o->path != NULL)
        return lk__builder_fail(builder, EINVAL, "path", "Sentinels have addresses: give nodes");
    if (o->sentinel_user != NULL && o->sentinel_password == NULL)
        return lk__builder_fail(builder, EINVAL, called(builder, "sentinel_user"), "needs a sentinel_password");
    return 0;
}

/* A cluster has nodes with addresses, and one database. */
static int check_cluster(struct lk__builder *builder)
{
    struct lk__options *o = &builder->options;
    o->cluster = builder->cluster;
    if (!o->cluster)
        return 0;
    if (builder->sentinels || builder->single || o->service != NULL)
        return lk__builder_fail(builder, EINVAL, "mode", "a cluster has no Sentinels, and no master's name");
    if (o->path != NULL)
        return lk__builder_fail(builder, EINVAL, "path", "the nodes of a cluster have addresses: give nodes");
    if (o->db != 0)
        return lk__builder_fail(builder, EINVAL, "db", "a cluster has database 0 alone");
    return 0;
}

/* The first of the servers that stands there twice; NULL: none does. */
static const struct lk__address *named_twice(const struct lk__options *o)
{
    for (unsigned i = 0; i < o->server_count; i++)
        for (unsigned j = i + 1; j < o->server_count; j++)
            if (o->servers[i].port == o->servers[j].port && strcasecmp(o->servers[i].host, o->servers[j].host) == 0)
                return &o->servers[i];
    return NULL;
}

/* A quorum has an odd number of servers, each by itself: what has replicas would have two votes, or none. */
static int check_quorum(struct lk__builder *builder)
{
    struct lk__options *o = &builder->options;
    const struct lk__address *twice = named_twice(o);
    o->quorum = builder->quorum;
    if (!o->quorum)
        return 0;
    if (builder->sentinels || builder->single || builder->cluster || o->service != NULL)
        return lk__builder_fail(builder, EINVAL, "mode", "a quorum has no Sentinels, no cluster and no master's name");
    if (o->path != NULL)
        return lk__builder_fail(builder, EINVAL, "path", "the servers of a quorum have addresses: give nodes");
    if (o->server_count < LK__QUORUM_LEAST || o->server_count > LK__QUORUM_MAX || o->server_count % 2 == 0)
        return lk__builder_fail(builder, EINVAL, "nodes", "a quorum has an odd number of servers, %d to %d, not %u",
                                LK__QUORUM_LEAST, LK__QUORUM_MAX, o->server_count);
    if (twice != NULL)
        return lk__builder_fail(builder, EINVAL, "nodes", "%.128s:%d stands there twice: each server has one vote",
                                twice->host, twice->port);
    if (o->wait_replicas > 0)
        return lk__builder_fail(builder, EINVAL, called(builder, "wait_replicas"),
                                "is for a server with replicas: those of a quorum stand for each other");
    return 0;
}

static int complete_servers(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    int rc = check_sentinels(builder);
    if (rc == 0)
        rc = check_cluster(builder);
    if (rc == 0 && o->servers == NULL && o->path == NULL)
        rc = lk__builder_servers(builder, NULL, "");
    if (rc == 0)
        lk__builder_ports(builder);
    return rc == 0 ? check_quorum(builder) : rc;
}

/* What a client is to say of itself is for one that says anything. */
static int check_description(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    const char *said = o->program != NULL ? "program" : o->arguments != NULL ? "arguments" : "why";
    if (!o->undescribed || (o->program == NULL && o->arguments == NULL && o->why == NULL))
        return 0;
    return lk__builder_fail(builder, EINVAL, called(builder, said), "is for %s=yes", called(builder, "describe"));
}

int lk__builder_finish(struct lk__builder *builder, struct lk__options *options)
{
    struct lk__options *o = &builder->options;
    if (o->user != NULL && o->password == NULL)
        return lk__builder_fail(builder, EINVAL, "username", "needs password or password_file");
    int rc = complete_servers(builder);
    if (rc != 0)
        return rc;
    complete_times(o);
    rc = check_times(builder);
    if (rc == 0)
        rc = check_tls(builder);
    if (rc == 0)
        rc = check_description(builder);
    if (rc != 0)
        return rc;
    *options = *o;
    memset(o, 0, sizeof *o);
    return 0;
}
