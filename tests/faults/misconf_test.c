/* SPDX-License-Identifier: MIT */
/*
 * misconf_test.c - F23: the server could not save its data, and refuses all writes with MISCONF
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Saving fails where a directory has the file's name; nobody minds yet. */
static void fail_to_save(struct world *w)
{
    char path[96];
    snprintf(path, sizeof path, "%s/dump.rdb", w->dir);
    assert_that(mkdir(path, 0700) == 0);
    world_redis(w, "CONFIG SET stop-writes-on-bgsave-error no");
    world_redis(w, "CONFIG SET save %s", "3600 1");
    world_redis(w, "BGSAVE");
    eventually(strstr(world_str(w, "INFO persistence"), "rdb_last_bgsave_status:err") != NULL, 5000);
}

static void mind_it(struct world *w)
{
    world_redis(w, "CONFIG SET stop-writes-on-bgsave-error yes");
}

static void ignore_it(struct world *w)
{
    world_redis(w, "CONFIG SET stop-writes-on-bgsave-error no");
}

int main(void)
{
    static const struct outage misconf = {
        .name = "misconf",
        .code = ENOTCONN,
        .reads_pass = true,
        .words = { "MISCONF" },
        .prepare = fail_to_save,
        .begin = mind_it,
        .end = ignore_it,
    };
    return outage_tests(&misconf);
}
