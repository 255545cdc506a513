/* SPDX-License-Identifier: MIT */
/*
 * options_memory_test.c - reading options with any allocation failing: ENOMEM, nothing leaked, and no
 * password left in memory that was freed
 *
 * labels: memory
 * seconds: 8
 * processors: 4
 * support: failing
 */
#include "failing/failing.h"
#include "config/options.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET "s3cr3t"

/* --- what is read ---------------------------------------------------------------------------------------------- */

static char path[64], password_path[64];

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_file(char name[64])
{
    snprintf(name, 64, "/tmp/latchkey-memory-XXXXXX");
    int fd = mkstemp(name);
    return fd < 0 || close(fd) != 0;
}

static int make_files(void)
{
    failing_secret(SECRET);
    setenv("LK_TEST_PASSWORD", SECRET, 1);
    return make_file(path) || make_file(password_path) || log_to(NULL, LK_LOG_WARNING, NULL) != 0;
}

static int remove_files(void)
{
    return unlink(path) || unlink(password_path);
}

struct reading {
    int code;
    const char *url; /* NULL: the file */
    long blocks;
};

/* Never a setting that is not what was written. */
static void read_options(void *arg)
{
    const struct reading *reading = arg;
    struct lk__options options;
    failing_begin();
    errno = ERRNO_MARK;
    int rc = reading->url != NULL ? lk__options_url(&options, reading->url) : lk__options_file(&options, path);
    failing_end();
    assert_lk_result(failing_happened() ? ENOMEM : reading->code, rc, errno, "options", __FILE__, __LINE__);
    if (rc == 0)
        lk__options_clear(&options);
    else
        assert_null(strstr(lk_errortext(), SECRET));
    assert_int_equal(failing_blocks(), reading->blocks);
    assert_false(failing_spilled());
}

static void each_allocation_fails(int code, const char *url)
{
    struct lk__options options;
    (void)lk__options_url(&options, "no url"); /* the thread has its place for words now */
    struct reading reading = { code, url, failing_blocks() };
    each_failure_of("options", FAIL_ALLOCATION, read_options, &reading);
}

static void urls_survive(void)
{
    each_allocation_fails(0, "redis://app:" SECRET "@cache:1/1?lease=1s&prefix=p&client_name=c&keepalive=no");
    each_allocation_fails(0,
                          "redis-sentinel://app:" SECRET "@a,b:2,c/orders/1?sentinel_user=w&sentinel_password=" SECRET);
    each_allocation_fails(EINVAL, "redis://:" SECRET "@a,b,c:0");
    each_allocation_fails(0, "unix://:" SECRET "@/run/redis.sock?db=1");
    each_allocation_fails(0, "redis://");
    each_allocation_fails(0, "rediss://:" SECRET "@cache?cacert=a&capath=b&cert=c&key=d&sni=e");
    each_allocation_fails(EINVAL, "redis://app:" SECRET "%zz@cache");
    each_allocation_fails(EINVAL, "redis://app:" SECRET "@cache:0");
    each_allocation_fails(EINVAL, "redis://app:" SECRET "@cache?leese=1s");
    each_allocation_fails(EINVAL, "redis://app:" SECRET "@cache?command_timeout=20s");
}

static void files_survive(void)
{
    static const struct {
        int code;
        const char *text;
    } table[] = {
        { 0, "{}" },
        { 0, "{ \"address\": \"cache:1\", \"username\": \"app\", \"password\": \"" SECRET "\", \"prefix\": \"p\","
             "  \"timeouts\": { \"command\": \"1s\" }, \"client_name\": \"c\", \"db\": 1 }" },
        { 0, "{ \"master\": \"orders\", \"nodes\": [\"a\", \"b:1\"], \"sentinel_password\": \"" SECRET "\" }" },
        { EINVAL, "{ \"nodes\": [\"a\", \"b:0\"] }" },
        { 0, "{ \"password\": \"${LK_TEST_PASSWORD}\", \"path\": \"/run/redis.sock\" }" },
        { 0, "{ \"password\": \"${LK_TEST_ABSENT:-" SECRET "}\" }" },
        { 0, "{ \"path\": \"/run/redis.sock\", \"url\": \"redis://app:" SECRET "@cache/1?prefix=p&client_name=c\","
             "  \"username\": \"me\", \"prefix\": \"q\", \"password\": \"" SECRET "\", \"db\": 2 }" },
        { EINVAL, "{ \"url\": \"redis://app:" SECRET "@cache?leese=1s\" }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"leese\": 1 }" },
        { EINVAL, "{ \"leese\": 1, \"password\": \"" SECRET "\" }" },
        { EINVAL, "{ \"password\": \"${:-" SECRET "}\" }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"timeouts\": { \"command\": \"20s\" } }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"master\": 1 }" },
        { 0, "{ \"password\": \"" SECRET "\", \"mode\": \"cluster\" }" },
        { 0, "{ \"password\": \"" SECRET "\", \"tls\": { \"cacert\": \"a\", \"cert\": \"b\", \"key\": \"c\" } }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"tls\": { \"cert\": \"b\" } }" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_file(path, table[i].text);
        each_allocation_fails(table[i].code, NULL);
    }
}

/* Where a buffer would have to grow that a token is collected in: within a string, at its quote, at an escape. */
static void long_strings_survive(void)
{
    char text[256];
    for (int length = 8; length < 72; length++) {
        snprintf(text, sizeof text, "{ \"password\": \"" SECRET "%0*d\", \"\\u0064b\": 1 }", length, 0);
        write_file(path, text);
        each_allocation_fails(0, NULL);
        snprintf(text, sizeof text, "{ \"password\": \"" SECRET "%0*d\\u00e9\\\"\\ud83d\\ude00\" }", length, 0);
        write_file(path, text);
        each_allocation_fails(0, NULL);
    }
    write_file(path, "{ \"db\": 100000000000000000 }");
    each_allocation_fails(EINVAL, NULL);
}

static void password_files_survive(void)
{
    char text[128];
    snprintf(text, sizeof text, "{ \"password_file\": \"%s\" }", password_path);
    write_file(path, text);
    write_file(password_path, SECRET "\n");
    each_allocation_fails(0, NULL);
    write_file(path, "{ \"password_file\": \"/nowhere\" }");
    each_allocation_fails(EINVAL, NULL);
}

int main(void)
{
    if (make_files() != 0)
        return 1;
    int failed = plain_run(urls_survive, files_survive, long_strings_survive, password_files_survive);
    return failed + remove_files();
}
