/* SPDX-License-Identifier: MIT */
/*
 * loading_test.c - F22: the server reads its data back, and says LOADING until it has all of it
 *
 * It answers SUBSCRIBE meanwhile, which proves nothing: waiters have to ask again.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

/* So much, in another database, that loading takes seconds when each key is delayed. */
static void fill(struct world *w)
{
    world_redis(w, "SELECT 1");
    world_redis(w, "DEBUG POPULATE 20000 filler 100");
    world_redis(w, "SELECT 0");
    world_redis(w, "CONFIG SET loading-process-events-interval-bytes 1024");
}

static void load_slowly(struct world *w)
{
    world_redis(w, "CONFIG SET key-load-delay 500");
    outage_send(w, "DEBUG RELOAD");
    outage_await(w, "LOADING");
}

static void load_the_rest(struct world *w)
{
    world_redis(w, "CONFIG SET key-load-delay 0");
    outage_answered();
}

int main(void)
{
    static const struct outage loading = {
        .name = "loading",
        .code = ENOTCONN,
        .words = { "LOADING" },
        .prepare = fill,
        .begin = load_slowly,
        .end = load_the_rest,
    };
    return outage_tests(&loading);
}
