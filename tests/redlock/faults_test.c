/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - servers of five are killed, stopped, started again with nothing, or cut off: a minority is not missed,
 * and without a majority nothing is granted
 *
 * labels: threads
 * simulated: yes
 * seconds: 20
 */
#include "client/client.h"
#include "news.h"
#include "quorum.h"

#include <string.h>

#define TIMES "lease=2s&command_timeout=400ms&retry_max=50ms"
/* Where nothing has to be lost: a stall of a second takes no renewal, and no answer. */
#define PATIENTLY "lease=4s&command_timeout=1200ms&retry_max=50ms"

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 300 };

/* Killed, or standing still with its connections open. */
static void a_minority_is_not_missed(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *client = quorum_client(q, PATIENTLY), *rival = quorum_client(q, PATIENTLY);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *other = quorum_redlock(w, rival, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    quorum_lockall(q, r, "jobs");
    quorum_kill(q, 0);
    quorum_stop(q, 1);
    for (int64_t until_ms = now_ms() + 5000; now_ms() < until_ms; sleep_ms(200)) {
        assert_answer(0, lk_redlock_check(r)); /* past the lease; all three that are left have to answer */
        assert_answer(EBUSY, lk_redlock_trylock(other));
    }
    assert_same(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_redlock_unlock(r));
    for (int i = 0; i < 10; i++) {
        assert_lk(0, lk_redlock_lockfor(i % 2 ? r : other, 5000));
        assert_lk(0, lk_redlock_unlock(i % 2 ? r : other));
    }
    quorum_cont(q, 1);
    quorum_start(q, 0);
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

static void without_a_majority_nothing_is_granted_and_callers_learn_it(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *client = quorum_client(q, TIMES), *rival = quorum_client(q, PATIENTLY);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *free = quorum_redlock(w, rival, "free", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    int64_t began_ms, left_ms;
    assert_lk(0, lk_redlock_lock(r));
    quorum_kill(q, 0);
    quorum_kill(q, 1);
    quorum_stop(q, 2);
    eventually(lk_redlock_trylock(free) == ENOTCONN && strstr(lk_errortext(), "of 5 servers 2") != NULL, 5000);
    began_ms = now_ms();
    assert_lk(ENOTCONN, lk_redlock_lockfor(free, 500));
    assert_between(now_ms() - began_ms, 500, 500 + 3 * 400 + SLACK_MS);
    eventually(news(n, LK_EVENT_LOST) == 1, 2000 + SLACK_MS);
    assert_same(LK_REASON_EXPIRED, news_reason(n));
    assert_lk(ESTALE, lk_redlock_remaining(r, &left_ms));
    assert_lk(ESTALE, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 0, 1000 + SLACK_MS); /* at those that could be told */
    quorum_cont(q, 2);
    quorum_start(q, 0);
    quorum_start(q, 1);
    assert_lk(0, lk_redlock_lockfor(free, 10000));
    assert_lk(0, lk_redlock_unlock(free));
}

/* Three of five have it. Two of them start again with nothing; with the two that never had it they would be a majority. */
static void a_server_that_started_a_moment_ago_has_no_vote(struct world *w)
{
    static const lk_redlockattr_t waits = { .size = sizeof waits, .longest_lease_ms = 4000, .node_timeout_ms = 300 };
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *client = quorum_client(q, PATIENTLY), *rival = quorum_client(q, PATIENTLY);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *other = quorum_redlock(w, rival, "jobs", &waits);
    int64_t left_ms;
    eventually(lk_redlock_trylock(other) == ENOTCONN && strstr(lk_errortext(), "5 started a moment ago") != NULL, 2000);
    assert_lk(0, lk_redlock_lockfor(other, 15000));
    assert_lk(0, lk_redlock_unlock(other));

    quorum_lockall(q, r, "jobs");
    for (int i = 0; i < 2; i++)
        quorum_int(q, i, "DEL jobs"); /* as if they had not been reached */
    for (int i = 2; i < 4; i++) {
        quorum_kill(q, i);
        quorum_start(q, i);
    }
    int rc = ENOTCONN;
    for (int i = 0; i < 10 && rc != 0; i++, sleep_ms(50)) {
        rc = lk_redlock_trylock(other);
        if (rc == 0) /* the next renewals found out: then it was told, and given back where it was */
            assert_lk(ESTALE, lk_redlock_remaining(r, &left_ms));
        else
            assert_true(rc == ENOTCONN || rc == EBUSY);
    }
    (void)lk_redlock_unlock(r);
    if (rc != 0)
        assert_lk(0, lk_redlock_lockfor(other, 15000));
    assert_lk(0, lk_redlock_unlock(other));
}

/* A majority forgot it: who asks, or the watchdog, finds out. */
static void what_a_majority_forgot_is_lost(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *client = quorum_client(q, "lease=9s&command_timeout=2500ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *s = quorum_redlock(w, client, "more", &no_wait);
    struct news *n = news_of(w, client, "more");
    quorum_lockall(q, r, "jobs");
    quorum_lockall(q, s, "more");
    for (int i = 0; i < 2; i++)
        quorum_int(q, i, "FLUSHALL");
    assert_answer(0, lk_redlock_check(r));
    quorum_int(q, 2, "FLUSHALL");
    assert_answer(ESTALE, lk_redlock_check(r));
    eventually(news(n, LK_EVENT_LOST) == 1, 8000);
    assert_same(LK_REASON_GONE, news_reason(n));
    assert_lk(ESTALE, lk_redlock_unlock(r));
    assert_lk(ESTALE, lk_redlock_unlock(s));
    eventually(quorum_having(q, "jobs") == 0 && quorum_having(q, "more") == 0, 5000);
}

/* Each of two clients sees another half, and the one in the middle: whoever has that one has it all. */
static void who_sees_different_halves_does_not_get_it_twice(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *left = world_client_at(w, q, quorum_url_without(q, "34", PATIENTLY));
    lk_client_t *right = world_client_at(w, q, quorum_url_without(q, "01", PATIENTLY));
    lk_client_t *less = NULL;
    lk_redlock_t *r = quorum_redlock(w, left, "jobs", &no_wait), *other = quorum_redlock(w, right, "jobs", &no_wait);
    assert_lk(ENOTCONN, lk_client_open(&less, quorum_url_without(q, "012", PATIENTLY)));
    for (int i = 0; i < 5; i++) {
        lk_redlock_t *first = i % 2 ? r : other, *second = i % 2 ? other : r;
        assert_lk(0, lk_redlock_lockfor(first, 5000));
        int rc = lk_redlock_trylock(second);
        assert_true(rc == ENOTCONN || rc == EBUSY);
        assert_lk(0, lk_redlock_unlock(first));
    }
    assert_lk(0, lk_redlock_lockfor(r, 5000));
    quorum_stop(q, 2); /* now each sees two, and that is nothing */
    assert_lk(ENOTCONN, lk_redlock_lockfor(other, 300));
    quorum_cont(q, 2);
    (void)lk_redlock_unlock(r);
    assert_lk(0, lk_redlock_lockfor(other, 10000));
    assert_lk(0, lk_redlock_unlock(other));
}

/* One that does not answer is waited for no longer than a majority takes. */
static void a_server_that_does_not_answer_costs_no_time(struct world *w)
{
    lk_redlockattr_t patient = no_wait;
    patient.node_timeout_ms = 1500;
    struct quorum *q = quorum_begin(w, 5);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, "lease=30s&command_timeout=2s"), "jobs", &patient);
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(0, lk_redlock_unlock(r));
    quorum_stop(q, 0);
    quorum_stop(q, 4);
    int64_t began_ms = now_ms();
    for (int i = 0; i < 5; i++) {
        assert_lk(0, lk_redlock_lock(r));
        assert_lk(0, lk_redlock_unlock(r));
    }
    assert_between(now_ms() - began_ms, 0, 2500 + SLACK_MS); /* five node timeouts alone would be more than seven seconds */
    quorum_cont(q, 0);
    quorum_cont(q, 4);
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

/* One that accepts connections and does not speak keeps a thread for connect_timeout, again and again: it is its own. */
static void a_server_that_does_not_speak_delays_no_other(struct world *w)
{
    struct quorum *q = quorum_begin(w, 9);
    lk_client_t *client = quorum_client(q, "lease=60s&command_timeout=300ms&connect_timeout=6s&retry_max=50ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    quorum_lockall(q, r, "jobs");
    assert_lk(0, lk_redlock_unlock(r));
    quorum_stop(q, 0);
    assert_answer(0, lk_redlock_lockfor(r, 5000));
    sleep_ms(600); /* by then it is known to be silent, and a new connection is waited for */
    for (int node = 1; node < 9; node++)
        quorum_int(q, node, "CLIENT KILL TYPE normal SKIPME yes");
    (void)!lk_redlock_check(r); /* something is to be sent */
    for (int node = 1; node < 9; node++)
        eventually(library_clients(quorum_str(q, node, "CLIENT LIST")) > 0, 3000);
    assert_answer(0, lk_redlock_unlock(r));
    quorum_cont(q, 0);
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

/* Two cannot be a majority, so nobody waits for what they say; they are well all the same. */
static void who_is_not_awaited_is_not_told_to_be_silent(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, PATIENTLY), "jobs", &no_wait);
    quorum_lockall(q, r, "jobs");
    assert_lk(0, lk_redlock_unlock(r));
    for (int i = 0; i < 3; i++)
        quorum_kill(q, i);
    eventually(lk_redlock_trylock(r) == ENOTCONN && strstr(lk_errortext(), " 3 do not answer or refuse") != NULL, 10000);
    for (int i = 0; i < 20; i++) {
        assert_lk(ENOTCONN, lk_redlock_trylock(r));
        assert_says(" 3 do not answer or refuse");
    }
    for (int i = 0; i < 3; i++) /* a close tells them of the releases that they missed */
        quorum_start(q, i);
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

/* No connection is still being made then, because a server whose connection cannot be made counts as away. */
static void kill_connections(struct quorum *q, lk_client_t *client)
{
    for (unsigned i = 0; i < 5; i++)
        eventually(lk__conn_isup(&lk__node_nth(&client->node, i)->lanes[LK__LANE_COMMANDS]), 5000);
    for (int i = 0; i < 5; i++)
        quorum_int(q, i, "CLIENT KILL TYPE normal");
}

/* As `timeout` of the servers does, or a firewall that forgets idle connections: all servers are well, and answer. */
static void a_call_after_all_connections_ended_is_answered(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *client = quorum_client(q, "lease=10s&command_timeout=2s");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
    for (int i = 0; i < 5; i++) {
        kill_connections(q, client);
        assert_lk(0, lk_redlock_check(r));
        kill_connections(q, client);
        assert_lk(0, lk_redlock_extend(r, 10000));
        kill_connections(q, client);
        assert_lk(0, lk_redlock_info(r, &info));
        kill_connections(q, client);
        assert_lk(0, lk_redlock_unlock(r));
        kill_connections(q, client);
        assert_lk(0, lk_redlock_trylock(r));
        sleep_ms(200); /* a pause as the next one: those that were idle end */
    }
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

int main(void)
{
    return world_run(a_minority_is_not_missed, without_a_majority_nothing_is_granted_and_callers_learn_it,
                     a_server_that_started_a_moment_ago_has_no_vote, what_a_majority_forgot_is_lost,
                     who_sees_different_halves_does_not_get_it_twice, a_server_that_does_not_answer_costs_no_time,
                     a_server_that_does_not_speak_delays_no_other, who_is_not_awaited_is_not_told_to_be_silent,
                     a_call_after_all_connections_ended_is_answered);
}
