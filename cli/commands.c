/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdio.h>
#include <string.h>

#define BIT(option) (UINT64_C(1) << OPT_##option)

enum { ANY = -1 };

/* clang-format off */
#define TALK    (BIT(JSON) | BIT(QUIET) | BIT(VERBOSE) | BIT(HELP))
#define CONNECT (BIT(URL) | BIT(CONFIG) | TALK)
#define WAIT    (BIT(NONBLOCK) | BIT(TIMEOUT) | BIT(CONFLICT_EXIT_CODE))
#define TAKE    (BIT(EXCLUSIVE) | BIT(SHARED) | BIT(FAIR) | BIT(PERMITS) | WAIT | BIT(LEASE) | BIT(HOLD_AT_LEAST) | BIT(WHY))
#define ENDING  (BIT(MAX_TIME) | BIT(ON_LOST) | BIT(KILL_AFTER) | BIT(SIGNAL))
#define CHILD   (BIT(COMMAND) | ENDING | BIT(KEEP_ENV) | BIT(NO_STDIN))
/* clang-format on */

const struct command commands[] = {
    { "run", "NAME [--] CMD [ARG...]", "run a command while a name is held",
      "Takes NAME, runs CMD, and gives NAME back when CMD, and what CMD left running in its process group,\n"
      "ended. Nobody else who uses NAME on the same server runs meanwhile. If the lease cannot be kept, CMD is ended\n"
      "before the lease runs out. CMD has LATCHKEY_NAME, LATCHKEY_TOKEN, LATCHKEY_OWNER, LATCHKEY_MODE and\n"
      "LATCHKEY_LEASE_MS in its environment, and no password. As with flock(1), one who says nothing or -x is alone,\n"
      "and those who say -s share NAME. --permits takes a permit of the semaphore NAME, another object, which\n"
      "excludes none of these.\n",
      TAKE | CHILD | CONNECT, 1, ANY, true, run_run },
    { "hold", "NAME", "hold a name until the end of standard input",
      "Takes NAME, prints its fencing token, and gives it back at the end of standard input, or at SIGINT,\n"
      "SIGTERM or SIGHUP.\n",
      TAKE | BIT(NO_STDIN) | CONNECT, 1, 1, false, run_hold },
    { "status", "NAME...", "who holds a name, and who waits",
      "A line for each object of a name: a mutex, a read-write lock, semaphores and a latch may share one. A name\n"
      "that nobody uses is free. Below it the first of those who hold it, and who wait for it, and say who they are:\n"
      "host and process, program, and for what.\n",
      BIT(CHECK) | CONNECT, 1, ANY, false, run_status },
    { "watch", "NAME...", "what happens to a name",
      "A line when a name is held, given back or waited for, by whomever, from what is so now on, until SIGINT or\n"
      "SIGTERM. It looks ten times a second: what changes twice between two looks is not seen. With --alert it\n"
      "says nothing until waits of the last five minutes took too long in the mean: those that it saw, so not\n"
      "of one who got NAME at once.\n",
      BIT(ALERT) | BIT(FOR) | CONNECT, 1, ANY, false, run_watch },
    { "ls", "[PATTERN]", "what is locked on the server",
      "A line for each object that Latchkey keeps, or of those whose names fit PATTERN: * is any text, ? a byte,\n"
      "[a-z] one of these. All keys are gone through by SCAN, never KEYS, on all masters of a cluster. A count that\n"
      "nobody touched for long is a bare number, and is not seen; `latchkey status NAME` tells it.\n",
      CONNECT, 0, 1, false, run_ls },
    { "top", "[PATTERN]", "what is waited for, again and again",
      "As ls, those first whom most others wait for; over the last look, if standard output is a terminal, until\n"
      "Ctrl-C.\n",
      BIT(INTERVAL) | BIT(ONCE) | CONNECT, 0, 1, false, run_top },
    { "force-release", "NAME", "take a name away from whoever holds it",
      "The mutex and the read-write lock NAME. Its holders go on as if they had it until their next renewal, a third\n"
      "of the lease: end them first, or have the resource compare fencing tokens. Shows who they are, and asks.\n"
      "The next holder of a robust lock is told that its holder died; one that was given back unrepaired is usable again.\n",
      BIT(OWNER) | BIT(YES) | CONNECT, 1, 1, false, run_force_release },
    { "sem status", "NAME", "how many permits a semaphore has",
      "Of the leased semaphore NAME, as `latchkey run --permits` takes permits of it.\n", CONNECT, 1, 1, false,
      run_sem_status },
    { "sem resize", "NAME PERMITS", "set how many permits a semaphore has",
      "Sets how many permits the leased semaphore NAME has in all. Those that are held stay held.\n", CONNECT, 2, 2,
      false, run_sem_resize },
    { "latch create", "NAME COUNT", "close a latch with a count",
      "Exits 1 if it has a count, which stays as it is.\n", CONNECT, 2, 2, false, run_latch_create },
    { "latch count-down", "NAME [N]", "count a latch down, by 1 unless said",
      "At zero it opens. Exits 1 if it has no count: it is open, or was never created.\n", CONNECT, 1, 2, false,
      run_latch_countdown },
    { "latch wait", "NAME", "wait until a latch opens",
      "Exits 0 when it is open, 75 when the time is over, 1 if it has no count and did not open in the last ten\n"
      "minutes.\n",
      WAIT | CONNECT, 1, 1, false, run_latch_wait },
    { "latch status", "NAME", "the count of a latch", "Exits 1 if nothing is known of it.\n", CONNECT, 1, 1, false,
      run_latch_status },
    { "doctor", "", "what of servers and settings puts locks at risk",
      "Asks each server what it says of itself, and tells for each check its state, ok, note, warn or fail, and what\n"
      "to do. Nothing is written. Exits with 1 if something is a warning, with 2 if something fails. -q tells only\n"
      "those.\n",
      CONNECT, 0, 0, false, run_doctor },
    { "bench", "", "what locks cost at your server",
      "Measures, for a minute in all: round trips, a lock and its unlock by one thread and by eight, the way of a\n"
      "lock from one process to another that waits, and `latchkey run` beside flock(1). Latencies are as seen from\n"
      "here: half of all were within the first time, 99 % within the second. Nothing stays locked, also after Ctrl-C.\n",
      BIT(SECONDS) | CONNECT, 0, 0, false, run_bench },
    { "server", "", "a private server, for trying things on one machine",
      "Starts redis-server, or valkey-server, on a socket in a folder that only this user can reach, keeps nothing on\n"
      "disk, and prints its URL. Runs until SIGINT or SIGTERM; then all of it is gone.\n",
      BIT(PORT) | TALK, 0, 0, false, run_server },
    { "version", "", "the version of the command and of the library", "", BIT(JSON) | BIT(HELP), 0, 0, false,
      run_version },
    { "completion", "bash|zsh|fish", "print what makes a shell complete this command",
      "bash:  . <(latchkey completion bash)\n"
      "zsh:   . <(latchkey completion zsh), after compinit\n"
      "fish:  latchkey completion fish | source\n",
      BIT(HELP), 1, 1, false, run_completion },
    { 0 },
};

const struct command *command_of(const char *first, const char *second)
{
    char both[64];
    snprintf(both, sizeof both, "%s %s", first, second != NULL ? second : "");
    for (const struct command *command = commands; command->name != NULL; command++)
        if (strcmp(command->name, first) == 0 || strcmp(command->name, both) == 0)
            return command;
    return NULL;
}
