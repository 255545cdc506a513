/* SPDX-License-Identifier: MIT */
/*
 * no_replicas_test.c - F27: too few replicas follow, and the server refuses all writes with NOREPLICAS
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void want_a_replica(struct world *w)
{
    world_redis(w, "CONFIG SET min-replicas-to-write 1");
}

static void want_none(struct world *w)
{
    world_redis(w, "CONFIG SET min-replicas-to-write 0");
}

int main(void)
{
    static const struct outage no_replicas = {
        .name = "no replicas",
        .code = ENOTCONN,
        .reads_pass = true,
        .words = { "NOREPLICAS" },
        .begin = want_a_replica,
        .end = want_none,
    };
    return outage_tests(&no_replicas);
}
