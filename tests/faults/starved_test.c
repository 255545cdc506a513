/* SPDX-License-Identifier: MIT */
/*
 * starved_test.c - F65: the thread that renews gets no time to run
 *
 * labels: memory long
 * seconds: 6
 * processors: 8
 */
#include "subject.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 200, HOGS = 8, FOR_MS = 800 };

static int over;

static int hog(int index, void *arg)
{
    (void)arg;
    for (volatile unsigned n = (unsigned)index; !__atomic_load_n(&over, __ATOMIC_RELAXED);)
        n = n + 1;
    return 0;
}

static int hogs(void *arg)
{
    return run_threads(HOGS, hog, arg);
}

/* Let all watchdogs of this process run only when nothing else does. */
static void starve_watchdogs(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int found = 0;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof name, file) != NULL && strcmp(name, "lk-watchdog\n") == 0) {
            struct sched_param idle = { 0 };
            assert_int_equal(0, sched_setscheduler((pid_t)strtol(entry->d_name, NULL, 10), SCHED_IDLE, &idle));
            found++;
        }
        fclose(file);
    }
    closedir(tasks);
    assert_true(found >= 1);
}

/* Renewed late or lost: never good here while somebody else has it, whatever the watchdog missed. */
static void starved(struct world *w, const struct subject_kind *kind)
{
    if (!kind->leased)
        return;
    lk_client_t *ours = world_open(w, "lease=200ms"), *theirs = world_client(w, "lease=10s&command_timeout=3s");
    struct worker worker;
    int lost = 0, rounds = 0;
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(mine, 1000));
    starve_watchdogs();
    over = 0;
    worker_start(&worker, hogs, NULL);
    for (int64_t until_ms = now_ms() + FOR_MS; now_ms() < until_ms; rounds++) {
        int64_t left_ms;
        int got = subject_take(keeper, 0); /* first somebody else gets it, then we look */
        int still = subject_remaining(mine, &left_ms);
        assert_that(got == 0 || got == ETIMEDOUT);
        assert_that(still == 0 || still == ESTALE);
        assert_that(!(got == 0 && still == 0));
        lost += still == ESTALE;
        if (got == 0)
            assert_lk(0, subject_give(keeper));
        if (still == ESTALE) {
            assert_lk(ESTALE, subject_give(mine));
            assert_lk(0, subject_take(mine, 5000));
        }
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    worker_join(&worker);
    print_message("             lost %d times in %d rounds\n", lost, rounds);
    assert_true(rounds > 3);
    subject_give(mine);
    int rc = lk_client_close(ours);
    assert_true(rc == 0 || rc == EIO); /* with 40 ms for an answer, on a busy machine */
}

int main(void)
{
    return subject_run(starved);
}
