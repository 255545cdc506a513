/* SPDX-License-Identifier: MIT */
/*
 * keys_documented_test.c - what a read-write lock keeps in Redis is what docs/keys.md says
 *
 * labels: threads memory
 */
#include "page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 20000 };

static struct page page;
static lk_client_t *client;
static lk_rwlock_t *config, *same_name;
static const lk_rwlockattr_t robust = { .size = sizeof robust, .robust = 1 };

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Is `text` a "<client id>:<owner>:<acquisition>:<mode>", up to its end or a blank? */
static bool is_owner_id(const char *text)
{
    size_t length = strcspn(text, " ");
    if (strspn(text, "0123456789abcdef") != 32 || length < 38)
        return false;
    const char *mode = text + length - 2;
    int colons = 0;
    for (const char *c = text + 32; c < mode; c++)
        colons += *c == ':';
    return colons == 2 && mode[0] == ':' && (mode[1] == 'r' || mode[1] == 'w');
}

/* Scores are moments of the server, in the unit that the page names. */
static bool is_soon(struct world *w, double score, const char *content)
{
    double now_ms = (double)world_int(w, "EVAL %s 0", "local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000");
    if (strstr(content, "arrival number") != NULL)
        return score > now_ms * 1000 - 60e6 && score < now_ms * 1000 + 1e6;
    return strstr(content, "server time in ms") != NULL && score > now_ms && score <= now_ms + LEASE_MS;
}

static void check_members(struct world *w, const char *key, const struct row *row)
{
    assert_non_null(strstr(row->content, "owner id with its mode →"));
    for (int64_t i = 0, count = world_int(w, "ZCARD %s", key); i < count; i++) {
        const char *member =
            world_str(w, "EVAL %s 1 %s %d", "return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1]", key, (int)i);
        double score = atof(world_str(w, "ZSCORE %s %s", key, member));
        assert_true(is_owner_id(member));
        assert_true(is_soon(w, score, row->content));
    }
}

/* Clients, and until when they count as alive, with their terms. */
static void check_lives(struct world *w, const char *key)
{
    const char *id = world_str(w, "EVAL %s 1 %s", "return redis.call('HKEYS', KEYS[1])[1]", key);
    long long until_ms, alive_ms, claim_ms;
    int quiet, used = 0;
    assert_non_null(strstr(page.text, "`<ms for which an ask is a sign of life> <ms of a claim> <1: it receives"));
    assert_int_equal(32, strspn(id, "0123456789abcdef"));
    assert_int_equal(4, sscanf(world_str(w, "HGET %s %s", key, id), "%lld %lld %lld %d%n", &until_ms, &alive_ms, &claim_ms, &quiet, &used));
    assert_between(alive_ms, 1000, 10000);
    assert_between(claim_ms, 300, 10000);
    assert_between(quiet, 0, 1);
}

static void check_text(const char *text, const struct row *row)
{
    if (begins_with(row->type, "string, a number"))
        return;
    if (begins_with(row->key, "latchkey:settings:")) {
        assert_string_equal("protocol=1 prefer=fair robust=yes", text);
        return;
    }
    assert_non_null(strstr(row->content, "<owner id of the writer> <token> <0 or 1> or unrecoverable"));
    if (strcmp(text, "unrecoverable") == 0)
        return;
    assert_true(is_owner_id(text));
    unsigned long long token;
    int died = -1;
    assert_int_equal(2, sscanf(strchr(text, ' '), " %llu %d", &token, &died));
    assert_true(died == 0 || died == 1);
}

static void check(struct world *w, const char *key, const struct row *row)
{
    if (begins_with(row->type, "sorted set"))
        check_members(w, key, row);
    else if (begins_with(row->type, "hash"))
        check_lives(w, key);
    else
        check_text(world_str(w, "GET %s", key), row);
}

static int look(struct world *w)
{
    return page_compare(w, &page, check);
}

static void open_config(struct world *w, const char *login)
{
    char url[160];
    snprintf(url, sizeof url, "unix://%s%s?lease=20s", login, w->socket);
    client = world_client_at(w, NULL, url);
    config = world_rwlock(w, client, "config", &robust);
    same_name = world_rwlock(w, client, "config", &robust);
}

static void each_operation_leaves_what_the_page_says(struct world *w)
{
    struct worker writer, reader;
    page_read(&page, "a read-write lock", "config", LEASE_MS);
    open_config(w, "");
    assert_int_equal(0, look(w));
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_int_equal(2, look(w)); /* its settings; a reader has no token and leaves no robust mark */
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_int_equal(1, world_int(w, "ZCARD latchkey:rw:{config}"));
    worker_start(&writer, write_once, same_name);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_int_equal(4, look(w));
    worker_start(&reader, read_once, config);
    eventually(world_rwqueued(w, "config") == 2 && world_listening(w, "rw:{config}"), 5000);
    assert_int_equal(5, look(w));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, worker_join(&writer));
    assert_int_equal(0, worker_join(&reader));
    assert_int_equal(2, look(w)); /* token and settings */

    assert_lk(0, lk_rwlock_wrlock(config));
    assert_int_equal(4, look(w));
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_int_equal(3, look(w));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(2, look(w));

    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_forceunlock(config));
    assert_int_equal(3, look(w)); /* and the robust mark */
    assert_lk(ESTALE, lk_rwlock_unlock(config));
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    assert_int_equal(4, look(w));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(3, look(w)); /* unrecoverable */
    assert_lk(0, lk_rwlock_forceunlock(config));
    assert_int_equal(2, look(w));
    page_was_seen(&page);
}

/* "G <owner id> <server µs> <claim ms> <token> <0 or 1>", as the page says. */
static void a_grant_is_the_message_that_the_page_says(struct world *w)
{
    struct worker writer;
    char channel[64], id[96];
    long long server_us, claim_ms, token;
    int died;
    page_read(&page, "a read-write lock", "config", LEASE_MS);
    assert_non_null(strstr(page.text, "`G <owner id> <server µs> <claim ms> <token> <0 or 1>`"));
    open_config(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    worker_start(&writer, write_once, same_name);
    eventually(world_rwqueued(w, "config") == 1 && world_listening(w, "rw:{config}"), 5000);
    snprintf(channel, sizeof channel, "latchkey:client:%.32s",
             world_str(w, "EVAL %s 0", "return redis.call('ZRANGE', 'latchkey:rw:{config}', 0, 0)[1]"));
    world_subscribe(w, channel);
    assert_lk(0, lk_rwlock_unlock(config));
    const char *message = world_message(w, 2000);
    assert_non_null(message);
    assert_int_equal(5, sscanf(message, "G %95s %lld %lld %lld %d", id, &server_us, &claim_ms, &token, &died));
    assert_true(is_owner_id(id));
    assert_int_equal('w', id[strlen(id) - 1]);
    assert_int_equal(3000, claim_ms);
    assert_int_equal(0, died);
    assert_true(token > 0);
    assert_int_equal(0, worker_join(&writer));
    world_subscribe(w, "nothing");
}

int main(void)
{
    return world_run(each_operation_leaves_what_the_page_says, a_grant_is_the_message_that_the_page_says);
}
