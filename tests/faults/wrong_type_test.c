/* SPDX-License-Identifier: MIT */
/*
 * wrong_type_test.c - F34b: the key of an object becomes something else, which is nobody's to touch
 *
 * labels: memory
 * simulated: yes
 */
#include "news.h"
#include "robbery.h"

#include <string.h>

enum { LEASE_MS = 1500, COMMAND_MS = 450, POLL_MS = 100 };

static const char times[] = "lease=1500ms&command_timeout=450ms&poll=100ms&connect_timeout=1400ms";

static void replace(struct world *w, const char *key)
{
    static const char script[] = "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'not', 'ours')";
    assert_int_equal(2, world_int(w, "EVAL %s 1 %s", script, key)); /* in one step, or the waiter were first */
}

static void assert_untouched(struct world *w, const char *key)
{
    assert_string_equal("list", world_str(w, "TYPE %s", key));
    assert_int_equal(2, world_int(w, "LLEN %s", key));
    assert_int_equal(-1, world_pttl(w, key));
}

static int wait_for_it(void *arg)
{
    return subject_take(arg, PATIENT_MS);
}

static void refused(struct subject *s, int64_t timeout_ms)
{
    int64_t began_ms = now_ms();
    assert_lk(EPROTO, subject_take(s, timeout_ms)); /* at once: it does not pass by itself */
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + 4 * SLACK_MS);
}

/* What was refused may still be tried again, until the lease would have ended: then it is "not confirmed". */
static void close_client(lk_client_t *client)
{
    int code = lk_client_close(client);
    assert_true(code == 0 || code == EIO);
}

/* The holder learns of it: by its renewal, or by its unlock. */
static void learn_of_it(struct subject *mine, const struct news *n, bool by_renewal)
{
    int64_t ms;
    if (!mine->kind->leased) {
        assert_lk(EPROTO, subject_give(mine)); /* and its permit stays taken: nothing was done */
        return;
    }
    if (by_renewal) {
        eventually(subject_remaining(mine, &ms) == ESTALE, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
        eventually(news(n, LK_EVENT_LOST) == 1, 4 * SLACK_MS);
        assert_int_equal(LK_REASON_GONE, news_reason(n));
        assert_lk(ESTALE, subject_give(mine));
    } else {
        assert_lk(EPROTO, subject_give(mine));
    }
    assert_lk(EPERM, subject_give(mine));
}

static void what_is_not_ours_is_left_alone(struct world *w, const struct subject_kind *kind)
{
    for (int by_renewal = 0; by_renewal < 2; by_renewal++) {
        struct subject mine, theirs;
        struct worker waiter;
        struct news n;
        char key[80];
        lk_client_t *one = world_open(w, times), *other = world_open(w, times);
        subject_init(w, &mine, kind, one, "thing", 0);
        subject_init(w, &theirs, subject_keeper(kind), other, "thing", 0);
        news_listen(&n, one, "thing");
        robbery_key(&mine, key);
        assert_lk(0, subject_take(&mine, PATIENT_MS));
        worker_start(&waiter, wait_for_it, &theirs);
        eventually(subject_queued(w, &theirs) == 1, PATIENT_MS);

        replace(w, key);
        int64_t began_ms = now_ms();
        learn_of_it(&mine, &n, by_renewal);
        assert_int_equal(EPROTO, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, LEASE_MS / 3 + 2 * COMMAND_MS + 2 * POLL_MS + 4 * SLACK_MS);
        refused(&theirs, 0);
        refused(&theirs, PATIENT_MS);
        assert_untouched(w, key);
        assert_lk(0, subject_destroy(&mine));
        assert_lk(0, subject_destroy(&theirs));
        close_client(one);
        close_client(other);
        assert_untouched(w, key);
        world_redis(w, "DEL %s", key);
        subject_forget_queues(w); /* who was refused may not have got out, as the script stops at the key */
    }
}

static void nor_is_it_a_latch(struct world *w)
{
    struct worker waiter;
    lk_client_t *client = world_client(w, times);
    lk_latch_t *gate = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    worker_start(&waiter, await_latch_patiently, gate);
    eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);
    replace(w, "gate");
    assert_int_equal(EPROTO, worker_join(&waiter));
    assert_lk(EPROTO, lk_latch_trysetcount(gate, 2));
    assert_lk(EPROTO, lk_latch_countdown(gate));
    assert_lk(EPROTO, lk_latch_waitfor(gate, 0));
    assert_lk(EPROTO, lk_latch_delete(gate));
    assert_untouched(w, "gate");
    world_redis(w, "DEL gate");
}

static int begin_run(void *once)
{
    return lk_once_begin(once, PATIENT_MS);
}

static void nor_is_it_a_run(struct world *w)
{
    static const char run[] = "latchkey:run:{work}";
    struct worker waiter;
    lk_once_t mine, theirs;
    int64_t ms;
    lk_client_t *one = world_open(w, times), *other = world_open(w, times);
    assert_lk(0, lk_once_init(&mine, one, "work", NULL));
    assert_lk(0, lk_once_init(&theirs, other, "work", NULL));
    assert_lk(0, lk_once_begin(&mine, 0));
    worker_start(&waiter, begin_run, &theirs);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, PATIENT_MS);
    replace(w, run);
    eventually(lk_once_remaining(&mine, &ms) == ESTALE, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
    assert_lk(ESTALE, lk_once_end(&mine, "not ours"));
    assert_int_equal(EPROTO, worker_join(&waiter));
    assert_lk(EPROTO, lk_once_begin(&theirs, PATIENT_MS));
    assert_untouched(w, run);
    assert_lk(0, lk_once_destroy(&mine));
    assert_lk(0, lk_once_destroy(&theirs));
    close_client(one);
    close_client(other);
    assert_untouched(w, run);
    world_redis(w, "DEL %s", run);
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, PATIENT_MS);
}

static void nor_is_it_a_barrier(struct world *w)
{
    static const char state[] = "latchkey:barrier:{stage}";
    struct worker party;
    lk_barrier_t mine;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    world_allow(w, "latchkey:*:{stage}");
    lk_client_t *client = world_open(w, times);
    assert_lk(0, lk_barrier_init(&mine, client, "stage", 2, NULL));
    worker_start(&party, meet, &mine);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, PATIENT_MS);
    replace(w, state);
    assert_int_equal(EPROTO, worker_join(&party));
    assert_lk(EPROTO, meet(&mine));
    assert_lk(EPROTO, lk_barrier_reset(&mine));
    assert_lk(EPROTO, lk_barrier_info(&mine, &info));
    assert_string_equal("list", world_str(w, "TYPE %s", state));
    assert_int_equal(2, world_int(w, "LLEN %s", state));
    assert_lk(0, lk_barrier_destroy(&mine));
    close_client(client);
    world_redis(w, "DEL %s", state);
}

int main(void)
{
    int failed = subject_run(what_is_not_ours_is_left_alone);
    return failed + world_run(nor_is_it_a_latch, nor_is_it_a_run, nor_is_it_a_barrier);
}
