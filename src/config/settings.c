/* SPDX-License-Identifier: MIT */
/*
 * settings.c - the table of settings, and how the value of each is read
 *
 * One row serves a URL's parameter and a JSON file's key, so both say the same. docs/configuration.md
 * describes each row; a test compares the two.
 */
#include "config/builder.h"
#include "config/name.h"

#include <string.h>

#define MINUTE (60 * LK__SECOND_MS)
#define HOUR (60 * MINUTE)
#define DURATION_MAX_MS (24 * HOUR)

typedef int putter(struct lk__builder *builder, const struct lk__setting *setting, const char *text);

static putter put_duration, put_duration_or_no, put_yes, put_no, put_text, put_prefix, put_client_name,
    put_db;
static putter put_replicas, put_protocol, put_address, put_nodes, put_socket, put_mode, put_tls_text, put_verify,
    put_url;

#define FIELD(name) offsetof(struct lk__options, name)

const struct lk__setting lk__settings[] = {
    /* URL parameter, JSON key, its form in JSON, reader, field */
    { NULL, "url", LK__STRING, put_url, 0 },
    { NULL, "mode", LK__STRING, put_mode, 0 },
    { NULL, "address", LK__STRING, put_address, 0 },
    { NULL, "nodes", LK__LIST, put_nodes, 0 },
    { NULL, "master", LK__STRING, put_text, FIELD(service) },
    { "sentinel_user", "sentinel_username", LK__STRING, put_text, FIELD(sentinel_user) },
    { "sentinel_password", "sentinel_password", LK__STRING, lk__put_password, FIELD(sentinel_password) },
    { NULL, "sentinel_password_file", LK__STRING, lk__put_password_file, FIELD(sentinel_password) },
    { NULL, "path", LK__STRING, put_socket, 0 },
    { NULL, "username", LK__STRING, put_text, FIELD(user) },
    { NULL, "password", LK__STRING, lk__put_password, FIELD(password) },
    { NULL, "password_file", LK__STRING, lk__put_password_file, FIELD(password) },
    { "db", "db", LK__NUMBER, put_db, 0 },
    { "client_name", "client_name", LK__STRING, put_client_name, FIELD(client_name) },
    { "prefix", "prefix", LK__STRING, put_prefix, FIELD(prefix) },
    { "lease", "lease", LK__DURATION, put_duration, FIELD(lease_ms) },
    { "command_timeout", "timeouts.command", LK__DURATION, put_duration, FIELD(command_timeout_ms) },
    { "connect_timeout", "timeouts.connect", LK__DURATION, put_duration, FIELD(connect_timeout_ms) },
    { "poll", "poll", LK__DURATION, put_duration, FIELD(poll_ms) },
    { "retry_min", "retry.min", LK__DURATION, put_duration, FIELD(retry_min_ms) },
    { "retry_max", "retry.max", LK__DURATION, put_duration, FIELD(retry_max_ms) },
    { "keepalive", "keepalive", LK__DURATION_OR_NO, put_duration_or_no, FIELD(keepalive_ms) },
    { "clock_skew", "clock_skew", LK__DURATION, put_duration, FIELD(clock_skew_ms) },
    { "warn_wait", "warn_wait", LK__DURATION_OR_NO, put_duration_or_no, FIELD(warn_wait_ms) },
    { "warn_hold", "warn_hold", LK__DURATION_OR_NO, put_duration_or_no, FIELD(warn_hold_ms) },
    { "wait_replicas", "wait_replicas", LK__NUMBER, put_replicas, 0 },
    { "pubsub", "pubsub", LK__FLAG, put_no, FIELD(no_pubsub) },
    { "redisson", "redisson", LK__FLAG, put_yes, FIELD(redisson) },
    { "strict", "strict", LK__FLAG, put_yes, FIELD(strict) },
    { "describe", "describe", LK__FLAG, put_no, FIELD(undescribed) },
    { "program", "program", LK__STRING, put_text, FIELD(program) },
    { "arguments", "arguments", LK__STRING, put_text, FIELD(arguments) },
    { "why", "why", LK__STRING, put_text, FIELD(why) },
    { "protocol", "protocol", LK__NUMBER, put_protocol, 0 },
    { "cacert", "tls.cacert", LK__STRING, put_tls_text, FIELD(tls.cacert) },
    { "capath", "tls.capath", LK__STRING, put_tls_text, FIELD(tls.capath) },
    { "cert", "tls.cert", LK__STRING, put_tls_text, FIELD(tls.certificate) },
    { "key", "tls.key", LK__STRING, put_tls_text, FIELD(tls.key) },
    { "sni", "tls.sni", LK__STRING, put_tls_text, FIELD(tls.sni) },
    { "verify", "tls.verify", LK__FLAG, put_verify, FIELD(tls.unverified) },
};

const size_t lk__settings_count = sizeof lk__settings / sizeof *lk__settings;

_Static_assert(sizeof lk__settings / sizeof *lk__settings <= 64, "a bit for each in lk__builder.given");

const char *lk__setting_name(enum lk__source source, const struct lk__setting *setting)
{
    return source == LK__FROM_URL ? setting->url : setting->json;
}

const struct lk__setting *lk__setting_find(enum lk__source source, const char *name, size_t length)
{
    for (size_t i = 0; i < lk__settings_count; i++) {
        const char *known = lk__setting_name(source, &lk__settings[i]);
        if (known != NULL && strlen(known) == length && memcmp(known, name, length) == 0)
            return &lk__settings[i];
    }
    return NULL;
}

int lk__setting_put(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    uint64_t bit = UINT64_C(1) << (setting - lk__settings);
    if ((builder->given & bit) != 0)
        return lk__builder_fail(builder, EINVAL, lk__setting_name(builder->source, setting), "is given twice");
    builder->given |= bit;
    return setting->put(builder, setting, text);
}

/* Fail with "must ...", the usual mistake. */
static int must(struct lk__builder *builder, const struct lk__setting *setting, const char *errmsg)
{
    return lk__builder_fail(builder, EINVAL, lk__setting_name(builder->source, setting), "must %s", errmsg);
}

/* The field of options that `setting` writes. */
static void *field_of(struct lk__builder *builder, const struct lk__setting *setting)
{
    return (char *)&builder->options + setting->field;
}

/* --- durations --------------------------------------------------------------------------------------- */

/* Milliseconds in the unit named `text`; 0: there is no such unit. */
static int64_t unit_of(const char *text)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", LK__SECOND_MS }, { "m", MINUTE }, { "h", HOUR } };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

/*
 * Read the digits at `*text` and skip them; `*places` is their number. -1: no digit, or more than nine.
 */
static int64_t digits(const char **text, int *places)
{
    int64_t number = 0;
    for (*places = 0; **text >= '0' && **text <= '9'; (*text)++) {
        if (++*places > 9)
            return -1;
        number = number * 10 + (**text - '0');
    }
    return *places > 0 ? number : -1;
}

/* Read "1.5s" exactly. True: `ms` has it, in 1..DURATION_MAX_MS; else it is as it was. */
static bool read_duration(const char *text, int64_t *ms)
{
    int places;
    int64_t whole = digits(&text, &places), fraction = 0, scale = 1;
    if (whole < 0)
        return false;
    if (*text == '.') {
        text++;
        fraction = digits(&text, &places);
        if (fraction < 0)
            return false;
        while (places-- > 0)
            scale *= 10;
    }
    int64_t unit = unit_of(text);
    if (unit == 0 || fraction * unit % scale != 0)
        return false;
    int64_t read_ms = whole * unit + fraction * unit / scale;
    if (read_ms < 1 || read_ms > DURATION_MAX_MS)
        return false;
    *ms = read_ms;
    return true;
}

static int put_duration(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (!read_duration(text, field_of(builder, setting)))
        return must(builder, setting, "be whole milliseconds up to 24h with their unit: 500ms, 1.5s, 2m or 1h");
    return 0;
}

static int put_duration_or_no(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    int64_t *ms = field_of(builder, setting);
    if (strcmp(text, "no") == 0)
        *ms = -1;
    else if (!read_duration(text, ms))
        return must(builder, setting, "be a time up to 24h with its unit, such as 15s, or no");
    return 0;
}

/* --- other values -------------------------------------------------------------------------------------- */

/* Set a flag if `text` is `word`, the one of yes and no that is not the default. */
static int put_flag(struct lk__builder *builder, const struct lk__setting *setting, const char *text, const char *word)
{
    bool *flag = field_of(builder, setting);
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return must(builder, setting, "be yes or no");
    *flag = strcmp(text, word) == 0;
    return 0;
}

static int put_yes(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    return put_flag(builder, setting, text, "yes");
}

static int put_no(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    return put_flag(builder, setting, text, "no");
}

static int put_db(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (!lk__read_number(text, 0, INT32_MAX, &builder->options.db))
        return must(builder, setting, "be the number of a database, 0 or more");
    return 0;
}

static int put_replicas(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (!lk__read_number(text, 0, LK__REPLICAS_MAX, &builder->options.wait_replicas))
        return must(builder, setting, "be a number of replicas, from 0 to 100");
    return 0;
}

static int put_protocol(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (strcmp(text, "2") != 0)
        return must(builder, setting, "be 2, the one version of the protocol that is spoken");
    return 0;
}

static int put_text(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    char **field = field_of(builder, setting);
    if (*text == '\0')
        return must(builder, setting, "not be empty");
    lk__free(*field); /* of the layer below */
    *field = lk__strdup(text);
    return *field != NULL ? 0 : lk__builder_nomem(builder);
}

/* A prefix is the beginning of names: its flaw is a flaw of each name. */
static int put_prefix(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    const char *flaw = lk__name_flaw(text, strlen(text));
    if (flaw != NULL)
        return lk__builder_fail(builder, EINVAL, lk__setting_name(builder->source, setting), "it %s", flaw);
    if (strlen(text) == LK_NAME_MAX)
        return must(builder, setting, "leave room for a name behind it");
    return put_text(builder, setting, text);
}

/* CLIENT SETNAME takes no other characters. */
static int put_client_name(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return must(builder, setting, "be printable ASCII without blanks");
    return put_text(builder, setting, text);
}

static int put_mode(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    builder->single = strcmp(text, "single") == 0;
    builder->sentinels = strcmp(text, "sentinel") == 0;
    builder->cluster = strcmp(text, "cluster") == 0;
    builder->quorum = strcmp(text, "quorum") == 0;
    return builder->single || builder->sentinels || builder->cluster || builder->quorum
               ? 0
               : must(builder, setting, "be single, sentinel, cluster or quorum");
}

/* What is said of TLS to a server without it would be heard by nobody. */
static int with_tls(struct lk__builder *builder, const struct lk__setting *setting)
{
    if (builder->options.tls.on)
        return 0;
    return lk__builder_fail(builder, EINVAL, lk__setting_name(builder->source, setting),
                            "is for TLS: the scheme must be rediss or valkeys");
}

static int put_tls_text(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    int rc = with_tls(builder, setting);
    return rc != 0 ? rc : put_text(builder, setting, text);
}

static int put_verify(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    int rc = with_tls(builder, setting);
    return rc != 0 ? rc : put_no(builder, setting, text);
}

static int put_address(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (*text == '\0')
        return must(builder, setting, "not be empty");
    if (strchr(text, ',') != NULL)
        return must(builder, setting, "be one address: several stand in nodes");
    return lk__builder_servers(builder, lk__setting_name(builder->source, setting), text);
}

static int put_nodes(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    return lk__builder_servers(builder, lk__setting_name(builder->source, setting), text);
}

static int put_socket(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    return lk__builder_socket(builder, lk__setting_name(builder->source, setting), text);
}

/* A URL is the ground of all others, and was read before them. */
static int put_url(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    (void)builder;
    (void)setting;
    (void)text;
    return 0;
}
