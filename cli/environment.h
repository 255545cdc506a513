/* SPDX-License-Identifier: MIT */
/*
 * environment.h - what a command finds in its environment
 */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include "command.h"

struct grant_words {
    const char *name, *owner, *mode;
    uint64_t token; /* 0: there is none */
    int64_t lease_ms;
};

/* Before exec(), in the process that becomes the command. */
void set_environment(const struct settings *settings, const struct grant_words *grant);

#endif
