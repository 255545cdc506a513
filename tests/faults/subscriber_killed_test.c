/* SPDX-License-Identifier: MIT */
/*
 * subscriber_killed_test.c - F10: the subscription ends - killed, too slow, too fat, no longer permitted - or one
 * message of it vanishes; waiters hear of what became free all the same
 *
 * labels: threads memory
 * simulated: yes
 */
#include "rig.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Polls are far away where a waiter has to hear of it by itself. */
#define FAR_POLL "lease=20s&poll=8s&client_name=listener"

enum { SOON_MS = 1500 };

static struct rig *rig;
static struct errand errands[RIG_PLACES];
static struct worker at_gate;

/* Everybody waits, and listens. */
static void let_wait(struct world *w)
{
    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 1));
    worker_start(&at_gate, await_latch_patiently, &rig->gate);
    for_each_place(place, rig) {
        assert_lk(0, subject_take(&place->theirs, 1000));
        errand_start(&errands[place - rig->places], &place->mine, 30000);
        eventually(errand_waits(w, &errands[place - rig->places]), 5000);
    }
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch__channel__*") == 1, 5000);
    sleep_ms(20);
}

/* All of it becomes free at once: the message may find nobody there. */
static void let_go(int64_t within_ms)
{
    int64_t began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    for_each_place(place, rig)
        assert_lk(0, subject_give(&place->theirs));
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_lk(0, errand->gave);
        assert_between(errand->took_ms - began_ms, 0, within_ms);
    }
    assert_lk(0, worker_join(&at_gate));
    assert_between(now_ms() - began_ms, 0, within_ms);
}

/* --- one cause after the other: the subscription comes back, everybody asks again ------------------------------------ */

/* As a subscriber that does not read: its buffer at the server grows beyond the limit. */
static void overflow(struct world *w)
{
    static char junk[4096];
    redisContext *plain = redisConnectUnix(w->socket);
    redisReply *channels = redisCommand(plain, "PUBSUB CHANNELS latchkey:client:*");
    assert_that(channels != NULL && channels->elements >= 1);
    memset(junk, 'x', sizeof junk - 1);
    junk[sizeof junk - 1] = 0;
    world_redis(w, "CONFIG SET client-output-buffer-limit %s", "pubsub 1024 0 0");
    for (size_t i = 0; i < channels->elements; i++)
        world_redis(w, "PUBLISH %s %s", channels->element[i]->str, junk);
    world_redis(w, "CONFIG SET client-output-buffer-limit %s", "pubsub 33554432 8388608 60");
    freeReplyObject(channels);
    redisFree(plain);
}

/* The server throws out the fattest of its clients. Redis 8.0 throws out none that only listens: there they are killed. */
static void evict(struct world *w)
{
    int64_t connections = world_counter(w, "total_connections_received"), until_ms = now_ms() + SOON_MS / 3;
    world_redis(w, "CLIENT NO-EVICT on"); /* us */
    world_redis(w, "CONFIG SET maxmemory-clients 1");
    while (world_counter(w, "total_connections_received") == connections && now_ms() < until_ms)
        sleep_ms(10);
    world_redis(w, "CONFIG SET maxmemory-clients 0");
    if (world_counter(w, "total_connections_received") == connections)
        world_killsubscriptions(w);
}

static void a_subscription_that_ends(struct world *w)
{
    static const struct {
        const char *how;
        void (*end)(struct world *w);
    } causes[] = { { "killed", world_killsubscriptions }, { "overflown", overflow }, { "evicted", evict } };
    rig = rig_begin(w, world_url(w, FAR_POLL), FAR_POLL);
    for (int i = 0; i < 3; i++) {
        print_message("    F10: %s\n", causes[i].how);
        let_wait(w);
        int64_t connections = world_counter(w, "total_connections_received");
        causes[i].end(w);
        let_go(SOON_MS + RIG_SLACK_MS);
        assert_true(world_counter(w, "total_connections_received") > connections);
        rig_works(rig);
    }
}

/* --- the right is taken away: from then on, polls ---------------------------------------------------------------------- */

static void a_user_loses_the_right_to_listen(struct world *w)
{
    char url[256];
    world_redis(w, "ACL SETUSER worker on >secret ~* +@all &*");
    snprintf(url, sizeof url, "unix://worker:secret@%s?lease=20s&poll=300ms", w->socket);
    rig = rig_begin(w, url, "lease=20s");
    let_wait(w);
    world_redis(w, "ACL SETUSER worker resetchannels"); /* cuts its subscribers off */
    let_go(300 * 6 / 5 + SOON_MS + RIG_SLACK_MS);
    for (int i = 0; i < RIG_PLACES; i++) { /* and those who begin to wait now */
        struct place *place = &rig->places[i];
        assert_lk(0, subject_take(&place->theirs, 1000));
        errand_start(&errands[i], &place->mine, 30000);
        eventually(errand_waits(w, &errands[i]), 5000);
        int64_t began_ms = now_ms();
        assert_lk(0, subject_give(&place->theirs));
        errand_join(&errands[i]);
        assert_lk(0, errands[i].took);
        assert_between(errands[i].took_ms - began_ms, 0, 300 * 6 / 5 + RIG_SLACK_MS);
    }
}

/* --- a message vanishes, the subscription stays: one poll ------------------------------------------------------------------ */

static void a_message_that_vanishes_costs_a_poll(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    rig = rig_begin(w, proxy_url(p, "lease=20s&poll=300ms"), "lease=20s");
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        assert_lk(0, subject_take(&place->theirs, 1000));
        errand_start(errand, &place->mine, 30000);
        eventually(errand_waits(w, errand), 5000);
        int64_t began_ms = now_ms();
        proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
        assert_lk(0, subject_give(&place->theirs));
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_lk(0, errand->gave);
        assert_between(errand->took_ms - began_ms, 0, 300 * 6 / 5 + RIG_SLACK_MS);
    }
    assert_true(proxy_faults(p) > 0); /* on a busy machine, a poll may come before a message */
    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 1));
    worker_start(&at_gate, await_latch_patiently, &rig->gate);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch__channel__*") == 1, 5000);
    sleep_ms(20);
    proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
    int64_t began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    assert_lk(0, worker_join(&at_gate));
    assert_between(now_ms() - began_ms, 0, 300 * 6 / 5 + RIG_SLACK_MS);
    rig_works(rig);
}

int main(void)
{
    return world_run(a_subscription_that_ends, a_user_loses_the_right_to_listen, a_message_that_vanishes_costs_a_poll);
}
