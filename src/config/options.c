/* SPDX-License-Identifier: MIT */
/* options.c - options: defaults, a check that they work together, printing, freeing */
#include "config/settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PORT = 6379, SENTINEL_PORT = 26379, LEASE_MIN_MS = 100, CLOCK_SKEW_MS = 500 };

/* --- defaults ------------------------------------------------------------------------------------------- */

/*
 * The longest command timeout with which a renewal, sent after a third of the lease, may fail once and
 * succeed the second time before the lease ends, less what clocks may differ by.
 */
static int64_t longest_command(const struct lk__options *o)
{
    return (o->lease_ms - o->lease_ms / 3 - (o->lease_ms / 100 + 2) - o->clock_skew_ms - 1) / 2;
}

/* Times follow the lease, so that a shorter lease alone is still a working set. */
static void complete_times(struct lk__options *o)
{
    const bool command = o->command_timeout_ms != 0, min = o->retry_min_ms != 0, max = o->retry_max_ms != 0;
    for (size_t i = 0; i < lk__settings_count; i++) {
        const struct lk__setting *setting = &lk__settings[i];
        int64_t *ms = (int64_t *)((char *)o + setting->field);
        if (setting->otherwise_ms != 0 && *ms == 0)
            *ms = setting->share > 0 ? lk__lesser(setting->otherwise_ms, o->lease_ms / setting->share)
                                     : setting->otherwise_ms;
    }
    if (lk__options_failover(o) && o->clock_skew_ms == 0)
        o->clock_skew_ms = CLOCK_SKEW_MS;
    if (!command)
        o->command_timeout_ms = lk__lesser(o->command_timeout_ms, longest_command(o));
    if (!min)
        o->retry_min_ms = lk__lesser(o->retry_min_ms, o->retry_max_ms);
    if (!max && o->retry_max_ms < o->retry_min_ms)
        o->retry_max_ms = o->retry_min_ms;
}

static void complete_ports(struct lk__options *o)
{
    for (unsigned i = 0; i < o->server_count; i++)
        if (o->servers[i].port == 0)
            o->servers[i].port = o->service != NULL ? SENTINEL_PORT : PORT;
}

/* --- checks ----------------------------------------------------------------------------------------------- */

struct written {
    char text[24];
};

static struct written written(int64_t ms)
{
    struct written w;
    bool seconds = ms % LK__SECOND_MS == 0;
    snprintf(w.text, sizeof w.text, "%lld%s", (long long)(seconds ? ms / LK__SECOND_MS : ms), seconds ? "s" : "ms");
    return w;
}

/* How the builder's source calls the setting that URLs, or else files, call `name`. */
static const char *called(const struct lk__builder *builder, const char *name)
{
    const struct lk__setting *setting = lk__setting_find(LK__FROM_URL, name);
    return setting != NULL ? lk__setting_name(builder->source, setting) : name;
}

/* Fail because `name` does not go with the other settings. */
#define REFUSE(builder, name, ...) lk__builder_fail(builder, EINVAL, called(builder, name), __VA_ARGS__)

static int check_length(struct lk__builder *builder, const char *name, int64_t ms, const char *most, int64_t most_ms)
{
    if (ms <= most_ms)
        return 0;
    return REFUSE(builder, name, "%s is longer than %s=%s", written(ms).text, called(builder, most),
                  written(most_ms).text);
}

/* Only settings that were given can be wrong here: defaults are chosen to fit. */
static int check_times(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->lease_ms < LEASE_MIN_MS)
        return REFUSE(builder, "lease", "must be at least %dms", LEASE_MIN_MS);
    if (o->lease_ms < LK__SKEWS_MIN * o->clock_skew_ms)
        return REFUSE(builder, "lease",
                      "must be at least %d x %s=%s, by which the clocks of servers may "
                      "differ that replace each other: %s",
                      LK__SKEWS_MIN, called(builder, "clock_skew"), written(o->clock_skew_ms).text,
                      written(LK__SKEWS_MIN * o->clock_skew_ms).text);
    int rc = check_length(builder, "connect_timeout", o->connect_timeout_ms, "lease", o->lease_ms);
    if (rc == 0)
        rc = check_length(builder, "poll", o->poll_ms, "lease", o->lease_ms);
    if (rc == 0)
        rc = check_length(builder, "retry_min", o->retry_min_ms, "retry_max", o->retry_max_ms);
    if (rc != 0 || o->command_timeout_ms <= longest_command(o))
        return rc;
    return REFUSE(builder, "command_timeout",
                  "%s does not fit into lease=%s twice: at most %s, or a longer lease",
                  written(o->command_timeout_ms).text, written(o->lease_ms).text, written(longest_command(o)).text);
}

/* Sentinels and the name of the master belong together. */
static int check_sentinels(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (builder->mode != LK__SENTINEL && o->service == NULL) {
        if (o->sentinel_user == NULL && o->sentinel_password == NULL)
            return 0;
        return REFUSE(builder, o->sentinel_user != NULL ? "sentinel_user" : "sentinel_password",
                      "is for Sentinels, and there are none");
    }
    if (builder->mode == LK__SINGLE)
        return REFUSE(builder, "mode", "must be sentinel where there is a master's name");
    if (o->service == NULL)
        return REFUSE(builder, "mode", "sentinel needs master, the name that the Sentinels know it by");
    if (o->path != NULL)
        return REFUSE(builder, "path", "Sentinels have addresses: give nodes");
    if (o->sentinel_user != NULL && o->sentinel_password == NULL)
        return REFUSE(builder, "sentinel_user", "needs a sentinel_password");
    return 0;
}

/* A cluster has nodes with addresses, and one database. */
static int check_cluster(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->service != NULL)
        return REFUSE(builder, "mode", "a cluster has no Sentinels, and no master's name");
    if (o->path != NULL)
        return REFUSE(builder, "path", "the nodes of a cluster have addresses: give nodes");
    return o->db == 0 ? 0 : REFUSE(builder, "db", "a cluster has database 0 alone");
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
    const struct lk__options *o = &builder->options;
    const struct lk__address *twice = named_twice(o);
    if (o->service != NULL)
        return REFUSE(builder, "mode", "a quorum has no Sentinels, no cluster and no master's name");
    if (o->path != NULL)
        return REFUSE(builder, "path", "the servers of a quorum have addresses: give nodes");
    if (o->server_count < LK__QUORUM_LEAST || o->server_count > LK__QUORUM_MAX || o->server_count % 2 == 0)
        return REFUSE(builder, "nodes", "a quorum has an odd number of servers, %d to %d, not %u", LK__QUORUM_LEAST,
                      LK__QUORUM_MAX, o->server_count);
    if (twice != NULL)
        return REFUSE(builder, "nodes", "%.128s:%d stands there twice: each server has one vote", twice->host,
                      twice->port);
    if (o->wait_replicas > 0)
        return REFUSE(builder, "wait_replicas",
                      "is for a server with replicas: those of a quorum stand for each other");
    return 0;
}

/* One file of the client's without the other is of no use, and a unix socket has no TLS. */
static int check_tls(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->tls.certificate != NULL && o->tls.key == NULL)
        return REFUSE(builder, "cert", "needs %s, the file of its private key", called(builder, "key"));
    if (o->tls.key != NULL && o->tls.certificate == NULL)
        return REFUSE(builder, "key", "needs %s, the file of its certificate", called(builder, "cert"));
    if (o->tls.on && o->path != NULL)
        return REFUSE(builder, "path", "a unix socket has no TLS: give an address, or leave tls out");
    return 0;
}

/* program, arguments and why describe a client; a client with describe=no has none of them. */
static int check_description(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    const char *said = o->program != NULL ? "program" : o->arguments != NULL ? "arguments" : "why";
    if (!o->undescribed || (o->program == NULL && o->arguments == NULL && o->why == NULL))
        return 0;
    return REFUSE(builder, said, "is for %s=yes", called(builder, "describe"));
}

static int complete_servers(struct lk__builder *builder)
{
    struct lk__options *o = &builder->options;
    o->cluster = builder->mode == LK__CLUSTER;
    o->quorum = builder->mode == LK__QUORUM;
    int rc = check_sentinels(builder);
    if (rc == 0 && o->cluster)
        rc = check_cluster(builder);
    if (rc == 0 && o->servers == NULL && o->path == NULL)
        rc = lk__builder_servers(builder, NULL, "");
    complete_ports(o);
    return rc == 0 && o->quorum ? check_quorum(builder) : rc;
}

int lk__builder_finish(struct lk__builder *builder, struct lk__options *options)
{
    struct lk__options *o = &builder->options;
    if (o->user != NULL && o->password == NULL)
        return REFUSE(builder, "username", "needs password or password_file");
    int rc = complete_servers(builder);
    complete_times(o);
    if (rc == 0)
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

/* --- freeing -------------------------------------------------------------------------------------------- */

void lk__options_clear(struct lk__options *options)
{
    lk__options_clearservers(options);
    for (size_t i = 0; i < lk__settings_count; i++)
        if (lk__settings[i].type <= LK__PASSWORD_FILE)
            lk__wipe(*(char **)((char *)options + lk__settings[i].field));
    memset(options, 0, sizeof *options);
}

/* --- printing ------------------------------------------------------------------------------------------- */

struct printer {
    char *text;
    size_t size;
};

LK__PRINTF(2, 3) static void print(struct printer *printer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(printer->text, printer->size, format, args);
    va_end(args);
    size_t used = (size_t)length < printer->size ? (size_t)length : printer->size - 1;
    printer->text += used;
    printer->size -= used;
}

/* Print as in a URL: characters neither unreserved (RFC 3986, 2.3) nor in `also` as %XX. */
static void print_encoded(struct printer *printer, const char *text, const char *also)
{
    static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text != '\0' && printer->size > 1; text++)
        print(printer, strchr(unreserved, *text) != NULL || strchr(also, *text) != NULL ? "%c" : "%%%02X",
              (unsigned char)*text);
}

static void print_servers(struct printer *printer, const struct lk__options *options)
{
    for (unsigned i = 0; i < options->server_count; i++) {
        bool ipv6 = strchr(options->servers[i].host, ':') != NULL;
        print(printer, "%s%s", i > 0 ? "," : "", ipv6 ? "[" : "");
        print_encoded(printer, options->servers[i].host, ":");
        print(printer, "%s:%d", ipv6 ? "]" : "", options->servers[i].port);
    }
}

static const char *scheme_of(const struct lk__options *options)
{
    if (options->path != NULL)
        return "unix";
    if (options->service != NULL)
        return options->tls.on ? "rediss-sentinel" : "redis-sentinel";
    if (options->cluster)
        return options->tls.on ? "rediss-cluster" : "redis-cluster";
    if (options->quorum && options->server_count > 1) /* else one of its nodes is meant */
        return options->tls.on ? "rediss-quorum" : "redis-quorum";
    return options->tls.on ? "rediss" : "redis";
}

void lk__options_print(const struct lk__options *options, char *text, size_t size)
{
    struct printer printer = { text, size };
    if (size == 0)
        return;
    print(&printer, "%s://", scheme_of(options));
    if (options->password != NULL) {
        print_encoded(&printer, options->user != NULL ? options->user : "", "");
        print(&printer, ":***@");
    }
    if (options->path != NULL) {
        print_encoded(&printer, options->path, "/");
        print(&printer, "?db=%d", options->db);
        return;
    }
    print_servers(&printer, options);
    print(&printer, "/");
    print_encoded(&printer, options->service != NULL ? options->service : "", "");
    print(&printer, "%s%d", options->service != NULL ? "/" : "", options->db);
}
