/* SPDX-License-Identifier: MIT */
/*
 * command.h - the real command `latchkey`, run by a shell
 *
 * A line runs by `sh -c` in the world's folder, with `latchkey` in its PATH and LATCHKEY_URL set to the world's server.
 * Standard input is /dev/null unless the line says otherwise.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include "world.h"

struct ran {
    int code; /* the exit status, or 128 + the signal that ended the shell */
    char out[16384], err[16384];
};

/* A machine that stands still for a second or two is waited for. For what has to end soon give a lease and no more. */
#define COMMAND_PATIENT "command_timeout=9s&connect_timeout=20s"

/* Parameters of LATCHKEY_URL for what runs next in this program: "lease=2s". Unless said: COMMAND_PATIENT. */
void command_options(const char *options);

/* Run a line to its end; the result is good until the next call. */
const struct ran *command(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begin one, in a session of its own; its output goes to the files out and err. It ends with the test at the latest. */
pid_t command_begin(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
const struct ran *command_end(struct world *w, pid_t pid);

/*
 * For a line: `words` of sh on a terminal, which script(1) makes, and all that they say there in `file`. script(1) ends 10 ms
 * after what it runs, whatever is still on its way to it then; so that goes on until its last words are in the file.
 */
#define ON_TERMINAL(words, file)                                                                                       \
    "script -qec 'trap : INT; " words "; until grep -q the-end " file                                                  \
    "; do echo the-end; sleep 0.01; done' /dev/null >" file

/* Does a file of the world's folder exist; a number in it, or -1. */
bool command_left(struct world *w, const char *file);
int64_t command_number(struct world *w, const char *file);

/* Is there a process of that number, but for a zombie? */
bool is_running(int64_t pid);

/* The line exits with that code; what it said is printed otherwise. */
#define assert_exits(expected, ...)                                                                                    \
    do {                                                                                                               \
        const struct ran *assert_exits_ran = command(__VA_ARGS__);                                                     \
        if (assert_exits_ran->code != (expected))                                                                      \
            assert_failed(__FILE__, __LINE__, "exit code %d, not %d: %s\n%s", assert_exits_ran->code, (expected),      \
                          assert_exits_ran->out, assert_exits_ran->err);                                               \
    } while (0)

#endif
