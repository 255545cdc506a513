/* SPDX-License-Identifier: MIT */
/*
 * grant.h - wait for a grant, and hear signals meanwhile
 */
#ifndef CLI_GRANT_H
#define CLI_GRANT_H

#include "guard.h"

#include <stdbool.h>

/*
 * Take what `guard` is for. A signal that is read from `signals` ends the wait: everything is given back, and the guard
 * is closed.
 *
 * Returns 0: held; otherwise nothing is, `code` has the exit code, and what is to be said was said.
 */
int await_grant(struct guard *guard, const struct settings *settings, int signals, int *code);

/*
 * From now on these signals are read from the descriptor that it returns, and do nothing else. Those that are ignored
 * stay so. -1: complained.
 */
int hear_signals(const int *signals, unsigned count);

#endif
