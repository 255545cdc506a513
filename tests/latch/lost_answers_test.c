/* SPDX-License-Identifier: MIT */
/*
 * lost_answers_test.c - requests and answers get lost, late or doubled on the way, and count once
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 8
 */
#include "proxy.h"

enum { COMMAND_MS = 300 };

#define HASTY "lease=5s&command_timeout=300ms&poll=200ms"
#define PATIENT "lease=20s&command_timeout=5s&poll=200ms" /* no answer is waited for in vain */

static struct proxy *p;
static lk_client_t *client;
static lk_latch_t *gate, *same; /* by way of the proxy, and past it, with time */

static void open_gate(struct world *w, const char *options)
{
    p = proxy_begin(w);
    client = proxy_client(p, options);
    gate = world_latch(w, client, "gate");
    same = world_latch(w, world_client(w, PATIENT), "gate");
    assert_lk(0, lk_latch_trysetcount(same, 1)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_latch_countdown(same));
    assert_lk(0, lk_latch_wait(same));
    assert_lk(0, lk_latch_trysetcount(same, 1));
    assert_lk(0, lk_latch_delete(same));
}

static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_PARK_REQUEST };
static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY, PROXY_HOLD_REQUEST,
                                           PROXY_PARK_REQUEST };
enum { CUTS = sizeof cuts / sizeof cuts[0], FAULTS = sizeof faults / sizeof faults[0] };

static void arm(enum proxy_fault fault)
{
    proxy_once(p, fault, 1, "gate");
}

/* Where the connection is cut, the request is sent again, and takes effect once; so does a copy that comes late. */
static void a_cut_request_counts_once(struct world *w)
{
    open_gate(w, PATIENT);
    for (int i = 0; i < CUTS; i++) {
        arm(cuts[i]);
        assert_lk(0, lk_latch_trysetcount(gate, 3)); /* not EEXIST by its own copy */
        assert_int_equal(3, world_int(w, "GET gate"));
        proxy_release(p);
        arm(cuts[i]);
        assert_lk(0, lk_latch_countdown(gate));
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(2, world_int(w, "GET gate"));
        arm(cuts[i]);
        assert_lk(0, lk_latch_countdownby(gate, 2)); /* not ENOENT by its own copy */
        assert_false(world_exists(w, "gate"));
        assert_lk(0, lk_latch_wait(gate));
        assert_lk(0, lk_latch_trysetcount(gate, 1));
        arm(cuts[i]);
        assert_lk(0, lk_latch_delete(gate));
        assert_lk(0, lk_latch_trysetcount(gate, 7));
        proxy_release(p); /* a late copy of the deletion, or the countdown to zero, is not for this count */
        sleep_ms(50);
        assert_int_equal(7, world_int(w, "GET gate"));
        arm(cuts[i]);
        assert_lk(0, lk_latch_setcount(gate, 9));
        assert_lk(0, lk_latch_countdown(gate));
        proxy_release(p); /* nor is one that replaces it */
        sleep_ms(50);
        assert_int_equal(8, world_int(w, "GET gate"));
        assert_lk(0, lk_latch_countdownby(gate, 8));
        arm(cuts[i]);
        assert_lk(0, lk_latch_delete(gate)); /* open: not ENOENT by its own copy */
        assert_lk(ENOENT, lk_latch_waitfor(gate, 0));
    }
}

/* An older request that comes after a newer one of the same thread is a copy, too. */
static void a_late_copy_of_an_earlier_countdown_counts_once(struct world *w)
{
    open_gate(w, PATIENT);
    assert_lk(0, lk_latch_trysetcount(gate, 10));
    for (int i = 0; i < 3; i++) {
        arm(PROXY_PARK_REQUEST);
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_countdown(gate));
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(10 - 2 * (i + 1), world_int(w, "GET gate"));
    }
    assert_lk(0, lk_latch_delete(gate));
}

/* A request that was refused is over: a copy that comes when it would be allowed is refused as well. */
static void a_refused_request_does_not_count_later(struct world *w)
{
    open_gate(w, PATIENT);
    arm(PROXY_PARK_REQUEST);
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_trysetcount(same, 2));
    proxy_release(p);
    sleep_ms(50);
    assert_int_equal(2, world_int(w, "GET gate"));
    arm(PROXY_PARK_REQUEST);
    assert_lk(EEXIST, lk_latch_trysetcount(gate, 5));
    assert_lk(0, lk_latch_countdownby(same, 2));
    proxy_release(p);
    sleep_ms(50);
    assert_false(world_exists(w, "gate"));
    assert_lk(0, lk_latch_delete(same));
    arm(PROXY_PARK_REQUEST);
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_lk(0, lk_latch_trysetcount(same, 2));
    proxy_release(p);
    sleep_ms(50);
    assert_int_equal(2, world_int(w, "GET gate"));
    assert_lk(0, lk_latch_delete(same));
}

/* No answer in time: the caller is told so, and the library goes on until it counted, once. */
static void an_unanswered_countdown_is_eio_and_counts_once(struct world *w)
{
    open_gate(w, HASTY);
    for (int i = 2; i < 4; i++) {
        assert_lk(0, lk_latch_trysetcount(same, 5));
        int64_t before = world_commands(w, "evalsha");
        arm(faults[i]);
        int64_t began_ms = now_ms();
        assert_lk(EIO, lk_latch_countdown(gate));
        assert_between(now_ms() - began_ms, COMMAND_MS - 1, COMMAND_MS + SLACK_MS);
        assert_between(lk_errorsettles(), 20000, 30000 + SLACK_MS); /* and what clocks may differ by */
        eventually(world_int(w, "GET gate") == 4, 5000);
        proxy_release(p); /* a copy: the record knows it */
        eventually(world_commands(w, "evalsha") >= before + 2, 5000); /* both came, and neither is still to be hit */
        assert_lk(0, lk_latch_countdown(gate)); /* another request, which the copies do not disturb */
        assert_int_equal(3, world_int(w, "GET gate"));
        assert_lk(0, lk_latch_delete(same));
    }
}

/* A wait that loses its questions, its answers or its whole connection asks again. */
static void a_wait_survives_every_fault(struct world *w)
{
    open_gate(w, HASTY);
    for (int i = 0; i < FAULTS; i++)
        for (int k = 1; k <= 3; k++) {
            struct worker waiter;
            unsigned count;
            assert_lk(0, lk_latch_trysetcount(same, 1));
            proxy_once(p, faults[i], k, "gate"); /* the first look, the subscription, the second look */
            worker_start(&waiter, await_latch, gate);
            sleep_ms(k * 50);
            world_redis(w, "MULTI"); /* as our last countdown does, but past the proxy */
            world_redis(w, "SET latchkey:opened:{gate} %s PX 600000", "opened 4000000000000000");
            world_redis(w, "DEL gate");
            world_redis(w, "EXEC");
            proxy_release(p);
            assert_int_equal(0, worker_join(&waiter));
            proxy_cut(p); /* what was not used up */
            eventually(lk_latch_getcount(gate, &count) == 0, 5000);
            world_redis(w, "DEL latchkey:opened:{gate}");
        }
}

/* With a limit, no server is an answer; the latch is not taken for open or gone. */
static void without_a_server_a_timed_wait_ends(struct world *w)
{
    unsigned count;
    open_gate(w, HASTY);
    assert_lk(0, lk_latch_trysetcount(same, 1));
    proxy_refuse(p, true);
    proxy_cut(p);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_latch_waitfor(gate, 500));
    assert_between(now_ms() - began_ms, 499, 500 + COMMAND_MS + SLACK_MS);
    assert_lk(ENOTCONN, lk_latch_countdown(gate));
    assert_lk(ENOTCONN, lk_latch_getcount(gate, &count));
    assert_lk(ENOTCONN, lk_latch_waitfor(gate, 0));
    proxy_refuse(p, false);
    eventually(lk_latch_getcount(gate, &count) == 0, 5000);
    assert_int_equal(1, count);
    proxy_stall(p, PROXY_BOTH);
    began_ms = now_ms();
    assert_lk(ENOTCONN, lk_latch_waitfor(gate, 500));
    assert_between(now_ms() - began_ms, 499, 500 + COMMAND_MS + SLACK_MS);
    proxy_resume(p);
    int rc;
    eventually((rc = lk_latch_delete(gate)) == 0 || rc == ENOENT, 5000); /* ENOENT: deleted, and unseen */
    assert_lk(ECANCELED, lk_latch_wait(same));
}

/* Closing ends a wait whose question is under way to a server that does not answer. */
static void close_ends_a_wait_for_an_answer(struct world *w)
{
    struct worker waiter;
    open_gate(w, HASTY);
    assert_lk(0, lk_latch_trysetcount(same, 1));
    worker_start(&waiter, await_latch, gate);
    sleep_ms(100);
    proxy_stall(p, PROXY_BOTH);
    sleep_ms(300); /* a poll is due by now */
    int64_t began_ms = now_ms();
    assert_lk(0, close_by_hand(w, client));
    assert_between(now_ms() - began_ms, 0, 3 * COMMAND_MS + SLACK_MS);
    assert_int_equal(ECANCELED, worker_join(&waiter));
    world_close(w, gate);
    proxy_end(p);
    world_redis(w, "DEL gate");
}

int main(void)
{
    return world_run(a_cut_request_counts_once, a_late_copy_of_an_earlier_countdown_counts_once,
                     a_refused_request_does_not_count_later,
                     an_unanswered_countdown_is_eio_and_counts_once, a_wait_survives_every_fault,
                     without_a_server_a_timed_wait_ends, close_ends_a_wait_for_an_answer);
}
