/* SPDX-License-Identifier: MIT */
/*
 * url.c - options from redis://user:password@host:port/db?parameter=value&..., or with several hosts
 *
 * A URL that is not clear is refused, never guessed. In one that other clients would read in several ways the
 * password may be anywhere, so no error text quotes more than the name of a parameter.
 */
#include "config/builder.h"
#include "config/name.h"

#include <string.h>
#include <strings.h>

/* A piece of the URL. */
struct span {
    const char *at;
    size_t length;
};

/* The parts of a URL, not decoded. */
struct parts {
    bool socket;    /* unix: host and path are one path */
    bool sentinels; /* who stands in the place of the host */
    bool cluster;   /* some of whose nodes do */
    bool quorum;    /* all of whose nodes do */
    bool has_userinfo, has_params;
    struct span userinfo, host, path, params;
};

static int bad_url(struct lk__builder *builder, const char *errmsg)
{
    return lk__builder_fail(builder, EINVAL, NULL, "%s", errmsg);
}

/* --- taking a URL apart ------------------------------------------------------------------------------- */

static bool span_is(struct span span, const char *word)
{
    return strlen(word) == span.length && strncasecmp(span.at, word, span.length) == 0;
}

static bool span_ends(struct span span, const char *word)
{
    size_t length = strlen(word);
    return span.length > length && strncasecmp(span.at + span.length - length, word, length) == 0;
}

/* Take `word`, with a - or + before it, off the end. */
static bool cut_end(struct span *scheme, const char *word)
{
    size_t length = strlen(word);
    if (!span_ends(*scheme, word) || scheme->length <= length + 1)
        return false;
    char joint = scheme->at[scheme->length - length - 1];
    if (joint != '-' && joint != '+')
        return false;
    scheme->length -= length + 1;
    return true;
}

static int read_scheme(struct lk__builder *builder, struct span scheme, struct parts *parts)
{
    parts->sentinels = cut_end(&scheme, "sentinel");
    parts->cluster = !parts->sentinels && cut_end(&scheme, "cluster");
    parts->quorum = !parts->sentinels && !parts->cluster && cut_end(&scheme, "quorum");
    parts->socket = !parts->sentinels && !parts->cluster && !parts->quorum &&
                    (span_is(scheme, "unix") || span_is(scheme, "redis+unix") || span_is(scheme, "redis-socket"));
    builder->options.tls.on = span_is(scheme, "rediss") || span_is(scheme, "valkeys");
    if (parts->socket || builder->options.tls.on || span_is(scheme, "redis") || span_is(scheme, "valkey"))
        return 0;
    return bad_url(builder, "unknown scheme: redis://, rediss://, valkey://, valkeys:// and unix:// are known, and the "
                            "first four with -sentinel, -cluster or -quorum");
}

/* Refuse characters that would end a part where its writer did not mean it to end. */
static int check_characters(struct lk__builder *builder, const char *url, const char *authority, size_t length)
{
    for (const char *c = url; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return bad_url(builder, "has a blank or control character: write it as %XX");
    if (strchr(url, '#') != NULL)
        return bad_url(builder, "has a fragment (#...), which means nothing here: a # in a password is %23");
    const char *at = strchr(authority, '@');
    if (at != NULL && (at >= authority + length || strchr(at + 1, '@') != NULL))
        return bad_url(builder, "has an @ where none can be: in users, passwords and values @ / ? are %40 %2F %3F");
    return 0;
}

static int split(struct lk__builder *builder, const char *url, struct parts *parts)
{
    const char *colon = strstr(url, "://");
    memset(parts, 0, sizeof *parts);
    if (colon == NULL)
        return bad_url(builder, "begins with no scheme, such as redis://");
    int rc = read_scheme(builder, (struct span){ url, (size_t)(colon - url) }, parts);
    if (rc != 0)
        return rc;
    const char *authority = colon + 3;
    size_t length = strcspn(authority, "/?");
    rc = check_characters(builder, url, authority, length);
    if (rc != 0)
        return rc;

    const char *at = memchr(authority, '@', length), *path = authority + length;
    parts->has_userinfo = at != NULL;
    parts->userinfo = (struct span){ authority, at != NULL ? (size_t)(at - authority) : 0 };
    parts->host.at = at != NULL ? at + 1 : authority;
    parts->host.length = (size_t)(path - parts->host.at);
    parts->path = (struct span){ path, strcspn(path, "?") };
    parts->has_params = path[parts->path.length] == '?';
    if (parts->has_params)
        parts->params = (struct span){ path + parts->path.length + 1, strlen(path + parts->path.length + 1) };
    return 0;
}

/* --- reading the parts ---------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the "%XX" at the head of `span`; -1: there is no such escape. */
static int encoded(struct span span)
{
    int high = span.length >= 3 ? hex(span.at[1]) : -1, low = span.length >= 3 ? hex(span.at[2]) : -1;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Decode `span` to `text`, which is long enough, with a NUL at the end. NULL, or words of the mistake. */
static const char *decode_to(char *text, struct span span)
{
    while (span.length > 0) {
        size_t used = *span.at == '%' ? 3 : 1;
        int c = used == 3 ? encoded(span) : (unsigned char)*span.at;
        if (c < 0)
            return "has a % without two hex digits behind it: % itself is %25";
        if (c == 0)
            return "has a %00, which no text may hold";
        *text++ = (char)c;
        span.at += used;
        span.length -= used;
    }
    *text = '\0';
    return NULL;
}

/* Decode to a new string. The caller frees it with lk__wipe(), as it may be a secret. */
static int decode(struct lk__builder *builder, const char *subject, struct span span, char **text)
{
    char *decoded = lk__alloc(span.length + 1);
    if (decoded == NULL)
        return lk__builder_nomem(builder);
    const char *flaw = decode_to(decoded, span);
    if (flaw == NULL) {
        *text = decoded;
        return 0;
    }
    lk__wipe(decoded);
    return lk__builder_fail(builder, EINVAL, subject, "%s", flaw);
}

/* 0 if a mistake may be somebody else's: one in a URL that others read, too, which says nothing about where objects are. */
static int left_out(struct lk__builder *builder, int code)
{
    if (!builder->shared || (code != EINVAL && code != ENOTSUP))
        return code;
    lk__builder_leaveout(builder);
    return 0;
}

static int read_userinfo(struct lk__builder *builder, const struct parts *parts)
{
    struct span user = parts->userinfo, password;
    if (!parts->has_userinfo)
        return 0;
    const char *colon = memchr(user.at, ':', user.length);
    if (colon == NULL)
        return left_out(builder, bad_url(builder, "has a user or password alone before @: write user:password@ or "
                                                  ":password@"));
    password = (struct span){ colon + 1, (size_t)(user.at + user.length - colon - 1) };
    user.length = (size_t)(colon - user.at);
    if (user.length + password.length == 0)
        return 0; /* ":@", which templates write when there is no user */
    int rc = user.length == 0 ? 0 : decode(builder, "user", user, &builder->options.user);
    return rc != 0 ? rc : decode(builder, "password", password, &builder->options.password);
}

/* unix: all before the parameters is the path; unix://run/redis.sock is relative. */
static int read_socket(struct lk__builder *builder, const struct parts *parts)
{
    struct span whole = { parts->host.at, parts->host.length + parts->path.length };
    char *path = NULL;
    int rc = decode(builder, "path", whole, &path);
    if (rc != 0)
        return rc;
    rc = lk__builder_socket(builder, NULL, path);
    lk__wipe(path);
    return rc;
}

/* Decode `value` and put it into the setting named `name`. */
static int put(struct lk__builder *builder, struct span name, struct span value)
{
    const struct lk__setting *setting = lk__setting_find(LK__FROM_URL, name.at, name.length);
    char *text = NULL;
    int rc = decode(builder, setting->url, value, &text);
    if (rc != 0)
        return rc;
    rc = lk__setting_put(builder, setting, text);
    lk__wipe(text);
    return rc;
}

/* "/service" at the head of `path`, which Sentinels need; what is behind it remains. */
static int read_service(struct lk__builder *builder, struct span *path)
{
    struct span name = { path->at + 1, path->length > 0 ? path->length - 1 : 0 };
    const char *slash = memchr(name.at, '/', name.length);
    builder->sentinels = true;
    builder->single = false;
    if (slash != NULL)
        name.length = (size_t)(slash - name.at);
    if (name.length == 0)
        return bad_url(builder, "must name the master behind the Sentinels: redis-sentinel://host,host/NAME");
    *path = (struct span){ name.at + name.length, path->length - 1 - name.length };
    lk__free(builder->options.service);
    builder->options.service = NULL;
    return decode(builder, "master", name, &builder->options.service);
}

static int read_server(struct lk__builder *builder, const struct parts *parts)
{
    const struct span db = { "db", 2 };
    struct span path = parts->path;
    char *servers = NULL;
    int rc = decode(builder, "host", parts->host, &servers);
    if (rc != 0)
        return rc;
    rc = lk__builder_servers(builder, NULL, servers);
    lk__wipe(servers);
    if (rc == 0 && parts->sentinels)
        rc = read_service(builder, &path);
    builder->cluster |= parts->cluster;
    builder->quorum |= parts->quorum;
    if (rc != 0 || path.length <= 1)
        return rc;
    return put(builder, db, (struct span){ path.at + 1, path.length - 1 });
}

static int read_param(struct lk__builder *builder, struct span param)
{
    const char *equals = memchr(param.at, '=', param.length);
    struct span name = { param.at, equals != NULL ? (size_t)(equals - param.at) : param.length };
    lk__name_print(builder->name, sizeof builder->name, name.at, name.length);
    if (name.length == 0)
        return bad_url(builder, "has an empty parameter");
    if (lk__setting_find(LK__FROM_URL, name.at, name.length) == NULL)
        return lk__builder_unknown(builder, "parameter");
    if (equals == NULL)
        return lk__builder_fail(builder, EINVAL, builder->name, "has no value: write %s=...", builder->name);
    return put(builder, name, (struct span){ equals + 1, param.length - name.length - 1 });
}

/* The number of the database and the prefix say where objects are: with others, exclusion would end in silence. */
static bool says_where(struct span param)
{
    struct span name = { param.at, strcspn(param.at, "=&") };
    return span_is(name, "db") || span_is(name, "prefix");
}

static int read_param_or_not(struct lk__builder *builder, struct span param)
{
    int rc = read_param(builder, param);
    return says_where(param) ? rc : left_out(builder, rc);
}

static int read_params(struct lk__builder *builder, const struct parts *parts)
{
    const char *at = parts->params.at;
    int rc = 0;
    for (bool more = parts->has_params; more && rc == 0;) {
        struct span param = { at, strcspn(at, "&") };
        rc = read_param_or_not(builder, param);
        at += param.length;
        more = *at++ == '&';
    }
    return rc;
}

int lk__builder_url(struct lk__builder *builder, const char *url)
{
    struct parts parts;
    builder->source = LK__FROM_URL;
    int rc = split(builder, url, &parts);
    if (rc == 0)
        rc = read_userinfo(builder, &parts);
    if (rc == 0)
        rc = parts.socket ? read_socket(builder, &parts) : read_server(builder, &parts);
    return rc == 0 ? read_params(builder, &parts) : rc;
}

/* `builder` has begun. */
static int read_url(struct lk__builder *builder, struct lk__options *options, const char *url)
{
    int before = errno;
    int rc = lk__builder_url(builder, url);
    if (rc == 0)
        rc = lk__builder_finish(builder, options);
    if (rc != 0 && builder->subject != NULL)
        lk__fail(rc, "URL: %s: %s", builder->subject, builder->errmsg);
    else if (rc != 0)
        lk__fail(rc, "URL: %s", builder->errmsg);
    lk__builder_drop(builder);
    errno = before;
    return rc;
}

int lk__options_url(struct lk__options *options, const char *url)
{
    struct lk__builder builder;
    lk__builder_begin(&builder, LK__FROM_URL);
    return read_url(&builder, options, url);
}

int lk__options_sharedurl(struct lk__options *options, const char *url)
{
    static atomic_bool told; /* a default client may be opened again and again */
    struct lk__builder builder;
    lk__builder_begin(&builder, LK__FROM_URL);
    builder.shared = true;
    builder.silent = atomic_exchange(&told, true);
    return read_url(&builder, options, url);
}
