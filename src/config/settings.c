/* SPDX-License-Identifier: MIT */
/*
 * settings.c - the table of settings
 *
 * One row serves a URL's parameter and a JSON file's key, so both say the same. docs/configuration.md
 * describes each row; a test compares the two.
 */
#include "config/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name) .field = offsetof(struct lk__options, name)
#define RANGE(low, high) .least = (low), .most = (high)
#define OTHERWISE(ms, parts) .otherwise_ms = (ms), .share = (parts)

const struct lk__setting lk__settings[] = {
    /* URL parameter, JSON key, type, field, range or default */
    { NULL, "url", .type = LK__URL },
    { NULL, "mode", .type = LK__MODE },
    { NULL, "address", .type = LK__ADDRESS },
    { NULL, "nodes", .type = LK__NODES },
    { NULL, "path", .type = LK__PATH },
    { NULL, "timeouts", .type = LK__GROUP },
    { NULL, "retry", .type = LK__GROUP },
    { NULL, "tls", .type = LK__GROUP },
    { NULL, "master", LK__TEXT, FIELD(service) },
    { "sentinel_user", "sentinel_username", LK__TEXT, FIELD(sentinel_user) },
    { "sentinel_password", "sentinel_password", LK__PASSWORD, FIELD(sentinel_password) },
    { NULL, "sentinel_password_file", LK__PASSWORD_FILE, FIELD(sentinel_password_file) },
    { NULL, "username", LK__TEXT, FIELD(user) },
    { NULL, "password", LK__PASSWORD, FIELD(password) },
    { NULL, "password_file", LK__PASSWORD_FILE, FIELD(password_file) },
    { "db", "db", LK__NUMBER, FIELD(db), RANGE(0, INT32_MAX) },
    { "client_name", "client_name", LK__CLIENT_NAME, FIELD(client_name) },
    { "prefix", "prefix", LK__PREFIX, FIELD(prefix) },
    { "lease", "lease", LK__DURATION, FIELD(lease_ms), OTHERWISE(30 * LK__SECOND_MS, 0) },
    { "command_timeout", "timeouts.command", LK__DURATION, FIELD(command_timeout_ms), OTHERWISE(1 * LK__SECOND_MS, 5) },
    { "connect_timeout", "timeouts.connect", LK__DURATION, FIELD(connect_timeout_ms), OTHERWISE(2 * LK__SECOND_MS, 3) },
    { "poll", "poll", LK__DURATION, FIELD(poll_ms), OTHERWISE(1 * LK__SECOND_MS, 2) },
    { "retry_min", "retry.min", LK__DURATION, FIELD(retry_min_ms), OTHERWISE(20, 0) },
    { "retry_max", "retry.max", LK__DURATION, FIELD(retry_max_ms), OTHERWISE(LK__DAY_MS, 10) },
    { "keepalive", "keepalive", LK__DURATION_OR_NO, FIELD(keepalive_ms), OTHERWISE(15 * LK__SECOND_MS, 0) },
    { "clock_skew", "clock_skew", LK__DURATION, FIELD(clock_skew_ms) },
    { "warn_wait", "warn_wait", LK__DURATION_OR_NO, FIELD(warn_wait_ms), OTHERWISE(3 * LK__SECOND_MS, 0) },
    { "warn_hold", "warn_hold", LK__DURATION_OR_NO, FIELD(warn_hold_ms), OTHERWISE(-1, 0) },
    { "wait_replicas", "wait_replicas", LK__NUMBER, FIELD(wait_replicas), RANGE(0, LK__REPLICAS_MAX) },
    { "pubsub", "pubsub", LK__NO, FIELD(no_pubsub) },
    { "redisson", "redisson", LK__YES, FIELD(redisson) },
    { "strict", "strict", LK__YES, FIELD(strict) },
    { "describe", "describe", LK__NO, FIELD(undescribed) },
    { "program", "program", LK__TEXT, FIELD(program) },
    { "arguments", "arguments", LK__TEXT, FIELD(arguments) },
    { "why", "why", LK__TEXT, FIELD(why) },
    { "protocol", "protocol", LK__NUMBER, FIELD(protocol), RANGE(2, 2) },
    { "cacert", "tls.cacert", LK__TEXT, FIELD(tls.cacert) },
    { "capath", "tls.capath", LK__TEXT, FIELD(tls.capath) },
    { "cert", "tls.cert", LK__TEXT, FIELD(tls.certificate) },
    { "key", "tls.key", LK__TEXT, FIELD(tls.key) },
    { "sni", "tls.sni", LK__TEXT, FIELD(tls.sni) },
    { "verify", "tls.verify", LK__NO, FIELD(tls.unverified) },
};

const size_t lk__settings_count = sizeof lk__settings / sizeof *lk__settings;

_Static_assert(sizeof lk__settings / sizeof *lk__settings <= LK__SETTINGS_MAX, "a bit for each in lk__builder.given");

const char *lk__setting_name(enum lk__source source, const struct lk__setting *setting)
{
    return source == LK__FROM_URL ? setting->url : setting->json;
}

const struct lk__setting *lk__setting_find(enum lk__source source, const char *name)
{
    for (size_t i = 0; i < lk__settings_count; i++) {
        const char *known = lk__setting_name(source, &lk__settings[i]);
        if (known != NULL && strcmp(known, name) == 0)
            return &lk__settings[i];
    }
    return NULL;
}

/* --- failures ------------------------------------------------------------------------------------------- */

int lk__builder_fail(struct lk__builder *builder, int code, const char *subject, const char *format, ...)
{
    va_list args;
    builder->subject = subject;
    va_start(args, format);
    vsnprintf(builder->errmsg, sizeof builder->errmsg, format, args);
    va_end(args);
    return code;
}

int lk__builder_nomem(struct lk__builder *builder)
{
    return lk__builder_fail(builder, ENOMEM, NULL, "out of memory or descriptors");
}

/* --- the nearest name ------------------------------------------------------------------------------------- */

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * How many characters are missing, too many, wrong, or have changed places with their neighbours: the optimal string
 * alignment distance. Case does not count.
 */
static int distance(const char *a, const char *b)
{
    int rows[3][sizeof((struct lk__builder *)NULL)->name], i, j;
    for (j = 0; b[j] != '\0'; j++)
        rows[0][j] = j;
    rows[0][j] = j;
    for (i = 1; a[i - 1] != '\0'; i++) {
        int *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (j = 1; b[j - 1] != '\0'; j++) {
            row[j] = lesser(lesser(last[j], row[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = lesser(row[j], before[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][strlen(b)];
}

/* The error suggests a setting that another source calls so, else the nearest name: one mistake in three characters. */
int lk__builder_unknown(struct lk__builder *builder, const char *noun)
{
    const enum lk__source source = builder->source, other = source == LK__FROM_URL ? LK__FROM_JSON : LK__FROM_URL;
    const struct lk__setting *namesake = lk__setting_find(other, builder->name);
    const char *nearest = namesake != NULL ? lk__setting_name(source, namesake) : NULL;
    int least = nearest != NULL ? 0 : 4;
    for (size_t i = 0; i < lk__settings_count; i++) {
        const char *known = lk__setting_name(source, &lk__settings[i]);
        int far = known != NULL ? distance(builder->name, known) : least;
        if (far >= least || far > lesser((int)strlen(builder->name), (int)strlen(known)) / 3)
            continue;
        nearest = known;
        least = far;
    }
    return lk__builder_fail(builder, EINVAL, builder->name, "no such %s%s%s%s", noun,
                            nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                            nearest != NULL ? "?" : "");
}
