/* SPDX-License-Identifier: MIT */
/* server.h - what the server spent: processor time, scripts, commands */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include "wire.h"

#include <sys/types.h>

struct server_cost {
    int64_t cpu_ns;    /* of its main thread */
    int64_t script_us; /* inside scripts */
    int64_t scripts;   /* that ran */
    int64_t asked;     /* scripts, and other commands that only come from outside */
    int64_t commands;  /* all, those inside scripts as well */
};

/* Since the server's start. The question itself is not in the processor time of a span. */
struct server_cost server_cost(struct wire *wire, pid_t server);
struct server_cost server_spent(struct wire *wire, pid_t server, struct server_cost since);

#endif
