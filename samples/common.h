/* SPDX-License-Identifier: MIT */
/*
 * common.h - what every sample needs beside its own story: arguments, worker
 * processes, progress while they run, and a verdict at the end
 *
 * Nothing here takes part in the locking. A sample shows that in its own file.
 */
#ifndef SAMPLES_COMMON_H
#define SAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct options {
    int workers;              /* processes */
    int rounds;               /* of each worker, or of each of its threads */
    int stripes;              /* 0: this sample has none, and no such argument */
    const char *order;        /* NULL: this sample knows one only, and no such argument */
    int worker;               /* in a worker: its number, from 0 */
    bool unsafe;              /* leave the lock out, to see what it is good for */
    const char *unsafe_means; /* for --help; NULL: "leave the lock out" */
};

/*
 * Read --workers N, --rounds N, --stripes N, --order NAME, --unsafe and --help. `options` holds the defaults
 * on entry; `about` is what --help says first. Ends the program for --help and for arguments it does not know.
 */
void options_read(struct options *options, int argc, char *argv[], const char *about);

/* Zeroed memory that the workers share with this process; ends the program when there is none. */
void *shared_memory(size_t size);

/* An empty file without a name that the workers share; ends the program when there is none. */
int shared_file(void);

/* The number at the start of the file; 0 when it is empty. Two plain calls: nothing here is atomic. */
long number_read(int fd);
void number_write(int fd, long number);

/* About as long as a short query: room for others to come in between, if nothing keeps them out. */
void work_a_little(void);

void pause_ms(long ms);

/* Microseconds of a clock that all processes of this machine share. */
long long now_us(void);

/* A number from 0 to `limit` - 1; each process has a sequence of its own. */
int random_below(int limit);

/* A fork() whose child ends when this process does. */
pid_t child_start(void);

/* One round is done: seen in the progress lines, and in rounds_done(). Any thread of any worker. */
void round_done(void);
long rounds_done(void);

/*
 * Fork options->workers processes, each of which calls `work` and exits with what it returned; print
 * progress towards `total` rounds; return when all have ended. They end with this process, too.
 *
 * Returns how many workers ended with anything else than 0.
 */
int workers_run(const struct options *options, long total, int (*work)(const struct options *options));

/* Print the last line, "invariant: <words>: held (<figures>)" or BROKEN; returns the exit status. */
int verdict(const char *words, bool held, const char *figures, ...) __attribute__((format(printf, 3, 4)));

#endif
