/* SPDX-License-Identifier: MIT */
/* descriptors.h - a process that has few descriptors, or none left */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

void descriptors_most(int most); /* so many in all, until descriptors_lift() */
void descriptors_more(int more); /* so many beyond those that are open */
void descriptors_lift(void);     /* as before the first of these; nothing was limited: nothing */

#endif
