/* SPDX-License-Identifier: MIT */
/*
 * look.c - look again at the tapes that a soak kept: soak_look DIR LEASE_MS CALM_NS
 *
 * The soak prints this line for each round whose tapes it keeps.
 */
#include "check.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct report report = { .out = stdout };
    if (argc != 4 && argc != 5)
        return 2;
    long lease_ms = strtol(argv[2], NULL, 10);
    struct history history = {
        .lease_ms = lease_ms, .command_ms = lease_ms / 5, .slack_ms = 1000, .calm_ns = strtoll(argv[3], NULL, 10)
    };
    history.skew_ms = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
    if (!history_read(&history, argv[1]))
        return 2;
    history_join(&history);
    printf("%zu records, %zu holds, %d violations\n", history.count, history.hold_count, check_all(&report, &history));
    history_free(&history);
    return report.total != 0;
}
