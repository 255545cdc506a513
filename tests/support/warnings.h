/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - what the library warns of
 */
#ifndef TESTS_WARNINGS_H
#define TESTS_WARNINGS_H

/* Keep them from now on, and none of before, until lk_setlog() is called again. */
void warnings_keep(void);

/* Lines, each with its end. */
const char *warnings(void);

#endif
