/* SPDX-License-Identifier: MIT */
/*
 * soak.c - a soak: many processes, all primitives, a nemesis, and a checker at the end
 *
 *   soak [--seconds N] [--seed S] [--processes P] [--threads T] [--lease MS] [--keep DIR] [--sentinels] [--replicas N]
 *        [--cluster] [--least-faults N] [--least-operations N] [--least-acquires N] | --look DIR
 *
 * With --sentinels the server is a master with two replicas, and three Sentinels who replace it; with --replicas
 * clients say wait_replicas=N. With --cluster the servers are a cluster of three masters with a replica each. What is
 * left on these servers at the end is not looked at. --look checks the tapes again that --keep kept of a round.
 *
 * It runs rounds of a minute at most until the time is up, each with a seed of its own that follows from the one given,
 * on a server and with processes of its own. Exits 0 if no round had a violation.
 */
#include "driver.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#define ROUND_S 60

static const char *const deployments[] = {
    [SINGLE_SERVER] = "", [SENTINELS] = " --sentinels", [CLUSTER] = " --cluster"
};

/* Those with a number, in the order of numbers[] below; then the others. */
static const struct option options[] = {
    { "seconds", required_argument, NULL, 0 },          { "seed", required_argument, NULL, 1 },
    { "processes", required_argument, NULL, 2 },        { "threads", required_argument, NULL, 3 },
    { "lease", required_argument, NULL, 4 },            { "replicas", required_argument, NULL, 5 },
    { "least-faults", required_argument, NULL, 6 },     { "least-operations", required_argument, NULL, 7 },
    { "least-acquires", required_argument, NULL, 8 },   { "keep", required_argument, NULL, 'k' },
    { "look", required_argument, NULL, 'l' },           { "sentinels", no_argument, NULL, 's' },
    { "cluster", no_argument, NULL, 'c' },              { NULL, 0, NULL, 0 },
};

static bool read_options(struct settings *settings, const char **look, int argc, char **argv)
{
    int64_t numbers[9] = { ROUND_S, (int64_t)settings->seed, 4, 6 };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option < 9)
            numbers[option] = (int64_t)strtoull(optarg, NULL, 10);
        else if (option == 'k')
            settings->keep = optarg;
        else if (option == 'l')
            *look = optarg;
        else if (option == '?')
            return false;
        else
            settings->deployment = option == 'c' ? CLUSTER : SENTINELS;
    }
    settings->seconds = (int)numbers[0];
    settings->seed = (uint64_t)numbers[1];
    settings->processes = (int)numbers[2];
    settings->threads = (int)numbers[3];
    settings->lease_ms = numbers[4];
    settings->replicas = (int)numbers[5];
    settings->least_faults = numbers[6];
    settings->least_operations = numbers[7];
    settings->least_acquires = numbers[8];
    if (settings->lease_ms == 0)
        settings->lease_ms = (SANITIZED ? 2000 : 1000) * (settings->deployment != SINGLE_SERVER ? 2 : 1);
    return settings->seconds >= 5 && settings->processes >= 1 && settings->processes <= PROCESSES_MAX &&
           settings->threads >= 1 && settings->threads <= THREADS_MAX && settings->lease_ms >= 300 &&
           (settings->replicas == 0 || settings->deployment != SINGLE_SERVER);
}

/* --- what it says at the end -------------------------------------------------------------------------------------- */

static void print_codes(enum kind kind, enum op op, const int64_t *codes)
{
    int64_t all = 0;
    for (int code = 0; code < CODES_MAX; code++)
        all += codes[code];
    if (all == 0)
        return;
    printf("  %-9s %-9s %9" PRId64 " ", kind_name(kind), op_name(op), all);
    for (int code = 0; code < CODES_MAX && codes[0] != all; code++)
        if (codes[code] != 0)
            printf(" %s %" PRId64, code == CODES_MAX - 1 ? "unfinished" : code == 0 ? "ok" : code_name(code),
                   codes[code]);
    putchar('\n');
}

static void print_totals(const struct totals *totals)
{
    printf("\noperations\n");
    for (int kind = 0; kind < KINDS; kind++)
        for (int op = 1; op < OPS; op++)
            print_codes((enum kind)kind, (enum op)op, totals->codes[kind][op]);
    printf("faults\n ");
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        if (totals->faults[kind] != 0)
            printf(" %s %" PRId64, fault_name(kind), totals->faults[kind]);
    printf("\nchecked\n");
    for (int i = 0; i < INVARIANTS; i++)
        printf("  %" PRId64 " %s\n", totals->sum.seen[i], invariant_units((enum invariant)i));
    printf("%" PRId64 " operations, %" PRId64 " faults\nviolations", totals->operations, totals->fault_count);
    for (int i = 0; i < INVARIANTS; i++)
        if (totals->sum.violations[i] != 0)
            printf(" %s: %d", invariant_name((enum invariant)i), totals->sum.violations[i]);
    printf(totals->sum.total == 0 ? ": 0\n" : "\n");
}

static bool enough(const char *what, int64_t count, int64_t least)
{
    if (count < least)
        printf("only %" PRId64 " %s, not %" PRId64 "\n", count, what, least);
    return count >= least;
}

/* Of the kind that had fewest. */
static int64_t fewest_acquires(const struct totals *totals)
{
    int64_t least = INT64_MAX;
    for (int kind = 0; kind < LATCH; kind++)
        if (kind != ONCE && totals->sum.acquires[kind] < least)
            least = totals->sum.acquires[kind];
    return least;
}

static bool run_rounds(const struct settings *settings, const char *program, struct totals *totals)
{
    int rounds = (settings->seconds + ROUND_S - 1) / ROUND_S, failed = 0;
    for (int i = 0; i < rounds; i++) {
        struct settings round = *settings;
        round.seconds = settings->seconds / rounds;
        round.seed = settings->seed + (uint64_t)i;
        printf("round %d of %d: %d s, seed %" PRIu64 "\n", i + 1, rounds, round.seconds, round.seed);
        if (round_run(&round, totals))
            continue;
        failed++;
        printf("again: %s --seconds %d --seed %" PRIu64 " --processes %d --threads %d --lease %" PRId64
               "%s --replicas %d\n",
               program, round.seconds, round.seed, round.processes, round.threads, round.lease_ms,
               deployments[round.deployment], round.replicas);
    }
    print_totals(totals);
    printf("seed %" PRIu64 ", %d rounds, %d with violations\n", settings->seed, rounds, failed);
    bool sufficient = enough("faults", totals->fault_count, settings->least_faults) &
                      enough("operations", totals->operations, settings->least_operations) &
                      enough("acquires of some kind in calm", fewest_acquires(totals),
                             settings->least_acquires);
    return failed == 0 && sufficient;
}

int main(int argc, char **argv)
{
    static struct totals totals;
    struct settings settings = { 0 };
    const char *look = NULL;
    if (getrandom(&settings.seed, sizeof settings.seed, 0) != sizeof settings.seed)
        return 2;
    settings.seed >>= 32;
    if (!read_options(&settings, &look, argc, argv)) {
        fprintf(stderr, "%s: see the first comment of soak.c\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (look == NULL)
        return !run_rounds(&settings, argv[0], &totals);
    bool good = round_look(look, &totals);
    print_totals(&totals);
    return !good;
}
