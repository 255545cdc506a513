/* SPDX-License-Identifier: MIT */
/*
 * phases.c - a computation in phases, each of which needs all of the last one
 *
 * Each worker has a cell, and in each phase replaces it by the sum of its own and its left neighbour's, as in the triangle
 * of Pascal. It reads into a cell of the other row, so that nobody overwrites what a neighbour still reads; between two
 * phases all meet at a barrier, whose serial party checks the sum of the row. With --unsafe nobody waits.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

struct board {
    int wrong;  /* rows whose sum was not that of the row before, doubled */
    int serial; /* serial parties: one a phase */
    unsigned long sum;
    unsigned long cells[]; /* two rows */
};

static struct board *board;

static unsigned long *row(const struct options *options, int phase)
{
    return board->cells + (size_t)(phase % 2) * (size_t)options->workers;
}

/* Each cell went into two others. */
static void check_row(const struct options *options, int phase)
{
    unsigned long sum = 0, before = __atomic_load_n(&board->sum, __ATOMIC_SEQ_CST);
    for (int i = 0; i < options->workers; i++)
        sum += __atomic_load_n(&row(options, phase)[i], __ATOMIC_SEQ_CST);
    if (sum != before * 2)
        __atomic_fetch_add(&board->wrong, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&board->sum, sum, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&board->serial, 1, __ATOMIC_SEQ_CST);
}

static int meet(const struct options *options, lk_barrier_t *barrier, int phase)
{
    int rc = options->unsafe ? 0 : lk_barrier_waitfor(barrier, 60000);
    if (rc == LK_BARRIER_SERIAL || (options->unsafe && options->worker == 0))
        check_row(options, phase);
    if (rc != 0 && rc != LK_BARRIER_SERIAL)
        fprintf(stderr, "phases: %s\n", lk_errortext());
    return rc == LK_BARRIER_SERIAL ? 0 : rc;
}

/* The row is checked before anybody overwrites it: a phase reads one row and writes the other, and all meet twice. */
static int take_part(const struct options *options)
{
    lk_barrier_t computed = LK_BARRIER_INITIALIZER("samples:computed", options->workers);
    lk_barrier_t checked = LK_BARRIER_INITIALIZER("samples:checked", options->workers);
    int me = options->worker, left = (me + options->workers - 1) % options->workers;
    for (int phase = 1; phase <= options->rounds; phase++) {
        const unsigned long *from = row(options, phase - 1);
        unsigned long sum =
            __atomic_load_n(&from[me], __ATOMIC_SEQ_CST) + __atomic_load_n(&from[left], __ATOMIC_SEQ_CST);
        pause_ms(random_below(3));
        __atomic_store_n(&row(options, phase)[me], sum, __ATOMIC_SEQ_CST);
        if (meet(options, &computed, phase) != 0)
            return 1;
        int rc = options->unsafe ? 0 : lk_barrier_waitfor(&checked, 60000);
        if (rc != 0 && rc != LK_BARRIER_SERIAL) {
            fprintf(stderr, "phases: %s\n", lk_errortext());
            return 1;
        }
        round_done();
    }
    lk_barrier_destroy(&computed);
    lk_barrier_destroy(&checked);
    return 0;
}

/* An earlier run may have been stopped in the middle. */
static int prepare(const struct options *options)
{
    lk_barrier_t computed = LK_BARRIER_INITIALIZER("samples:computed", options->workers);
    lk_barrier_t checked = LK_BARRIER_INITIALIZER("samples:checked", options->workers);
    int failed = lk_barrier_reset(&computed) != 0 || lk_barrier_reset(&checked) != 0;
    if (failed)
        fprintf(stderr, "phases: %s\n", lk_errortext());
    lk_barrier_destroy(&computed);
    lk_barrier_destroy(&checked);
    return failed;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 6, .rounds = 40, .unsafe_means = "do not wait for the others" };
    options_read(&options, argc, argv, "Workers compute in phases, and meet at a barrier after each. Rounds: phases.");
    board = shared_memory(sizeof *board + 2 * (size_t)options.workers * sizeof *board->cells);
    board->cells[0] = board->sum = 1;

    printf("%d workers, %d phases, %s\n", options.workers, options.rounds,
           options.unsafe ? "without a barrier" : "with a barrier");
    int failed = options.unsafe ? 0 : prepare(&options);
    failed += failed > 0 ? 0 : workers_run(&options, (long)options.workers * options.rounds, take_part);
    return verdict("each phase has all of the one before, and one worker of each phase checks it",
                   failed == 0 && board->wrong == 0 && board->serial == options.rounds,
                   "%d phases checked, %d wrong, %d workers failed", board->serial, board->wrong, failed);
}
