/* SPDX-License-Identifier: MIT */
/*
 * log.h - the one log function of a test
 */
#ifndef TESTS_LOG_H
#define TESTS_LOG_H

#include <latchkey/api.h>

/* Send log lines to `log` in place of the function before, as lk_addlog() has it; NULL: nowhere. */
int log_to(lk_log_t log, int level, void *arg);

/* Keep the lines from now on, and none of before, until another function is set. As log_to(). */
int log_keep(int level);

/* The lines kept, each with its end; good until the next call. */
const char *log_kept(void);

#endif
