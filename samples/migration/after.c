/* SPDX-License-Identifier: MIT */
/*
 * after.c - the same, but the mutex guards the file from all processes on all machines
 */
#include "../common.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <stdio.h>

static lk_mutex_t office = LK_MUTEX_INITIALIZER("samples:office");

enum { THREADS = 4 };

static int next_fd;                   /* holds the number of the next ticket */
static int *sold;                     /* how often each number was sold: 1, if all is well */
static const struct options *options; /* as given on the command line */

static long complain(void)
{
    fprintf(stderr, "after: %s\n", lk_errortext());
    return -1;
}

/* The number of a ticket that nobody else has; -1 if there is none to be had. */
static long sell(void)
{
    if (!options->unsafe && lk_mutex_lock(&office) != 0)
        return complain();

    long ticket = number_read(next_fd);
    work_a_little();
    number_write(next_fd, ticket + 1);

    if (!options->unsafe && lk_mutex_unlock(&office) != 0)
        return complain(); /* lost the lease: somebody else may have this number */
    return ticket;
}

static void *seller(void *arg)
{
    for (int i = 0; i < options->rounds; i++) {
        long ticket = sell();
        if (ticket < 0)
            return arg;
        __atomic_fetch_add(&sold[ticket], 1, __ATOMIC_RELAXED);
        round_done();
    }
    return NULL;
}

/* One process: THREADS sellers. */
static int open_counter(const struct options *given)
{
    pthread_t threads[THREADS];
    int running = 0, failed = 0;
    options = given;
    while (running < THREADS && pthread_create(&threads[running], NULL, seller, &failed) == 0)
        running++;
    for (int i = 0; i < running; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed += result != NULL;
    }
    return failed + THREADS - running;
}

int main(int argc, char *argv[])
{
    struct options given = { .workers = 4, .rounds = 100 };
    options_read(&given, argc, argv, "Threads of several processes sell tickets under a Latchkey mutex.");

    long total = (long)given.workers * THREADS * given.rounds, once = 0;
    next_fd = shared_file();
    sold = shared_memory((size_t)total * sizeof *sold);
    printf("%d x %d threads sell %ld tickets\n", given.workers, THREADS, total);
    int failed = workers_run(&given, total, open_counter);

    for (long i = 0; i < total; i++)
        once += sold[i] == 1;
    return verdict("each ticket is sold once", failed == 0 && once == total, "%ld of %ld", once, total);
}
