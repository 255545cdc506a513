/* SPDX-License-Identifier: MIT */
/*
 * soak.c - a soak: many processes, all primitives, a nemesis, and a checker at the end
 *
 *   soak [--seconds N] [--seed S] [--processes P] [--threads T] [--lease MS] [--keep DIR] [--sentinels] [--cluster] [--replicas N]
 *        [--least-faults N] [--least-operations N] [--least-acquires N]
 *
 * With --cluster the servers are a cluster of three masters with a replica each. With --sentinels the server is a master with two replicas, and three Sentinels who replace it; with --replicas clients
 * say wait_replicas=N. What is left on these servers at the end is not looked at.
 *
 * It runs rounds of a minute at most until the time is up, each with a seed of its own that follows from the
 * one given, on a server and with processes of its own. Exits 0 if no round had a violation.
 */
#include "round.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ROUND_S 60

static const struct option options[] = {
    { "seconds", required_argument, NULL, 's' },
    { "seed", required_argument, NULL, 'r' },
    { "processes", required_argument, NULL, 'p' },
    { "threads", required_argument, NULL, 't' },
    { "lease", required_argument, NULL, 'l' },
    { "keep", required_argument, NULL, 'k' },
    { "least-faults", required_argument, NULL, 'f' },
    { "least-operations", required_argument, NULL, 'o' },
    { "least-acquires", required_argument, NULL, 'a' },
    { "sentinels", no_argument, NULL, 'n' },
    { "replicas", required_argument, NULL, 'w' },
    { "cluster", no_argument, NULL, 'c' },
    { NULL, 0, NULL, 0 },
};

/* How each is asked for. */
static const char *const deployments[] = {
    [SINGLE_SERVER] = "", [SENTINELS] = " --sentinels", [CLUSTER] = " --cluster"
};

static bool read_options(struct settings *settings, int argc, char **argv)
{
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        long number = option != '?' && option != 'k' && option != 'n' && option != 'c' ? strtol(optarg, NULL, 10) : 0;
        switch (option) {
        case 's':
            settings->seconds = (int)number;
            break;
        case 'r':
            settings->seed = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            settings->processes = (int)number;
            break;
        case 't':
            settings->threads = (int)number;
            break;
        case 'l':
            settings->lease_ms = number;
            break;
        case 'k':
            settings->keep = optarg;
            break;
        case 'f':
            settings->least_faults = number;
            break;
        case 'o':
            settings->least_operations = number;
            break;
        case 'a':
            settings->least_acquires = number;
            break;
        case 'n':
            settings->deployment = SENTINELS;
            break;
        case 'c':
            settings->deployment = CLUSTER;
            break;
        case 'w':
            settings->replicas = (int)number;
            break;
        default:
            return false;
        }
    }
    if (settings->lease_ms == 0)
        settings->lease_ms = (SANITIZED ? 2000 : 1000) * (settings->deployment != SINGLE_SERVER ? 2 : 1);
    return settings->seconds >= 5 && settings->processes >= 1 && settings->processes <= PROCESSES_MAX &&
           settings->threads >= 1 && settings->threads <= THREADS_MAX && settings->lease_ms >= 300 &&
           (settings->replicas == 0 || settings->deployment != SINGLE_SERVER);
}

static bool enough(const char *what, int64_t count, int64_t least)
{
    if (count >= least)
        return true;
    printf("only %" PRId64 " %s, not %" PRId64 "\n", count, what, least);
    return false;
}

int main(int argc, char **argv)
{
    struct settings settings = { .seconds = ROUND_S, .processes = 4, .threads = 6 };
    struct totals totals = { 0 };
    if (getrandom(&settings.seed, sizeof settings.seed, 0) != sizeof settings.seed)
        return 2;
    settings.seed >>= 32;
    if (!read_options(&settings, argc, argv)) {
        fprintf(stderr, "%s: see the first comment of soak.c\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int rounds = (settings.seconds + ROUND_S - 1) / ROUND_S, failed = 0;
    for (int i = 0; i < rounds; i++) {
        struct settings round = settings;
        round.seconds = settings.seconds / rounds;
        round.seed = settings.seed + (uint64_t)i;
        printf("round %d of %d: %d s, seed %" PRIu64 "\n", i + 1, rounds, round.seconds, round.seed);
        if (!round_run(&round, &totals)) {
            failed++;
            printf("again: %s --seconds %d --seed %" PRIu64 " --processes %d --threads %d --lease %" PRId64
                   "%s --replicas %d\n",
                   argv[0], round.seconds, round.seed, round.processes, round.threads, round.lease_ms,
                   deployments[round.deployment], round.replicas);
        }
    }
    totals_print(&totals);
    printf("seed %" PRIu64 ", %d rounds, %d with violations\n", settings.seed, rounds, failed);
    bool sufficient =
        enough("faults", totals.fault_count, settings.least_faults) &
        enough("operations", totals.operations, settings.least_operations) &
        enough("acquires of some kind with time and no faults", totals_acquires(&totals), settings.least_acquires);
    return failed == 0 && sufficient ? 0 : 1;
}
