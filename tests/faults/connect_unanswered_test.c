/* SPDX-License-Identifier: MIT */
/*
 * connect_unanswered_test.c - F02: nobody answers a SYN; and its sibling, a connect succeeds and that is all
 *
 * labels: memory
 * simulated: yes
 * seconds: 33
 */
#include "blackout.h"

static void swallow_connects(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_refuse_silently(p, true);
    proxy_reset(p);
}

static void open_port(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_refuse(p, false);
}

static void fall_silent(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_stall(p, PROXY_BOTH);
    proxy_reset(p);
}

static void speak_again(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_resume(p);
}

static void a_syn_that_nobody_answers(struct world *w)
{
    static const struct blackout blackout = { "F02: nobody answers a SYN", NULL, swallow_connects, open_port };
    blackout_meets_all(w, &blackout);
}

static void a_connection_on_which_nobody_speaks(struct world *w)
{
    static const struct blackout blackout = { "F02: connections are taken and nobody speaks", NULL, fall_silent,
                                              speak_again };
    blackout_meets_all(w, &blackout);
}

int main(void)
{
    return world_run(a_syn_that_nobody_answers, a_connection_on_which_nobody_speaks);
}
