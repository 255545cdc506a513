/* SPDX-License-Identifier: MIT */
/*
 * busy_test.c - F21: somebody's script does not end, and the server says BUSY to everybody else
 *
 * Before busy-reply-threshold it just hangs, which server_stopped_test.c has.
 *
 * labels: memory
 * seconds: 33
 * processors: 3
 */
#include "outage.h"

static void run_endlessly(struct world *w)
{
    world_redis(w, "CONFIG SET busy-reply-threshold 1");
    outage_send(w, "EVAL %s 0", "while true do end");
    outage_await(w, "BUSY");
}

static void kill_it(struct world *w)
{
    world_redis(w, "SCRIPT KILL");
    outage_answered();
}

int main(void)
{
    static const struct outage busy = {
        .name = "busy",
        .code = ENOTCONN,
        .computes = true,
        .words = { "BUSY" },
        .begin = run_endlessly,
        .end = kill_it,
    };
    return outage_tests(&busy);
}
