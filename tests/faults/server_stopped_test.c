/* SPDX-License-Identifier: MIT */
/*
 * server_stopped_test.c - F07 and F08: the server stands still, for less than a lease or for longer
 *
 * Connections stay, new ones are accepted by the kernel, nothing is answered. So a request may be carried
 * out when the server goes on: its caller is told EIO, and the library undoes what came too late.
 *
 * labels: memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

int main(void)
{
    static const struct outage stopped = {
        .name = "server stopped",
        .code = ENOTCONN,
        .unsure = true,
        .begin = world_stop_server,
        .end = world_cont_server,
    };
    return outage_tests(&stopped);
}
