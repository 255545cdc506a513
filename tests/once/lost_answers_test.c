/* SPDX-License-Identifier: MIT */
/*
 * lost_answers_test.c - requests and answers get lost, late or doubled on the way, and count once; the server is away
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "proxy.h"

#include <string.h>

static struct proxy *p;
static lk_once_t *mine, *theirs;

/* What neither renewals name, nor handshakes, nor what the library repeats. */
#define BEGINNING "redisson_lock_token:{migrated}"
#define GIVING_UP "latchkey:ran:{migrated}"

static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_PARK_REQUEST, PROXY_COPY_REQUEST };
static const enum proxy_fault faults[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };

static void open_both(struct world *w)
{
    world_allow(w, "latchkey:done:*");
    p = proxy_begin(w);
    mine = world_once(w, proxy_client(p, "lease=2s&command_timeout=300ms&poll=200ms"), "migrated", NULL);
    theirs = world_once(w, world_client(w, "lease=2s"), "migrated", NULL);
    assert_lk(0, lk_once_begin(mine, 0)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_once_fail(mine));
    assert_lk(0, lk_once_begin(mine, 0));
    assert_lk(0, lk_once_end(mine, "first"));
    assert_lk(0, lk_once_reset(mine));
}

static void assert_result(const char *expected)
{
    char *text;
    assert_lk(0, lk_once_result(theirs, &text));
    assert_string_equal(expected, text);
    lk_free(text);
}

/* Where the connection is cut the request is sent again; a copy that comes late does nothing more. */
static void a_cut_request_counts_once(struct world *w)
{
    open_both(w);
    for (unsigned i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        proxy_once(p, cuts[i], 1, BEGINNING);
        assert_lk(0, lk_once_begin(mine, 0));
        proxy_once(p, cuts[i], 1, GIVING_UP);
        assert_lk(0, lk_once_fail(mine));
        assert_lk(0, lk_once_begin(theirs, 2000)); /* a late copy of the beginning is given back */
        proxy_release(p);
        assert_lk(0, lk_once_check(theirs));
        assert_lk(0, lk_once_fail(theirs));
        assert_lk(0, lk_once_begin(mine, 2000));
        proxy_once(p, cuts[i], 1, "second");
        assert_lk(0, lk_once_end(mine, "second"));
        assert_result("second");
        assert_lk(EALREADY, lk_once_begin(theirs, 0));
        assert_lk(0, lk_once_reset(theirs));
        assert_lk(0, lk_once_begin(theirs, 2000));
        proxy_release(p); /* a late copy of the end completes no other run */
        sleep_ms(50);
        assert_lk(0, lk_once_check(theirs));
        assert_lk(0, lk_once_end(theirs, "third"));
        assert_result("third");
        assert_lk(0, lk_once_reset(theirs));
    }
}

static int run_it(void *once)
{
    int rc = lk_once_begin(once, 2000);
    return rc != 0 ? rc : lk_once_end(once, "completed");
}

/* It completed, and that is forgotten before the answer is asked for again: it had completed. */
static void an_end_that_was_reset_is_no_loss(struct world *w)
{
    struct worker runner;
    open_both(w);
    mine = world_once(w, proxy_client(p, "lease=20s&command_timeout=5s&retry_max=50ms"), "migrated", NULL);
    proxy_refuse(p, true);
    proxy_once(p, PROXY_CUT_REPLY, 1, "completed");
    worker_start(&runner, run_it, mine);
    eventually(world_int(w, "HEXISTS latchkey:done:{migrated} result") == 1, 5000);
    assert_lk(0, lk_once_reset(theirs));
    proxy_refuse(p, false);
    assert_lk(0, worker_join(&runner));
    assert_between(world_int(w, "PTTL latchkey:done:{migrated}"), 1, 60000);
    assert_lk(0, lk_once_begin(theirs, 2000));
    assert_lk(0, lk_once_end(theirs, "again"));
    assert_int_equal(-1, world_int(w, "PTTL latchkey:done:{migrated}"));
    assert_result("again");
}

/* Without an answer the outcome is unknown; the library goes on, and in the end it is done. */
static void an_end_without_an_answer_is_repeated(struct world *w)
{
    static const char *const results[] = { "in the end", "after all" };
    open_both(w);
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        assert_lk(0, lk_once_begin(mine, 2000));
        proxy_once(p, faults[i], 1, results[i]);
        assert_lk(EIO, lk_once_end(mine, results[i]));
        assert_lk(EPERM, lk_once_end(mine, "again"));
        assert_lk(EALREADY, lk_once_begin(theirs, 5000));
        assert_result(results[i]);
        assert_lk(0, lk_once_reset(theirs));
        proxy_release(p);
        sleep_ms(50);
    }
}

/* A beginning without an answer is given back by the library. */
static void a_beginning_without_an_answer_is_given_back(struct world *w)
{
    open_both(w);
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        proxy_once(p, faults[i], 1, BEGINNING);
        assert_lk(EIO, lk_once_begin(mine, 0));
        proxy_release(p);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_once_begin(theirs, 5000));
        assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
        assert_lk(0, lk_once_fail(theirs));
    }
}

static int begin_it(void *once)
{
    return lk_once_begin(once, 20000);
}

/* The message that tells of the end is lost; the next poll finds out. */
static void a_lost_message_costs_one_poll(struct world *w)
{
    struct worker waiter;
    open_both(w);
    assert_lk(0, lk_once_begin(theirs, 0));
    assert_lk(ETIMEDOUT, lk_once_begin(mine, 400)); /* from now on it listens */
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, 5000);
    worker_start(&waiter, begin_it, mine);
    int64_t before = proxy_faults(p);
    proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
    assert_lk(0, lk_once_end(theirs, NULL));
    eventually(proxy_faults(p) == before + 1, 5000);
    assert_int_equal(EALREADY, worker_join(&waiter));
}

/* The server is away while threads wait: they go on when it is back. */
static void who_waits_outlives_the_server(struct world *w)
{
    struct worker waiters[4];
    world_allow(w, "latchkey:run:*");
    open_both(w);
    assert_lk(0, lk_once_begin(theirs, 0));
    for (int i = 0; i < 4; i++)
        worker_start(&waiters[i], begin_it, i % 2 == 0 ? mine : theirs);
    sleep_ms(300);
    world_kill_server(w);
    sleep_ms(500);
    world_restart_server(w); /* it knows nothing of the run */
    int granted = 0;
    for (int i = 0; i < 4; i++)
        granted += worker_join(&waiters[i]) == 0; /* each thread that is let in ends, and with it its run */
    assert_int_equal(4, granted);
    assert_lk(ESTALE, lk_once_end(theirs, "lost"));
}

int main(void)
{
    return world_run(a_cut_request_counts_once, an_end_that_was_reset_is_no_loss, an_end_without_an_answer_is_repeated,
                     a_beginning_without_an_answer_is_given_back, a_lost_message_costs_one_poll,
                     who_waits_outlives_the_server);
}
