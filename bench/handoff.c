/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - one lock that many processes want: how often, how fast and how fairly it changes hands
 *
 * Nobody holds it longer than it takes to write down the time. All are warm, and inside the loop, before the clock
 * starts. <x> is rival.processes, with threads rival.processesxthreads:
 *
 *   handoffs.<x>   acquires per second
 *   gap.<x>        median us from just before an unlock to just after the next lock returned
 *   cpu.<x>        processor time of the server per acquire, us
 *   script.<x>     of that inside scripts, by the server's own count
 *   asked.<x>      commands per acquire from outside
 *   inner.<x>      commands per acquire inside the scripts
 *   fairness.<x>   acquires of the thread that had the fewest, divided by those of the one that had the most
 */
#include "measure.h"
#include "rival.h"
#include "server.h"
#include "wire.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 512, GAPS_MAX = 1 << 18, WARM = 3, LAPS_EACH = 60 };

/* Shared by all processes. What is not atomic is only touched by the holder. */
struct race {
    atomic_int ready, go, over;
    atomic_long acquires;
    int64_t released_ns;
    int gaps;
    int64_t gap_ns[GAPS_MAX];
    long acquired[THREADS_MAX];
};

struct runner {
    const struct rival *rival;
    struct race *race;
    void *state;
    int number;
};

static void doze(void)
{
    struct timespec pause = { 0, 500000 };
    nanosleep(&pause, NULL);
}

static void lap(struct runner *runner)
{
    struct race *race = runner->race;
    runner->rival->lock(runner->state);
    int64_t got_ns = now_ns();
    if (race->released_ns != 0 && race->gaps < GAPS_MAX)
        race->gap_ns[race->gaps++] = got_ns - race->released_ns;
    race->acquired[runner->number]++;
    atomic_fetch_add_explicit(&race->acquires, 1, memory_order_relaxed);
    race->released_ns = now_ns();
    runner->rival->unlock(runner->state);
}

static void *run(void *arg)
{
    struct runner *runner = arg;
    for (int i = 0; i < WARM; i++) {
        runner->rival->lock(runner->state);
        runner->rival->unlock(runner->state);
    }
    atomic_fetch_add(&runner->race->ready, 1);
    while (!atomic_load(&runner->race->go))
        doze();
    while (!atomic_load(&runner->race->over))
        lap(runner);
    return NULL;
}

static void run_process(const struct rival *rival, const struct place *place, struct race *race, int number,
                        int threads)
{
    struct runner runners[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits on when a run has failed */
    void *state = rival->join(place, number);
    for (int i = 0; i < threads; i++) {
        runners[i] = (struct runner){ rival, race, state, number * threads + i };
        if (pthread_create(&ids[i], NULL, run, &runners[i]) != 0)
            fail("thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    rival->leave(state);
    exit(0);
}

static void start_processes(const struct rival *rival, const struct place *place, struct race *race, int processes,
                            int threads)
{
    fflush(NULL); /* or each child prints it once more */
    for (int i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            run_process(rival, place, race, i, threads);
        if (pid < 0)
            fail("fork");
    }
    while (atomic_load(&race->ready) < processes * threads) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            fail("a process ended");
        doze();
    }
}

static void await_processes(void)
{
    int status;
    while (wait(&status) > 0)
        if (status != 0)
            fail("a process failed");
}

static double fairness(const struct race *race, int runners)
{
    long fewest = race->acquired[0], most = race->acquired[0];
    for (int i = 1; i < runners; i++) {
        fewest = race->acquired[i] < fewest ? race->acquired[i] : fewest;
        most = race->acquired[i] > most ? race->acquired[i] : most;
    }
    return most == 0 ? 0 : (double)fewest / (double)most;
}

static void report(const char *x, struct race *race, struct server_cost spent, double seconds, long acquires,
                   int runners)
{
    double each = acquires > 0 ? (double)acquires : 1;
    tell((double)acquires / seconds, "handoffs.%s", x);
    tell(median_us(race->gap_ns, race->gaps), "gap.%s", x);
    tell((double)spent.cpu_ns / 1e3 / each, "cpu.%s", x);
    tell((double)spent.script_us / each, "script.%s", x);
    tell((double)spent.asked / each, "asked.%s", x);
    tell((double)(spent.commands - spent.asked) / each, "inner.%s", x);
    tell(fairness(race, runners), "fairness.%s", x);
}

/* A big crowd runs longer, so that fairness is no matter of one lap more or less; but not for ever. */
static bool is_too_early(const struct race *race, int64_t gone_ms, int64_t ms, int runners)
{
    return gone_ms < ms || (gone_ms < 4 * ms && atomic_load(&race->acquires) < (long)LAPS_EACH * runners);
}

static void measure(const struct place *place, const struct rival *rival, int processes, int threads)
{
    struct wire *asking = wire_open(place->address);
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char x[64];
    if (rival->prepare != NULL)
        rival->prepare(asking);
    start_processes(rival, place, race, processes, threads);
    struct server_cost before = server_cost(asking, place->server);
    int64_t began = now_ns();
    atomic_store(&race->go, 1);
    while (is_too_early(race, (now_ns() - began) / 1000000, place->ms, processes * threads))
        doze();
    struct server_cost spent = server_spent(asking, place->server, before);
    long acquires = atomic_load(&race->acquires);
    double seconds = (double)(now_ns() - began) / 1e9;
    atomic_store(&race->over, 1);
    await_processes();
    snprintf(x, sizeof x, threads == 1 ? "%s.%d" : "%s.%dx%d", rival->name, processes, threads);
    report(x, race, spent, seconds, acquires, processes * threads);
    munmap(race, sizeof *race);
    wire_close(asking);
}

int main(int argc, char **argv)
{
    struct place place;
    for (int at = place_read(&place, argc, argv, "RIVAL PROCESSES[xTHREADS] ..."); at + 1 < argc; at += 2) {
        char *rest;
        int processes = (int)strtol(argv[at + 1], &rest, 10);
        int threads = *rest == 'x' ? (int)strtol(rest + 1, NULL, 10) : 1;
        if (processes < 1 || threads < 1 || processes * threads > THREADS_MAX)
            fail(argv[at + 1]);
        measure(&place, rival(argv[at]), processes, threads);
    }
    return 0;
}
