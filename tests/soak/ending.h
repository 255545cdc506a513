/* SPDX-License-Identifier: MIT */
/*
 * ending.h - what the server has when everybody has gone
 */
#ifndef TESTS_SOAK_ENDING_H
#define TESTS_SOAK_ENDING_H

#include "record.h"
#include "table.h"
#include "world.h"

/* Once all leases have run out: write down keys and channels that should not be there, and free permits. */
void look_at_what_is_left(struct world *world, const struct table *table, struct tape *tape);

#endif
