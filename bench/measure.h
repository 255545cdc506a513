/* SPDX-License-Identifier: MIT */
/*
 * measure.h - where a program of the bench measures, and how it tells what it found
 *
 * Every program is started with the server's address, its process id, and how long one measurement takes. It
 * prints a line for each figure of that round, `name value`; figures.py makes medians and ratios of them.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>
#include <sys/types.h>

/* Of every client: on a busy machine an answer that comes late is slow, and no failure. Scripts see nothing of it. */
#define PATIENCE "connect_timeout=25s&command_timeout=9s"

struct place {
    const char *address; /* path of a Unix socket, or host:port */
    char url[240];       /* the same for lk_client_open(), with PATIENCE */
    pid_t server;
    int64_t ms; /* that one measurement takes */
};

/* Reads SOCKET PID MS from the command line. Returns the index of the first argument after them. */
int place_read(struct place *place, int argc, char **argv, const char *more);

int64_t now_ns(void);
double median_us(int64_t *ns, int count); /* sorts; 0 for none */

__attribute__((format(printf, 2, 3))) void tell(double value, const char *name, ...);
void fail(const char *what); /* what, lk_errortext(), exit 1 */

#endif
