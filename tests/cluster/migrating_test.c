/* SPDX-License-Identifier: MIT */
/*
 * migrating_test.c - what is given back while its slot migrates goes to the next one soon after that is over
 *
 * The hold is at the next node already, and the queue is not, so no script may have both until all is there.
 *
 * labels: threads
 * seconds: 20
 * timeout: 240
 */
#include "cluster.h"
#include "subject.h"

#define OPTIONS "lease=30s&command_timeout=500ms&poll=1s"

enum { ROUNDS = 4, MIGRATES_MS = 1500 };

/* The release may be told to come back after a second at most, and so may the waiter's poll; both for the last time. */
#define SOON_MS (1000 + 1000 + SLACK_MS)

static void the_next_one_has_it_soon(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    int slot = cluster_slot(c, name);
    struct subject *mine = world_subject(w, one, subject_kinds, name),
                   *theirs = world_subject(w, other, subject_kinds, name);
    for (int i = 0; i < ROUNDS; i++) {
        int from = i % 2, to = 1 - from;
        struct errand errand;
        assert_lk(0, subject_take(mine, PATIENT_MS));
        errand_start(&errand, theirs, 4 * PATIENT_MS);
        eventually(cluster_queued(c, from, name) == 1, PATIENT_MS);
        cluster_beginmove(c, slot, from, to);
        cluster_movekey(c, name, from, to);
        int rc = subject_give(mine);
        assert_true(rc == 0 || rc == ENOTCONN || rc == EIO);
        sleep_ms(MIGRATES_MS);
        while (cluster_movekeys(c, slot, from, to) > 0)
            continue;
        cluster_endmove(c, slot, from, to);
        int64_t over_ms = now_ms();
        errand_join(&errand);
        assert_lk(0, errand.took);
        print_message("             given back: %d; the next one had it %lld ms after the end\n", rc,
                      (long long)(errand.took_ms - over_ms));
        assert_between(errand.took_ms - over_ms, -MIGRATES_MS - 500, SOON_MS);
        eventually(cluster_master(c, name) == to, CLUSTER_WITHIN_MS);
    }
}

int main(void)
{
    return world_run(the_next_one_has_it_soon);
}
