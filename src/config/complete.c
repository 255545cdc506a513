/* SPDX-License-Identifier: MIT */
/* complete.c - what was not said follows from what was, and what was said has to work together */
#include "config/builder.h"

#include <stdio.h>
#include <string.h>

#define LEASE_MS (30 * LK__SECOND_MS)
#define LEASE_MIN_MS 100

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

/* Times follow the lease, so that a shorter lease alone is still a working set. */
static void complete_times(struct lk__options *o)
{
    complete(&o->lease_ms, LEASE_MS);
    complete(&o->command_timeout_ms, lesser(1 * LK__SECOND_MS, o->lease_ms / 5));
    complete(&o->connect_timeout_ms, lesser(2 * LK__SECOND_MS, o->lease_ms / 3));
    complete(&o->poll_ms, lesser(1 * LK__SECOND_MS, o->lease_ms / 2));
    complete(&o->retry_max_ms, greater(o->lease_ms / 10, o->retry_min_ms));
    complete(&o->retry_min_ms, lesser(20, o->retry_max_ms));
    complete(&o->keepalive_ms, 15 * LK__SECOND_MS);
}

/*
 * The longest command timeout with which a renewal, sent after a third of the lease, may fail once and
 * succeed the second time before the lease ends, less what clocks may differ by.
 */
static int64_t longest_command(int64_t lease_ms)
{
    return (lease_ms - lease_ms / 3 - (lease_ms / 100 + 2) - 1) / 2;
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

static int too_long(struct lk__builder *builder, const char *name, int64_t ms, const char *measure, int64_t measure_ms)
{
    return lk__builder_fail(builder, EINVAL, called(builder, name), "%s is longer than %s=%s", written(ms).text,
                            called(builder, measure), written(measure_ms).text);
}

static int check_command(struct lk__builder *builder)
{
    const struct lk__options *o = &builder->options;
    int64_t most_ms = longest_command(o->lease_ms);
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
    if (o->connect_timeout_ms > o->lease_ms)
        return too_long(builder, "connect_timeout", o->connect_timeout_ms, "lease", o->lease_ms);
    if (o->poll_ms > o->lease_ms)
        return too_long(builder, "poll", o->poll_ms, "lease", o->lease_ms);
    if (o->retry_min_ms > o->retry_max_ms)
        return too_long(builder, "retry_min", o->retry_min_ms, "retry_max", o->retry_max_ms);
    return check_command(builder);
}

int lk__builder_finish(struct lk__builder *builder, struct lk__options *options)
{
    struct lk__options *o = &builder->options;
    if (o->user != NULL && o->password == NULL)
        return lk__builder_fail(builder, EINVAL, "username", "needs password or password_file");
    complete_times(o);
    int rc = check_times(builder);
    if (rc == 0 && o->host == NULL && o->path == NULL)
        rc = lk__builder_server(builder, NULL, "");
    if (rc != 0)
        return rc;
    *options = *o;
    memset(o, 0, sizeof *o);
    return 0;
}
