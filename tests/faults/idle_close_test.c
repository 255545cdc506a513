/* SPDX-License-Identifier: MIT */
/*
 * idle_close_test.c - a connection ended while nothing was under way, and nobody notices: F03 it ends before
 * the request is written, F09 CLIENT KILL, F11 the server closes what is idle
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 15
 */
#include "rig.h"

/* Longer than `timeout 1` takes to close what is idle, and still before the renewal of a hold. */
enum { LEASE_MS = 2400, IDLE_MS = 2300, IDLE_LEASE_MS = 9000 };

/* As the rig's, and a busy machine has more time to answer. */
#define PATIENTLY "lease=2400ms&command_timeout=700ms&poll=200ms"

struct ending {
    const char *row;
    void (*end)(struct rig *rig, struct proxy *p);
};

static void kill_all(struct rig *rig, struct proxy *p)
{
    (void)p;
    world_redis(rig->w, "CLIENT KILL TYPE pubsub");
    world_redis(rig->w, "CLIENT KILL TYPE normal"); /* all but the test's own */
}

static void end_orderly(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_cut(p);
}

static void end_by_reset(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_reset(p);
}

/* As a server that shuts down its sending half and still reads. */
static void end_by_halves(struct rig *rig, struct proxy *p)
{
    (void)rig;
    proxy_half_close(p);
}

static const struct ending endings[] = {
    { "F03: closed", end_orderly },
    { "F03: reset", end_by_reset },
    { "F03: half closed", end_by_halves },
    { "F09: CLIENT KILL", kill_all },
};
enum { ENDINGS = sizeof endings / sizeof endings[0] };

/* A renewal may be sent twice, which is a scare of no length; no hold is lost. */
static void nobody_is_troubled(const struct rig *rig)
{
    assert_int_equal(0, rig_count(&rig->lost));
}

/* A, H and R: asked for, held through two renewals, given back, each after an ending. */
static void a_hold_does_not_notice(struct rig *rig, struct proxy *p, const struct ending *ending)
{
    for_each_place(place, rig) {
        ending->end(rig, p);
        place_take(place);
        assert_int_equal(1, subject_held(rig->w, &place->mine));
    }
    ending->end(rig, p);
    sleep_ms(LEASE_MS / 2);
    ending->end(rig, p);
    sleep_ms(LEASE_MS / 2);
    nobody_is_troubled(rig);
    for_each_place(place, rig) {
        const struct subject_kind *kind = place->mine.kind;
        uint64_t token;
        if (kind->fenced) {
            assert_lk(0, kind->token(&place->mine, &token));
            assert_true(token == place->token);
        }
        ending->end(rig, p);
        assert_lk(0, subject_give(&place->mine));
        assert_int_equal(0, subject_held(rig->w, &place->mine));
    }
}

/* W: everybody wakes though connections ended before the object became free, and at once. */
static void a_wait_does_not_notice(struct rig *rig, struct proxy *p, const struct ending *ending)
{
    struct errand errands[RIG_PLACES];
    for_each_place(place, rig) {
        assert_lk(0, subject_take(&place->theirs, 1000));
        errand_start(&errands[place - rig->places], &place->mine, 10000);
        eventually(errand_waits(rig->w, &errands[place - rig->places]), 5000);
    }
    ending->end(rig, p);
    for_each_place(place, rig) {
        int64_t given_ms = now_ms();
        struct errand *errand = &errands[place - rig->places];
        assert_lk(0, subject_give(&place->theirs));
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_lk(0, errand->gave);
        assert_between(errand->took_ms - given_ms, 0, RIG_POLL_MS * 6 / 5 + RIG_SLACK_MS);
    }
}

static int wait_for_gate(void *arg)
{
    return lk_latch_waitfor(arg, 10000);
}

static void a_latch_does_not_notice(struct rig *rig, struct proxy *p, const struct ending *ending)
{
    struct worker waiter;
    ending->end(rig, p);
    assert_lk(0, lk_latch_trysetcount(&rig->gate, 3));
    ending->end(rig, p);
    assert_lk(0, lk_latch_countdown(&rig->gate));
    assert_int_equal(2, world_int(rig->w, "GET gate"));
    worker_start(&waiter, wait_for_gate, &rig->gate);
    eventually(world_elements(rig->w, "PUBSUB CHANNELS redisson_countdownlatch__channel__*") == 1, 5000);
    ending->end(rig, p);
    assert_lk(0, lk_latch_countdownby(&rig->their_gate, 2));
    assert_lk(0, worker_join(&waiter));
}

static void an_ending_is_not_noticed(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    struct rig *rig = rig_begin(w, proxy_url(p, PATIENTLY), PATIENTLY);
    for (int i = 0; i < ENDINGS; i++) {
        print_message("    %s\n", endings[i].row);
        a_hold_does_not_notice(rig, p, &endings[i]);
        a_wait_does_not_notice(rig, p, &endings[i]);
        a_latch_does_not_notice(rig, p, &endings[i]);
        rig_works(rig);
    }
    nobody_is_troubled(rig);
}

/* F11: `timeout 1` closes connections that renew too rarely, and those of clients that rest; subscribers stay. */
static void idle_connections_are_closed(struct world *w)
{
    struct errand errands[RIG_PLACES];
    world_redis(w, "CONFIG SET timeout 1");
    struct rig *rig = rig_begin(w, world_url(w, "lease=9s&poll=9s"), "lease=9s&poll=9s");
    for_each_place(place, rig)
        place_take(place);
    for (int i = 0; i < RIG_PLACES; i++)
        errand_start(&errands[i], &rig->places[i].theirs, 20000);
    int64_t connections = world_counter(w, "total_connections_received");
    sleep_ms(IDLE_LEASE_MS / 3 + RIG_SLACK_MS); /* closed, then renewed on a new one */
    assert_true(world_counter(w, "total_connections_received") > connections);
    for_each_place(place, rig)
        assert_int_equal(1, subject_held(w, &place->mine));
    sleep_ms(IDLE_MS); /* closed again, and then given back */
    for_each_place(place, rig) {
        int64_t given_ms = now_ms();
        struct errand *errand = &errands[place - rig->places];
        assert_lk(0, subject_give(&place->mine));
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_between(errand->took_ms - given_ms, 0, 2000); /* by its message, long before its poll */
    }
    nobody_is_troubled(rig);
    rig_works(rig);
}

int main(void)
{
    return world_run(an_ending_is_not_noticed, idle_connections_are_closed);
}
