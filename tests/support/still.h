/* SPDX-License-Identifier: MIT */
/*
 * still.h - a thread of the test stands still where it happens to be, in a handler of SIGUSR1: one at a time
 *
 * It goes on by itself after longer than any call of these tests waits.
 */
#ifndef TESTS_STILL_H
#define TESTS_STILL_H

#include "assert_lk.h"

/* Returns when it stands; it has none of the library's own locks. */
void still_begin(struct worker *worker);
/* Returns when it goes on. */
void still_end(void);

#endif
