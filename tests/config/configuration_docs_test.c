/* SPDX-License-Identifier: MIT */
/*
 * configuration_docs_test.c - docs/configuration.md is right: its examples are read, each option is described
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "config/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LK_SOURCE_DIR
#define LK_SOURCE_DIR "."
#endif
#define DOCS LK_SOURCE_DIR "/docs/configuration.md"

static int read_docs(void **state)
{
    struct lk__file file;
    int rc = lk__file_read(&file, DOCS);
    setenv("CACHE_PASSWORD", "PASSWORD", 1); /* as an example assumes */
    *state = file.text;
    return rc;
}

static int free_docs(void **state)
{
    lk__free(*state);
    return 0;
}

/* What follows "://" up to a blank or quote is a URL, unless nothing follows. */
static void each_url_is_read(void **state)
{
    int count = 0;
    for (const char *docs = *state, *at = strstr(docs, "://"); at != NULL; at = strstr(at + 3, "://")) {
        struct lk__options options;
        const char *begin = at;
        while (begin > docs && strchr("abcdefghijklmnopqrstuvwxyz+-", begin[-1]) != NULL)
            begin--;
        size_t length = strcspn(begin, " \n`\"");
        if (begin == at || begin + length == at + 3)
            continue;
        char *url = strndup(begin, length);
        assert_non_null(url);
        if (lk__options_url(&options, url) != 0)
            fail_msg("%s: %s", url, lk_errortext());
        lk__options_clear(&options);
        free(url);
        count++;
    }
    assert_true(count >= 6);
}

static void read_block(const char *text, size_t length)
{
    struct lk__options options;
    char path[] = "/tmp/latchkey-docs-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    close(fd);
    int rc = lk__options_file(&options, path);
    unlink(path);
    if (rc != 0)
        fail_msg("%.*s: %s", (int)length, text, lk_errortext());
    lk__options_clear(&options);
}

static void each_json_block_is_read(void **state)
{
    static const char opening[] = "\n```json\n";
    int count = 0;
    for (const char *at = strstr(*state, opening); at != NULL; at = strstr(at, opening)) {
        const char *text = at + strlen(opening), *closing = strstr(text, "\n```");
        assert_non_null(closing);
        read_block(text, (size_t)(closing - text));
        at = closing;
        count++;
    }
    assert_true(count >= 2);
}

/* Somewhere stands `name` as code. */
static void expect_code(const char *docs, const char *name)
{
    char code[64];
    snprintf(code, sizeof code, "`%s`", name);
    if (strstr(docs, code) == NULL)
        fail_msg("docs/configuration.md says nothing of %s", name);
}

static void each_option_is_described(void **state)
{
    for (size_t i = 0; i < lk__settings_count; i++) {
        const struct lk__setting *setting = &lk__settings[i];
        char row[128];
        snprintf(row, sizeof row, "\n| `%s` | `%s` |", setting->url, setting->json);
        if (setting->url != NULL && setting->json != NULL && strstr(*state, row) == NULL)
            fail_msg("docs/configuration.md has no row%s", row);
        expect_code(*state, setting->url != NULL ? setting->url : setting->json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_url_is_read),
        cmocka_unit_test(each_json_block_is_read),
        cmocka_unit_test(each_option_is_described),
    };
    if (access(DOCS, R_OK) != 0)
        return 77; /* built without its sources at hand */
    return cmocka_run_group_tests(tests, read_docs, free_docs);
}
