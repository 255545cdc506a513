/* SPDX-License-Identifier: MIT */
/*
 * keys_test.c - docs/keys.md tells what is in Redis: compared after each operation, key by key
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 8 };

/* A line of a table: "| `key` | type | content | time to live |". */
struct row {
    char key[64];  /* with NAME replaced */
    char type[16]; /* as TYPE tells it */
    bool lasts;    /* no time to live */
    bool seen;
};

static struct row rows[ROWS_MAX];
static int row_count;
static lk_client_t *client, *other;
static lk_sem_t *pool, *same;

static char *read_docs(void)
{
    FILE *file = fopen(LK_SOURCE_DIR "/docs/keys.md", "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_true(fread(text, 1, 65535, file) > 1000);
    fclose(file);
    return text;
}

static void read_row(char *line)
{
    struct row *row = &rows[row_count];
    char *key = strtok(line, "|"), *type = strtok(NULL, "|");
    strtok(NULL, "|");
    char *lasts = strtok(NULL, "|");
    assert_non_null(lasts);
    char *name = strstr(key, "NAME");
    assert_non_null(name);
    int begin = (int)strcspn(key, "`") + 1;
    snprintf(row->key, sizeof row->key, "%.*spool%.*s", (int)(name - key) - begin, key + begin,
             (int)strcspn(name + 4, "`"), name + 4);
    const char *types[] = { "string", "hash", "sorted set" }, *told[] = { "string", "hash", "zset" };
    for (int i = 0; i < 3; i++)
        if (strncmp(type + 1, types[i], strlen(types[i])) == 0)
            strcpy(row->type, told[i]);
    assert_true(row->type[0] != '\0');
    row->lasts = strncmp(lasts, " none", 5) == 0;
    row->seen = false;
    row_count++;
}

/* The table of that section. */
static void read_table(const char *title)
{
    char *docs = read_docs(), *section = strstr(docs, title);
    assert_non_null(section);
    row_count = 0;
    char *end = strstr(section + 2, "\n## "), *saved;
    *end = '\0';
    for (char *line = strtok_r(section, "\n", &saved); line != NULL; line = strtok_r(NULL, "\n", &saved))
        if (strncmp(line, "| `", 3) == 0)
            read_row(line);
    free(docs);
    assert_true(row_count >= 6);
}

/* Each key there is stands in the table, with its type and its time to live. */
static void compare(struct world *w, const char *when)
{
    char keys[1024], *saved;
    snprintf(keys, sizeof keys, "%s", world_keys(w));
    for (char *key = strtok_r(keys, " ", &saved); key != NULL; key = strtok_r(NULL, " ", &saved)) {
        struct row *row = NULL;
        for (int i = 0; i < row_count; i++)
            if (strcmp(rows[i].key, key) == 0)
                row = &rows[i];
        if (row == NULL)
            fail_msg("%s: %s is not in docs/keys.md", when, key);
        row->seen = true;
        const char *type = world_str(w, "TYPE %s", key);
        if (strcmp(type, "none") == 0) /* gone meanwhile */
            continue;
        assert_string_equal(row->type, type);
        int64_t left_ms = world_pttl(w, key);
        if (left_ms != -2 && (left_ms == -1) != row->lasts)
            fail_msg("%s: %s has %lld ms to live", when, key, (long long)left_ms);
    }
}

static int wait_for_two(void *arg)
{
    return lk_sem_acquire(arg, 2, 20000);
}

struct child {
    const lk_semattr_t *attr;
    struct gate *go; /* NULL: at once */
};

static int wait_forever(struct world *w, void *arg)
{
    struct child *child = arg;
    lk_sem_t s;
    assert_lk(0, lk_sem_init(&s, world_open(w, ""), "pool", 3, child->attr));
    world_ready(w);
    if (child->go != NULL)
        gate_pass(child->go);
    return lk_sem_acquire(&s, 1, LK_FOREVER); /* it keeps what it takes */
}

static void run_through(struct world *w, const lk_semattr_t *attr)
{
    struct worker waiter;
    struct child child = { attr, NULL };
    pid_t doomed = world_fork(w, wait_forever, &child);
    assert_int_equal(0, world_wait(w, doomed)); /* it takes the first of three */
    client = world_client(w, "");
    other = world_client(w, "");
    pool = world_sem(w, client, "pool", 3, attr);
    same = world_sem(w, other, "pool", 3, attr);
    compare(w, "after a wait");
    if (attr != NULL)
        world_redis(w, "DEL latchkey:permits:{pool}");
    else
        world_redis(w, "SET pool 3");
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 3));
    compare(w, "after trysetpermits");
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    compare(w, "after acquire");
    assert_lk(EAGAIN, lk_sem_trywait(same));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(same, 20));
    compare(w, "after a timeout");
    worker_start(&waiter, wait_for_two, same);
    eventually(world_elements(w, "KEYS latchkey:queue:*") == 1, 3000);
    compare(w, "while one waits");
    assert_lk(0, lk_sem_release(pool, 2));
    compare(w, "after a hand-over");
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_sem_addpermits(pool, 2));
    assert_lk(0, lk_sem_addpermits(pool, -1));
    compare(w, "after addpermits");
    assert_lk(0, lk_sem_post(pool));
    compare(w, "after post");
    world_close(w, client);
}

static void every_row_was_seen(void)
{
    for (int i = 0; i < row_count; i++)
        if (!rows[i].seen && strstr(rows[i].key, ":users:") == NULL) /* semaphore/anonymous looks at those */
            fail_msg("%s stands in docs/keys.md and was never there", rows[i].key);
}

static void a_counting_semaphores_keys(struct world *w)
{
    unsigned taken;
    world_allow(w, "*pool*");
    read_table("## Keys of a counting semaphore");
    struct child child = { NULL, world_shared(w, sizeof(struct gate)) };
    pid_t doomed = world_fork(w, wait_forever, &child);
    run_through(w, NULL);
    assert_lk(0, lk_sem_drain(same, &taken));
    compare(w, "after drain");

    /* A claim lasts only if its waiter does not look: one that is stopped. */
    gate_open(child.go);
    eventually(world_exists(w, "latchkey:queue:sem:{pool}") && world_listening(w, "sem:{pool}"), 3000);
    world_stop(doomed);
    assert_lk(0, lk_sem_post(same));
    compare(w, "with a claim");
    world_kill(w, doomed);
    world_close(w, other);
    every_row_was_seen();
}

static void a_leased_semaphores_keys(struct world *w)
{
    static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = 5000 };
    char id[LK_PERMIT_ID];
    world_allow(w, "*pool*");
    read_table("## Keys of a leased semaphore");
    run_through(w, &leased);
    assert_lk(0, lk_sem_acquireid(same, 0, id));
    compare(w, "after acquireid");
    assert_true(world_int(w, "ZSCORE latchkey:permits:{pool} %s", id) > 0);
    assert_lk(0, lk_sem_releaseid(same, id));
    world_close(w, other);
    every_row_was_seen();
}

int main(void)
{
    return world_run(a_counting_semaphores_keys, a_leased_semaphores_keys);
}
