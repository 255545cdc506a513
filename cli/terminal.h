/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - who has the terminal: keys such as Ctrl-C go to its foreground process group; and what it can show
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

/* The terminal of this process, to be given on; -1: there is none. */
int terminal_open(void);

bool terminal_is_ours(int terminal);
bool terminal_is_of(int terminal, pid_t group);
void terminal_give(int terminal, pid_t group); /* from whichever group has it; SIGTTOU is blocked */

/* Of standard output: columns of the terminal, else what COLUMNS says, else 80. */
int terminal_width(void);
/* Words in lines of that width, each behind so many blanks; the first line has them already. */
void print_wrapped(int indent, int width, const char *words);
bool terminal_has_colours(void); /* it is a terminal, and NO_COLOR is not set */

/* Somebody above, a shell, resumes what is stopped here. */
bool terminal_has_jobs(void);

#endif
