/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what the targets share
 *
 * A target is one file: LLVMFuzzerTestOneInput() turns bytes into calls, and says with require() what has
 * to hold whatever the bytes are. scripts/fuzz looks for bytes that break it; every build runs the bytes
 * kept in corpus/<target>/ by the main of replay_main.c.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* in fuzz.c: keeps the library's log quiet */

/* Ends the program with the place: an invariant is broken. */
#define require(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/*
 * --- an input as a list of choices: what lies behind its end reads as zeroes ------------------------------
 * One choice a statement: C leaves open which of two in an expression is made first.
 */

struct input {
    const uint8_t *at;
    size_t left;
};

uint8_t take_byte(struct input *input);
uint64_t take_number(struct input *input, int bytes); /* of so many bytes, little end first */

/* --- texts -------------------------------------------------------------------------------------------------- */

/* The bytes with a NUL behind them, to be freed; texts have no NUL before their end, so it is cut at one. */
char *text_of(const uint8_t *bytes, size_t size);

/* NULL is equal to NULL only. */
bool same_text(const char *a, const char *b);

/* One line of printable words, as a log wants it. */
bool is_one_line(const char *errmsg);

#endif
