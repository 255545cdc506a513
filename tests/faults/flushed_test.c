/* SPDX-License-Identifier: MIT */
/*
 * flushed_test.c - F33: somebody empties the database: FLUSHALL, FLUSHDB, SWAPDB
 *
 * What they do to one key: deleted_test.c.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 16
 */
#include "robbery.h"

static void flush_all(struct world *w, const char *key)
{
    (void)key;
    world_redis(w, "FLUSHALL");
}

static void flush_one(struct world *w, const char *key)
{
    (void)key;
    world_redis(w, "FLUSHDB");
}

static void swap(struct world *w, const char *key)
{
    (void)key;
    world_redis(w, "SWAPDB 0 1");
}

static void empty_the_other(struct world *w)
{
    world_redis(w, "SELECT 1");
    world_redis(w, "FLUSHDB");
    world_redis(w, "SELECT 0");
}

int main(void)
{
    static const struct robbery robberies[] = {
        { .name = "FLUSHALL", .commit = flush_all },
        { .name = "FLUSHDB", .commit = flush_one },
        { .name = "SWAPDB", .commit = swap, .make_good = empty_the_other },
        { 0 },
    };
    return robbery_tests(robberies);
}
