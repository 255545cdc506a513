/* SPDX-License-Identifier: MIT */
/*
 * status.c - `latchkey status`: each kind of object that a name may be is looked at, one round trip each
 */
#include "client.h"
#include "command.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

enum { ROWS_MAX = 5 };

struct row {
    const char *kind, *mode;
    unsigned holders, waiters;
    int64_t ttl_ms; /* -1: no lease */
    int64_t count;  /* -1: none */
    uint64_t token;
    char owner[160];
};

struct rows {
    struct row row[ROWS_MAX];
    int count;
};

static void add(struct rows *rows, struct row row)
{
    rows->row[rows->count++] = row;
}

/* An object of another type has the key: it is not of this kind. */
static int unless_other(int rc)
{
    return rc == EPROTO ? 0 : rc;
}

static int look_at_mutex(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_mutex_t mutex;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    int rc = lk_mutex_init(&mutex, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_mutex_info(&mutex, &info);
    if (rc == 0 && (info.held || info.waiters != 0)) {
        struct row row = { "mutex", info.held ? "exclusive" : "free", info.held != 0, info.waiters,
                           info.held ? info.remaining_ms : -1, -1, info.token, { 0 } };
        snprintf(row.owner, sizeof row.owner, "%s", info.holder);
        add(rows, row);
    }
    lk_mutex_destroy(&mutex);
    return unless_other(rc);
}

static int look_at_rwlock(struct rows *rows, lk_client_t *client, const char *name)
{
    static const char *const modes[] = { "free", "shared", "exclusive" };
    lk_rwlock_t rwlock;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    int rc = lk_rwlock_init(&rwlock, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_rwlock_info(&rwlock, &info);
    if (rc == 0 && (info.mode != LK_RWLOCK_FREE || info.waiters != 0)) {
        unsigned holders = info.mode == LK_RWLOCK_WRITING ? 1 : info.readers;
        struct row row = { "rwlock", modes[info.mode], holders, info.waiters,
                           info.mode != LK_RWLOCK_FREE ? info.remaining_ms : -1, -1, info.token, { 0 } };
        snprintf(row.owner, sizeof row.owner, "%s", info.writer);
        add(rows, row);
    }
    lk_rwlock_destroy(&rwlock);
    return unless_other(rc);
}

static int look_at_permits(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_sem_t sem;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    attr.leased = 1;
    int rc = lk_sem_init(&sem, client, name, 0, &attr);
    if (rc != 0)
        return rc;
    rc = lk_sem_info(&sem, &info);
    if (rc == 0 && info.exists)
        add(rows, (struct row){ "permits", info.available > 0 ? "free" : "taken", info.held, info.waiters, -1, -1, 0,
                                { 0 } });
    lk_sem_destroy(&sem);
    return unless_other(rc);
}

/* A counting semaphore and a latch with a count are both an integer under the name: what is told is the count. */
static int look_at_count(struct rows *rows, lk_client_t *client, const char *name)
{
    lk_latch_t latch;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    int rc = lk_latch_init(&latch, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_latch_info(&latch, &info);
    if (rc == 0 && info.set)
        add(rows, (struct row){ "count", "count", 0, 0, -1, info.count, 0, { 0 } });
    else if (rc == 0 && info.opened)
        add(rows, (struct row){ "latch", "open", 0, 0, -1, 0, 0, { 0 } });
    lk_latch_destroy(&latch);
    return unless_other(rc);
}

static int look(struct rows *rows, lk_client_t *client, const char *name)
{
    int rc = look_at_mutex(rows, client, name);
    if (rc == 0)
        rc = look_at_rwlock(rows, client, name);
    if (rc == 0)
        rc = look_at_permits(rows, client, name);
    return rc == 0 ? look_at_count(rows, client, name) : rc;
}

static void print_object(const char *name, const struct row *row)
{
    json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", name, "kind", row->kind, "mode", row->mode,
                               "holders", (json_int_t)row->holders, "waiters", (json_int_t)row->waiters);
    if (row->ttl_ms >= 0)
        json_object_set_new(object, "ttl_ms", json_integer(row->ttl_ms));
    if (row->count >= 0)
        json_object_set_new(object, "count", json_integer(row->count));
    if (row->token != 0)
        json_object_set_new(object, "token", json_integer((json_int_t)row->token));
    if (row->owner[0] != 0)
        json_object_set_new(object, "owner", json_string(row->owner));
    json_dumpf(object, stdout, JSON_COMPACT);
    json_decref(object);
    putchar('\n');
}

static void print_row(const char *name, const struct row *row)
{
    char mode[32], ttl[24] = "-", token[24] = "-";
    snprintf(mode, sizeof mode, "%s", row->mode);
    if (row->count > 0)
        snprintf(mode, sizeof mode, "count %lld", (long long)row->count);
    if (row->ttl_ms >= 0)
        snprintf(ttl, sizeof ttl, "%.1fs", (double)row->ttl_ms / 1e3);
    if (row->token != 0)
        snprintf(token, sizeof token, "%llu", (unsigned long long)row->token);
    printf("%-20s %-8s %-10s %7u %7u %8s %17s %s\n", name, row->kind, mode, row->holders, row->waiters, ttl, token,
           row->owner[0] != 0 ? row->owner : "-");
}

static void print_rows(const struct settings *s, const char *name, const struct rows *rows)
{
    static const struct row free_row = { "-", "free", 0, 0, -1, -1, 0, { 0 } };
    for (int i = 0; i < rows->count || i == 0; i++) {
        const struct row *row = rows->count > 0 ? &rows->row[i] : &free_row;
        (s->json ? print_object : print_row)(name, row);
    }
}

static bool is_taken(const struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].holders > 0)
            return true;
    return false;
}

int run_status(struct settings *s, int count, char **operands)
{
    lk_client_t *client;
    bool all_taken = true;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    if (!s->json)
        printf("%-20s %-8s %-10s %7s %7s %8s %17s %s\n", "NAME", "KIND", "MODE", "HOLDERS", "WAITERS", "TTL", "TOKEN",
               "OWNER");
    for (int i = 0; i < count && code == 0; i++) {
        struct rows rows = { 0 };
        int rc = look(&rows, client, operands[i]);
        if (rc != 0)
            code = complain_of(operands[i], rc);
        else
            print_rows(s, operands[i], &rows);
        all_taken = all_taken && is_taken(&rows);
    }
    close_client(client);
    if (code == 0)
        code = flush_output();
    return code == 0 && s->check && !all_taken ? EXIT_NO : code;
}
