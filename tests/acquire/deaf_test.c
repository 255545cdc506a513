/* SPDX-License-Identifier: MIT */
/*
 * deaf_test.c - a waiter that does not listen is told once that something is free, and the next one has it
 *
 * labels: threads
 * simulated: yes
 */
#include "subject.h"

#include <string.h>

/* Redisson's waiters are told as well of a mutex that stays free, and of permits. */
static const struct row {
    const char *kind, *key, *ending;
    int told;
} rows[] = { { "mutex", "mutex", "1", 2 },
             { "fair mutex", "mutex", "1", 2 },
             { "writer", "writers", "1:1:w", 1 },
             { "semaphore", "sem", "1:1:1", 2 } };

static struct subject *subject_of(struct world *w, lk_client_t *client, const struct row *row)
{
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        if (strcmp(kind->name, row->kind) == 0)
            return world_subject(w, client, kind, "thing");
    return NULL;
}

/* It was heard of just now, and nobody listens on its client's channel. */
static void deaf_one_waits(struct world *w, const struct row *row)
{
    world_redis(w, "EVAL %s 2 latchkey:queue:%s:{thing} latchkey:alive:%s:{thing} %s",
                "local t = redis.call('TIME') local us = t[1] * 1000000 + t[2] "
                "local id = string.rep('f', 32) .. ':' .. ARGV[1] "
                "redis.call('ZADD', KEYS[1], string.format('%.0f', us), id) redis.call('PEXPIRE', KEYS[1], 60000) "
                "redis.call('HSET', KEYS[2], string.rep('f', 32), string.format('%.0f 5000 3000 0', math.floor(us / 1000) + 5000)) "
                "redis.call('PEXPIRE', KEYS[2], 60000)",
                row->key, alive_of(row->key), row->ending);
}

static void who_does_not_listen_is_told_once(struct world *w)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct subject *s = subject_of(w, world_client(w, ""), &rows[i]);
        assert_lk(0, subject_take(s, 0));
        deaf_one_waits(w, &rows[i]);
        int64_t before = world_commands(w, "publish");
        assert_lk(0, subject_give(s));
        assert_int_equal(rows[i].told, world_commands(w, "publish") - before);
        assert_lk(0, subject_take(s, 1000));
        assert_lk(0, subject_give(s));
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

static int take_and_give(void *subject)
{
    int rc = subject_take(subject, 10000);
    return rc != 0 ? rc : subject_give(subject);
}

static void the_next_one_has_it(struct world *w)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct subject *s = subject_of(w, world_client(w, ""), &rows[i]);
        struct subject *other = subject_of(w, world_client(w, "poll=20s"), &rows[i]);
        struct worker worker;
        assert_lk(0, subject_take(s, 0));
        deaf_one_waits(w, &rows[i]);
        worker_start(&worker, take_and_give, other);
        eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") > 0, 5000);
        sleep_ms(300); /* it asks once more when it listens */
        int64_t began_ms = now_ms();
        assert_lk(0, subject_give(s));
        assert_int_equal(0, worker_join(&worker));
        assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS); /* polls are more than 5 s apart */
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

int main(void)
{
    return world_run(who_does_not_listen_is_told_once, the_next_one_has_it);
}
