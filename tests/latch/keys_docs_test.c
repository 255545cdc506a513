/* SPDX-License-Identifier: MIT */
/*
 * keys_docs_test.c - docs/keys.md describes what a latch really leaves in Redis
 *
 * labels: memory
 */
#include "world.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL "redisson_countdownlatch__channel__{gate}"

static char docs[65536];

static void read_docs(void)
{
    FILE *file = fopen(LK_SOURCE_DIR "/docs/keys.md", "r");
    assert_that(file != NULL);
    size_t length = fread(docs, 1, sizeof docs - 1, file);
    fclose(file);
    docs[length] = '\0';
}

/* A row of the table of keys. */
struct row {
    char key[80], type[16], ttl[16];
    bool seen;
};

/* The cell that begins at `at`, without its blanks; returns where the next one begins. */
static const char *cell(const char *at, char *text, size_t size)
{
    const char *end = strchr(at, '|');
    assert_non_null(end);
    at += strspn(at, " `");
    size_t length = (size_t)(end - at);
    while (length > 0 && strchr(" `", at[length - 1]) != NULL)
        length--;
    snprintf(text, size, "%.*s", (int)length, at);
    return end + 1;
}

static int read_rows(struct row rows[8])
{
    int count = 0;
    char content[512];
    const char *at = strstr(docs, "## Keys of a countdown latch\n");
    assert_non_null(at);
    for (at = strstr(at, "| ---"); at != NULL && (at = strchr(at, '\n') + 1)[0] == '|';) {
        assert_true(count < 8);
        struct row *row = &rows[count++];
        *row = (struct row){ 0 };
        at = cell(at + 1, row->key, sizeof row->key);
        at = cell(at, row->type, sizeof row->type);
        at = cell(at, content, sizeof content);
        at = cell(at, row->ttl, sizeof row->ttl);
    }
    return count;
}

/* The row of a key that is there, found by the key's name for the latch `gate`. */
static struct row *row_of(struct row *rows, int count, const char *key)
{
    for (int i = 0; i < count; i++) {
        char *name = strstr(rows[i].key, "NAME"), expected[80];
        assert_non_null(name);
        snprintf(expected, sizeof expected, "%.*sgate%s", (int)(name - rows[i].key), rows[i].key, name + 4);
        if (strcmp(expected, key) == 0)
            return &rows[i];
    }
    fail_msg("%s is in Redis, but not in docs/keys.md", key);
    return NULL;
}

/* Each key that is there now has its row, and is as that says. */
static void compare(struct world *w, struct row *rows, int count)
{
    char keys[512];
    snprintf(keys, sizeof keys, "%s", world_keys(w));
    for (char *rest, *key = strtok_r(keys, " ", &rest); key != NULL; key = strtok_r(NULL, " ", &rest)) {
        struct row *row = row_of(rows, count, key);
        row->seen = true;
        assert_string_equal(row->type, world_str(w, "TYPE %s", key));
        if (strcmp(row->ttl, "none") == 0)
            assert_int_equal(-1, world_pttl(w, key));
        else
            assert_between(world_pttl(w, key), 1, (int64_t)(strtod(row->ttl, NULL) * 60000));
    }
}

static void matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(0, regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB));
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("\"%s\" is not of the form %s", text, pattern);
    regfree(&regex);
}

/* All that is there after each operation is in the table, and all in the table was there. */
static void the_table_of_keys_is_right(struct world *w)
{
    struct row rows[8];
    int count = read_rows(rows);
    assert_int_equal(4, count);
    lk_latch_t *gate = world_latch(w, world_client(w, ""), "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    compare(w, rows, count);
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 20));
    assert_lk(0, lk_latch_countdown(gate));
    compare(w, rows, count);
    assert_string_equal("1", world_str(w, "GET gate"));
    assert_lk(0, lk_latch_countdown(gate));
    compare(w, rows, count);
    matches("^opened [0-9]{16}$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    compare(w, rows, count);
    matches("^opened [0-9]{16} set$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_delete(gate));
    compare(w, rows, count);
    matches("^deleted [0-9]{16}$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_setcount(gate, 2));
    assert_lk(0, lk_latch_countdownby(gate, 2));
    assert_lk(0, lk_latch_delete(gate)); /* open */
    compare(w, rows, count);
    matches("^opened [0-9]{16} set$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_int_equal(1, world_elements(w, "HKEYS latchkey:once:{gate}"));
    const char *once = "return redis.call('HKEYS', KEYS[1])[1] .. ' ' .. redis.call('HVALS', KEYS[1])[1]";
    matches("^[0-9a-f]{32}:l[0-9]+x[0-9]+ [0-9]+ 1 [0-9]+$", world_str(w, "EVAL %s 1 latchkey:once:{gate}", once));
    for (int i = 0; i < count; i++)
        if (!rows[i].seen && strstr(rows[i].key, ":users:") == NULL) /* latch/anonymous looks at those */
            fail_msg("%s is in docs/keys.md, but never was in Redis", rows[i].key);
}

/* The serial of each end is larger than the one before, whatever the clock does. */
static void serials_grow(struct world *w)
{
    lk_latch_t *gate = world_latch(w, world_client(w, ""), "gate");
    world_redis(w, "SET latchkey:opened:{gate} %s PX 600000", "opened 4000000000000000");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_string_equal("opened 4000000000000000 set", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_countdown(gate));
    assert_string_equal("opened 4000000000000001", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_delete(gate));
    assert_string_equal("deleted 4000000000000002", world_str(w, "GET latchkey:opened:{gate}"));
}

int main(void)
{
    read_docs();
    return world_run(the_table_of_keys_is_right, serials_grow);
}
