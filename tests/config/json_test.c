/* SPDX-License-Identifier: MIT */
/*
 * json_test.c - a JSON file is understood exactly, or refused with file, line and key
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "config/options.h"
#include "log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stands for a password; no words may hold it. */
#define SECRET "s3cr3t"
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- a folder of its own ---------------------------------------------------------------------------------- */

static char folder[64];
static char last_log[512];
static int logged;

static void keep_log(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    logged++;
    snprintf(last_log, sizeof last_log, "%s", line);
}

static int enter_folder(void)
{
    strcpy(folder, "/tmp/latchkey-json-XXXXXX");
    setenv("LK_TEST_PASSWORD", SECRET, 1);
    setenv("LK_TEST_EMPTY", "", 1);
    unsetenv("LK_TEST_ABSENT");
    return mkdtemp(folder) == NULL || chdir(folder) != 0 || log_to(keep_log, LK_LOG_WARNING, NULL) != 0;
}

static int leave_folder(void)
{
    unlink("a.json");
    unlink("password");
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static void write_bytes(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(name, 0600), 0);
}

static void write_file(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* As assert_lk(), and shows the text. */
static void read_as(int code, struct lk__options *options, const char *text)
{
    write_file("a.json", text);
    errno = ERRNO_MARK;
    int rc = lk__options_file(options, "a.json");
    if (rc != code || errno != ERRNO_MARK)
        fail_msg("%s\n%s, not %s (errno %d): %s", text, code_name(rc), code_name(code), errno, lk_errortext());
}

/* --- what files mean ---------------------------------------------------------------------------------------- */

static void a_file_says_all_that_options_hold(void)
{
    struct lk__options o;
    read_as(
        0, &o,
        "{ \"mode\": \"single\", \"address\": \"cache:6380\", \"db\": 3, \"username\": \"app\", \"password\": \"" SECRET
        "\",\n"
        "  \"timeouts\": { \"connect\": \"3s\", \"command\": \"1500ms\" }, \"retry\": { \"min\": \"5ms\", \"max\": "
        "\"1s\" },\n"
        "  \"keepalive\": \"30s\", \"lease\": \"20s\", \"poll\": \"0.5s\", \"prefix\": \"lk:\", \"client_name\": "
        "\"me\",\n"
        "  \"pubsub\": false, \"redisson\": true, \"strict\": \"yes\", \"protocol\": 2 }\n");
    assert_null(o.path);
    assert_string_equal(o.servers[0].host, "cache");
    assert_int_equal(o.servers[0].port, 6380);
    assert_int_equal(o.db, 3);
    assert_string_equal(o.user, "app");
    assert_string_equal(o.password, SECRET);
    assert_string_equal(o.prefix, "lk:");
    assert_string_equal(o.client_name, "me");
    assert_int_equal(o.connect_timeout_ms, 3000);
    assert_int_equal(o.command_timeout_ms, 1500);
    assert_int_equal(o.retry_min_ms, 5);
    assert_int_equal(o.retry_max_ms, 1000);
    assert_int_equal(o.keepalive_ms, 30000);
    assert_int_equal(o.lease_ms, 20000);
    assert_int_equal(o.poll_ms, 500);
    assert_true(o.no_pubsub && o.redisson && o.strict);
    lk__options_clear(&o);
}

static void what_is_said_of_tls(void)
{
    struct lk__options o;
    read_as(
        0, &o,
        "{ \"address\": \"cache\", \"tls\": { \"cacert\": \"/ca.pem\", \"capath\": \"/certs\", \"cert\": \"/c.pem\",\n"
        "\"key\": \"/k.pem\", \"sni\": \"cache.example\", \"verify\": false } }");
    assert_true(o.tls.on && o.tls.unverified);
    assert_string_equal(o.tls.cacert, "/ca.pem");
    assert_string_equal(o.tls.capath, "/certs");
    assert_string_equal(o.tls.certificate, "/c.pem");
    assert_string_equal(o.tls.key, "/k.pem");
    assert_string_equal(o.tls.sni, "cache.example");
    lk__options_clear(&o);
    read_as(0, &o, "{ \"tls\": {} }");
    assert_true(o.tls.on && !o.tls.unverified);
    lk__options_clear(&o);
}

/* A server that a file lays over the one of a URL, or the other way round, is not a server without TLS. */
static void tls_stays(void)
{
    static const char *const texts[] = { "{ \"url\": \"rediss://cache\" }",
                                         "{ \"url\": \"rediss://cache\", \"address\": \"other\" }",
                                         "{ \"url\": \"redis://cache\", \"tls\": { \"verify\": true } }" };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct lk__options o;
        read_as(0, &o, texts[i]);
        assert_true(o.tls.on && !o.tls.unverified);
        lk__options_clear(&o);
    }
}

static void an_empty_object_is_all_defaults(void)
{
    struct lk__options file, url;
    read_as(0, &file, "{}");
    assert_lk(0, lk__options_url(&url, "redis://"));
    assert_string_equal(file.servers[0].host, url.servers[0].host);
    lk__options_clear(&url);
    assert_int_equal(file.servers[0].port, 6379);
    assert_int_equal(file.lease_ms, 30000);
    assert_int_equal(file.command_timeout_ms, 1000);
    assert_int_equal(file.keepalive_ms, 15000);
    assert_false(file.no_pubsub || file.redisson || file.strict);
    assert_null(file.password);
    lk__options_clear(&file);
}

static const struct {
    const char *text, *printed;
} servers[] = {
    { "{ \"address\": \"cache\" }", "redis://cache:6379/0" },
    { "{ \"address\": \":7\" }", "redis://127.0.0.1:7/0" },
    { "{ \"address\": \"[::1]:7\" }", "redis://[::1]:7/0" },
    { "{ \"address\": \"[fe80::1%eth0]\" }", "redis://[fe80::1%25eth0]:6379/0" },
    { "{ \"nodes\": [\"cache:7\"], \"db\": 1 }", "redis://cache:7/1" },
    { "{ \"nodes\": [\"a:7\", \"[::1]\", \"c\"] }", "redis://a:7,[::1]:6379,c:6379/0" },
    { "{ \"mode\": \"sentinel\", \"master\": \"orders\", \"nodes\": [\"a\", \"b:7\"] }",
      "redis-sentinel://a:26379,b:7/orders/0" },
    { "{ \"nodes\": [\"a\"], \"master\": \"o/s\", \"db\": 2, \"sentinel_username\": \"u\", "
      "\"sentinel_password\": \"" SECRET "\", \"clock_skew\": \"1s\", \"wait_replicas\": 1 }",
      "redis-sentinel://a:26379/o%2Fs/2" },
    { "{ \"path\": \"/run/redis.sock\", \"db\": 2147483647 }", "unix:///run/redis.sock?db=2147483647" },
    { "{ \"path\": \"run/a%20b\" }", "unix://run/a%2520b?db=0" },
    { "{ \"password\": \"" SECRET "\" }", "redis://:***@127.0.0.1:6379/0" },
    { "{ \"l\\u0065ase\": \"1s\", \"p\\u0061th\": \"/a\\\"b\" }", "unix:///a%22b?db=0" },
    { "{ \"keepalive\": false, \"pubsub\": true, \"strict\": \"no\", \"protocol\": 2 }", "redis://127.0.0.1:6379/0" },
    { "{ \"keepalive\": \"no\", \"timeouts\": {}, \"retry\": {} }", "redis://127.0.0.1:6379/0" },
};

static void a_file_names_this_server(void)
{
    for (size_t i = 0; i < COUNT(servers); i++) {
        struct lk__options options;
        char text[128];
        read_as(0, &options, servers[i].text);
        lk__options_print(&options, text, sizeof text);
        assert_string_equal(text, servers[i].printed);
        lk__options_clear(&options);
    }
}

/* A URL that some environment hands out needs no taking apart: what else is said goes before it, wherever it stands. */
static void other_keys_are_laid_over_the_url(void)
{
    static const struct {
        const char *text, *printed;
    } table[] = {
        { "{ \"url\": \"redis://cache:7/2\" }", "redis://cache:7/2" },
        { "{ \"db\": 0, \"url\": \"redis://cache:7/2\" }", "redis://cache:7/0" },
        { "{ \"url\": \"redis://cache:7\", \"address\": \"other\" }", "redis://other:6379/0" },
        { "{ \"nodes\": [\"other\"], \"url\": \"unix:///run/redis.sock?db=3\" }", "redis://other:6379/3" },
        { "{ \"url\": \"redis-sentinel://a,b/orders\", \"nodes\": [\"c\"] }", "redis-sentinel://c:26379/orders/0" },
        { "{ \"url\": \"redis-sentinel://a/orders\", \"master\": \"bills\" }", "redis-sentinel://a:26379/bills/0" },
        { "{ \"path\": \"/a\", \"url\": \"redis://app:" SECRET "@cache:7/2\" }", "unix://app:***@/a?db=2" },
        { "{ \"url\": \"redis://app:" SECRET "@cache\", \"username\": \"me\" }", "redis://me:***@cache:6379/0" },
        { "{ \"username\": \"me\", \"url\": \"redis://:" SECRET "@cache\" }", "redis://me:***@cache:6379/0" },
        { "{ \"\\u0075\\u0072\\u006c\": \"redis://cache:7\" }", "redis://cache:7/0" },
        { "{ \"url\": \"redis-sentinel://a/orders?sentinel_password=b\", \"sentinel_password\": \"c\" }",
          "redis-sentinel://a:26379/orders/0" },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct lk__options options;
        char text[128];
        read_as(0, &options, table[i].text);
        lk__options_print(&options, text, sizeof text);
        assert_string_equal(text, table[i].printed);
        lk__options_clear(&options);
    }
    struct lk__options o;
    read_as(0, &o,
            "{ \"password\": \"other\", \"pubsub\": true, \"prefix\": \"over:\", \"keepalive\": \"30s\",\n"
            "  \"url\": \"redis://app:" SECRET
            "@cache?pubsub=no&strict=yes&prefix=under:&lease=10s&command_timeout=50ms"
            "&keepalive=no&client_name=me\", \"timeouts\": { \"command\": \"70ms\" } }");
    assert_string_equal(o.user, "app");
    assert_string_equal(o.password, "other");
    assert_string_equal(o.prefix, "over:");
    assert_string_equal(o.client_name, "me");
    assert_int_equal(o.lease_ms, 10000);
    assert_int_equal(o.command_timeout_ms, 70);
    assert_int_equal(o.keepalive_ms, 30000);
    assert_true(o.strict && !o.no_pubsub);
    lk__options_clear(&o);
}

/* --- passwords ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *value, *password; /* NULL: refused */
} passwords[] = {
    { "${LK_TEST_PASSWORD}", SECRET },
    { "${LK_TEST_PASSWORD:-other}", SECRET },
    { "${LK_TEST_ABSENT:-other}", "other" },
    { "${LK_TEST_ABSENT:-a}b:-c}", "a}b:-c" },
    { "${LK_TEST_ABSENT:-}", "" },
    { "${LK_TEST_EMPTY:-other}", "other" },
    { "", "" },
    { "$", "$" },
    { "${", "${" },
    { "$LK_TEST_PASSWORD", "$LK_TEST_PASSWORD" },
    { "${LK_TEST_PASSWORD", "${LK_TEST_PASSWORD" },
    { "x${LK_TEST_PASSWORD}", "x${LK_TEST_PASSWORD}" },
    { "${LK_TEST_PASSWORD}x", "${LK_TEST_PASSWORD}x" },
    { "${LK_TEST_ABSENT}", NULL },
    { "${LK_TEST_EMPTY}", NULL },
    { "${}", NULL },
    { "${:-" SECRET "}", NULL },
    { "${1A}", NULL },
    { "${A B}", NULL },
    { "${A-" SECRET "}", NULL },
    { "${A:" SECRET "}", NULL },
};

static void a_password_may_come_from_the_environment(void)
{
    for (size_t i = 0; i < COUNT(passwords); i++) {
        struct lk__options options;
        char text[128];
        snprintf(text, sizeof text, "{\n \"password\": \"%s\" }", passwords[i].value);
        read_as(passwords[i].password != NULL ? 0 : EINVAL, &options, text);
        if (passwords[i].password != NULL) {
            assert_string_equal(options.password, passwords[i].password);
            lk__options_clear(&options);
            continue;
        }
        assert_non_null(strstr(lk_errortext(), "a.json:2: password: "));
        assert_null(strstr(lk_errortext(), SECRET));
    }
}

/* Only there: a variable elsewhere would be a surprise. */
static void other_values_have_no_variables(void)
{
    struct lk__options options;
    read_as(0, &options, "{ \"prefix\": \"$LK_TEST_PASSWORD\" }");
    assert_string_equal(options.prefix, "$LK_TEST_PASSWORD");
    lk__options_clear(&options);
}

static void read_password_file(int code, const char *bytes, size_t length, const char *expected)
{
    struct lk__options options;
    write_bytes("password", bytes, length);
    read_as(code, &options, "{\n\n\"password_file\": \"password\" }");
    if (code == 0) {
        assert_string_equal(options.password, expected);
        lk__options_clear(&options);
        return;
    }
    assert_non_null(strstr(lk_errortext(), "a.json:3: password_file: "));
    assert_non_null(strstr(lk_errortext(), expected));
    assert_null(strstr(lk_errortext(), SECRET));
}

static void a_password_may_come_from_a_file(void)
{
    struct lk__options options;
    static char large[(1 << 20) + 1];
    read_password_file(0, SECRET, 6, SECRET);
    read_password_file(0, SECRET "\n", 7, SECRET);
    read_password_file(0, SECRET "\r\n", 8, SECRET);
    read_password_file(0, SECRET "\n\n", 8, SECRET "\n");
    read_password_file(0, " ${LK_TEST_PASSWORD} \n", 22, " ${LK_TEST_PASSWORD} ");
    read_password_file(EINVAL, "", 0, "the file is empty");
    read_password_file(EINVAL, "\n", 1, "the file is empty");
    read_password_file(EINVAL, SECRET "\0x", 8, "NUL");
    memset(large, 'p', sizeof large);
    read_password_file(EINVAL, large, sizeof large, "larger than 1 MiB");
    read_as(EINVAL, &options, "{ \"password_file\": \"absent\" }");
    assert_non_null(strstr(lk_errortext(), "a.json:1: password_file: no such file"));
    read_as(EINVAL, &options, "{ \"password_file\": \".\" }");
    assert_non_null(strstr(lk_errortext(), "a.json:1: password_file: is a directory"));
    read_as(EINVAL, &options, "{ \"password_file\": \"\" }");
}

/* Whoever may read the file may unlock everything. */
static void a_file_with_a_password_should_be_private(void)
{
    static const struct {
        const char *text;
        mode_t mode;
        int warnings;
    } table[] = {
        { "{ \"password\": \"" SECRET "\" }", 0600, 0 },
        { "{ \"password\": \"" SECRET "\" }", 0640, 1 },
        { "{ \"password\": \"" SECRET "\" }", 0604, 1 },
        { "{ \"password\": \"${LK_TEST_PASSWORD}\" }", 0644, 0 },
        { "{ \"password\": \"${LK_TEST_PASSWORD:-}\" }", 0644, 0 },
        { "{ \"password\": \"${LK_TEST_PASSWORD:-" SECRET "}\" }", 0644, 1 },
        { "{ \"password_file\": \"password\" }", 0644, 0 },
        { "{ \"lease\": \"1s\" }", 0644, 0 },
        { "{ \"url\": \"redis://cache\" }", 0644, 0 },
        { "{ \"url\": \"redis://:" SECRET "@cache\", \"password\": \"${LK_TEST_PASSWORD}\" }", 0600, 0 },
        { "{ \"url\": \"redis://:" SECRET "@cache\", \"password\": \"${LK_TEST_PASSWORD}\" }", 0644, 1 },
    };
    write_file("password", SECRET);
    for (size_t i = 0; i < COUNT(table); i++) {
        struct lk__options options;
        write_file("a.json", table[i].text);
        assert_int_equal(chmod("a.json", table[i].mode), 0);
        logged = 0;
        assert_lk(0, lk__options_file(&options, "a.json"));
        assert_int_equal(logged, table[i].warnings);
        lk__options_clear(&options);
    }
    assert_non_null(strstr(last_log, "a.json holds a password"));
    assert_null(strstr(last_log, SECRET));
}

/* --- what is refused, and how ------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    int code;
    const char *errmsg;
} refusals[] = {
    /* syntax */
    { "", EINVAL, "a.json:1: the text ends too early" },
    { "{\n\"lease\": \"1s\",\n", EINVAL, "a.json:3: the text ends too early" },
    { "{\n\"password\": \"" SECRET, EINVAL, "a.json:2: the text ends too early" },
    { "{\n\"password\": " SECRET "\n}", EINVAL, "a.json:2: no JSON" },
    { "{\n\"password\": \"" SECRET "\\q\"\n}", EINVAL, "a.json:2: no JSON" },
    { "{\n\"password\": \"" SECRET "\n\"}", EINVAL, "a.json:2: no JSON" },
    { "{\n\n'lease': 1}", EINVAL, "a.json:3: no JSON" },
    { "{ \"lease\": \"1s\" }\n}", EINVAL, "a.json:2: no JSON" },
    { "{ \"lease\": \"1s\", }", EINVAL, "a.json:1: no JSON" },
    { "{ // comment\n }", EINVAL, "a.json:1: no JSON" },
    { "{ \"prefix\": \"\xff\" }", EINVAL, "a.json:1: the text is not UTF-8" },
    { "{ \"db\": 99999999999999999999999 }", EINVAL, "a.json:1: db: must be" },
    { "{ \"password\": \"" SECRET "\\u0000\" }", EINVAL, "a.json:1: no JSON" },
    { "[]", EINVAL, "a.json: the text must be an object" },
    { "[[[[[[[[\n[]]]]]]]]]", EINVAL, "a.json: the text must be an object" },
    { "{\n\"lease\": [[[[[[[[[]]]]]]]]] }", EINVAL, "a.json:2: lease: must be a string with a unit" },
    { "{\n\"tls\": { \"tls\": {} } }", EINVAL, "a.json:2: tls.tls: no such key" },
    /* keys */
    { "{\n\n \"leese\": \"1s\" }", EINVAL, "a.json:3: leese: no such key; did you mean lease?" },
    { "{\n \"\": 1 }", EINVAL, "a.json:2: : no such key" },
    { "{\n \"timeouts\": {\n \"conect\":\n \"1s\" } }", EINVAL,
      "a.json:3: timeouts.conect: no such key; did you mean timeouts.connect?" },
    { "{\n \"timeouts.connect\": \"1s\" }", EINVAL,
      "a.json:2: timeouts.connect: no such key: what stands before the dot is an object" },
    { "{ \"timeouts\": { \"retry\": { \"min\": \"1s\" } } }", EINVAL, "timeouts.retry: no such key" },
    { "{ \"connect_timeout\": \"1s\" }", EINVAL, "connect_timeout: no such key; did you mean timeouts.connect?" },
    { "{ \"timeout\": { \"connect\": \"1s\" } }", EINVAL, "timeout: no such key; did you mean timeouts?" },
    { "{ \"adress\": \"a\" }", EINVAL, "adress: no such key; did you mean address?" },
    { "{ \"host\": \"a\" }", EINVAL, "a.json:1: host: no such key" },
    { "{ \"a key that is much longer than any key of this file can be\": 1 }", EINVAL, "a key that is much" },
    { "{ \"timeouts\": { \"a key that is much longer than any key of this file can be\": 1 } }", EINVAL,
      "timeouts.a key that is much" },
    { "{ \"a\\u000ab\\u00e9\": 1 }", EINVAL, "a.json:1: a?b??: no such key" },
    { "{\n\"lease\": \"1s\",\n\"lease\": \"1s\" }", EINVAL, "a.json:3: lease: is given twice" },
    { "{\n\"retry\": { \"min\": \"1s\",\n\"min\"\n: \"1s\" } }", EINVAL, "a.json:3: retry.min: is given twice" },
    /* lines of keys behind strings, escapes and nesting */
    { "{ \"prefix\": \"{x}\\\"lease\\\": [\\\\\",\n\"client_name\": \"lease\", \"db\"\n:\n0,\n\"leese\": 1 }", EINVAL,
      "a.json:5: leese" },
    { "{\r\n\"prefix\": \":\\\\\\\"\\n:\",\r\n\"retry\": {},\r\n \"timeouts\": { \"connect\"\r\n : 5 } }", EINVAL,
      "a.json:4: timeouts.connect: must be a string with a unit" },
    { "{ \"nodes\": [\n\"lease\"\n], \"lease\": \"1\" }", EINVAL, "a.json:3: lease: " },
    { "{\n\"lease\": \"1s\",\n\"retry\": {},\n\"l\\u0065\\u0061se2\": 0 }", EINVAL, "a.json:4: lease2: " },
    /* forms */
    { "{ \"lease\": 30 }", EINVAL, "lease: must be a string with a unit" },
    { "{ \"lease\": \"30\" }", EINVAL, "lease: must be whole milliseconds" },
    { "{ \"lease\": false }", EINVAL, "lease: must be a string with a unit" },
    { "{ \"keepalive\": true }", EINVAL, "keepalive: must be a string with a unit, such as \"15s\", or false" },
    { "{ \"keepalive\": 0 }", EINVAL, "or false" },
    { "{ \"db\": \"1\" }", EINVAL, "db: must be a whole number" },
    { "{ \"db\": 1.0 }", EINVAL, "db: must be a whole number" },
    { "{ \"db\": -1 }", EINVAL, "db: must be a number from 0 to 2147483647" },
    { "{ \"db\": 2147483648 }", EINVAL, "db: must be a number from 0 to 2147483647" },
    { "{ \"protocol\": 3 }", EINVAL, "protocol: must be 2" },
    { "{ \"strict\": 1 }", EINVAL, "strict: must be true or false" },
    { "{ \"strict\": \"true\" }", EINVAL, "strict: must be yes or no" },
    { "{ \"strict\": null }", EINVAL, "strict: must be true or false" },
    { "{ \"prefix\": 7 }", EINVAL, "prefix: must be a string" },
    { "{ \"prefix\": \"{}\" }", EINVAL, "prefix: it may have braces" },
    { "{ \"password\": 123456 }", EINVAL, "password: must be a string" },
    { "{ \"password\": [\"" SECRET "\"] }", EINVAL, "password: must be a string" },
    { "{ \"password\": { \"" SECRET "\": 1 } }", EINVAL, "password: must be a string" },
    { "{ \"username\": \"\" }", EINVAL, "username: must not be empty" },
    { "{ \"client_name\": \"a b\" }", EINVAL, "client_name: must be printable" },
    { "{ \"timeouts\": \"1s\" }", EINVAL, "timeouts: must be an object" },
    { "{ \"retry\": [] }", EINVAL, "retry: must be an object" },
    /* the URL */
    { "{\n\"url\": \"cache:6379\" }", EINVAL, "a.json:2: url: begins with no scheme" },
    { "{ \"url\": 7 }", EINVAL, "a.json:1: url: must be a string" },
    { "{\n\"url\": \"redis://:" SECRET "@cache?leese=1s\" }", EINVAL,
      "a.json:2: url: leese: no such parameter; did you mean lease?" },
    { "{\n\"retry\": { \"min\": \"1s\", \"max\": \"2s\" },\n\"mode\": [ { \"a\": 1 } ],\n\"url\": "
      "\"redis://cache?poll=1\" }",
      EINVAL, "a.json:3: mode: must be a string" },
    { "{\n\"retry\": { \"min\": \"1s\", \"max\": \"2s\" },\n\"mode\": \"single\",\n\"url\": \"redis://cache?poll=1\" }",
      EINVAL, "a.json:4: url: poll: must be" },
    { "{\n\"url\": \"redis://cache?command_timeout=20s\",\n\"lease\": \"30s\" }", EINVAL,
      "a.json:2: timeouts.command: 20s does not fit into lease=30s twice" },
    { "{ \"url\": \"redis://cache\", \"address\": \"a\",\n\"path\": \"/a\" }", EINVAL,
      "a.json:2: path: there is a server already" },
    { "{ \"url\": \"redis://cache\",\n\"leese\": 1 }", EINVAL, "a.json:2: leese: no such key" },
    { "{ \"url\": \"rediss://cache\",\n\"path\": \"/a\" }", EINVAL, "a.json:2: path: a unix socket has no TLS" },
    { "{ \"url\": \"unix:///a\", \"tls\": {} }", EINVAL, "path: a unix socket has no TLS" },
    { "{ \"url\": \"redis://cache\",\n\"u\\u0072l\": \"redis://cache\" }", EINVAL, "is given twice" },
    { "{ \"url\": \"redis://cache\", \"\\u0075\\u0072\\u006c\": 1 }", EINVAL, "url: " },
    /* servers */
    { "{ \"address\": \"\" }", EINVAL, "address: must not be empty" },
    { "{ \"address\": \"cache:0\" }", EINVAL, "address: the port" },
    { "{ \"address\": \"redis://cache\" }", EINVAL, "address: the port" },
    { "{ \"address\": \"a,b\" }", EINVAL, "address: must be one address" },
    { "{ \"nodes\": \"cache\" }", EINVAL, "nodes: must be a list of strings" },
    { "{ \"nodes\": [] }", EINVAL, "nodes: must be a list of strings" },
    { "{ \"nodes\": [1] }", EINVAL, "nodes: must be a list of strings" },
    { "{ \"nodes\": [\"a\", \"\"] }", EINVAL, "nodes: must be a list of strings" },
    { "{ \"nodes\": [\"a\", \"b,c\"] }", EINVAL, "nodes: must be a list of strings" },
    { "{ \"nodes\": [\"a:1\", \"b:0\"] }", EINVAL, "nodes: the port" },
    { "{ \"path\": \"\" }", EINVAL, "path: the path of the socket is missing" },
    { "{ \"path\": \"/a\",\n\"address\": \"cache\" }", EINVAL, "a.json:2: address: there is a server already" },
    { "{ \"nodes\": [\"a\"],\n\"path\": \"/a\" }", EINVAL, "a.json:2: path: there is a server already" },
    { "{\n\"mode\": \"sentinel\" }", EINVAL, "a.json:2: mode: sentinel needs master" },
    { "{ \"mode\": \"single\",\n\"master\": \"orders\" }", EINVAL, "mode: must be sentinel" },
    { "{ \"path\": \"/a\",\n\"master\": \"orders\" }", EINVAL, "path: Sentinels have addresses" },
    { "{ \"master\": \"orders\",\n\"sentinel_username\": \"u\" }", EINVAL,
      "a.json:2: sentinel_username: needs a sentinel_password" },
    { "{ \"sentinel_password\": \"" SECRET "\" }", EINVAL, "sentinel_password: is for Sentinels" },
    { "{ \"sentinel_password\": \"" SECRET "\",\n\"sentinel_password_file\": \"password\" }", EINVAL,
      "a.json:2: sentinel_password_file: there is" },
    { "{ \"nodes\": [\"a\", \"b\"],\n\"lease\": \"1s\" }", EINVAL, "a.json:2: lease: must be at least 4 x" },
    { "{ \"mode\": \"cluster\",\n\"master\": \"orders\" }", EINVAL, "mode: a cluster has no Sentinels" },
    { "{ \"mode\": \"cluster\",\n\"path\": \"/a\" }", EINVAL, "path: the nodes of a cluster have addresses" },
    { "{ \"mode\": \"cluster\",\n\"db\": 1 }", EINVAL, "db: a cluster has database 0 alone" },
    { "{ \"mode\": \"replicated\" }", EINVAL, "mode: must be single, sentinel, cluster or quorum" },
    { "{\n\"tls\": true }", EINVAL, "a.json:2: tls: must be an object" },
    { "{ \"tls\": { \"verify\": \"none\" } }", EINVAL, "tls.verify: must be yes or no" },
    { "{ \"tls\": {\n\"cert\": \"/etc/c.pem\" } }", EINVAL, "a.json:2: tls.cert: needs tls.key" },
    { "{ \"tls\": {\n\"key\": \"/etc/k.pem\" } }", EINVAL, "a.json:2: tls.key: needs tls.cert" },
    { "{ \"tls\": { \"ca\": 1 } }", EINVAL, "tls.ca: no such key" },
    { "{ \"cacert\": \"/etc/ca.pem\" }", EINVAL, "cacert: no such key" },
    { "{ \"tls\": {}, \"t\\u006cs\": {} }", EINVAL, "is given twice" },
    { "{ \"password\": \"" SECRET "\",\n\"password_file\": \"password\" }", EINVAL,
      "a.json:2: password_file: there is" },
    { "{\n\"username\": \"app\"\n}", EINVAL, "a.json:2: username: needs password or password_file" },
    /* times that cannot work together */
    { "{ \"lease\": \"30s\",\n\"timeouts\": {\n\"command\": \"20s\" } }", EINVAL,
      "a.json:3: timeouts.command: 20s does not fit into lease=30s twice: at most 9848ms" },
    { "{\n\"lease\": \"50ms\" }", EINVAL, "a.json:2: lease: must be at least 100ms" },
    { "{\n\"retry\": {\n\"max\": \"1s\",\n\"min\": \"2s\" } }", EINVAL,
      "a.json:4: retry.min: 2s is longer than retry.max=1s" },
    { "{\n\"poll\": \"31s\" }", EINVAL, "a.json:2: poll: 31s is longer than lease=30s" },
};

static void a_file_is_refused_with_file_line_and_key(void)
{
    write_file("password", SECRET);
    for (size_t i = 0; i < COUNT(refusals); i++) {
        struct lk__options options, before;
        memset(&options, 0x5a, sizeof options);
        before = options;
        read_as(refusals[i].code, &options, refusals[i].text);
        if (strstr(lk_errortext(), refusals[i].errmsg) == NULL)
            fail_msg("%s\n\"%s\" does not say \"%s\"", refusals[i].text, lk_errortext(), refusals[i].errmsg);
        if (strstr(lk_errortext(), SECRET) != NULL)
            fail_msg("\"%s\" tells the password", lk_errortext());
        assert_memory_equal(&options, &before, sizeof options);
    }
}

static void a_file_that_cannot_be_read_is_named(void)
{
    struct lk__options options;
    char path[600];
    assert_lk(ENOENT, lk__options_file(&options, "absent.json"));
    assert_string_equal(lk_errortext(), "absent.json: no such file");
    assert_lk(EINVAL, lk__options_file(&options, "."));
    assert_string_equal(lk_errortext(), ".: is a directory");
    memset(path, '/', sizeof path - 1);
    memcpy(path + sizeof path - 12, "absent.json", 12);
    assert_lk(ENOENT, lk__options_file(&options, path));
    assert_non_null(strstr(lk_errortext(), "/absent.json: no such file"));
    write_file("a.json", "{}");
    chmod("a.json", 0);
    if (geteuid() != 0) {
        assert_lk(EINVAL, lk__options_file(&options, "a.json"));
        assert_string_equal(lk_errortext(), "a.json: no permission to read it");
    }
    chmod("a.json", 0600);
}

/* --- hostile and tight ------------------------------------------------------------------------------------- */

static void a_file_may_have_one_mebibyte(void)
{
    const size_t size = 1 << 20;
    struct lk__options options;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, '\n', size + 1);
    memcpy(text + size - 2, "{}", 2);
    write_bytes("a.json", text, size);
    assert_lk(0, lk__options_file(&options, "a.json"));
    lk__options_clear(&options);
    write_bytes("a.json", text, size + 1);
    assert_lk(EINVAL, lk__options_file(&options, "a.json"));
    assert_string_equal(lk_errortext(), "a.json: is larger than 1 MiB");
    memset(text, '[', size);
    write_bytes("a.json", text, size);
    assert_lk(EINVAL, lk__options_file(&options, "a.json"));
    free(text);
}

/* Each text of the tables, cut short anywhere or with one character changed, is answered. */
static void no_file_is_too_odd(void)
{
    static const char changes[] = "\"\\{}[]:,\n\0x1";
    for (size_t i = 0; i < COUNT(servers) + COUNT(refusals); i++) {
        const char *text = i < COUNT(servers) ? servers[i].text : refusals[i - COUNT(servers)].text;
        for (size_t at = 0; at < strlen(text); at++) {
            struct lk__options options;
            char *odd = strdup(text);
            odd[at] = changes[(i + at) % (sizeof changes - 1)];
            write_bytes("a.json", odd, (i + at) % 3 == 0 ? at : strlen(text));
            int rc = lk__options_file(&options, "a.json");
            assert_true(rc == 0 || rc == EINVAL || rc == ENOTSUP);
            if (rc == 0)
                lk__options_clear(&options);
            free(odd);
        }
    }
}

static void *read_some(void *arg)
{
    struct lk__options options;
    int *rc = arg;
    *rc = lk__options_file(&options, "a.json");
    if (*rc == 0)
        lk__options_clear(&options);
    return NULL;
}

/* Threads of callers may have the smallest stack there is. */
static void a_small_stack_is_enough(void)
{
    static const char *const texts[] = {
        "{ \"timeouts\": { \"connect\": \"1s\" }, \"password\": \"${LK_TEST_PASSWORD:-x}\", \"db\": 7 }",
        "{ \"timeouts\": { \"connect\": \"1s\", \"command\": \"20s\" } }",
        "{ \"db\": 1.5 }",
        "{ \"db\": \"\\q\" }",
        "[[[[[[[[[[[",
    };
    if (SANITIZED)
        skip();
    for (size_t i = 0; i < COUNT(texts); i++) {
        pthread_attr_t attr;
        pthread_t thread;
        int rc = -1;
        write_file("a.json", texts[i]);
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN), 0);
        assert_int_equal(pthread_create(&thread, &attr, read_some, &rc), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attr);
        assert_int_equal(rc, i == 0 ? 0 : EINVAL);
    }
}

int main(void)
{
    if (enter_folder() != 0)
        return 1;
    int failed = plain_run(a_file_says_all_that_options_hold, an_empty_object_is_all_defaults, what_is_said_of_tls,
                           tls_stays, a_file_names_this_server, other_keys_are_laid_over_the_url,
                           a_password_may_come_from_the_environment, other_values_have_no_variables,
                           a_password_may_come_from_a_file, a_file_with_a_password_should_be_private,
                           a_file_is_refused_with_file_line_and_key, a_file_that_cannot_be_read_is_named,
                           a_file_may_have_one_mebibyte, no_file_is_too_odd, a_small_stack_is_enough);
    return failed + leave_folder();
}
