/* SPDX-License-Identifier: MIT */
/*
 * coverage.h - keep the counts of a process that may be killed
 */
#ifndef TESTS_COVERAGE_H
#define TESTS_COVERAGE_H

/* Write down which lines ran so far; does nothing unless the build counts lines. */
void coverage_save(void);

#endif
