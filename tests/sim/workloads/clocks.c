/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - nodes of a cluster have clocks that differ: with strict=yes a client is opened if no two of them differ
 * by more than clock_skew, masters or replicas, and else it is refused
 */
#include "cluster.h"
#include "workload.h"

#include <stdio.h>

/* Nodes agree on who is dead within 2 s, and a clock is known as well as its answer is quick. */
enum { FARTHEST_MS = 800, UNSURE_MS = 150, TURNS = 6 };

/* Often two or three differ from all others, to both sides. */
static int64_t draw_clocks(struct luck *luck, struct cluster *c)
{
    int64_t least = 0, most = 0;
    unsigned wrong = 1 + (unsigned)luck_below(luck, CLUSTER_NODES);
    for (int node = 0; node < CLUSTER_NODES; node++) {
        bool is_wrong = luck_below(luck, CLUSTER_NODES) < wrong;
        int64_t ms = is_wrong ? (int64_t)luck_below(luck, 2 * FARTHEST_MS + 1) - FARTHEST_MS : 0;
        least = node == 0 || ms < least ? ms : least;
        most = node == 0 || ms > most ? ms : most;
        cluster_setclock(c, node, ms);
    }
    return most - least;
}

static void open_it(struct cluster *c, int64_t skew_ms, int64_t differ_ms)
{
    char options[120];
    lk_client_t *client = NULL;
    snprintf(options, sizeof options, "lease=20s&connect_timeout=4s&strict=yes&clock_skew=%lldms", (long long)skew_ms);
    int code = lk_client_open(&client, cluster_url(c, options));
    must(code == 0 || code == ENOTSUP, "lk_client_open() returned %d: %s", code, lk_errortext());
    must(code != 0 || differ_ms < skew_ms + UNSURE_MS, "clocks differ by %lld ms, and clock_skew=%lldms is believed",
         (long long)differ_ms, (long long)skew_ms);
    must(code == 0 || differ_ms > skew_ms - UNSURE_MS, "clocks differ by %lld ms, and clock_skew=%lldms is refused: %s",
         (long long)differ_ms, (long long)skew_ms, lk_errortext());
    lk_client_close(client);
}

static void workload(struct world *w)
{
    struct luck luck = luck_begin();
    struct cluster *c = cluster_begin_clocks(w, "", true);
    for (int64_t until_ms = true_ms() + CLUSTER_WITHIN_MS; !cluster_settled(c); rest_ms(100))
        must(true_ms() < until_ms, "the cluster does not settle");
    rest_ms(3000); /* by then each node knows which ones are replicas */
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t differ_ms = draw_clocks(&luck, c);
        open_it(c, luck_about(&luck, 100, 2 * FARTHEST_MS), differ_ms);
    }
    for (int node = 0; node < CLUSTER_NODES; node++)
        cluster_setclock(c, node, 0);
}

int main(void)
{
    return workload_run(NULL, workload);
}
