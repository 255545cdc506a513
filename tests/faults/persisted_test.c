/* SPDX-License-Identifier: MIT */
/*
 * persisted_test.c - F34a: somebody takes the end off the key of a hold: the next renewal puts it back
 *
 * labels: memory
 */
#include "news.h"
#include "robbery.h"

enum { LEASE_MS = 3000, COMMAND_MS = 450, WAKES_MS = 1000 };

static const char times[] = "lease=3s&command_timeout=450ms&poll=100ms&connect_timeout=1400ms";

static int wait_and_give(void *arg)
{
    int rc = subject_take(arg, PATIENT_MS);
    return rc != 0 ? rc : subject_give(arg);
}

static void a_renewal_puts_the_end_back(struct world *w, const struct subject_kind *kind)
{
    struct subject mine, theirs;
    struct worker waiter;
    struct news n;
    char key[80];
    if (!kind->leased)
        return; /* a number has no end anyway */
    lk_client_t *one = world_open(w, times), *other = world_open(w, times);
    subject_init(w, &mine, kind, one, "thing", 0);
    subject_init(w, &theirs, subject_keeper(kind), other, "thing", 0);
    news_listen(&n, one, "thing");
    robbery_key(&mine, key);
    assert_lk(0, subject_take(&mine, PATIENT_MS));
    worker_start(&waiter, wait_and_give, &theirs);
    eventually(subject_queued(w, &theirs) == 1, PATIENT_MS);

    assert_int_equal(1, world_int(w, "PERSIST %s", key));
    eventually(world_pttl(w, key) > 0, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
    assert_int_equal(1, subject_held(w, &mine));
    assert_int_equal(1, subject_queued(w, &theirs)); /* who waits, waits on */
    assert_int_equal(1, world_int(w, "PERSIST %s", key));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(&mine)); /* as well as one with an end */
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, &mine));
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(&n, type));
    assert_lk(0, subject_destroy(&mine));
    assert_lk(0, subject_destroy(&theirs));
    assert_lk(0, lk_client_close(one));
    assert_lk(0, lk_client_close(other));
}

int main(void)
{
    return subject_run(a_renewal_puts_the_end_back);
}
