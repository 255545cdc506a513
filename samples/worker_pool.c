/* SPDX-License-Identifier: MIT */
/*
 * worker_pool.c - a service bears LIMIT workers at once; workers die at any moment, and permits come back
 *
 * Each worker takes a permit of a leased semaphore, uses the service and gives the permit back. Now and
 * then one is killed with SIGKILL, wherever it is, and another takes its place. What it held comes back
 * when its lease ends. With --unsafe nobody asks for permits.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 4, LEASE_MS = 1000, WORKERS_MAX = 256 };

struct pool {
    int inside[WORKERS_MAX]; /* 1: that worker uses the service */
    int jobs[WORKERS_MAX];   /* done */
    int most;                /* inside at once */
    int killed, killed_inside;
};

static struct pool *pool;

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = LEASE_MS };
static lk_sem_t permits = LK_SEM_INITIALIZER_ATTR("samples:worker_pool", LIMIT, &leased);

static void use_service(const struct options *options)
{
    __atomic_store_n(&pool->inside[options->worker], 1, __ATOMIC_SEQ_CST);
    int now = 0;
    for (int i = 0; i < options->workers; i++)
        now += __atomic_load_n(&pool->inside[i], __ATOMIC_SEQ_CST);
    int most = __atomic_load_n(&pool->most, __ATOMIC_RELAXED);
    while (now > most &&
           !__atomic_compare_exchange_n(&pool->most, &most, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    pause_ms(2 + random_below(4));
    __atomic_store_n(&pool->inside[options->worker], 0, __ATOMIC_SEQ_CST);
}

/* A worker, until it is killed or all jobs are done. */
static int work(const struct options *options)
{
    while (pool->jobs[options->worker] < options->rounds) {
        int rc = options->unsafe ? 0 : lk_sem_wait(&permits);
        if (rc == 0) {
            use_service(options);
            rc = options->unsafe ? 0 : lk_sem_post(&permits); /* ESTALE: the lease was lost */
        }
        if (rc != 0) {
            fprintf(stderr, "worker_pool: %s\n", lk_errortext());
            return 1;
        }
        __atomic_fetch_add(&pool->jobs[options->worker], 1, __ATOMIC_RELAXED);
        round_done();
    }
    return 0;
}

/* Wait for a worker and clear its place; returns whether it has ended. */
static bool has_ended(pid_t pid, int *status, int flags, const struct options *options)
{
    if (waitpid(pid, status, flags) != pid)
        return false;
    int was_inside = __atomic_exchange_n(&pool->inside[options->worker], 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&pool->killed, WIFSIGNALED(*status), __ATOMIC_RELAXED);
    __atomic_fetch_add(&pool->killed_inside, was_inside, __ATOMIC_RELAXED);
    return true;
}

/* Keeps one worker going: starts it, kills it after some jobs, wherever it then is, starts the next one. */
static int supervise(const struct options *options)
{
    for (;;) {
        const int *jobs = &pool->jobs[options->worker];
        int status = 0, last = *jobs + 1 + options->rounds / 3 + random_below(options->rounds);
        bool ended = false;
        pid_t pid = child_start();
        if (pid < 0)
            return 1;
        if (pid == 0)
            _exit(work(options));
        while (!ended && __atomic_load_n(jobs, __ATOMIC_RELAXED) < last) {
            pause_ms(1 + random_below(5));
            ended = has_ended(pid, &status, WNOHANG, options);
        }
        if (!ended) {
            pause_ms(random_below(10));
            kill(pid, SIGKILL);
            has_ended(pid, &status, 0, options);
        }
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
    }
}

/* How many permits are free at last: a lease after the last death it should be all. */
static int come_back(void)
{
    int free_now = 0;
    for (int ms = 0; ms < 5 * LEASE_MS && free_now != LIMIT; ms += 20) {
        if (lk_sem_getvalue(&permits, &free_now) != 0) {
            fprintf(stderr, "worker_pool: %s\n", lk_errortext());
            return -1;
        }
        pause_ms(20);
    }
    return free_now;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 250, .unsafe_means = "work without permits" };
    options_read(&options, argc, argv, "Workers with leased permits are killed at random. Rounds: jobs of each.");
    if (options.workers > WORKERS_MAX)
        options.workers = WORKERS_MAX;
    pool = shared_memory(sizeof *pool);

    printf("%d workers, %d jobs each, %s\n", options.workers, options.rounds,
           options.unsafe ? "no permits" : "4 permits with leases");
    int failed = workers_run(&options, (long)options.workers * options.rounds, supervise);

    int back = options.unsafe ? LIMIT : come_back();
    return verdict("never more than 4 work at once, and all permits come back",
                   failed == 0 && pool->most <= LIMIT && back == LIMIT,
                   "at most %d at once, %d workers killed, %d of them at work, %d of %d permits free in the end",
                   pool->most, pool->killed, pool->killed_inside, back, LIMIT);
}
