/* SPDX-License-Identifier: MIT */
/*
 * scripts_forgotten_test.c - F20: the server forgets the scripts, at any time: nobody notices
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 14
 */
#include "news.h"
#include "subject.h"

enum { LEASE_MS = 1500, WAKES_MS = 1000 };

static const char times[] = "lease=1500ms&command_timeout=450ms&poll=100ms&connect_timeout=1400ms";

static void forget(struct world *w)
{
    world_redis(w, "SCRIPT FLUSH SYNC");
}

/* Longer than a lease, so that each poll and each renewal meets it. */
static void forget_all_the_time(struct world *w)
{
    for (int64_t until_ms = now_ms() + LEASE_MS + LEASE_MS / 3; now_ms() < until_ms; sleep_ms(5))
        forget(w);
}

static void nobody_notices(struct world *w, const struct subject_kind *kind)
{
    struct worker waiter;
    int64_t ms;
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    struct subject *mine = world_subject(w, one, subject_keeper(kind), "thing");
    struct subject *theirs = world_subject(w, other, kind, "thing");
    struct news *n = news_of(w, one, "thing");
    forget(w);
    assert_lk(0, subject_take(mine, 0));
    forget(w);
    assert_lk(ETIMEDOUT, subject_take(theirs, 0));
    worker_start(&waiter, subject_visit, theirs);
    forget_all_the_time(w);
    assert_lk(0, subject_remaining(mine, &ms));
    assert_int_equal(1, subject_held(w, mine));
    assert_int_equal(1, subject_queued(w, theirs));
    forget(w);
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(mine));
    forget(w);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, mine));
    assert_int_equal(0, subject_queued(w, mine));
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(n, type));
}

static void nor_does_a_latch(struct world *w)
{
    struct worker waiter;
    unsigned count;
    lk_client_t *client = world_client(w, times);
    lk_latch_t *gate = world_latch(w, client, "gate");
    forget(w);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    worker_start(&waiter, await_latch_patiently, gate);
    forget_all_the_time(w);
    assert_lk(0, lk_latch_countdown(gate));
    forget(w);
    assert_lk(0, lk_latch_getcount(gate, &count));
    assert_int_equal(1, count);
    forget(w);
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, worker_join(&waiter));
}

static int begin_run(void *once)
{
    return lk_once_begin(once, PATIENT_MS);
}

static void nor_does_a_run(struct world *w)
{
    struct worker waiter;
    world_allow(w, "latchkey:done:*");
    lk_once_t *mine = world_once(w, world_client(w, times), "work", NULL);
    lk_once_t *theirs = world_once(w, world_client(w, times), "work", NULL);
    forget(w);
    assert_lk(0, lk_once_begin(mine, 0));
    forget(w);
    assert_lk(ETIMEDOUT, lk_once_begin(theirs, 0));
    worker_start(&waiter, begin_run, theirs);
    forget_all_the_time(w);
    assert_lk(0, lk_once_check(mine));
    forget(w);
    assert_lk(0, lk_once_end(mine, NULL));
    forget(w);
    assert_int_equal(EALREADY, worker_join(&waiter));
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, PATIENT_MS);
}

static void nor_does_a_party(struct world *w)
{
    struct worker party;
    world_allow(w, "latchkey:*:{stage}");
    lk_barrier_t *mine = world_barrier(w, world_client(w, times), "stage", 2, NULL);
    lk_barrier_t *theirs = world_barrier(w, world_client(w, times), "stage", 2, NULL);
    forget(w);
    worker_start(&party, meet, mine);
    forget_all_the_time(w);
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    forget(w);
    assert_int_equal(0, worker_join(&party));
    forget(w);
    assert_lk(0, lk_barrier_reset(mine));
}

int main(void)
{
    int failed = subject_run(nobody_notices);
    return failed + world_run(nor_does_a_latch, nor_does_a_run, nor_does_a_party);
}
