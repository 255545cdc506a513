/* SPDX-License-Identifier: MIT */
/*
 * paused_test.c - F37: CLIENT PAUSE WRITE holds every script back, while the server answers all else
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void pause_writes(struct world *w)
{
    world_redis(w, "CLIENT PAUSE 60000 WRITE");
}

static void go_on(struct world *w)
{
    world_redis(w, "CLIENT UNPAUSE");
}

int main(void)
{
    static const struct outage paused = {
        .name = "paused",
        .code = ENOTCONN,
        .unsure = true,
        .begin = pause_writes,
        .end = go_on,
    };
    return outage_tests(&paused);
}
