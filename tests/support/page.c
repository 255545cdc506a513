/* SPDX-License-Identifier: MIT */
/* page.c - docs/keys.md, whose tables say what is in Redis */
#include "page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The text of the next cell; returns where it ends. */
static const char *read_cell(const char *at, const char *name, char *text, size_t size)
{
    size_t length = 0;
    for (at += strspn(at, "| "); !begins_with(at, " |"); at++) {
        if (begins_with(at, "NAME")) {
            length += (size_t)snprintf(text + length, size - length, "%s", name);
            at += 3;
        } else if (*at != '`') {
            text[length++] = *at;
        }
        assert_true(length < size);
    }
    text[length] = '\0';
    return at;
}

void page_read(struct page *page, const char *of_what, const char *name, int64_t lease_ms)
{
    char title[80];
    FILE *file = fopen(LK_SOURCE_DIR "/docs/keys.md", "r");
    assert_non_null(file);
    memset(page, 0, sizeof *page);
    assert_true(fread(page->text, 1, sizeof page->text - 1, file) > 1000);
    fclose(file);
    page->lease_ms = lease_ms;
    snprintf(title, sizeof title, "\n## Keys of %s\n", of_what);
    const char *at = strstr(page->text, title);
    assert_non_null(at);
    at = strstr(at, "\n| ---");
    for (at = strchr(at + 1, '\n') + 1; *at == '|'; at = strchr(at, '\n') + 1) {
        assert_true(page->count < (int)(sizeof page->rows / sizeof *page->rows));
        struct row *row = &page->rows[page->count++];
        const char *cell = read_cell(at, name, row->key, sizeof row->key);
        cell = read_cell(cell, name, row->type, sizeof row->type);
        cell = read_cell(cell, name, row->content, sizeof row->content);
        read_cell(cell, name, row->ttl, sizeof row->ttl);
    }
}

static void compare_ttl(const struct page *page, const struct row *row, int64_t ttl_ms)
{
    if (begins_with(row->ttl, "none"))
        assert_int_equal(-1, ttl_ms);
    else if (begins_with(row->ttl, "one day"))
        assert_between(ttl_ms, 86000000, 86400000);
    else if (begins_with(row->ttl, "one hour"))
        assert_between(ttl_ms, 3500000, 3600000);
    else if (begins_with(row->ttl, "the lease") || begins_with(row->ttl, "until the last of these leases"))
        assert_between(ttl_ms, 1, page->lease_ms);
    else if (strstr(row->ttl, " min") == row->ttl + strspn(row->ttl, ".0123456789"))
        assert_between(ttl_ms, 1, strtod(row->ttl, NULL) * 60000);
    else
        assert_true(ttl_ms > 0);
}

static struct row *row_of(struct page *page, const char *key)
{
    for (int i = 0; i < page->count; i++)
        if (strcmp(page->rows[i].key, key) == 0)
            return &page->rows[i];
    fail_msg("docs/keys.md does not know the key %s", key);
    return NULL;
}

int page_compare(struct world *w, struct page *page,
                 void (*also)(struct world *w, const char *key, const struct row *row))
{
    char keys[1024], *rest = keys;
    int count = 0;
    snprintf(keys, sizeof keys, "%s", world_keys(w));
    for (char *key; (key = strtok_r(rest, " ", &rest)) != NULL; count++) {
        struct row *row = row_of(page, key);
        row->seen = true;
        const char *type = world_str(w, "TYPE %s", key);
        if (strcmp(type, "none") == 0) /* gone meanwhile */
            continue;
        assert_true(begins_with(row->type, strcmp(type, "zset") == 0 ? "sorted set" : type));
        if (begins_with(row->type, "string, a number")) {
            const char *text = world_str(w, "GET %s", key);
            assert_int_equal(strlen(text), strspn(text, "-0123456789"));
        }
        int64_t ttl_ms = world_pttl(w, key);
        if (ttl_ms != -2)
            compare_ttl(page, row, ttl_ms);
        if (also != NULL)
            also(w, key, row);
    }
    return count;
}

void page_was_seen(const struct page *page)
{
    for (int i = 0; i < page->count; i++)
        if (!page->rows[i].seen && strstr(page->rows[i].key, ":users:") == NULL)
            fail_msg("%s is in docs/keys.md, and never was in Redis", page->rows[i].key);
}
