/* SPDX-License-Identifier: MIT */
/*
 * read_only_test.c - F26: the server became a replica, and says READONLY to what would write
 *
 * The library drops its connection then, and a new one is refused as that of a replica.
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void become_a_replica(struct world *w)
{
    world_redis(w, "REPLICAOF 127.0.0.1 1");
}

static void become_the_master(struct world *w)
{
    world_redis(w, "REPLICAOF NO ONE");
}

int main(void)
{
    static const struct outage readonly = {
        .name = "read only",
        .code = ENOTCONN,
        .words = { "READONLY", "replica" },
        .begin = become_a_replica,
        .end = become_the_master,
    };
    return outage_tests(&readonly);
}
