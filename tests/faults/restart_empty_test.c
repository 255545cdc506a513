/* SPDX-License-Identifier: MIT */
/*
 * restart_empty_test.c - F30: the server is killed and comes back with nothing, or with what it had before
 *
 * One that kept its data: restart_with_aof_test.c.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 28
 */
#include "robbery.h"

#include <stdio.h>
#include <unistd.h>

static void restart(struct world *w, const char *key)
{
    (void)key;
    world_kill_server(w);
    world_restart_server(w);
}

/* What a snapshot knows is from before the hold. */
static void save(struct world *w)
{
    world_redis(w, "SAVE");
}

static void forget_the_snapshot(struct world *w)
{
    char path[96];
    snprintf(path, sizeof path, "%s/dump.rdb", w->dir);
    assert_int_equal(0, unlink(path));
}

int main(void)
{
    static const struct robbery robberies[] = {
        { .name = "restart without data", .commit = restart, .lease_ms = 4000 },
        { .name = "restart with an older snapshot",
          .prepare = save,
          .commit = restart,
          .lease_ms = 4000,
          .make_good = forget_the_snapshot },
        { 0 },
    };
    return robbery_tests(robberies);
}
