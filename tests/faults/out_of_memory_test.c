/* SPDX-License-Identifier: MIT */
/*
 * out_of_memory_test.c - F24: a full server takes on nothing new, and still does all that frees or renews
 *
 * labels: memory
 * simulated: yes
 * seconds: 13
 */
#include "news.h"
#include "subject.h"

#include <string.h>

enum { LEASE_MS = 1500, COMMAND_MS = 450, POLL_MS = 100, WAKES_MS = 1000, IMPATIENT_MS = 300 };

static const char times[] = "lease=1500ms&command_timeout=450ms&poll=100ms&connect_timeout=1400ms";

static void set_memory(struct world *w, int bytes)
{
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
    world_redis(w, "CONFIG SET maxmemory %d", bytes);
}

static void refused(struct world *w, struct subject *s, int64_t timeout_ms)
{
    int64_t began_ms = now_ms();
    assert_lk(ENOSPC, subject_take(s, timeout_ms));
    assert_non_null(strstr(lk_errortext(), "OOM"));
    assert_between(now_ms() - began_ms, timeout_ms, timeout_ms + COMMAND_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, s));
    assert_int_equal(0, subject_queued(w, s));
}

static void a_full_server_still_takes_back(struct world *w, const struct subject_kind *kind)
{
    struct worker waiter;
    int64_t ms;
    bool nests = strstr(kind->name, "mutex") != NULL;
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    struct subject *mine = world_subject(w, one, subject_keeper(kind), "thing");
    struct subject *patient = world_subject(w, other, kind, "thing");
    struct subject *spare = world_subject(w, other, kind, "free");
    struct news *n = news_of(w, one, "thing");
    assert_lk(0, subject_take(spare, 0)); /* a number that is not set yet would need memory */
    assert_lk(0, subject_give(spare));
    assert_lk(0, subject_take(mine, PATIENT_MS));
    if (nests)
        assert_lk(0, subject_take(mine, 0));
    worker_start(&waiter, subject_visit, patient);
    eventually(subject_queued(w, patient) == 1, PATIENT_MS);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, PATIENT_MS);

    set_memory(w, 1);
    refused(w, spare, 0);
    refused(w, spare, IMPATIENT_MS);
    sleep_ms(LEASE_MS + 2 * POLL_MS); /* renewed meanwhile, and the waiter's polls are refused */
    assert_lk(0, subject_remaining(mine, &ms));
    assert_int_equal(1, subject_held(w, mine));
    if (nests)
        assert_lk(0, subject_give(mine));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(mine));
    assert_int_equal(0, worker_join(&waiter)); /* the release served the queue, and gave back what came of it */
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, mine));
    assert_int_equal(0, subject_queued(w, mine));
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(n, type));

    set_memory(w, 0);
    assert_lk(0, subject_take(spare, 0));
    assert_lk(0, subject_give(spare));
}

/* A refusal is asked again for half of the command timeout, because a server may have room again. */
static void a_full_server_still_counts_down(struct world *w)
{
    enum { LONG_COMMAND_MS = 5000 };
    struct worker waiter;
    lk_client_t *client = world_client(w, "command_timeout=5s&poll=100ms");
    lk_latch_t *gate = world_latch(w, client, "gate");
    lk_latch_t *fresh = world_latch(w, client, "fresh");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    worker_start(&waiter, await_latch_patiently, gate);
    eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);
    set_memory(w, 1);
    int64_t began_ms = now_ms();
    assert_lk(ENOSPC, lk_latch_trysetcount(fresh, 2));
    assert_between(now_ms() - began_ms, 0, LONG_COMMAND_MS + 4 * SLACK_MS);
    assert_string_equal("2", world_str(w, "GET gate"));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, IMPATIENT_MS));
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, worker_join(&waiter));
    assert_false(world_exists(w, "fresh"));
    set_memory(w, 0);
}

static int begin_run(void *once)
{
    return lk_once_begin(once, PATIENT_MS);
}

static void a_full_server_still_ends_runs(struct world *w)
{
    struct worker waiter;
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    world_allow(w, "latchkey:done:*");
    lk_client_t *client = world_client(w, times);
    lk_once_t *work = world_once(w, client, "work", NULL), *failing = world_once(w, client, "failing", NULL);
    lk_once_t *fresh = world_once(w, client, "fresh", NULL);
    lk_once_t *theirs = world_once(w, world_client(w, times), "work", NULL);
    assert_lk(0, lk_once_begin(work, 0));
    assert_lk(0, lk_once_begin(failing, 0));
    worker_start(&waiter, begin_run, theirs);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, PATIENT_MS);
    set_memory(w, 1);
    int64_t began_ms = now_ms();
    assert_lk(ENOSPC, lk_once_begin(fresh, IMPATIENT_MS));
    assert_between(now_ms() - began_ms, 0, IMPATIENT_MS + COMMAND_MS + 4 * SLACK_MS);
    sleep_ms(LEASE_MS + 2 * POLL_MS); /* both are renewed meanwhile */
    assert_lk(0, lk_once_check(work));
    assert_lk(0, lk_once_fail(failing));
    assert_lk(0, lk_once_end(work, "all the same"));
    assert_int_equal(EALREADY, worker_join(&waiter));
    assert_lk(0, lk_once_info(fresh, &info));
    assert_true(!info.done && !info.running);
    set_memory(w, 0);
    assert_lk(0, lk_once_begin(fresh, 0));
    assert_lk(0, lk_once_fail(fresh));
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, PATIENT_MS);
}

/* A round that began goes on, so that those who wait are not left alone. */
static void parties_still_meet_at_a_full_server(struct world *w)
{
    struct worker party;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    world_allow(w, "latchkey:*:{stage}");
    lk_barrier_t *mine = world_barrier(w, world_client(w, times), "stage", 2, NULL);
    lk_barrier_t *theirs = world_barrier(w, world_client(w, times), "stage", 2, NULL);
    worker_start(&party, meet, mine);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, PATIENT_MS);
    set_memory(w, 1);
    sleep_ms(LEASE_MS + 2 * POLL_MS); /* renewed meanwhile */
    assert_lk(0, lk_barrier_info(theirs, &info));
    assert_true(info.arrived == 1 && !info.broken);
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    assert_int_equal(0, worker_join(&party));
    worker_start(&party, meet, mine);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, PATIENT_MS);
    assert_lk(0, lk_barrier_reset(theirs));
    assert_int_equal(ECANCELED, worker_join(&party));
    set_memory(w, 0);
}

int main(void)
{
    int failed = subject_run(a_full_server_still_takes_back);
    return failed + world_run(a_full_server_still_counts_down, a_full_server_still_ends_runs,
                              parties_still_meet_at_a_full_server);
}
