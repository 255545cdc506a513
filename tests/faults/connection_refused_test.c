/* SPDX-License-Identifier: MIT */
/*
 * connection_refused_test.c - F01: the port is closed; connections are reset, and refused
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 16
 */
#include "blackout.h"

static void close_port(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_refuse(p, true);
    proxy_reset(p);
}

static void open_port(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_refuse(p, false);
}

static void a_closed_port(struct world *w)
{
    static const struct blackout blackout = { "F01: the port is closed", NULL, close_port, open_port };
    blackout_meets_all(w, &blackout);
}

int main(void)
{
    return world_run(a_closed_port);
}
