/* SPDX-License-Identifier: MIT */
/*
 * master_down_test.c - F28: the server became a replica that may not answer while its master is away
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void become_a_silent_replica(struct world *w)
{
    world_redis(w, "CONFIG SET replica-serve-stale-data no");
    world_redis(w, "REPLICAOF 127.0.0.1 1");
}

static void become_the_master(struct world *w)
{
    world_redis(w, "REPLICAOF NO ONE");
}

int main(void)
{
    static const struct outage masterdown = {
        .name = "master down",
        .code = ENOTCONN,
        .words = { "MASTERDOWN", "replica" },
        .begin = become_a_silent_replica,
        .end = become_the_master,
    };
    return outage_tests(&masterdown);
}
