/* SPDX-License-Identifier: MIT */
/*
 * shared_counter.c - processes count in one file, and only the mutex makes that right
 *
 * Each increment is a read, a pause and a write, as in any program that loads a record, works on it
 * and saves it. Two processes in there at once read the same number, and one increment is lost.
 * With --unsafe that is what happens.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

/* No server is needed for this line: the first lock connects. */
static lk_mutex_t counter = LK_MUTEX_INITIALIZER("samples:shared_counter");

static int counter_fd;

static void increment(void)
{
    long number = number_read(counter_fd);
    work_a_little();
    number_write(counter_fd, number + 1);
}

static int increment_alone(void)
{
    int rc = lk_mutex_lock(&counter);
    if (rc == 0) {
        increment();
        rc = lk_mutex_unlock(&counter); /* ESTALE: the lease was lost, somebody else may have counted */
    }
    if (rc != 0)
        fprintf(stderr, "shared_counter: %s\n", lk_errortext());
    return rc;
}

/* Runs in each worker process. */
static int count(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        if (options->unsafe)
            increment();
        else if (increment_alone() != 0)
            return 1;
        round_done();
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 250 };
    options_read(&options, argc, argv, "Processes increment a number in a shared file, one at a time.");
    counter_fd = shared_file();

    long total = (long)options.workers * options.rounds;
    printf("%d processes, %d increments each, %s\n", options.workers, options.rounds,
           options.unsafe ? "without a lock" : "each under one mutex");
    int failed = workers_run(&options, total, count);

    long number = number_read(counter_fd);
    return verdict("no increment is lost", failed == 0 && number == total,
                   "counted %ld of %ld, %d of %d workers failed", number, total, failed, options.workers);
}
