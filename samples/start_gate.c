/* SPDX-License-Identifier: MIT */
/*
 * start_gate.c - races in which all start together, and the judge looks when all have arrived
 *
 * Two latches for each race: a gate that one count opens for everybody, and a finish line with a count for
 * each runner. One runner comes late to each race and finds the gate open. With --unsafe nobody waits.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <stdio.h>

struct race {
    long long opened_us; /* 0: not yet */
    int early;           /* runners that started before that */
    int arrived;
    int seen; /* had arrived when the judge looked */
};

static struct race *races;

static void latches_name(lk_latch_t *gate, lk_latch_t *finish, int race)
{
    static char names[2][48];
    snprintf(names[0], sizeof names[0], "samples:race%d:gate", race);
    snprintf(names[1], sizeof names[1], "samples:race%d:finish", race);
    *gate = (lk_latch_t)LK_LATCH_INITIALIZER(names[0]);
    *finish = (lk_latch_t)LK_LATCH_INITIALIZER(names[1]);
}

static int runner(const struct options *options, struct race *race, lk_latch_t *gate, lk_latch_t *finish, bool late)
{
    pause_ms(late ? 60 : random_below(10)); /* to get ready */
    int rc = options->unsafe ? 0 : lk_latch_wait(gate);
    if (rc != 0)
        return rc;
    if (__atomic_load_n(&race->opened_us, __ATOMIC_SEQ_CST) == 0)
        __atomic_fetch_add(&race->early, 1, __ATOMIC_RELAXED);
    pause_ms(random_below(20)); /* to run */
    __atomic_fetch_add(&race->arrived, 1, __ATOMIC_SEQ_CST);
    return options->unsafe ? 0 : lk_latch_countdown(finish);
}

static int judge(const struct options *options, struct race *race, lk_latch_t *gate, lk_latch_t *finish)
{
    pause_ms(30);
    __atomic_store_n(&race->opened_us, now_us(), __ATOMIC_SEQ_CST);
    int rc = options->unsafe ? 0 : lk_latch_countdown(gate);
    if (rc == 0 && !options->unsafe)
        rc = lk_latch_wait(finish);
    race->seen = __atomic_load_n(&race->arrived, __ATOMIC_SEQ_CST);
    return rc;
}

/* Worker 0 is the judge of all races, the others run in all of them. */
static int take_part(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        lk_latch_t gate, finish;
        latches_name(&gate, &finish, i);
        int rc = options->worker == 0
                     ? judge(options, &races[i], &gate, &finish)
                     : runner(options, &races[i], &gate, &finish, i % options->workers == options->worker);
        if (rc != 0) {
            fprintf(stderr, "start_gate: %s\n", lk_errortext());
            return 1;
        }
        lk_latch_destroy(&gate);
        lk_latch_destroy(&finish);
        round_done();
    }
    return 0;
}

/* Close a latch with that count, also if an earlier run was stopped in the middle and left one. */
static int latch_close(lk_latch_t *latch, unsigned count)
{
    int rc = lk_latch_delete(latch);
    return rc != 0 && rc != ENOENT ? rc : lk_latch_trysetcount(latch, count);
}

static int prepare(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        lk_latch_t gate, finish;
        latches_name(&gate, &finish, i);
        if (latch_close(&gate, 1) != 0 || latch_close(&finish, (unsigned)options->workers - 1) != 0) {
            fprintf(stderr, "start_gate: %s\n", lk_errortext());
            return 1;
        }
        lk_latch_destroy(&gate);
        lk_latch_destroy(&finish);
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8,
                               .rounds = 40,
                               .unsafe_means = "wait neither at the gate nor at the finish" };
    options_read(&options, argc, argv, "Runners wait at a start gate, a judge at the finish line. Rounds: races.");
    if (options.workers < 2)
        options.workers = 2;
    races = shared_memory((size_t)options.rounds * sizeof *races);

    printf("a judge and %d runners, %d races, %s\n", options.workers - 1, options.rounds,
           options.unsafe ? "without latches" : "each with a gate and a finish line");
    int failed = options.unsafe ? 0 : prepare(&options);
    failed += failed > 0 ? 0 : workers_run(&options, (long)options.workers * options.rounds, take_part);

    int early = 0, missed = 0;
    for (int i = 0; i < options.rounds; i++) {
        early += races[i].early;
        missed += options.workers - 1 - races[i].seen;
    }
    return verdict("nobody starts before the gate opens, and all have arrived when the judge looks",
                   failed == 0 && early == 0 && missed == 0, "%d races, %d started early, %d not seen to arrive",
                   options.rounds, early, missed);
}
