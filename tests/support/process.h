/* SPDX-License-Identifier: MIT */
/*
 * process.h - signals to a test's own process, and what it uses up
 */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdint.h>

/* SIGALRM each `ms` from now on, to whichever thread takes it; `flags` are those of sigaction(). 0 ms: never again. */
void alarm_each_ms(int ms, int flags);
int alarms(void); /* how many came so far */

int64_t cpu_us(void); /* processor time of this thread */
long peak_kib(void);  /* the most memory that was resident */

#endif
