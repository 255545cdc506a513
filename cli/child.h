/* SPDX-License-Identifier: MIT */
/*
 * child.h - the command that runs while a name is held, in a process group of its own
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "environment.h"

#include <signal.h>
#include <sys/types.h>

struct child {
    pid_t pid;         /* and its group's number */
    int go, trouble;   /* pipes: it waits for a byte of the one, and says by the other that exec() failed */
};

/* Fork it; it waits for child_go(). 0, or an errno code. */
int child_prepare(struct child *child, const struct settings *settings, char **operands, const struct grant_words *grant,
                  const sigset_t *mask);

/* It is not to begin, and ends. */
void child_drop(struct child *child);

/* Let it begin; 0, or the errno code of exec(): it ends then. */
int child_go(struct child *child);

#endif
