/* SPDX-License-Identifier: MIT */
/*
 * blackout.h - no connection stands and no new one can be made, for one reason or another
 *
 * What then has to happen does not depend on the reason: each call of each kind has its answer within its
 * limit and one command timeout, and that is ENOTCONN, as nothing was sent; a hold is at risk, and lost at
 * the end of its validity, neither earlier nor later; what was given back is given back afterwards.
 */
#ifndef TESTS_BLACKOUT_H
#define TESTS_BLACKOUT_H

#include "rig.h"

struct blackout {
    const char *row;
    const char *host; /* how the client calls its server; NULL: by address */
    void (*begin)(struct rig *rig, struct proxy *p);
    void (*end)(struct rig *rig, struct proxy *p);
};

/* All kinds in all phases, with this blackout in each. */
void blackout_meets_all(struct world *w, const struct blackout *blackout);

#endif
