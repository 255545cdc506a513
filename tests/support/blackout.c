/* SPDX-License-Identifier: MIT */
/* blackout.c - see blackout.h */
#include "blackout.h"

#include <stdio.h>

enum { LIMIT_MS = 400, WAIT_MS = 2000, BLACKOUT_MS = 500, CLAIM_MS = 3000 };

static void send_all(struct rig *rig, struct errand *errands, int64_t timeout_ms)
{
    for (int i = 0; i < RIG_PLACES; i++)
        errand_start(&errands[i], &rig->places[i].mine, timeout_ms);
}

/* All come back with that code, or with EIO where `unknown` allows it, not before their limit and soon after it. */
static void expect_all(struct errand *errands, int code, bool unknown)
{
    for (int i = 0; i < RIG_PLACES; i++) {
        struct errand *errand = &errands[i];
        print_message("             %s\n", errand->subject->kind->name);
        errand_join(errand);
        assert_lk(unknown && errand->took == EIO ? EIO : code, errand->took);
        if (errand->took == 0)
            errand_had_it(errand);
        else
            assert_between(errand->took_ms - errand->began_ms, errand->timeout_ms - 1,
                           errand->timeout_ms + RIG_COMMAND_MS + RIG_SLACK_MS);
    }
}

static void expect_party(struct party *party, int code)
{
    assert_lk(code, party_join(party));
    assert_between(party->went_ms - party->came_ms, party->timeout_ms - 1,
                   party->timeout_ms + RIG_COMMAND_MS + RIG_SLACK_MS);
}

/* A: nothing was done, nobody waits longer than he wanted to; who has the time gets it afterwards. */
static void asked_for(struct rig *rig, struct proxy *p, const struct blackout *blackout)
{
    struct errand errands[RIG_PLACES];
    struct party party;
    blackout->begin(rig, p);
    send_all(rig, errands, 0);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_latch_trysetcount(&rig->gate, 1));
    assert_between(now_ms() - began_ms, 0, RIG_COMMAND_MS + RIG_SLACK_MS);
    assert_lk(ENOTCONN, lk_latch_waitfor(&rig->gate, LIMIT_MS));
    assert_lk(ENOTCONN, lk_barrier_waitfor(&rig->stage, 0));
    expect_all(errands, ENOTCONN, false);
    send_all(rig, errands, LIMIT_MS);
    party_start(&party, &rig->stage, LIMIT_MS);
    expect_all(errands, ENOTCONN, false);
    expect_party(&party, ENOTCONN);
    for_each_place(place, rig) {
        assert_int_equal(0, subject_held(rig->w, &place->mine));
        assert_int_equal(0, subject_queued(rig->w, &place->mine));
    }
    assert_false(world_exists(rig->w, "gate"));
    assert_int_equal(0, rig_parties(rig));
    send_all(rig, errands, LK_FOREVER);
    party_start(&party, &rig->stage, LK_FOREVER);
    sleep_ms(BLACKOUT_MS);
    blackout->end(rig, p);
    expect_all(errands, 0, false);
    eventually(rig_parties(rig) == 1, RIG_RETRY_MS + RIG_COMMAND_MS + RIG_POLL_MS + RIG_SLACK_MS);
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
}

/* Somebody has it all, and ours wait. */
static void let_wait(struct rig *rig, struct errand *errands, int64_t timeout_ms)
{
    for_each_place(place, rig)
        assert_lk(0, subject_take(&place->theirs, 5000));
    send_all(rig, errands, timeout_ms);
    for_each_place(place, rig)
        eventually(errand_waits(rig->w, &errands[place - rig->places]), WAIT_MS);
}

/* W: a limit holds; who has none is served when the fault is over, though the object became free within it. */
static void waited_for(struct rig *rig, struct proxy *p, const struct blackout *blackout)
{
    struct errand errands[RIG_PLACES];
    struct worker at_gate;
    struct party party;
    party_wait(rig, &party, &rig->lasting, WAIT_MS);
    let_wait(rig, errands, WAIT_MS);
    blackout->begin(rig, p);
    expect_all(errands, ENOTCONN, true);
    expect_party(&party, EIO); /* it cannot say that it leaves, and does as soon as it can */
    blackout->end(rig, p);
    rig_mend(rig, RIG_RETRY_MS + RIG_COMMAND_MS + RIG_SLACK_MS);
    for_each_place(place, rig)
        assert_lk(0, subject_give(&place->theirs));

    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 1));
    worker_start(&at_gate, await_latch, &rig->gate);
    party_wait(rig, &party, &rig->lasting, LK_FOREVER);
    let_wait(rig, errands, LK_FOREVER);
    blackout->begin(rig, p);
    assert_lk(ENOTCONN, lk_latch_waitfor(&rig->gate, LIMIT_MS));
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    for_each_place(place, rig)
        assert_lk(0, subject_give(&place->theirs));
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    blackout->end(rig, p);
    int64_t ended_ms = now_ms();
    expect_all(errands, 0, false);
    assert_lk(0, worker_join(&at_gate));
    assert_lk(0, party_join(&party));
    assert_between(now_ms() - ended_ms, 0, RIG_RETRY_MS + CLAIM_MS + 2 * RIG_POLL_MS + RIG_SLACK_MS);
}

/* What was not sent may be repeated; what got no answer, on a busy machine, may not: it is done without us. */
static void give_at_last(struct subject *subject)
{
    int gave;
    eventually((gave = subject_give(subject)) != ENOTCONN, 3000);
    assert_true(gave == 0 || gave == EIO);
}

/* H: a short blackout is a scare; a long one is a loss, at the end of what was promised, not before nor after. */
static void held(struct rig *rig, struct proxy *p, const struct blackout *blackout)
{
    struct errand theirs[RIG_PLACES];
    struct party party;
    int64_t valid_ms[RIG_PLACES], ms;
    int leased = 0;
    party_wait(rig, &party, &rig->stage, LK_FOREVER);
    for_each_place(place, rig)
        place_take(place);
    blackout->begin(rig, p);
    for_each_place(place, rig)
        leased += place->mine.kind->leased;
    eventually(rig_count(&rig->at_risk) == leased, 2 * RIG_LEASE_MS / 3 + RIG_SLACK_MS);
    blackout->end(rig, p);
    eventually(rig_count(&rig->recovered) == leased, RIG_LEASE_MS);
    assert_int_equal(0, rig_count(&rig->lost));

    blackout->begin(rig, p);
    for (int i = 0; i < RIG_PLACES; i++) {
        errand_start(&theirs[i], &rig->places[i].theirs, RIG_LONG_MS);
        assert_lk(0, subject_remaining(&rig->places[i].mine, &ms));
        valid_ms[i] = now_ms() + ms;
    }
    eventually(rig_count(&rig->lost) == leased, RIG_LEASE_MS + RIG_SLACK_MS);
    assert_int_equal(2 * leased, rig_count(&rig->at_risk));
    assert_int_equal(leased, rig_count(&rig->recovered));
    eventually(rig_parties(rig) == 0, RIG_LEASE_MS + RIG_SLACK_MS);
    assert_lk(ECANCELED, rig_meet(rig)); /* whoever comes finds the party dead */
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        print_message("             %s\n", place->mine.kind->name);
        if (place->mine.kind->leased) {
            assert_lk(ESTALE, subject_remaining(&place->mine, &ms));
            assert_lk(ESTALE, subject_give(&place->mine));
            errand_join(&theirs[i]);
            assert_between(theirs[i].took_ms, valid_ms[i],
                           valid_ms[i] + RIG_LEASE_MS / 50 + 2 * RIG_POLL_MS + RIG_SLACK_MS);
        } else {
            assert_lk(ENOTCONN, subject_give(&place->mine)); /* unchanged */
        }
    }
    blackout->end(rig, p);
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        if (!place->mine.kind->leased) {
            give_at_last(&place->mine);
            errand_join(&theirs[i]);
        }
        errand_had_it(&theirs[i]);
    }
    assert_int_equal(leased, rig_count(&rig->lost));
    assert_lk(ECANCELED, party_join(&party));
    rig_mend(rig, RIG_SLACK_MS);
}

/* R: the caller has given it back, whatever the network; the server hears of it as soon as it can. */
static void given_back(struct rig *rig, struct proxy *p, const struct blackout *blackout)
{
    assert_lk(0, lk_latch_trysetcount(&rig->their_gate, 3));
    assert_lk(0, lk_once_begin(&rig->work, 5000));
    for_each_place(place, rig)
        assert_lk(0, subject_take(&place->patient, 5000));
    blackout->begin(rig, p);
    for_each_place(place, rig) {
        int64_t began_ms = now_ms();
        assert_lk(ENOTCONN, subject_give(&place->patient));
        assert_between(now_ms() - began_ms, 0, RIG_COMMAND_MS + RIG_SLACK_MS);
        if (place->mine.kind->leased)
            assert_lk(EPERM, subject_give(&place->patient));
        assert_int_equal(1, subject_held(rig->w, &place->mine));
    }
    assert_lk(ENOTCONN, lk_once_end(&rig->work, "in the dark"));
    assert_lk(EPERM, lk_once_end(&rig->work, "again"));
    assert_lk(ETIMEDOUT, lk_once_begin(&rig->their_work, 0));
    assert_lk(ENOTCONN, lk_latch_countdown(&rig->gate));
    assert_int_equal(3, world_int(rig->w, "GET gate"));
    blackout->end(rig, p);
    for_each_place(place, rig)
        if (place->mine.kind->leased)
            eventually(subject_held(rig->w, &place->mine) == 0, 3000);
        else
            give_at_last(&place->patient);
    rig_done(rig, "in the dark", 3000);
    int rc;
    eventually((rc = lk_latch_countdownby(&rig->gate, 3)) != ENOTCONN, 3000);
    assert_true(rc == 0 || rc == EIO);
    eventually(!world_exists(rig->w, "gate"), 3000);
}

/* Through the proxy, by the name of the blackout or by address. */
static const char *url_of(const struct blackout *blackout, struct proxy *p)
{
    static char url[256];
    snprintf(url, sizeof url, "redis://%s:%d?" RIG_OPTIONS "&client_name=behind",
             blackout->host != NULL ? blackout->host : "127.0.0.1", proxy_port(p));
    return url;
}

void blackout_meets_all(struct world *w, const struct blackout *blackout)
{
    struct proxy *p = proxy_begin_tcp(w);
    print_message("    %s\n", blackout->row);
    struct rig *rig = rig_begin(w, url_of(blackout, p), "lease=10s&poll=200ms");
    print_message("         A\n");
    asked_for(rig, p, blackout);
    rig_works(rig);
    print_message("         W\n");
    waited_for(rig, p, blackout);
    rig_works(rig);
    print_message("         H\n");
    held(rig, p, blackout);
    rig_works(rig);
    print_message("         R\n");
    given_back(rig, p, blackout);
    rig_works(rig);
}
