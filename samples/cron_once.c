/* SPDX-License-Identifier: MIT */
/*
 * cron_once.c - every host has the same crontab, and each tick the job runs on one of them
 *
 * The clocks of the hosts differ by up to SKEW_MS, and the job is short: the first host is done with it
 * before the clock of the last one strikes. So a mutex alone is not enough. `min_hold_ms` keeps its name
 * taken for longer than the clocks differ, also after the unlock and should the host die. With --unsafe
 * it is left out.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <stdio.h>

enum {
    TICK_MS = 500,     /* stands for a minute */
    SKEW_MS = 80,      /* between the clocks of any two hosts */
    MIN_HOLD_MS = 300, /* longer than they differ, shorter than a tick */
    LATE_MS = 150      /* who comes that late, as after a suspend, leaves the tick to the others */
};

static long long began_us; /* the true time of tick 0 */
static int *runs, *late;   /* of each tick: how often the job ran, and how many hosts came too late */

static const lk_mutexattr_t whole_tick = { .size = sizeof whole_tick, .min_hold_ms = MIN_HOLD_MS };
static lk_mutex_t careful = LK_MUTEX_INITIALIZER_ATTR("samples:cron:report", &whole_tick);
static lk_mutex_t careless = LK_MUTEX_INITIALIZER("samples:cron:report");

static void job(int tick)
{
    work_a_little();
    __atomic_fetch_add(&runs[tick], 1, __ATOMIC_RELAXED);
}

/* How long this host's clock has been showing that tick; negative: how long until it does. */
static long since_ms(const struct options *options, int tick)
{
    int skew_ms = options->workers == 1 ? 0 : options->worker * SKEW_MS / (options->workers - 1);
    return (long)((now_us() - began_us) / 1000) + skew_ms - (long)tick * TICK_MS;
}

static bool is_late(const struct options *options, int tick)
{
    return since_ms(options, tick) > LATE_MS;
}

/* A host that reaches no server tries again, and leaves the tick to the others when it is too late. */
static int try_tick(const struct options *options, lk_mutex_t *mutex, int tick)
{
    int rc = ENOTCONN;
    while (rc == ENOTCONN && !is_late(options, tick))
        rc = lk_mutex_trylock(mutex);
    return rc == ENOTCONN ? EBUSY : rc;
}

/* One host. */
static int cron(const struct options *options)
{
    lk_mutex_t *mutex = options->unsafe ? &careless : &careful;
    for (int tick = 0; tick < options->rounds; tick++) {
        while (since_ms(options, tick) < 0)
            pause_ms(-since_ms(options, tick));

        int rc = try_tick(options, mutex, tick);
        int came_late = !is_late(options, tick) ? 0 : rc == 0 ? options->workers /* the others were refused */ : 1;
        __atomic_fetch_add(&late[tick], came_late, __ATOMIC_RELAXED);
        if (rc == 0) {
            if (options->unsafe || came_late == 0) /* else another host may have had it before */
                job(tick);
            rc = lk_mutex_unlock(mutex);
        }
        if (rc != 0 && rc != EBUSY) { /* EBUSY: another host runs it, or did so a moment ago */
            fprintf(stderr, "cron_once: %s\n", lk_errortext());
            return 1;
        }
        round_done();
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 5, .rounds = 8, .unsafe_means = "leave min_hold_ms out" };
    options_read(&options, argc, argv, "Hosts with differing clocks run a job once per tick. Rounds: ticks.");
    runs = shared_memory((size_t)options.rounds * sizeof *runs);
    late = shared_memory((size_t)options.rounds * sizeof *late);
    began_us = now_us() + 300 * 1000; /* time to start, and for what an earlier run still holds */

    printf("%d hosts, %d ticks of %d ms, clocks %d ms apart, %s\n", options.workers, options.rounds, TICK_MS, SKEW_MS,
           options.unsafe ? "a mutex only" : "the mutex kept for a while");
    int failed = workers_run(&options, (long)options.workers * options.rounds, cron);

    int once = 0, never = 0, often = 0, missed = 0;
    for (int i = 0; i < options.rounds; i++) {
        once += runs[i] == 1;
        never += runs[i] == 0 && late[i] < options.workers;
        often += runs[i] > 1;
        missed += runs[i] == 0 && late[i] >= options.workers; /* the machine stood still */
    }
    return verdict("the job runs once per tick", failed == 0 && never == 0 && often == 0,
                   "%d ticks: once in %d, never in %d, more than once in %d, and in %d all hosts came too late",
                   options.rounds, once, never, often, missed);
}
