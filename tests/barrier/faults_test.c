/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - parties stand still, fork, are signalled; connections end, the server comes back, wake-ups are forged
 *
 * What every outage and every robbery does to a round: tests/support/outage.c, robbery.c.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "process.h"
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEASE_MS = 600 };

static lk_client_t *client;
static lk_barrier_t *mine, *theirs;

static void open_both(struct world *w, const char *options, unsigned parties)
{
    world_allow(w, "latchkey:*:{stage}");
    client = world_client(w, options);
    mine = world_barrier(w, client, "stage", parties, NULL);
    theirs = world_barrier(w, world_client(w, options), "stage", parties, NULL);
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, 20000);
}

static int64_t arrived(struct world *w)
{
    return world_int(w, "ZCARD latchkey:parties:{stage}");
}

/* The other one waits, in `party`. */
static void begin_round(struct world *w, struct worker *party)
{
    worker_start(party, meet, theirs);
    eventually(arrived(w) == 1, 5000);
}

/* We come last, and both pass. */
static void end_round(struct worker *party)
{
    assert_int_equal(LK_BARRIER_SERIAL, meet(mine));
    assert_int_equal(0, worker_join(party));
}

/* Is the lease of the party over, by the server's clock, or has it left? */
static bool has_ended(struct world *w)
{
    return world_int(w, "EVAL %s 1 latchkey:parties:{stage}",
                     "local t, party = redis.call('TIME'), redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES') "
                     "return party[2] and tonumber(party[2]) > t[1] * 1000 + math.floor(t[2] / 1000) and 0 or 1") == 1;
}

static int wait_briefly_leased(struct world *w, void *arg)
{
    static const lk_barrierattr_t brief = { .size = sizeof brief, .lease_ms = LEASE_MS };
    (void)arg;
    world_allow(w, "latchkey:*:{stage}");
    mine = world_barrier(w, world_client(w, "poll=200ms"), "stage", 2, &brief);
    world_ready(w);
    return meet(mine) == ECANCELED ? 0 : 1;
}

/* Longer than its lease: whoever comes is told, and so is the party when it goes on. */
static void a_party_that_stands_still_breaks_the_round(struct world *w)
{
    pid_t party = world_fork(w, wait_briefly_leased, NULL);
    open_both(w, "lease=20s&poll=200ms", 2);
    eventually(arrived(w) == 1, 5000);
    world_stop(party);
    eventually(has_ended(w), 5000);
    assert_lk(ECANCELED, meet(mine));
    world_cont(party);
    assert_int_equal(0, world_wait(w, party));
    assert_lk(0, lk_barrier_reset(mine));
}

/* Connections of either kind end, scripts are forgotten, while one waits and when the other one comes. */
static void connections_end_all_the_time(struct world *w)
{
    struct worker party;
    open_both(w, "lease=20s&poll=200ms", 2);
    for (int i = 0; i < 20; i++) {
        begin_round(w, &party);
        world_blow(w, i % WORLD_BLOWS);
        assert_int_equal(LK_BARRIER_SERIAL, meet(mine));
        world_blow(w, (i + 1) % WORLD_BLOWS);
        assert_int_equal(0, worker_join(&party));
    }
}

/* Who waits is not told by a message that nobody sent, and asks seldom enough. */
static void forged_wakeups_change_nothing(struct world *w)
{
    struct worker party;
    open_both(w, "lease=20s&poll=10s", 2);
    begin_round(w, &party);
    for (int i = 0; i < 300; i++) {
        world_redis(w, "PUBLISH latchkey:met:{stage} %s", i % 3 == 0 ? "0" : i % 3 == 1 ? "1" : "nonsense");
        sleep_ms(1);
    }
    assert_int_equal(1, arrived(w));
    end_round(&party);
}

/* Who leaves a round that somebody deleted leaves nothing behind, least of all a key without an end. */
static void a_deleted_round_is_not_made_again(struct world *w)
{
    struct worker party;
    open_both(w, "lease=20s&poll=200ms", 2);
    begin_round(w, &party);
    world_redis(w, "DEL latchkey:barrier:{stage}");
    assert_int_equal(ESTALE, worker_join(&party));
    eventually(arrived(w) == 0, 5000);
    assert_false(world_exists(w, "latchkey:barrier:{stage}"));
    begin_round(w, &party);
    end_round(&party);
}

/* A failover lost that one came: it is told, and the others, who would wait for it for ever, that the round is broken. */
static void a_party_that_the_server_forgot_breaks_the_round(struct world *w)
{
    struct worker forgotten, other;
    char party[80];
    open_both(w, "lease=1s&poll=200ms", 3);
    lk_barrier_t *third = world_barrier(w, client, "stage", 3, NULL);
    begin_round(w, &forgotten);
    snprintf(party, sizeof party, "%s", world_str(w, "EVAL %s 1 latchkey:parties:{stage}",
                                                  "return redis.call('ZRANGE', KEYS[1], 0, 0)[1]"));
    worker_start(&other, meet, mine);
    eventually(arrived(w) == 2, 5000);
    assert_int_equal(1, world_int(w, "ZREM latchkey:parties:{stage} %s", party));
    assert_int_equal(ESTALE, worker_join(&forgotten));
    assert_int_equal(ECANCELED, worker_join(&other));
    assert_lk(ECANCELED, meet(third));
    assert_lk(0, lk_barrier_reset(third));
}

/* The server is killed, and has its data when it is back before the lease is over. */
static void a_round_outlives_the_server(void)
{
    struct world *w = world_begin("--appendonly yes --appendfsync always");
    struct worker party;
    open_both(w, "lease=6s&command_timeout=1200ms&poll=200ms&retry_max=50ms", 2);
    begin_round(w, &party);
    world_kill_server(w);
    sleep_ms(300);
    world_restart_server(w);
    assert_int_equal(1, arrived(w));
    end_round(&party);
    world_end(w);
}

static int child_of_a_party(struct world *w, void *arg)
{
    (void)arg;
    assert_lk(ECANCELED, lk_barrier_waitfor(theirs, 0));
    assert_lk(ECANCELED, lk_barrier_reset(theirs));
    assert_lk(0, lk_barrier_destroy(theirs));
    assert_lk(0, lk_barrier_destroy(mine));
    assert_lk(0, lk_client_close(client));
    world_ready(w);
    if (SANITIZED)
        return 0; /* the leak checker would take the parent's memory for lost */
    exit(0);
}

/* The child neither waits nor leaves: the parent's party is renewed, and passes. */
static void the_child_of_a_party_is_none(struct world *w)
{
    struct worker party;
    if (THREAD_SANITIZED)
        skip(); /* it does not follow a fork out of a process with threads */
    open_both(w, "lease=2s&command_timeout=600ms&poll=200ms", 2);
    begin_round(w, &party);
    assert_int_equal(0, world_wait(w, world_fork(w, child_of_a_party, NULL)));
    sleep_ms(2100); /* longer than the lease */
    assert_int_equal(1, arrived(w));
    end_round(&party);
}

/* The close ends its wait within its time; the round breaks with the lease at the latest, as nobody could be told. */
static void a_client_is_closed_without_a_server(struct world *w)
{
    struct worker party;
    lk_barrier_t third;
    open_both(w, "lease=20s", 2);
    lk_client_t *closing = world_open(w, "lease=1s&command_timeout=200ms&poll=200ms");
    assert_lk(0, lk_barrier_init(&third, closing, "stage", 2, NULL));
    worker_start(&party, meet, &third);
    eventually(arrived(w) == 1, 5000);
    assert_lk(EBUSY, lk_barrier_destroy(&third));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    int rc = lk_client_close(closing);
    assert_true(rc == 0 || rc == EIO);
    assert_between(now_ms() - began_ms, 0, 2 * 200 + 2 * SLACK_MS);
    assert_int_equal(ECANCELED, worker_join(&party));
    world_cont_server(w);
    eventually(has_ended(w), 5000);
    assert_lk(ECANCELED, meet(mine));
    assert_lk(0, lk_barrier_reset(mine));
    assert_lk(ECANCELED, lk_barrier_wait(&third));
    assert_lk(0, lk_barrier_destroy(&third));
}

/* No signal ends a wait. */
static void signals_come_in_storms(struct world *w)
{
    static const int flags[] = { 0, SA_RESTART };
    struct worker party;
    open_both(w, "lease=20s&poll=200ms", 2);
    for (int i = 0; i < 2; i++) {
        int rc = LK_BARRIER_SERIAL;
        begin_round(w, &party);
        alarm_each_ms(1, flags[i]);
        sleep_ms(300);
        for (int n = 0; n < 20 && rc == LK_BARRIER_SERIAL; n++) {
            rc = meet(mine);
            if (worker_join(&party) != 0)
                rc = ERANGE;
            worker_start(&party, meet, theirs);
            while (arrived(w) != 1)
                sleep_ms(1);
        }
        alarm_each_ms(0, 0);
        assert_int_equal(LK_BARRIER_SERIAL, rc);
        end_round(&party);
    }
}

int main(void)
{
    int failed = plain_run(a_round_outlives_the_server);
    return failed + world_run(a_party_that_stands_still_breaks_the_round,
                              a_party_that_the_server_forgot_breaks_the_round, a_deleted_round_is_not_made_again,
                              connections_end_all_the_time, forged_wakeups_change_nothing, the_child_of_a_party_is_none,
                              a_client_is_closed_without_a_server, signals_come_in_storms);
}
