/* SPDX-License-Identifier: MIT */
/*
 * clocks_test.c - F35: the clocks of a cluster's nodes are compared when a client is opened
 *
 * A slot that moves, or whose replica is promoted, is then by another clock. Of more than clock_skew the log warns, and
 * strict=yes refuses.
 *
 * simulated: yes
 * seconds: 10
 */
#include "cluster.h"
#include "log.h"
#include "subject.h"

#ifdef SERVER_CLOCK

#include <stdio.h>
#include <string.h>

enum { SKEW_MS = 1200 }; /* nodes agree on who is dead within 2 s */

#define OPTIONS "lease=20s&connect_timeout=4s"

/* By one node, whose clock differs from that of all others: it is ahead of one of them or behind, or they are of it. */
static void refused(struct cluster *c, int node)
{
    char port[16];
    lk_client_t *client;
    assert_lk(ENOTSUP, lk_client_open(&client, cluster_url(c, OPTIONS "&strict=yes")));
    const char *says = strstr(lk_errortext(), ": the clock of 127.0.0.1:");
    snprintf(port, sizeof port, "127.0.0.1:%d", cluster_port(c, node));
    if (says == NULL || strstr(says, port) == NULL || strstr(says, "more than clock_skew=500ms") == NULL)
        fail_msg("\"%s\" does not tell of node %d", lk_errortext(), node);
}

/* Do all know by now which ones are replicas? */
static bool has_heard(struct cluster *c)
{
    for (int node = 0; node < CLUSTER_NODES; node++) {
        int replicas = 0;
        for (const char *at = cluster_str(c, node, "CLUSTER NODES"); (at = strstr(at, "slave ")) != NULL; at++)
            replicas++;
        if (replicas != CLUSTER_NODES - CLUSTER_MASTERS)
            return false;
    }
    return true;
}

static void works(struct world *w, struct cluster *c, const char *options)
{
    lk_client_t *client = world_client_at(w, c, cluster_url(c, options));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, client);
}

static void clocks_that_differ_are_told(struct world *w)
{
    struct cluster *c = cluster_begin_clocks(w, SERVER_CLOCK, true);
    eventually(cluster_settled(c), CLUSTER_WITHIN_MS);
    eventually(has_heard(c), CLUSTER_WITHIN_MS);
    works(w, c, OPTIONS "&strict=yes");
    int master = cluster_leader(c, 1), replica = master == 1 ? 4 : 1;
    cluster_setclock(c, replica, SKEW_MS); /* which may be promoted */
    refused(c, replica);
    assert_lk(0, log_keep(LK_LOG_WARNING));
    works(w, c, OPTIONS);
    assert_non_null(strstr(log_kept(), "after a failover or a move to it leases may end early, or late"));
    works(w, c, OPTIONS "&strict=yes&clock_skew=1500ms");
    cluster_setclock(c, replica, 0);
    cluster_setclock(c, master, -SKEW_MS); /* to which slots may move */
    refused(c, master);
    cluster_setclock(c, master, 0);
}

/* Two of them differ by more than clock_skew, and neither does so from the third, whichever is read first. */
static void each_is_compared_with_all(struct world *w)
{
    lk_client_t *client;
    struct cluster *c = cluster_begin_clocks(w, SERVER_CLOCK, false);
    for (int third = 0; third < CLUSTER_MASTERS; third++) {
        cluster_setclock(c, third, 0);
        cluster_setclock(c, (third + 1) % CLUSTER_MASTERS, 400);
        cluster_setclock(c, (third + 2) % CLUSTER_MASTERS, -400);
        assert_lk(ENOTSUP, lk_client_open(&client, cluster_url(c, OPTIONS "&strict=yes")));
    }
    works(w, c, OPTIONS "&strict=yes&clock_skew=1s");
}

/* One that does not answer is no reason to fail, and is not waited for until the time is over. */
static void one_that_stands_still_is_left_out(struct world *w)
{
    struct cluster *c = cluster_begin_clocks(w, SERVER_CLOCK, true);
    eventually(cluster_settled(c), CLUSTER_WITHIN_MS);
    cluster_stop(c, 5);
    int64_t began_ms = now_ms();
    world_close(w, world_client_at(w, c, cluster_url(c, OPTIONS "&strict=yes")));
    assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
    cluster_cont(c, 5);
}

int main(void)
{
    return world_run(clocks_that_differ_are_told, each_is_compared_with_all, one_that_stands_still_is_left_out);
}

#else

int main(void)
{
    return 77;
}

#endif
