/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <latchkey/latchkey.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, lk_errortext());
    exit(1);
}

/* Waits of seconds are the library's to report, and a crowd's to have. What fails says so by fail(). */
static void be_silent(void)
{
    if (lk_addlog(NULL, LK_LOG_ERROR, NULL, NULL) != 0)
        fail("log");
}

int place_read(struct place *place, int argc, char **argv, const char *more)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s ADDRESS SERVER_PID MILLISECONDS %s   (scripts/bench calls this)\n", argv[0], more);
        exit(64);
    }
    be_silent();
    place->address = argv[1];
    place->server = (pid_t)strtol(argv[2], NULL, 10);
    place->ms = strtol(argv[3], NULL, 10);
    snprintf(place->url, sizeof place->url, "%s%s?" PATIENCE, argv[1][0] == '/' ? "unix://" : "redis://", argv[1]);
    return 4;
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double median_us(int64_t *ns, int count)
{
    if (count == 0)
        return 0;
    qsort(ns, (size_t)count, sizeof *ns, compare);
    return (double)ns[count / 2] / 1e3;
}

void tell(double value, const char *name, ...)
{
    va_list args;
    va_start(args, name);
    vprintf(name, args);
    va_end(args);
    printf(" %.4f\n", value);
    fflush(stdout);
}
