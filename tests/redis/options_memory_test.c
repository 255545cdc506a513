/* SPDX-License-Identifier: MIT */
/*
 * options_memory_test.c - reading options with any allocation failing: ENOMEM, nothing leaked, and no
 * password left in memory that was freed
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "redis/options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET "s3cr3t"

/* --- memory.c of this program: counts, fails when told, and looks into what is freed ---------------------- */

static int until_failure = -1; /* allocations that still succeed; -1: all do */
static bool parser_fails;      /* whose: the JSON parser's, or the library's own */
static bool refused;           /* one failed */
static long blocks;            /* in use */
static bool spilled;           /* a password was freed as it was */

struct block {
    size_t size;
    max_align_t data[];
};

static struct block *block_of(void *memory)
{
    return (struct block *)(void *)((char *)memory - offsetof(struct block, data));
}

static void *take(size_t size, bool parser)
{
    if (parser == parser_fails && until_failure >= 0 && until_failure-- == 0) {
        refused = true;
        return NULL;
    }
    struct block *block = calloc(1, sizeof *block + size);
    if (block == NULL)
        abort();
    block->size = size;
    blocks++;
    return block->data;
}

static void give(void *memory)
{
    if (memory == NULL)
        return;
    blocks--;
    free(block_of(memory));
}

void *lk__alloc(size_t size)
{
    return take(size, false);
}

void *lk__realloc(void *memory, size_t size)
{
    void *larger = take(size, false);
    if (larger == NULL || memory == NULL)
        return larger;
    memcpy(larger, memory, block_of(memory)->size < size ? block_of(memory)->size : size);
    give(memory);
    return larger;
}

char *lk__strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = take(size, false);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void lk__release(void *memory)
{
    if (memory != NULL && memmem(memory, block_of(memory)->size, SECRET, strlen(SECRET)) != NULL)
        spilled = true;
    give(memory);
}

void lk_free(void *memory)
{
    lk__release(memory);
}

static void *take_for_parser(size_t size)
{
    return take(size, true);
}

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

static int make_files(void **state)
{
    (void)state;
    json_set_alloc_funcs(take_for_parser, give);
    setenv("LK_TEST_PASSWORD", SECRET, 1);
    return make_file(path) || make_file(password_path) || lk_setlog(NULL, LK_LOG_WARNING, NULL) != 0;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(path) || unlink(password_path);
}

static int read_as(struct lk__options *options, const char *url)
{
    return url != NULL ? lk__options_url(options, url) : lk__options_file(options, path);
}

/* Read `url`, or the file if NULL, with the first allocation failing, the second, ... until none fails. */
static void each_allocation_fails_once(int code, const char *url)
{
    struct lk__options options;
    int failures = 0, rc;
    (void)read_as(&options, "no url"); /* the thread has its place for words now */
    long before = blocks;
    do {
        refused = false;
        until_failure = failures++;
        errno = ERRNO_MARK;
        rc = read_as(&options, url);
        until_failure = -1;
        assert_int_equal(errno, ERRNO_MARK);
        if (rc == 0)
            lk__options_clear(&options);
        else
            assert_null(strstr(lk_errortext(), SECRET));
        assert_int_equal(blocks, before);
        assert_false(spilled);
        /* Out of memory for a string, jansson takes the text for wrong, or misses a character of it. */
        assert_true(!refused || rc == ENOMEM || parser_fails);
    } while (refused);
    assert_int_equal(rc, code);
    assert_true(failures > 1);
}

static void urls_survive(void **state)
{
    (void)state;
    each_allocation_fails_once(0, "redis://app:" SECRET "@cache:1/1?lease=1s&prefix=p&client_name=c&keepalive=no");
    each_allocation_fails_once(0, "unix://:" SECRET "@/run/redis.sock?db=1");
    each_allocation_fails_once(0, "redis://");
    each_allocation_fails_once(EINVAL, "redis://app:" SECRET "%zz@cache");
    each_allocation_fails_once(EINVAL, "redis://app:" SECRET "@cache:0");
    each_allocation_fails_once(EINVAL, "redis://app:" SECRET "@cache?leese=1s");
    each_allocation_fails_once(EINVAL, "redis://app:" SECRET "@cache?command_timeout=20s");
}

static void files_survive(void **state)
{
    static const struct {
        int code;
        const char *text;
    } table[] = {
        { 0, "{}" },
        { 0, "{ \"address\": \"cache:1\", \"username\": \"app\", \"password\": \"" SECRET "\", \"prefix\": \"p\","
             "  \"timeouts\": { \"command\": \"1s\" }, \"client_name\": \"c\", \"db\": 1 }" },
        { 0, "{ \"password\": \"${LK_TEST_PASSWORD}\", \"path\": \"/run/redis.sock\" }" },
        { 0, "{ \"password\": \"${LK_TEST_ABSENT:-" SECRET "}\" }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"leese\": 1 }" },
        { EINVAL, "{ \"leese\": 1, \"password\": \"" SECRET "\" }" },
        { EINVAL, "{ \"password\": \"${:-" SECRET "}\" }" },
        { EINVAL, "{ \"password\": \"" SECRET "\", \"timeouts\": { \"command\": \"20s\" } }" },
        { ENOTSUP, "{ \"password\": \"" SECRET "\", \"tls\": {} }" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_file(path, table[i].text);
        each_allocation_fails_once(table[i].code, NULL);
        parser_fails = true;
        each_allocation_fails_once(table[i].code, NULL);
        parser_fails = false;
    }
}

static void password_files_survive(void **state)
{
    char text[128];
    (void)state;
    snprintf(text, sizeof text, "{ \"password_file\": \"%s\" }", password_path);
    write_file(path, text);
    write_file(password_path, SECRET "\n");
    each_allocation_fails_once(0, NULL);
    write_file(path, "{ \"password_file\": \"/nowhere\" }");
    each_allocation_fails_once(EINVAL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_survive),
        cmocka_unit_test(files_survive),
        cmocka_unit_test(password_files_survive),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
