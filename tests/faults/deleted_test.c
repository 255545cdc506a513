/* SPDX-License-Identifier: MIT */
/*
 * deleted_test.c - F33: somebody takes the key away: DEL, RENAME, MOVE, PEXPIRE 0
 *
 * What they do to all keys at once: flushed_test.c.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 21
 */
#include "robbery.h"

static void delete (struct world *w, const char *key)
{
    world_redis(w, "DEL %s", key);
}

static void rename_it(struct world *w, const char *key)
{
    world_redis(w, "RENAME %s elsewhere", key);
}

static void delete_elsewhere(struct world *w)
{
    world_redis(w, "DEL elsewhere");
}

static void move(struct world *w, const char *key)
{
    world_redis(w, "MOVE %s 1", key);
}

static void empty_the_other(struct world *w)
{
    world_redis(w, "SELECT 1");
    world_redis(w, "FLUSHDB");
    world_redis(w, "SELECT 0");
}

static void end(struct world *w, const char *key)
{
    world_redis(w, "PEXPIRE %s 0", key);
}

int main(void)
{
    static const struct robbery robberies[] = {
        { .name = "DEL", .commit = delete },
        { .name = "RENAME", .commit = rename_it, .make_good = delete_elsewhere },
        { .name = "MOVE", .commit = move, .make_good = empty_the_other },
        { .name = "PEXPIRE 0", .commit = end },
        { 0 },
    };
    return robbery_tests(robberies);
}
