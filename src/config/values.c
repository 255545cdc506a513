/* SPDX-License-Identifier: MIT */
/* values.c - how the text of a value is read */
#include "config/name.h"
#include "config/settings.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DIGITS "0123456789"

/* The words for the rule of a value, and for its form in JSON; NULL: "be a string". */
static const char *const must_be[][2] = {
    [LK__TEXT] = { "not be empty", NULL },
    [LK__CLIENT_NAME] = { "be printable ASCII without blanks", NULL },
    [LK__PREFIX] = { "leave room for a name behind it", NULL },
    [LK__DURATION] = { "be whole milliseconds up to 24h with their unit: 500ms, 1.5s, 2m or 1h",
                       "be a string with a unit, such as \"500ms\"" },
    [LK__DURATION_OR_NO] = { "be a time up to 24h with its unit, such as 15s, or no",
                             "be a string with a unit, such as \"15s\", or false" },
    [LK__NUMBER] = { NULL, "be a whole number" },
    [LK__YES] = { "be yes or no", "be true or false" },
    [LK__NO] = { "be yes or no", "be true or false" },
    [LK__MODE] = { "be single, sentinel, cluster or quorum", NULL },
    [LK__ADDRESS] = { "be one address: several stand in nodes", NULL },
    [LK__NODES] = { NULL, "be a list of strings, \"host:port\"" },
    [LK__GROUP] = { NULL, "be an object" },
    [LK__URL] = { NULL, NULL },
};

static int fail(struct lk__builder *builder, const struct lk__setting *setting, const char *verb, const char *errmsg)
{
    return lk__builder_fail(builder, EINVAL, lk__setting_name(builder->source, setting), "%s %s", verb, errmsg);
}

static int must(struct lk__builder *builder, const struct lk__setting *setting)
{
    const char *name = lk__setting_name(builder->source, setting);
    if (setting->type != LK__NUMBER)
        return fail(builder, setting, "must", must_be[setting->type][0]);
    if (setting->least == setting->most)
        return lk__builder_fail(builder, EINVAL, name, "must be %lld: there is no other", (long long)setting->most);
    return lk__builder_fail(builder, EINVAL, name, "must be a number from %lld to %lld", (long long)setting->least,
                            (long long)setting->most);
}

int lk__setting_misformed(struct lk__builder *builder, const struct lk__setting *setting)
{
    const char *form = must_be[setting->type][1];
    return fail(builder, setting, "must", form != NULL ? form : "be a string");
}

/* --- servers -------------------------------------------------------------------------------------------- */

static bool is_host(const char *text, size_t length)
{
    return length <= 255 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") >= length;
}

/* "::1" or, with the interface it is reached by, "fe80::1%eth0". */
static bool is_ipv6(const char *text, size_t length)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    const char *zone = memchr(text, '%', length);
    size_t end = zone != NULL ? (size_t)(zone - text) : length;
    if (zone != NULL && (end + 1 == length || !is_host(zone + 1, length - end - 1)))
        return false;
    if (end >= sizeof address)
        return false;
    memcpy(address, text, end);
    address[end] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

/* Read the port behind a host, ":6379" up to `end`; 0 if there is none. */
static bool read_port(const char *text, const char *end, int *port)
{
    *port = 0;
    if (text == end)
        return true;
    if (*text != ':' || strspn(text + 1, DIGITS) != (size_t)(end - text - 1))
        return false;
    long number = strtol(text + 1, NULL, 10);
    *port = number <= UINT16_MAX ? (int)number : 0;
    return *port > 0;
}

/* Read `text` of `length`. NULL, or words for what is no address; the host is NULL if there was no memory for it. */
static const char *read_address(const char *text, size_t length, struct lk__address *address)
{
    const bool ipv6 = *text == '[';
    const char *end = text + length, *host = text + ipv6, *behind = memchr(text, ipv6 ? ']' : ':', length);
    if (ipv6 && (behind == NULL || !is_ipv6(host, (size_t)(behind - host))))
        return "what stands in [ ] is no IPv6 address";
    if (behind == NULL)
        behind = end;
    length = (size_t)(behind - host);
    if (!ipv6 && !is_host(host, length))
        return "a host has letters, digits, dots, - and _ only, or is an IPv6 address in [ ]";
    if (!read_port(behind + ipv6, end, &address->port))
        return "the port behind the host must be 1 to 65535 (an IPv6 address stands in [ ])";
    address->host = length > 0 ? lk__alloc(length + 1) : lk__strdup("127.0.0.1");
    if (address->host != NULL)
        memcpy(address->host, host, length);
    return NULL;
}

void lk__options_clearservers(struct lk__options *options)
{
    lk__free(options->path);
    for (unsigned i = 0; i < options->server_count; i++)
        lk__free(options->servers[i].host);
    lk__free(options->servers);
    options->path = NULL;
    options->servers = NULL;
    options->server_count = 0;
}

/* Servers are given once: fail if they were. */
static int begin_servers(struct lk__builder *builder, const char *subject)
{
    if (builder->server)
        return lk__builder_fail(builder, EINVAL, subject, "there is a server already: one of address, nodes and path");
    builder->server = true;
    lk__options_clearservers(&builder->options);
    return 0;
}

int lk__builder_servers(struct lk__builder *builder, const char *subject, const char *text)
{
    struct lk__options *o = &builder->options;
    unsigned count = 1;
    for (const char *c = text; *c != '\0'; c++)
        count += *c == ',';
    int rc = begin_servers(builder, subject);
    if (rc == 0 && count > LK__SERVERS_MAX)
        rc = lk__builder_fail(builder, EINVAL, subject, "there may be %d addresses at most", LK__SERVERS_MAX);
    if (rc == 0 && (o->servers = lk__alloc(count * sizeof *o->servers)) == NULL)
        rc = lk__builder_nomem(builder);
    for (; rc == 0 && o->server_count < count; text++) {
        size_t length = strcspn(text, ",");
        const char *flaw = length == 0 && count > 1
                               ? "an address is missing beside a comma"
                               : read_address(text, length, &o->servers[o->server_count]);
        if (flaw != NULL)
            return lk__builder_fail(builder, EINVAL, subject, "%s", flaw);
        if (o->servers[o->server_count++].host == NULL)
            return lk__builder_nomem(builder);
        text += length;
    }
    return rc;
}

int lk__builder_socket(struct lk__builder *builder, const char *subject, const char *path)
{
    const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    int rc = begin_servers(builder, subject);
    if (rc != 0)
        return rc;
    if (*path == '\0')
        return lk__builder_fail(builder, EINVAL, subject, "the path of the socket is missing");
    if (strlen(path) > most)
        return lk__builder_fail(builder, EINVAL, subject, "the path of a socket has at most %zu bytes", most);
    builder->options.path = lk__strdup(path);
    return builder->options.path != NULL ? 0 : lk__builder_nomem(builder);
}

/* --- values --------------------------------------------------------------------------------------------- */

static bool read_number(const struct lk__setting *setting, const char *text, int *number)
{
    size_t length = strspn(text, DIGITS);
    long long value = strtoll(text, NULL, 10);
    if (length == 0 || text[length] != '\0' || value < setting->least || value > setting->most)
        return false;
    *number = (int)value;
    return true;
}

/* Read "1.5s" exactly. True: `ms` has it, in 1..LK__DAY_MS; else it is as it was. */
static bool read_duration(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", LK__SECOND_MS }, { "m", 60 * LK__SECOND_MS }, { "h", 60 * 60 * LK__SECOND_MS } };
    size_t whole = strspn(text, DIGITS), point = text[whole] == '.', u = 0;
    size_t places = strspn(text + whole + point, DIGITS);
    int64_t fraction = strtoll(text + whole + point, NULL, 10), scale = 1;
    if (whole < 1 || whole > 9 || places > 9 || (places > 0) != (point > 0))
        return false;
    while (u < 4 && strcmp(text + whole + point + places, units[u].name) != 0)
        u++;
    for (size_t i = 0; i < places; i++)
        scale *= 10;
    if (u == 4 || fraction * units[u].ms % scale != 0)
        return false;
    int64_t read_ms = strtoll(text, NULL, 10) * units[u].ms + fraction * units[u].ms / scale;
    if (read_ms < 1 || read_ms > LK__DAY_MS)
        return false;
    *ms = read_ms;
    return true;
}

static int put_text(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    char **field = (char **)((char *)&builder->options + setting->field);
    if (*text == '\0')
        return fail(builder, setting, "must", must_be[LK__TEXT][0]);
    lk__free(*field); /* of the URL below a file */
    *field = lk__strdup(text);
    return *field != NULL ? 0 : lk__builder_nomem(builder);
}

/* A prefix is the beginning of names: its flaw is a flaw of each name. */
static int put_prefix(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    const char *flaw = lk__name_flaw(text, strlen(text));
    if (flaw != NULL)
        return fail(builder, setting, "it", flaw);
    return strlen(text) < LK_NAME_MAX ? put_text(builder, setting, text) : must(builder, setting);
}

/* CLIENT SETNAME takes no other characters. */
static int put_client_name(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return must(builder, setting);
    return put_text(builder, setting, text);
}

/* "yes" or "no": the one that is `set` makes the flag true. */
static int put_flag(struct lk__builder *builder, const struct lk__setting *setting, const char *text, const char *set)
{
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return must(builder, setting);
    *(bool *)((char *)&builder->options + setting->field) = strcmp(text, set) == 0;
    return 0;
}

static int put_mode(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    static const char *const modes[] = { [LK__SINGLE] = "single", "sentinel", "cluster", "quorum" };
    for (int mode = LK__SINGLE; mode <= LK__QUORUM; mode++)
        if (strcmp(text, modes[mode]) == 0) {
            builder->mode = (enum lk__mode)mode;
            return 0;
        }
    return must(builder, setting);
}

static int put_address(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    if (*text == '\0')
        return fail(builder, setting, "must", must_be[LK__TEXT][0]);
    return strchr(text, ',') == NULL ? lk__builder_servers(builder, setting->json, text) : must(builder, setting);
}

int lk__setting_put(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    void *field = (char *)&builder->options + setting->field;
    if (strncmp(setting->json, "tls.", 4) == 0 && !builder->options.tls.on) /* it would be heard by nobody */
        return fail(builder, setting, "is for TLS:", "the scheme must be rediss or valkeys");
    switch (setting->type) {
    case LK__TEXT:
        return put_text(builder, setting, text);
    case LK__CLIENT_NAME:
        return put_client_name(builder, setting, text);
    case LK__PREFIX:
        return put_prefix(builder, setting, text);
    case LK__PASSWORD:
        return lk__put_password(builder, setting, text);
    case LK__PASSWORD_FILE:
        return lk__put_password_file(builder, setting, text);
    case LK__DURATION_OR_NO:
        if (strcmp(text, "no") == 0) {
            *(int64_t *)field = -1;
            return 0;
        }
        return read_duration(text, field) ? 0 : must(builder, setting);
    case LK__DURATION:
        return read_duration(text, field) ? 0 : must(builder, setting);
    case LK__NUMBER:
        return read_number(setting, text, field) ? 0 : must(builder, setting);
    case LK__YES:
        return put_flag(builder, setting, text, "yes");
    case LK__NO:
        return put_flag(builder, setting, text, "no");
    case LK__MODE:
        return put_mode(builder, setting, text);
    case LK__ADDRESS:
        return put_address(builder, setting, text);
    case LK__NODES:
        return lk__builder_servers(builder, setting->json, text);
    case LK__PATH:
        return lk__builder_socket(builder, setting->json, text);
    case LK__GROUP:
        builder->options.tls.on |= strcmp(setting->json, "tls") == 0;
        return 0;
    case LK__URL: /* a URL is no setting, but has some */
        break;
    }
    return 0;
}
