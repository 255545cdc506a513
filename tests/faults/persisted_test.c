/* SPDX-License-Identifier: MIT */
/*
 * persisted_test.c - F34a: somebody takes the end off the key of a hold: the next renewal puts it back
 *
 * labels: threads memory
 * simulated: yes
 */
#include "news.h"
#include "robbery.h"

enum { LEASE_MS = 3000, COMMAND_MS = 450, WAKES_MS = 1000 };

static const char times[] = "lease=3s&command_timeout=450ms&poll=100ms&connect_timeout=1400ms";

static void a_renewal_puts_the_end_back(struct world *w, const struct subject_kind *kind)
{
    struct worker waiter;
    char key[80];
    if (!kind->leased)
        return; /* a number has no end anyway */
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    struct subject *mine = world_subject(w, one, kind, "thing");
    struct subject *theirs = world_subject(w, other, subject_keeper(kind), "thing");
    struct news *n = news_of(w, one, "thing");
    robbery_key(mine, key);
    assert_lk(0, subject_take(mine, PATIENT_MS));
    worker_start(&waiter, subject_visit, theirs);
    eventually(subject_queued(w, theirs) == 1, PATIENT_MS);

    assert_int_equal(1, world_int(w, "PERSIST %s", key));
    eventually(world_pttl(w, key) > 0, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
    assert_int_equal(1, subject_held(w, mine));
    assert_int_equal(1, subject_queued(w, theirs)); /* who waits, waits on */
    assert_int_equal(1, world_int(w, "PERSIST %s", key));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(mine)); /* as well as one with an end */
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, mine));
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(n, type));
}

int main(void)
{
    return subject_run(a_renewal_puts_the_end_back);
}
