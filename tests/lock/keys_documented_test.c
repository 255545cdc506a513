/* SPDX-License-Identifier: MIT */
/*
 * keys_documented_test.c - what a mutex keeps in Redis is what docs/keys.md says, after each operation
 *
 * labels: memory
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS LK_SOURCE_DIR "/docs/keys.md"

enum { ROWS_MAX = 8 };

/* A row of the page's table, and how often a key was found to be so. */
static struct row {
    char key[80], type[40], content[240], ttl[200];
    int seen;
} rows[ROWS_MAX];
static int row_count;

static lk_mutex_t *orders, *same_name;
static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };

/* The text of the next cell without backquotes, and with the name of the test for the page's. */
static const char *read_cell(const char *at, char *text, size_t size)
{
    size_t length = 0;
    for (at += strspn(at, "| "); strncmp(at, " |", 2) != 0; at++) {
        if (strncmp(at, "NAME", 4) == 0 && length + 7 < size) {
            length += (size_t)sprintf(text + length, "orders");
            at += 3;
        } else if (*at != '`' && length + 1 < size) {
            text[length++] = *at;
        }
    }
    text[length] = '\0';
    return at;
}

static void read_page(void)
{
    static char page[65536];
    FILE *file = fopen(DOCS, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(page, "\n## Keys of a mutex\n");
    assert_non_null(at);
    at = strchr(strstr(at, "\n| ---") + 1, '\n') + 1;
    for (row_count = 0; *at == '|' && row_count < ROWS_MAX; at = strchr(at, '\n') + 1, row_count++) {
        struct row *row = &rows[row_count];
        const char *cell = read_cell(at, row->key, sizeof row->key);
        cell = read_cell(cell, row->type, sizeof row->type);
        cell = read_cell(cell, row->content, sizeof row->content);
        read_cell(cell, row->ttl, sizeof row->ttl);
        row->seen = 0;
    }
    assert_int_equal(6, row_count);
}

static struct row *row_of(const char *key)
{
    for (int i = 0; i < row_count; i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    fail_msg("docs/keys.md does not know the key %s", key);
    return NULL;
}

static void check_key(struct world *w, const char *key)
{
    struct row *row = row_of(key);
    const char *type = world_str(w, "TYPE %s", key);
    int64_t ttl_ms = world_int(w, "PTTL %s", key);
    assert_string_equal(strncmp(row->type, "sorted set", 10) == 0 ? "zset" : strtok(strdupa(row->type), ","), type);
    if (strncmp(row->ttl, "none", 4) == 0)
        assert_int_equal(-1, ttl_ms);
    else if (strncmp(row->ttl, "one day", 7) == 0)
        assert_between(ttl_ms, 86300000, 86400000);
    else if (strncmp(row->ttl, "one hour", 8) == 0)
        assert_between(ttl_ms, 3500000, 3600000);
    else
        assert_between(ttl_ms, 1, 20000); /* the lease */
    row->seen++;
}

/* There are just these keys, and each is as the page says. */
static void check(struct world *w, int expected)
{
    char *keys = strdup(world_keys(w)), *rest = keys, *key;
    int count = 0;
    for (; (key = strtok_r(rest, " ", &rest)) != NULL; count++)
        check_key(w, key);
    free(keys);
    assert_int_equal(expected, count);
}

static void each_operation_leaves_what_the_page_says(struct world *w)
{
    struct worker waiter;
    read_page();
    orders = world_mutex(w, world_client(w, "lease=20s"), "orders", &robust);
    same_name = world_mutex(w, world_client(w, "lease=20s"), "orders", &robust);
    check(w, 0);
    assert_lk(0, lk_mutex_lock(orders));
    check(w, 4); /* hash, token, robust mark, settings */
    assert_lk(0, lk_mutex_lock(orders));
    check(w, 4);
    assert_string_equal("2", world_str(w, "HGET orders %s", world_owner(w, "orders")));
    worker_start(&waiter, lock_and_unlock, same_name);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    check(w, 6); /* queue and liveness as well */
    assert_int_equal(1, world_int(w, "HLEN latchkey:alive:mutex:{orders}"));
    assert_lk(0, lk_mutex_unlock(orders));
    check(w, 6);
    assert_lk(0, lk_mutex_extend(orders, 15000));
    assert_lk(0, lk_mutex_check(orders));
    check(w, 6);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    check(w, 2); /* the token outlives it by a day, the settings by an hour */
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    check(w, 3); /* who comes next is told EOWNERDEAD: the mark stays */
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    check(w, 3);
    assert_string_equal("unrecoverable", world_str(w, "GET latchkey:robust:mutex:{orders}"));
    assert_lk(ENOTRECOVERABLE, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(orders));
    check(w, 2);
    for (int i = 0; i < row_count; i++)
        assert_true(rows[i].seen > 0);
}

int main(void)
{
    if (fopen(DOCS, "r") == NULL)
        return 77;
    return world_run(each_operation_leaves_what_the_page_says);
}
