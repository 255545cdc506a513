/* SPDX-License-Identifier: MIT */
/*
 * strained_test.c - a redlock that is held while there are no more descriptors, or while the log blocks
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 8
 */
#include "descriptors.h"
#include "news.h"
#include "quorum.h"

#include <fcntl.h>
#include <unistd.h>

enum { NODES = 3, WITHIN_MS = 30000 };

static const lk_redlockattr_t brief = { .size = sizeof brief, .fenced = 1, .longest_lease_ms = -1,
                                        .node_timeout_ms = 300 };
static const lk_redlockattr_t swift = { .size = sizeof swift, .longest_lease_ms = -1, .node_timeout_ms = 200 };

/* Connections of the library that stand at a node. */
static int connections(struct quorum *q, int node)
{
    return library_clients(quorum_str(q, node, "CLIENT LIST"));
}

/* What is connected goes on; who has to be connected anew is away until there are descriptors again. */
static void without_descriptors_a_majority_goes_on(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, "lease=3s&command_timeout=950ms&retry_max=50ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &brief);
    struct news *n = news_of(w, client, "jobs");
    quorum_lockall(q, r, "jobs");
    for (int node = 0; node < NODES; node++)
        eventually(connections(q, node) == 2, WITHIN_MS); /* for renewals, too */
    quorum_kill(q, 0);
    quorum_start(q, 0);
    descriptors_more(0);
    for (int64_t until_ms = now_ms() + 3300; now_ms() < until_ms; sleep_ms(100))
        assert_answer(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
    for (int i = 0; i < 5; i++) {
        assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
        assert_lk(0, lk_redlock_unlock(r));
    }
    descriptors_lift();
    assert_same(0, news(n, LK_EVENT_LOST));
    quorum_lockall(q, r, "jobs");
    assert_lk(0, lk_redlock_unlock(r));
}

/* Losses are told to the log, which nobody reads: calls, and the close, return all the same. */
static void a_log_that_blocks_stops_nobody(struct world *w)
{
    char bytes[4096] = { 0 };
    int ends[2], before = dup(2);
    int64_t left_ms;
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, "lease=1s&command_timeout=300ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &swift);
    assert_int_equal(0, pipe(ends));
    assert_int_equal(0, fcntl(ends[1], F_SETFL, O_NONBLOCK));
    while (write(ends[1], bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(0, fcntl(ends[1], F_SETFL, 0));
    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    assert_int_equal(2, dup2(ends[1], 2)); /* from here on nothing may fail: nobody would hear of it */
    quorum_stop(q, 0);
    quorum_stop(q, 1);
    for (int64_t until_ms = now_ms() + 2000; lk_redlock_remaining(r, &left_ms) == 0 && now_ms() < until_ms;)
        sleep_ms(2);
    int unlocked = lk_redlock_unlock(r);
    int64_t began_ms = now_ms();
    int tried = lk_redlock_lockfor(r, 3500); /* longer than it takes until the log is told of the wait */
    int64_t took_ms = now_ms() - began_ms;
    quorum_cont(q, 0);
    quorum_cont(q, 1);
    int later, given, tries = 0;
    do { /* its lease is short: on a busy machine it may be lost, or an answer be late */
        later = lk_redlock_lockfor(r, WITHIN_MS);
        given = later == 0 ? lk_redlock_unlock(r) : later;
    } while ((given == EIO || given == ESTALE) && ++tries < 10);
    close(ends[0]);
    dup2(before, 2);
    close(before);
    close(ends[1]);
    assert_int_equal(ESTALE, unlocked);
    assert_int_equal(ENOTCONN, tried);
    assert_between(took_ms, 3500, 3500 + 2 * 300 + SLACK_MS);
    assert_true(later == 0 && given == 0);
}

int main(void)
{
    return world_run(without_descriptors_a_majority_goes_on, a_log_that_blocks_stops_nobody);
}
