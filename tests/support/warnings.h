/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - what the library warns of
 */
#ifndef TESTS_WARNINGS_H
#define TESTS_WARNINGS_H

/* Keep warnings from now on, and none of before, until lk_setlog() is called again. */
void warnings_keep(void);

/* The warnings kept: lines, each with its end. */
const char *warnings(void);

#endif
