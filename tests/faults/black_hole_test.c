/* SPDX-License-Identifier: MIT */
/*
 * black_hole_test.c - F05: connections stay and nothing comes through, either way, for a while
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 20
 */
#include "rig.h"

enum { SHORT_MS = RIG_COMMAND_MS / 4, LONG_MS = 3 * RIG_COMMAND_MS, LIMIT_MS = 300 };

static struct rig *rig;
static struct proxy *p;

static struct worker digger;
static struct gate dug;

static int hole(void *arg)
{
    int64_t ms = *(int64_t *)arg;
    proxy_stall(p, PROXY_BOTH);
    gate_open(&dug);
    sleep_ms(ms);
    int64_t filled_ms = now_ms();
    proxy_resume(p);
    *(int64_t *)arg = filled_ms;
    return 0;
}

static int64_t hole_ms; /* how long it is, and then when it ended */

/* A hole of so many milliseconds from now on, while the test goes on. */
static void dig(int64_t ms)
{
    hole_ms = ms;
    dug.open = 0;
    worker_start(&digger, hole, &hole_ms);
    gate_pass(&dug);
}

/* It has ended: returns when. */
static int64_t fill(void)
{
    worker_join(&digger);
    return hole_ms;
}

/* Shorter than a command timeout: late, and that is all. */
static void a_short_one_is_only_late(struct world *w)
{
    struct errand errand;
    struct party party;
    rig = rig_begin_behind(w, &p, "lease=8s&command_timeout=1500ms&poll=1s");
    int64_t connections = proxy_connections(p);
    for_each_place(place, rig) {
        dig(200);
        place_take(place);
        fill();
        dig(200);
        assert_lk(0, subject_give(&place->mine));
        fill();
        assert_lk(0, subject_take(&place->theirs, 5000));
        errand_start(&errand, &place->mine, 5000);
        eventually(errand_waits(rig->w, &errand), 5000);
        dig(200);
        assert_lk(0, subject_give(&place->theirs)); /* the message waits in the hole */
        errand_join(&errand);
        assert_lk(0, errand.took);
        assert_lk(0, errand.gave);
        fill();
    }
    dig(200);
    assert_lk(0, lk_latch_trysetcount(&rig->gate, 2));
    fill();
    dig(200);
    assert_lk(0, lk_latch_countdown(&rig->gate));
    assert_int_equal(1, world_int(rig->w, "GET gate"));
    fill();
    assert_lk(0, lk_latch_countdown(&rig->gate));
    dig(200);
    party_wait(rig, &party, &rig->stage, 10000);
    fill();
    dig(200);
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
    fill();
    assert_between(proxy_connections(p), connections, connections + 1); /* one more for the first renewals */
    assert_int_equal(0, rig_count(&rig->at_risk));
    rig_works(rig);
}

/* A: who has less time than the hole lasts is told that nobody knows, in time; who has more gets it, once. */
static void a_long_one_delays_who_asks(struct world *w)
{
    struct errand errands[RIG_PLACES];
    struct party party;
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    rig_connected(rig);
    proxy_stall(p, PROXY_BOTH);
    int64_t stalled_ms = now_ms();
    for (int i = 0; i < RIG_PLACES; i++)
        errand_start(&errands[i], &rig->places[i].mine, LIMIT_MS);
    party_start(&party, &rig->lasting, LIMIT_MS);
    int64_t began_ms = now_ms();
    int set = lk_latch_trysetcount(&rig->gate, 1);
    if (set != ENOTCONN || began_ms - stalled_ms < RIG_COMMAND_MS) /* later than that it may not even be sent */
        assert_lk(EIO, set);
    assert_between(now_ms() - began_ms, 0, RIG_COMMAND_MS + RIG_SLACK_MS);
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        errand_join(errand);
        assert_true(errand->took == EIO || errand->took == ENOTCONN);
        assert_between(errand->took_ms - errand->began_ms, LIMIT_MS - 1, LIMIT_MS + RIG_COMMAND_MS + RIG_SLACK_MS);
    }
    int came = party_join(&party);
    assert_true(came == EIO || came == ENOTCONN);
    assert_between(party.went_ms - party.came_ms, 0, LIMIT_MS + RIG_COMMAND_MS + RIG_SLACK_MS);
    proxy_resume(p); /* all that was sent arrives now, and past its deadline: or is taken back */
    for_each_place(place, rig)
        eventually(subject_held(rig->w, &place->mine) == 0, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    eventually(rig_parties(rig) == 0, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    assert_false(world_exists(rig->w, "gate"));

    assert_lk(0, lk_barrier_reset(&rig->their_stage));
    dig(LONG_MS);
    for (int i = 0; i < RIG_PLACES; i++)
        errand_start(&errands[i], &rig->places[i].mine, 10000);
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        errand_join(errand);
        errand_had_it(errand);
        assert_between(errand->took_ms - errand->began_ms, 0, LONG_MS + 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    }
    fill();
    rig_works(rig);
}

/* W: it became free within the hole; it is ours soon after the hole, though its message may never come. */
static void a_long_one_delays_who_waits(struct world *w)
{
    struct errand errands[RIG_PLACES];
    struct worker at_gate;
    struct party party;
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    party_wait(rig, &party, &rig->lasting, LK_FOREVER);
    for_each_place(place, rig) {
        assert_lk(0, subject_take(&place->theirs, 5000));
        errand_start(&errands[place - rig->places], &place->mine, 10000);
        eventually(errand_waits(rig->w, &errands[place - rig->places]), 5000);
    }
    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 1));
    worker_start(&at_gate, await_latch_patiently, &rig->gate);
    sleep_ms(50);
    dig(LONG_MS);
    for_each_place(place, rig)
        assert_lk(0, subject_give(&place->theirs));
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    int64_t filled_ms = fill();
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        errand_join(errand);
        errand_had_it(errand);
        assert_between(errand->took_ms - filled_ms, 0, RIG_RETRY_MS + 2 * RIG_POLL_MS + RIG_SLACK_MS);
    }
    assert_lk(0, worker_join(&at_gate));
    assert_lk(0, party_join(&party));
    assert_between(now_ms() - filled_ms, 0, RIG_RETRY_MS + 2 * RIG_POLL_MS + RIG_SLACK_MS);
    rig_works(rig);
}

/* H: a scare if it ends within the lease; else lost at its end, and a renewal that comes late revives nothing. */
static void a_long_one_is_at_risk_or_lost(struct world *w)
{
    struct errand theirs[RIG_PLACES];
    struct party party;
    int64_t ms;
    int leased = 0;
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    party_wait(rig, &party, &rig->stage, LK_FOREVER);
    for_each_place(place, rig) {
        place_take(place);
        leased += place->mine.kind->leased;
    }
    proxy_stall(p, PROXY_BOTH); /* until a renewal was due, and is overdue */
    eventually(rig_count(&rig->at_risk) == leased, 2 * RIG_LEASE_MS / 3 + RIG_SLACK_MS);
    proxy_resume(p);
    eventually(rig_count(&rig->recovered) == leased, RIG_COMMAND_MS + RIG_SLACK_MS);
    assert_int_equal(leased, rig_count(&rig->at_risk));
    assert_int_equal(0, rig_count(&rig->lost));
    for_each_place(place, rig) {
        uint64_t token = place->token;
        assert_lk(0, subject_remaining(&place->mine, &ms));
        if (place->mine.kind->fenced)
            assert_lk(0, place->mine.kind->token(&place->mine, &token));
        assert_true(token == place->token);
    }
    assert_int_equal(1, rig_parties(rig));

    proxy_stall(p, PROXY_BOTH);
    int64_t valid_ms[RIG_PLACES];
    for (int i = 0; i < RIG_PLACES; i++) {
        errand_start(&theirs[i], &rig->places[i].theirs, RIG_LONG_MS);
        assert_lk(0, subject_remaining(&rig->places[i].mine, &ms));
        valid_ms[i] = now_ms() + ms;
    }
    eventually(rig_count(&rig->lost) == leased, RIG_LEASE_MS + RIG_SLACK_MS);
    for_each_place(place, rig) {
        struct errand *errand = &theirs[place - rig->places];
        if (!place->mine.kind->leased)
            continue;
        assert_lk(ESTALE, subject_give(&place->mine));
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_true(errand->took_ms >= valid_ms[place - rig->places]);
        assert_lk(0, subject_take(&place->theirs, 0)); /* again, while old renewals are about to arrive */
    }
    eventually(rig_parties(rig) == 0, RIG_LEASE_MS + RIG_SLACK_MS);
    assert_lk(ECANCELED, rig_meet(rig));
    proxy_resume(p);
    sleep_ms(2 * RIG_COMMAND_MS);
    for_each_place(place, rig) {
        assert_int_equal(1, subject_held(rig->w, &place->mine));
        if (place->mine.kind->leased) {
            assert_lk(0, subject_give(&place->theirs));
        } else {
            place_give(rig, &place->mine);
            errand_join(&theirs[place - rig->places]);
        }
    }
    assert_int_equal(leased, rig_count(&rig->lost));
    assert_lk(ECANCELED, party_join(&party));
    rig_mend(rig, RIG_SLACK_MS);
    rig_works(rig);
}

/* R: nobody knows, after one command timeout; the library finishes it, long before the lease ends, and once. */
static void a_long_one_leaves_a_release_open(struct world *w)
{
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig) {
        assert_lk(0, subject_take(&place->patient, 5000));
        rig_connected(rig);
        proxy_stall(p, PROXY_BOTH);
        int64_t began_ms = now_ms();
        assert_lk(EIO, subject_give(&place->patient));
        assert_between(now_ms() - began_ms, 0, RIG_COMMAND_MS + RIG_SLACK_MS);
        assert_true(lk_errorsettles() > 0);
        if (place->mine.kind->leased)
            assert_lk(EPERM, subject_give(&place->patient));
        proxy_resume(p);
        eventually(subject_held(rig->w, &place->mine) == 0, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    }
    assert_lk(0, lk_once_begin(&rig->work, 5000));
    rig_connected(rig);
    proxy_stall(p, PROXY_BOTH);
    assert_lk(EIO, lk_once_end(&rig->work, "in the hole"));
    assert_lk(EPERM, lk_once_end(&rig->work, "again"));
    proxy_resume(p);
    rig_done(rig, "in the hole", 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 3));
    rig_connected(rig);
    proxy_stall(p, PROXY_BOTH);
    assert_lk(EIO, lk_latch_countdown(&rig->gate));
    proxy_resume(p);
    eventually(world_int(rig->w, "GET gate") == 2, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
    for_each_place(place, rig)
        assert_int_equal(0, subject_held(rig->w, &place->mine));
    assert_lk(0, lk_latch_countdownby(&rig->their_gate, 2));
    rig_works(rig);
}

int main(void)
{
    return world_run(a_short_one_is_only_late, a_long_one_delays_who_asks, a_long_one_delays_who_waits,
                     a_long_one_is_at_risk_or_lost, a_long_one_leaves_a_release_open);
}
