/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - what the library warns of
 */
#ifndef TESTS_WARNINGS_H
#define TESTS_WARNINGS_H

/* Keep warnings from now on, and none of before, until log_to() is called again. */
void warnings_keep(void);

/* The warnings kept: lines, each with its end; good until the next call. */
const char *warnings(void);

#endif
