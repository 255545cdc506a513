/* SPDX-License-Identifier: MIT */
/*
 * options.c - the table of options, and how they are read, completed and checked
 *
 * One row serves a URL's parameter and a JSON file's key, so both say the same. docs/configuration.md
 * describes each row; a test compares the two.
 */
#include "config/builder.h"
#include "config/name.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

#define LEASE_MS (30 * SECOND)
#define LEASE_MIN_MS 100
#define DURATION_MAX_MS (24 * HOUR)
#define PORT 6379

/* --- the table ------------------------------------------------------------------------------------- */

typedef int putter(struct lk__draft *builder, const struct lk__setting *setting, const char *text);

static putter put_duration, put_duration_or_no, put_yes, put_no, put_text, put_prefix, put_client_name, put_db;
static putter put_protocol, put_server, put_socket, put_mode, put_master, put_tls;

#define FIELD(name) offsetof(struct lk__options, name)

const struct lk__setting lk__settings[] = {
    /* URL parameter, JSON key, its form in JSON, reader, field */
    { NULL, "mode", LK__STRING, put_mode, 0 },
    { NULL, "address", LK__STRING, put_server, 0 },
    { NULL, "nodes", LK__LIST, put_server, 0 },
    { NULL, "path", LK__STRING, put_socket, 0 },
    { NULL, "username", LK__STRING, put_text, FIELD(user) },
    { NULL, "password", LK__STRING, lk__put_password, 0 },
    { NULL, "password_file", LK__STRING, lk__put_password_file, 0 },
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
    { "pubsub", "pubsub", LK__FLAG, put_no, FIELD(no_pubsub) },
    { "redisson", "redisson", LK__FLAG, put_yes, FIELD(redisson) },
    { "strict", "strict", LK__FLAG, put_yes, FIELD(strict) },
    { "protocol", "protocol", LK__NUMBER, put_protocol, 0 },
    /* known, so that words can say more than "unknown" */
    { NULL, "master", LK__ANYTHING, put_master, 0 },
    { NULL, "tls", LK__ANYTHING, put_tls, 0 },
    { "cacert", NULL, LK__ANYTHING, put_tls, 0 },
    { "cert", NULL, LK__ANYTHING, put_tls, 0 },
    { "key", NULL, LK__ANYTHING, put_tls, 0 },
    { "sni", NULL, LK__ANYTHING, put_tls, 0 },
    { "verify", NULL, LK__ANYTHING, put_tls, 0 },
};

const size_t lk__settings_count = sizeof lk__settings / sizeof *lk__settings;

_Static_assert(sizeof lk__settings / sizeof *lk__settings <= 64, "a bit for each in lk__draft.given");

static const char *name_in(enum lk__source source, const struct lk__setting *setting)
{
    return source == LK__FROM_URL ? setting->url : setting->json;
}

const struct lk__setting *lk__setting_find(enum lk__source source, const char *name, size_t length)
{
    for (size_t i = 0; i < lk__settings_count; i++) {
        const char *known = name_in(source, &lk__settings[i]);
        if (known != NULL && strlen(known) == length && memcmp(known, name, length) == 0)
            return &lk__settings[i];
    }
    return NULL;
}

/* --- a draft ---------------------------------------------------------------------------------------- */

void lk__draft_begin(struct lk__draft *builder, enum lk__source source)
{
    memset(builder, 0, sizeof *builder);
    builder->source = source;
}

void lk__draft_drop(struct lk__draft *builder)
{
    lk__options_clear(&builder->options);
}

int lk__draft_fail(struct lk__draft *builder, int code, const char *subject, const char *format, ...)
{
    va_list args;
    builder->subject = subject;
    va_start(args, format);
    vsnprintf(builder->errmsg, sizeof builder->errmsg, format, args);
    va_end(args);
    return code;
}

int lk__draft_nomem(struct lk__draft *builder)
{
    return lk__draft_fail(builder, ENOMEM, NULL, "out of memory or descriptors");
}

/* The usual mistake: what this setting must be. */
static int must(struct lk__draft *builder, const struct lk__setting *setting, const char *errmsg)
{
    return lk__draft_fail(builder, EINVAL, name_in(builder->source, setting), "must %s", errmsg);
}

int lk__draft_put(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    uint64_t bit = UINT64_C(1) << (setting - lk__settings);
    if ((builder->given & bit) != 0)
        return lk__draft_fail(builder, EINVAL, name_in(builder->source, setting), "is given twice");
    builder->given |= bit;
    return setting->put(builder, setting, text);
}

/* Where `setting` keeps its value. */
static void *field_of(struct lk__draft *builder, const struct lk__setting *setting)
{
    return (char *)&builder->options + setting->field;
}

/* --- durations --------------------------------------------------------------------------------------- */

/* The milliseconds of the unit `text` is, 0 for other texts. */
static int64_t unit_of(const char *text)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", SECOND }, { "m", MINUTE }, { "h", HOUR } };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

/*
 * Read the digits at `*text` and go behind them; `*places` counts them. -1: there are none, or more
 * than nine.
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

/* Read "1.5s" exactly. True: `ms` has it, in 1..DURATION_MAX_MS. */
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
    *ms = whole * unit + fraction * unit / scale;
    return *ms >= 1 && *ms <= DURATION_MAX_MS;
}

static int put_duration(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    if (!read_duration(text, field_of(builder, setting)))
        return must(builder, setting, "be whole milliseconds up to 24h with their unit: 500ms, 1.5s, 2m or 1h");
    return 0;
}

static int put_duration_or_no(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    int64_t *ms = field_of(builder, setting);
    if (strcmp(text, "no") == 0)
        *ms = -1;
    else if (!read_duration(text, ms))
        return must(builder, setting, "be a time up to 24h with its unit, such as 15s, or no");
    return 0;
}

/* --- other values -------------------------------------------------------------------------------------- */

/* Set a flag if `text` is `word`, the word of the two that is not the default. */
static int put_flag(struct lk__draft *builder, const struct lk__setting *setting, const char *text, const char *word)
{
    bool *flag = field_of(builder, setting);
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return must(builder, setting, "be yes or no");
    *flag = strcmp(text, word) == 0;
    return 0;
}

static int put_yes(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    return put_flag(builder, setting, text, "yes");
}

static int put_no(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    return put_flag(builder, setting, text, "no");
}

/* Read a decimal number of `least` to `most`. */
static bool read_number(const char *text, int64_t least, int64_t most, int *number)
{
    int64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (*text - '0');
        if (value > most)
            return false;
    }
    *number = (int)value;
    return value >= least;
}

static int put_db(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    if (!read_number(text, 0, INT32_MAX, &builder->options.db))
        return must(builder, setting, "be the number of a database, 0 or more");
    return 0;
}

static int put_protocol(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    if (strcmp(text, "2") != 0)
        return must(builder, setting, "be 2, the one version of the protocol that is spoken");
    return 0;
}

static int put_text(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    char **field = field_of(builder, setting);
    if (*text == '\0')
        return must(builder, setting, "not be empty");
    *field = lk__strdup(text);
    return *field != NULL ? 0 : lk__draft_nomem(builder);
}

/* A prefix begins names: what is wrong with it is wrong with all of them. */
static int put_prefix(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    const char *flaw = lk__name_flaw(text, strlen(text));
    if (flaw != NULL)
        return lk__draft_fail(builder, EINVAL, name_in(builder->source, setting), "it %s", flaw);
    if (strlen(text) == LK_NAME_MAX)
        return must(builder, setting, "leave room for a name behind it");
    return put_text(builder, setting, text);
}

/* CLIENT SETNAME takes no other characters. */
static int put_client_name(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return must(builder, setting, "be printable ASCII without blanks");
    return put_text(builder, setting, text);
}

static int put_mode(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    const char *name = name_in(builder->source, setting);
    if (strcmp(text, "sentinel") == 0 || strcmp(text, "cluster") == 0)
        return lk__draft_fail(builder, ENOTSUP, name, "this version serves single servers, no Sentinel and no Cluster");
    if (strcmp(text, "single") != 0)
        return must(builder, setting, "be single");
    return 0;
}

static int put_master(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    (void)text;
    return lk__draft_fail(builder, ENOTSUP, name_in(builder->source, setting), "Sentinel is not in this version");
}

static int put_tls(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    (void)text;
    return lk__draft_fail(builder, ENOTSUP, name_in(builder->source, setting), "TLS is not built in");
}

/* --- where the server is ---------------------------------------------------------------------------------- */

static const char host_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

static bool is_host(const char *text, size_t length)
{
    return length <= 255 && strspn(text, host_letters) >= length;
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

/* Find the host, and the port behind it, which is left to be read. NULL, or words for what is no host. */
static const char *split_server(const char *text, const char **host, size_t *length, const char **port)
{
    if (*text == '[') {
        *host = text + 1;
        *length = strcspn(text + 1, "]");
        *port = *host + *length + 1;
        if ((*host)[*length] == '\0' || !is_ipv6(*host, *length))
            return "what stands in [ ] is no IPv6 address";
    } else {
        *host = text;
        *length = strcspn(text, ":");
        *port = *host + *length;
        if (!is_host(*host, *length))
            return "a host has letters, digits, dots, - and _ only, or is an IPv6 address in [ ]";
    }
    return NULL;
}

/* One server is all there is. */
static int check_free(struct lk__draft *builder, const char *subject)
{
    if (builder->options.host == NULL && builder->options.path == NULL)
        return 0;
    return lk__draft_fail(builder, EINVAL, subject, "there is a server already: one of address, nodes and path");
}

int lk__draft_server(struct lk__draft *builder, const char *subject, const char *text)
{
    struct lk__options *options = &builder->options;
    const char *host, *port;
    size_t length;
    int rc = check_free(builder, subject);
    if (rc != 0)
        return rc;
    if (strchr(text, ',') != NULL)
        return lk__draft_fail(builder, ENOTSUP, subject,
                              "several hosts are for Sentinel and Cluster, not in this version");

    const char *flaw = split_server(text, &host, &length, &port);
    if (flaw != NULL)
        return lk__draft_fail(builder, EINVAL, subject, "%s", flaw);
    options->port = PORT;
    if (*port != '\0' && (*port != ':' || !read_number(port + 1, 1, UINT16_MAX, &options->port)))
        return lk__draft_fail(builder, EINVAL, subject,
                              "the port behind the host must be 1 to 65535 (an IPv6 address stands in [ ])");

    options->host = length == 0 ? lk__strdup("127.0.0.1") : lk__alloc(length + 1);
    if (options->host == NULL)
        return lk__draft_nomem(builder);
    memcpy(options->host, host, length);
    return 0;
}

int lk__draft_socket(struct lk__draft *builder, const char *subject, const char *path)
{
    const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    int rc = check_free(builder, subject);
    if (rc != 0)
        return rc;
    if (*path == '\0')
        return lk__draft_fail(builder, EINVAL, subject, "the path of the socket is missing");
    if (strlen(path) > most)
        return lk__draft_fail(builder, EINVAL, subject, "the path of a socket has at most %zu bytes", most);
    builder->options.path = lk__strdup(path);
    return builder->options.path != NULL ? 0 : lk__draft_nomem(builder);
}

static int put_server(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    if (*text == '\0')
        return must(builder, setting, "not be empty");
    return lk__draft_server(builder, name_in(builder->source, setting), text);
}

static int put_socket(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    return lk__draft_socket(builder, name_in(builder->source, setting), text);
}

/* --- completing and checking ----------------------------------------------------------------------------------- */

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
    complete(&o->command_timeout_ms, lesser(1 * SECOND, o->lease_ms / 5));
    complete(&o->connect_timeout_ms, lesser(2 * SECOND, o->lease_ms / 3));
    complete(&o->poll_ms, lesser(1 * SECOND, o->lease_ms / 2));
    complete(&o->retry_max_ms, greater(o->lease_ms / 10, o->retry_min_ms));
    complete(&o->retry_min_ms, lesser(20, o->retry_max_ms));
    complete(&o->keepalive_ms, 15 * SECOND);
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
    if (ms % SECOND == 0)
        snprintf(w.text, sizeof w.text, "%llds", (long long)(ms / SECOND));
    else
        snprintf(w.text, sizeof w.text, "%lldms", (long long)ms);
    return w;
}

/* How the draft's source calls the setting that URLs call `name`. */
static const char *called(const struct lk__draft *builder, const char *name)
{
    return name_in(builder->source, lk__setting_find(LK__FROM_URL, name, strlen(name)));
}

static int too_long(struct lk__draft *builder, const char *name, int64_t ms, const char *measure, int64_t measure_ms)
{
    return lk__draft_fail(builder, EINVAL, called(builder, name), "%s is longer than %s=%s", written(ms).text,
                          called(builder, measure), written(measure_ms).text);
}

static int check_command(struct lk__draft *builder)
{
    const struct lk__options *o = &builder->options;
    int64_t most_ms = longest_command(o->lease_ms);
    if (o->command_timeout_ms <= most_ms)
        return 0;
    return lk__draft_fail(builder, EINVAL, called(builder, "command_timeout"),
                          "%s does not fit into lease=%s twice: at most %s, or a longer lease",
                          written(o->command_timeout_ms).text, written(o->lease_ms).text, written(most_ms).text);
}

/* Only what was said can be wrong here: the rest was completed to fit. */
static int check_times(struct lk__draft *builder)
{
    const struct lk__options *o = &builder->options;
    if (o->lease_ms < LEASE_MIN_MS)
        return lk__draft_fail(builder, EINVAL, "lease", "must be at least %dms", LEASE_MIN_MS);
    if (o->connect_timeout_ms > o->lease_ms)
        return too_long(builder, "connect_timeout", o->connect_timeout_ms, "lease", o->lease_ms);
    if (o->poll_ms > o->lease_ms)
        return too_long(builder, "poll", o->poll_ms, "lease", o->lease_ms);
    if (o->retry_min_ms > o->retry_max_ms)
        return too_long(builder, "retry_min", o->retry_min_ms, "retry_max", o->retry_max_ms);
    return check_command(builder);
}

int lk__draft_finish(struct lk__draft *builder, struct lk__options *options)
{
    struct lk__options *o = &builder->options;
    if (o->user != NULL && o->password == NULL)
        return lk__draft_fail(builder, EINVAL, "username", "needs password or password_file");
    complete_times(o);
    int rc = check_times(builder);
    if (rc == 0 && o->host == NULL && o->path == NULL)
        rc = lk__draft_server(builder, NULL, "");
    if (rc != 0)
        return rc;
    *options = *o;
    memset(o, 0, sizeof *o);
    return 0;
}

void lk__options_clear(struct lk__options *options)
{
    lk__free(options->path);
    lk__free(options->host);
    lk__free(options->user);
    lk__wipe(options->password);
    lk__free(options->client_name);
    lk__free(options->prefix);
    memset(options, 0, sizeof *options);
}

/* --- printing ---------------------------------------------------------------------------------------------- */

struct printer {
    char *text;
    size_t room; /* for characters, not counting the NUL */
};

static void print_char(struct printer *printer, char c)
{
    if (printer->room == 0)
        return;
    *printer->text++ = c;
    printer->room--;
}

static void print(struct printer *printer, const char *text)
{
    while (*text != '\0')
        print_char(printer, *text++);
}

/* As a URL writes it: what is neither unreserved nor in `also` as %XX. */
static void print_encoded(struct printer *printer, const char *text, const char *also)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        if (strchr(host_letters, *text) != NULL || *text == '~' || strchr(also, *text) != NULL) {
            print_char(printer, *text);
            continue;
        }
        print_char(printer, '%');
        print_char(printer, hex[(unsigned char)*text >> 4]);
        print_char(printer, hex[(unsigned char)*text & 15]);
    }
}

static void print_credentials(struct printer *printer, const struct lk__options *options)
{
    if (options->password == NULL)
        return;
    if (options->user != NULL)
        print_encoded(printer, options->user, "");
    print(printer, ":***@");
}

static void print_server(struct printer *printer, const struct lk__options *options)
{
    char port[16];
    bool ipv6 = strchr(options->host, ':') != NULL;
    snprintf(port, sizeof port, ":%d", options->port);
    print(printer, ipv6 ? "[" : "");
    print_encoded(printer, options->host, ":");
    print(printer, ipv6 ? "]" : "");
    print(printer, port);
}

void lk__options_print(const struct lk__options *options, char *text, size_t size)
{
    if (size == 0)
        return;
    struct printer printer = { text, size - 1 };
    char db[16];
    snprintf(db, sizeof db, "%d", options->db);
    print(&printer, options->path != NULL ? "unix://" : "redis://");
    print_credentials(&printer, options);
    if (options->path != NULL) {
        print_encoded(&printer, options->path, "/");
        print(&printer, "?db=");
    } else {
        print_server(&printer, options);
        print(&printer, "/");
    }
    print(&printer, db);
    *printer.text = '\0';
}

/* How many bytes at `says` are the password, or enough of its beginning to give it away. */
static size_t secret_at(const char *says, const char *password)
{
    enum { TELLING = 6 };
    size_t same = 0;
    while (password[same] != '\0' && says[same] == password[same])
        same++;
    return password[same] == '\0' || same >= TELLING ? same : 0;
}

void lk__options_quote(const struct lk__options *options, const char *says, char *text, size_t size)
{
    const char *password = options->password != NULL ? options->password : "";
    struct printer printer = { text, size - 1 };
    while (*says != '\0') {
        size_t secret = secret_at(says, password);
        if (secret > 0)
            print(&printer, "***");
        else
            print(&printer, (char[]){ *says, '\0' });
        says += secret > 0 ? secret : 1;
    }
    *printer.text = '\0';
}
