/* SPDX-License-Identifier: MIT */
/*
 * forged_wakeups_test.c - F67: messages that are false, old, doubled, out of order, or a flood are hints at most
 *
 * Who may publish on a client's channel and knows the id of its present attempt can forge a grant for it;
 * that is outside the promise, as such a user can write the keys as well. All others can make a waiter ask,
 * no more, and not too often.
 *
 * labels: threads memory
 * processors: 6
 */
#include "rig.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { FLOOD_MS = 500, ASK_EVERY_MS = 5 };

static struct rig *rig;
static struct errand errand;

/* Those who wait until a run is done hear of it all at once: once/faults. */
static bool has_own_channel(const struct place *place)
{
    return place->mine.kind->queued != NULL;
}

/* Somebody else has it, and ours waits, and would not ask by itself for long. */
static void let_wait(struct world *w, struct place *place)
{
    assert_lk(0, subject_take(&place->theirs, 1000));
    errand_start(&errand, &place->mine, 30000);
    eventually(errand_waits(w, &errand), 5000);
}

static void let_go(struct place *place)
{
    assert_lk(0, subject_give(&place->theirs));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
    assert_int_equal(0, subject_held(rig->w, &place->mine));
}

/* The id under which ours waits: "<client>:<owner>:<acquisition>...". */
static const char *waiter_id(struct world *w, const struct place *place)
{
    const char *queue = world_str(w, "EVAL %s 0", "return table.concat(redis.call('KEYS', 'latchkey:queue:*'), ' ')");
    assert_non_null(strstr(queue, place->mine.name));
    return world_str(w, "EVAL %s 1 %s", "return redis.call('ZRANGE', KEYS[1], 0, 0)[1]", queue);
}

static const char *channel_of(const char *id)
{
    static char channel[80];
    snprintf(channel, sizeof channel, "latchkey:client:%.32s", id);
    return channel;
}

static bool still_waits(struct world *w, const struct place *place)
{
    sleep_ms(30);
    return !errand_took(&errand) && subject_queued(w, &place->mine) == 1 && subject_held(w, &place->mine) == 1;
}

/* Whatever is said: it waits until the holder gives it back. */
static void a_message_alone_grants_nothing(struct world *w)
{
    static const char *const formats[] = {
        "", "x", "G", "G ", "G %s", "F %s", "F %s %s", "P %s",                  /* true ids, nothing granted */
        "G %s1 99999999999999999 1000 5 0", "G %s:1 4000000000000000 1000 5 0", /* ids of nobody */
        "G 00000000000000000000000000000000:1:1 4000000000000000 1000 5 0", "G %s -1 1000 5 0", "G %s 0 0 0 0",
        /* a grant that makes no sense */

        "G %s a b c d", "G %s 1 1000 5 0", /* the last: long over */
    };
    char message[512];
    rig = rig_begin(w, world_url(w, "lease=20s&poll=8s"), "lease=20s");
    for_each_place(place, rig) {
        if (!has_own_channel(place))
            continue;
        let_wait(w, place);
        const char *id = waiter_id(w, place), *channel = channel_of(id);
        eventually(world_int(w, "PUBLISH %s x", channel) >= 1, 5000);
        for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(message, sizeof message, formats[i], id, id);
#pragma GCC diagnostic pop
            assert_true(world_int(w, "PUBLISH %s %s", channel, message) >= 1);
        }
        assert_true(still_waits(w, place));
        let_go(place);
    }
    rig_works(rig);
}

/* The grant of one attempt, heard once more during the next one, or twice at once. */
static void a_grant_that_is_heard_again(struct world *w)
{
    char channel[80], grant[512];
    rig = rig_begin(w, world_url(w, "lease=20s&poll=8s"), "lease=20s");
    for_each_place(place, rig) {
        if (!has_own_channel(place))
            continue;
        let_wait(w, place);
        snprintf(channel, sizeof channel, "%s", channel_of(waiter_id(w, place)));
        eventually(world_int(w, "PUBLISH %s x", channel) >= 1, 5000);
        world_subscribe(w, channel);
        let_go(place);
        do {
            const char *heard = world_message(w, 1000);
            assert_non_null(heard);
            snprintf(grant, sizeof grant, "%s", heard);
        } while (grant[0] != 'G');
        world_redis(w, "PUBLISH %s %s", channel, grant); /* nobody waits */
        let_wait(w, place);
        for (int i = 0; i < 3; i++)
            world_redis(w, "PUBLISH %s %s", channel, grant); /* another attempt waits */
        assert_true(still_waits(w, place));
        let_go(place);
    }
    world_redis(w, "PING");
    rig_works(rig);
}

/* As fast as one connection can, in batches. Returns how many were sent. */
static int64_t flood(struct world *w, const char *channel, const char *message, int64_t ms)
{
    int64_t until_ms = now_ms() + ms, sent = 0;
    redisContext *plain = redisConnectUnix(w->socket);
    redisReply *reply;
    while (now_ms() < until_ms) {
        for (int i = 0; i < 500; i++)
            redisAppendCommand(plain, "PUBLISH %s %s", channel, message);
        for (int i = 0; i < 500; i++, sent++) {
            assert_that(redisGetReply(plain, (void **)&reply) == REDIS_OK);
            freeReplyObject(reply);
        }
    }
    redisFree(plain);
    return sent;
}

static int64_t asks(struct world *w)
{
    return world_commands(w, "evalsha");
}

/* A flood of hints for one waiter: at most one question per five milliseconds, and no harm. */
static void a_flood_asks_seldom(struct world *w)
{
    char channel[80], hint[256];
    rig = rig_begin(w, world_url(w, "lease=20s&poll=8s"), "lease=20s");
    for_each_place(place, rig) {
        if (!has_own_channel(place))
            continue;
        let_wait(w, place);
        const char *id = waiter_id(w, place);
        snprintf(channel, sizeof channel, "%s", channel_of(id));
        snprintf(hint, sizeof hint, "F %s", id);
        int64_t before = asks(w), began_ms = now_ms();
        int64_t sent = flood(w, channel, hint, FLOOD_MS);
        int64_t took_ms = now_ms() - began_ms, asked = asks(w) - before;
        print_message("                 %lld messages, %lld questions in %lld ms\n", (long long)sent, (long long)asked,
                      (long long)took_ms);
        assert_between(asked, 0, took_ms / ASK_EVERY_MS + 20);
        assert_true(still_waits(w, place));
        let_go(place);
    }
    rig_works(rig);
}

/* The latch: "open" is a hint as well, however often and whoever says it. */
static void a_latch_is_not_opened_by_a_message(struct world *w)
{
    static const char channel[] = "redisson_countdownlatch__channel__{gate}";
    static const char *const messages[] = { "0", "1", "", "open", "-1", "00000000000000000000000000000000000" };
    struct worker waiter;
    rig = rig_begin(w, world_url(w, "lease=20s&poll=8s"), "lease=20s");
    assert_lk(0, lk_latch_trysetcount(&rig->gate, 1));
    worker_start(&waiter, await_latch_patiently, &rig->gate);
    eventually(world_elements(w, "PUBSUB CHANNELS %s", channel) == 1, 5000);
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        assert_true(world_int(w, "PUBLISH %s %s", channel, messages[i]) >= 1);
    sleep_ms(50);
    int64_t before = asks(w), began_ms = now_ms();
    int64_t sent = flood(w, channel, "0", FLOOD_MS), took_ms = now_ms() - began_ms, asked = asks(w) - before;
    print_message("                 %lld messages, %lld questions in %lld ms\n", (long long)sent, (long long)asked,
                  (long long)took_ms);
    assert_between(asked, 0, took_ms / ASK_EVERY_MS + 20);
    assert_int_equal(1, world_int(w, "GET gate"));
    assert_lk(EBUSY, lk_latch_destroy(&rig->gate)); /* it still waits */
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    assert_lk(0, worker_join(&waiter));
    rig_works(rig);
}

int main(void)
{
    return world_run(a_message_alone_grants_nothing, a_grant_that_is_heard_again, a_flood_asks_seldom,
                     a_latch_is_not_opened_by_a_message);
}
