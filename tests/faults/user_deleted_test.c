/* SPDX-License-Identifier: MIT */
/*
 * user_deleted_test.c - F38b: the user of the clients is deleted, and their connections end
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void delete_it(struct world *w)
{
    world_redis(w, "ACL DELUSER app");
}

int main(void)
{
    static const struct outage deleted = {
        .name = "user deleted",
        .code = EACCES,
        .unsure = true, /* what was sent just before the server closed the connection */
        .ends_tries = true,
        .words = { "WRONGPASS" },
        .user = "app:old",
        .prepare = outage_user,
        .begin = delete_it,
        .end = outage_user,
    };
    return outage_tests(&deleted);
}
