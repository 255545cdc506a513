/* SPDX-License-Identifier: MIT */
/*
 * url.c - options from redis://user:password@host:port/db?parameter=value&..., or with several hosts
 *
 * A URL that is not clear is refused, never guessed. In one that other clients would read in several ways the
 * password may be anywhere, so no error text quotes more than the name of a parameter.
 */
#include "config/json.h"
#include "config/name.h"
#include "config/settings.h"

#include <string.h>
#include <strings.h>

/* --- taking a URL apart ----------------------------------------------------------------------------------- */

/* The parts of a URL, cut out of a copy; NULL: there is no such part. */
struct parts {
    bool socket; /* unix: the path of a socket is in `host` */
    char *user, *password, *host, *path, *params;
};

static int bad_url(struct lk__builder *builder, const char *errmsg)
{
    return lk__builder_fail(builder, EINVAL, NULL, "%s", errmsg);
}

static bool is(const char *text, const char *word)
{
    return strcasecmp(text, word) == 0;
}

/* Take `word`, with a - or + before it, off the end. */
static bool cut_end(char *scheme, const char *word)
{
    size_t length = strlen(scheme), taken = strlen(word) + 1;
    char *joint = scheme + length - taken;
    if (length <= taken || !is(joint + 1, word) || (*joint != '-' && *joint != '+'))
        return false;
    *joint = '\0';
    return true;
}

static int read_scheme(struct lk__builder *builder, char *scheme, bool *socket)
{
    if (cut_end(scheme, "sentinel"))
        builder->mode = LK__SENTINEL;
    else if (cut_end(scheme, "cluster"))
        builder->mode = LK__CLUSTER;
    else if (cut_end(scheme, "quorum"))
        builder->mode = LK__QUORUM;
    *socket = builder->mode == LK__MODE_OPEN &&
              (is(scheme, "unix") || is(scheme, "redis+unix") || is(scheme, "redis-socket"));
    builder->options.tls.on = is(scheme, "rediss") || is(scheme, "valkeys");
    if (*socket || builder->options.tls.on || is(scheme, "redis") || is(scheme, "valkey"))
        return 0;
    return bad_url(builder, "unknown scheme: redis://, rediss://, valkey://, valkeys:// and unix:// are known, and the "
                            "first four with -sentinel, -cluster or -quorum");
}

/* Refuse characters that would end a part where its writer did not mean it to end. */
static int check_characters(struct lk__builder *builder, const char *authority)
{
    for (const char *c = authority; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return bad_url(builder, "has a blank or control character: write it as %XX");
    if (strchr(authority, '#') != NULL)
        return bad_url(builder, "has a fragment (#...), which means nothing here: a # in a password is %23");
    const char *at = strchr(authority, '@');
    if (at != NULL && (at >= authority + strcspn(authority, "/?") || strchr(at + 1, '@') != NULL))
        return bad_url(builder, "has an @ where none can be: in users, passwords and values @ / ? are %40 %2F %3F");
    return 0;
}

/* End `*text` before the first `mark`, and return what is behind it; NULL: there is none. */
static char *cut(char *text, char mark)
{
    char *at = strchr(text, mark);
    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + 1;
}

static int split(struct lk__builder *builder, char *url, struct parts *parts)
{
    char *authority = strstr(url, "://"), *host;
    if (authority == NULL)
        return bad_url(builder, "begins with no scheme, such as redis://");
    *authority = '\0';
    authority += strlen("://");
    int rc = read_scheme(builder, url, &parts->socket);
    if (rc == 0)
        rc = check_characters(builder, authority);
    if (rc != 0)
        return rc;
    parts->params = cut(authority, '?');
    host = cut(authority, '@');
    parts->user = host != NULL ? authority : NULL;
    parts->password = host != NULL ? cut(authority, ':') : NULL;
    parts->host = host != NULL ? host : authority;
    parts->path = parts->socket ? NULL : cut(parts->host, '/');
    return 0;
}

/* --- reading the parts ------------------------------------------------------------------------------------ */

/* Decode `text` where it stands. */
static int decode(struct lk__builder *builder, const char *subject, char *text)
{
    char *to = text;
    for (; *text != '\0'; text++) {
        int c = (unsigned char)*text;
        if (c == '%') {
            int high = lk__hexdigit(text[1]), low = high >= 0 ? lk__hexdigit(text[2]) : -1;
            if (low < 0)
                return lk__builder_fail(builder, EINVAL, subject,
                                        "has a %% without two hex digits behind it: %% itself is %%25");
            c = high * 16 + low;
            text += 2;
        }
        if (c == 0)
            return lk__builder_fail(builder, EINVAL, subject, "has a %%00, which no text may hold");
        *to++ = (char)c;
    }
    *to = '\0';
    return 0;
}

static int decode_to(struct lk__builder *builder, const char *subject, char *text, char **copy)
{
    int rc = decode(builder, subject, text);
    if (rc != 0)
        return rc;
    *copy = lk__strdup(text);
    return *copy != NULL ? 0 : lk__builder_nomem(builder);
}

/* 0 if a mistake may be somebody else's: others read the URL, too, and the mistake does not say where objects are. */
static int left_out(struct lk__builder *builder, int code)
{
    const char *subject = builder->subject != NULL ? builder->subject : "";
    if (!builder->shared || code != EINVAL)
        return code;
    if (!builder->silent)
        lk__log(LK_LOG_WARNING, "left out of $REDIS_URL: %s%s%s", subject, *subject != '\0' ? ": " : "",
                builder->errmsg);
    return 0;
}

static int read_userinfo(struct lk__builder *builder, const struct parts *parts)
{
    if (parts->user == NULL)
        return 0;
    if (parts->password == NULL)
        return left_out(builder, bad_url(builder, "has a user or password alone before @: write user:password@ or "
                                                  ":password@"));
    if (*parts->user == '\0' && *parts->password == '\0')
        return 0; /* ":@", which templates write when there is no user */
    int rc = *parts->user == '\0' ? 0 : decode_to(builder, "user", parts->user, &builder->options.user);
    return rc != 0 ? rc : decode_to(builder, "password", parts->password, &builder->options.password);
}

/* Decode `text` and put it into the setting named `name`. */
static int put(struct lk__builder *builder, const char *name, char *text)
{
    const struct lk__setting *setting = lk__setting_find(LK__FROM_URL, name);
    const uint64_t bit = UINT64_C(1) << (setting - lk__settings);
    int rc = decode(builder, setting->url, text);
    if (rc != 0)
        return rc;
    if ((builder->given & bit) != 0)
        return lk__builder_fail(builder, EINVAL, setting->url, "is given twice");
    builder->given |= bit;
    return lk__setting_put(builder, setting, text);
}

/* A path, where unix://run/redis.sock is relative; or hosts, the name of the master, and the database. */
static int read_server(struct lk__builder *builder, const struct parts *parts)
{
    char *db = parts->path, *service = parts->path;
    int rc = decode(builder, parts->socket ? "path" : "host", parts->host);
    if (rc != 0)
        return rc;
    if (parts->socket)
        return lk__builder_socket(builder, NULL, parts->host);
    rc = lk__builder_servers(builder, NULL, parts->host);
    if (rc == 0 && builder->mode == LK__SENTINEL) {
        db = service != NULL ? cut(service, '/') : NULL;
        if (service == NULL || *service == '\0')
            return bad_url(builder, "must name the master behind the Sentinels: redis-sentinel://host,host/NAME");
        rc = decode_to(builder, "master", service, &builder->options.service);
    }
    return rc == 0 && db != NULL && *db != '\0' ? put(builder, "db", db) : rc;
}

static int read_param(struct lk__builder *builder, const char *name, char *value)
{
    lk__name_print(builder->name, sizeof builder->name, name, strlen(name));
    if (*name == '\0')
        return bad_url(builder, "has an empty parameter");
    if (lk__setting_find(LK__FROM_URL, name) == NULL)
        return lk__builder_unknown(builder, "parameter");
    if (value == NULL)
        return lk__builder_fail(builder, EINVAL, builder->name, "has no value: write %s=...", builder->name);
    return put(builder, name, value);
}

/* The number of the database and the prefix say where objects are: with others, exclusion would end in silence. */
static int read_params(struct lk__builder *builder, char *params)
{
    int rc = 0;
    for (char *name; rc == 0 && (name = strsep(&params, "&")) != NULL;) {
        char *value = cut(name, '=');
        rc = read_param(builder, name, value);
        if (strcasecmp(name, "db") != 0 && strcasecmp(name, "prefix") != 0)
            rc = left_out(builder, rc);
    }
    return rc;
}

static int read_copy(struct lk__builder *builder, char *url)
{
    struct parts parts = { .host = url };
    int rc = split(builder, url, &parts);
    if (rc == 0)
        rc = read_userinfo(builder, &parts);
    if (rc == 0)
        rc = read_server(builder, &parts);
    return rc == 0 ? read_params(builder, parts.params) : rc;
}

int lk__builder_url(struct lk__builder *builder, const char *url)
{
    size_t length = strlen(url);
    char *copy = lk__strdup(url);
    if (copy == NULL)
        return lk__builder_nomem(builder);
    builder->source = LK__FROM_URL;
    int rc = read_copy(builder, copy);
    explicit_bzero(copy, length);
    lk__free(copy);
    return rc;
}

static int read_url(struct lk__builder *builder, struct lk__options *options, const char *url)
{
    int before = errno, rc = lk__builder_url(builder, url);
    if (rc == 0)
        rc = lk__builder_finish(builder, options);
    if (rc != 0)
        lk__fail(rc, "URL: %s%s%s", builder->subject != NULL ? builder->subject : "",
                 builder->subject != NULL ? ": " : "", builder->errmsg);
    lk__options_clear(&builder->options);
    errno = before;
    return rc;
}

int lk__options_url(struct lk__options *options, const char *url)
{
    struct lk__builder builder = { .source = LK__FROM_URL };
    return read_url(&builder, options, url);
}

int lk__options_sharedurl(struct lk__options *options, const char *url)
{
    static atomic_bool told; /* a default client may be opened again and again */
    struct lk__builder builder = { .shared = true, .silent = atomic_exchange(&told, true) };
    return read_url(&builder, options, url);
}
