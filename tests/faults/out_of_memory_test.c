/* SPDX-License-Identifier: MIT */
/*
 * out_of_memory_test.c - F24: a full server takes on nothing new, and still does all that frees or renews
 *
 * labels: memory
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

static int wait_and_give(void *arg)
{
    int rc = subject_take(arg, PATIENT_MS);
    return rc != 0 ? rc : subject_give(arg);
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
    struct subject mine, patient, spare;
    struct worker waiter;
    struct news n;
    int64_t ms;
    lk_client_t *one = world_open(w, times), *other = world_open(w, times);
    subject_init(w, &mine, subject_keeper(kind), one, "thing", 0);
    subject_init(w, &patient, kind, other, "thing", 0);
    subject_init(w, &spare, kind, other, "free", 0);
    news_listen(&n, one, "thing");
    assert_lk(0, subject_take(&spare, 0)); /* a number that is not set yet would need memory */
    assert_lk(0, subject_give(&spare));
    assert_lk(0, subject_take(&mine, PATIENT_MS));
    worker_start(&waiter, wait_and_give, &patient);
    eventually(subject_queued(w, &patient) == 1, PATIENT_MS);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, PATIENT_MS);

    set_memory(w, 1);
    refused(w, &spare, 0);
    refused(w, &spare, IMPATIENT_MS);
    sleep_ms(LEASE_MS + 2 * POLL_MS); /* renewed meanwhile, and the waiter's polls are refused */
    assert_lk(0, subject_remaining(&mine, &ms));
    assert_int_equal(1, subject_held(w, &mine));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(&mine));
    assert_int_equal(0, worker_join(&waiter)); /* the release served the queue, and gave back what came of it */
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_int_equal(0, subject_held(w, &mine));
    assert_int_equal(0, subject_queued(w, &mine));
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(&n, type));

    set_memory(w, 0);
    assert_lk(0, subject_take(&spare, 0));
    assert_lk(0, subject_give(&spare));
    assert_lk(0, subject_destroy(&mine));
    assert_lk(0, subject_destroy(&patient));
    assert_lk(0, subject_destroy(&spare));
    assert_lk(0, lk_client_close(one));
    assert_lk(0, lk_client_close(other));
}

static int wait_for_latch(void *arg)
{
    return lk_latch_waitfor(arg, PATIENT_MS);
}

static void a_full_server_still_counts_down(struct world *w)
{
    struct worker waiter;
    lk_latch_t gate, fresh;
    lk_client_t *client = world_open(w, times);
    assert_lk(0, lk_latch_init(&gate, client, "gate", NULL));
    assert_lk(0, lk_latch_init(&fresh, client, "fresh", NULL));
    assert_lk(0, lk_latch_trysetcount(&gate, 2));
    worker_start(&waiter, wait_for_latch, &gate);
    eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);
    set_memory(w, 1);
    int64_t began_ms = now_ms();
    assert_lk(ENOSPC, lk_latch_trysetcount(&fresh, 2));
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + 4 * SLACK_MS);
    assert_string_equal("2", world_str(w, "GET gate"));
    assert_lk(0, lk_latch_countdown(&gate));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(&gate, IMPATIENT_MS));
    assert_lk(0, lk_latch_countdown(&gate));
    assert_int_equal(0, worker_join(&waiter));
    assert_false(world_exists(w, "fresh"));
    set_memory(w, 0);
    assert_lk(0, lk_latch_destroy(&gate));
    assert_lk(0, lk_latch_destroy(&fresh));
    assert_lk(0, lk_client_close(client));
}

int main(void)
{
    int failed = subject_run(a_full_server_still_takes_back);
    return failed + world_run(a_full_server_still_counts_down);
}
