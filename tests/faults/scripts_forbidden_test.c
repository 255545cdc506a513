/* SPDX-License-Identifier: MIT */
/*
 * scripts_forbidden_test.c - F39a: the user of the clients may run no scripts any more
 *
 * Connections stay, so who waits hears of it with its next poll.
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void forbid_scripts(struct world *w)
{
    world_redis(w, "ACL SETUSER app -eval -evalsha");
}

int main(void)
{
    static const struct outage forbidden = {
        .name = "scripts forbidden",
        .code = EACCES,
        .ends_tries = true,
        .ends_waits = true,
        .words = { "NOPERM" },
        .user = "app:old",
        .prepare = outage_user,
        .begin = forbid_scripts,
        .end = outage_user,
    };
    return outage_tests(&forbidden);
}
