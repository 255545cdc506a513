/* SPDX-License-Identifier: MIT */
/*
 * words.h - numbers and durations of a command line, and what is said on standard error
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "command.h"

/* "latchkey: " and the words, on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The words of the library for this thread's last failure, after `what`; the exit code for it. */
int complain_of(const char *what, int rc);
int exit_code_of(int rc);

/* 1.5s, 200ms, 2m, 3h; a bare number is seconds. False: it is none, or more than a year. */
bool read_duration(const char *text, int64_t *ms);

/* A whole number of least..most. */
bool read_number(const char *text, long least, long most, long *number);

/* TERM, SIGTERM or 15; 0: there is none. */
int read_signal(const char *text);

/* Does this signal do nothing since latchkey began, as SIGHUP by nohup(1), and SIGINT in the background of a script? */
bool is_ignored(int signal);

/* CLOCK_BOOTTIME, which goes on while the machine is suspended, as leases do. */
int64_t boot_ms(void);
int64_t boot_us(void);

#endif
