/* SPDX-License-Identifier: MIT */
/*
 * stale_copies_test.c - F66: a request comes twice, or long after its time; what it says is not done again
 *
 * A copy is spontaneous here (it went its way and comes once more) or of the client's own making (its
 * connection ended, it asked again, and the first request comes after all).
 *
 * labels: memory
 * simulated: yes
 * seconds: 28
 */
#include "rig.h"

#include <string.h>

static struct rig *rig;
static struct proxy *p;

/* The next request for this place gets a copy, which proxy_release() delivers. */
static void copy_next(const struct place *place, enum proxy_fault how)
{
    proxy_once(p, how, 1, place->mine.name);
}

static void deliver(void)
{
    proxy_release(p);
    sleep_ms(30);
}

/* So many hold it, and no token was given out since; a writer that asks again uses one up, which nobody gets. */
static void expect_unchanged(const struct place *place, int64_t held)
{
    const char *kind = place->mine.kind->name;
    assert_int_equal(held, subject_held(rig->w, &place->mine));
    if (strstr(kind, "mutex") != NULL)
        assert_int_equal((int64_t)place->token, world_int(rig->w, "GET redisson_lock_token:{%s}", place->mine.name));
}

/* A second copy of an ask changes nothing while its hold stands, nor when its time is over and somebody else holds. */
static void an_ask_that_comes_again(struct world *w)
{
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig) {
        copy_next(place, PROXY_COPY_REQUEST);
        place_take(place);
        deliver();
        expect_unchanged(place, 1);
        place_give(rig, &place->mine);
        expect_unchanged(place, 0);

        copy_next(place, PROXY_COPY_REQUEST);
        place_take(place);
        place_give(rig, &place->mine);
        sleep_ms(RIG_COMMAND_MS + 50); /* its deadline */
        deliver();
        expect_unchanged(place, 0);
    }
    rig_works(rig);
}

/* The first ask comes when the second one was served and given back: it may take, but must not keep, what nobody has. */
static void an_ask_that_comes_late(struct world *w)
{
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig) {
        copy_next(place, PROXY_PARK_REQUEST);
        place_take(place);
        place_give(rig, &place->mine);
        deliver();
        eventually(subject_held(rig->w, &place->mine) == 0,
                   2 * RIG_COMMAND_MS + RIG_SLACK_MS); /* the lease is longer */
        sleep_ms(RIG_COMMAND_MS);
        assert_int_equal(0, subject_held(rig->w, &place->mine));
    }
    rig_works(rig);
}

/* A release that comes again belongs to the hold it was sent for: not to the next one, whoever has that. */
static void a_release_that_comes_again(struct world *w)
{
    static const enum proxy_fault copies[] = { PROXY_COPY_REQUEST, PROXY_PARK_REQUEST };
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig)
        for (int i = 0; i < 2; i++) {
            place_take(place);
            copy_next(place, copies[i]);
            place_give(rig, &place->mine);
            place_take(place); /* by the same thread */
            deliver();
            expect_unchanged(place, 1);
            copy_next(place, copies[i]);
            place_give(rig, &place->mine);
            assert_lk(0, subject_take(&place->theirs, 1000)); /* by another client */
            deliver();
            assert_int_equal(1, subject_held(rig->w, &place->mine));
            assert_lk(0, subject_give(&place->theirs));
            assert_int_equal(0, subject_held(rig->w, &place->mine));
        }
    rig_works(rig);
}

/* A renewal that comes late neither makes a hold nor lengthens that of another. */
static void a_renewal_that_comes_late(struct world *w)
{
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig) {
        if (!place->mine.kind->leased)
            continue;
        int64_t before = proxy_faults(p);
        place_take(place);
        copy_next(place, PROXY_COPY_REQUEST);
        eventually(proxy_faults(p) > before, RIG_LEASE_MS);
        place_give(rig, &place->mine);
        deliver();
        expect_unchanged(place, 0);

        place_take(place);
        copy_next(place, PROXY_COPY_REQUEST);
        eventually(proxy_faults(p) > before + 1, RIG_LEASE_MS);
        place_give(rig, &place->mine);
        assert_lk(0, subject_take(&place->theirs, 1000));
        deliver();
        assert_int_equal(1, subject_held(rig->w, &place->mine));
        assert_lk(0, subject_give(&place->theirs));
        assert_int_equal(0, subject_held(rig->w, &place->mine));
    }
    assert_int_equal(0, rig_count(&rig->lost));
    rig_works(rig);
}

/* W: a waiter stands in the queue once; one that left does not come back by its copy. */
static void a_waiter_that_comes_again(struct world *w)
{
    static const enum proxy_fault copies[] = { PROXY_COPY_REQUEST, PROXY_PARK_REQUEST };
    struct errand errand;
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for_each_place(place, rig)
        for (int i = 0; i < 2; i++) {
            assert_lk(0, subject_take(&place->theirs, 1000));
            copy_next(place, copies[i]);
            errand_start(&errand, &place->mine, 3 * RIG_COMMAND_MS / 2);
            eventually(errand_waits(rig->w, &errand) || errand_took(&errand), 5000); /* it may have left: as below */
            deliver();
            assert_between(subject_queued(rig->w, &place->mine), 0, 1); /* never two */
            errand_join(&errand);
            assert_true(errand.took == ETIMEDOUT || errand.took == EIO); /* EIO: too busy to hear that it left */
            eventually(subject_queued(rig->w, &place->mine) == 0, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);

            copy_next(place, copies[i]);
            errand_start(&errand, &place->mine, 3 * RIG_COMMAND_MS / 2);
            errand_join(&errand);
            assert_true(errand.took == ETIMEDOUT || errand.took == EIO); /* ETIMEDOUT: known, past its deadline */
            deliver();
            eventually(subject_queued(rig->w, &place->mine) == 0, 2 * RIG_COMMAND_MS + RIG_SLACK_MS);
            assert_lk(0, subject_give(&place->theirs));
            assert_int_equal(0, subject_held(rig->w, &place->mine));
        }
    rig_works(rig);
}

/* The latch: each request counts once, whenever its copy comes. */
static void a_count_that_comes_again(struct world *w)
{
    static const enum proxy_fault copies[] = { PROXY_COPY_REQUEST, PROXY_PARK_REQUEST };
    static const char once[] = "latchkey:once:{gate}"; /* what counts has it, and no subscription */
    rig = rig_begin_behind(w, &p, "lease=3600ms&command_timeout=1100ms&poll=200ms");
    for (int i = 0; i < 2; i++) {
        proxy_once(p, copies[i], 1, once);
        assert_lk(0, lk_latch_trysetcount(&rig->gate, 4));
        deliver();
        assert_int_equal(4, world_int(w, "GET gate"));
        proxy_once(p, copies[i], 1, once);
        assert_lk(0, lk_latch_countdown(&rig->gate));
        deliver();
        assert_int_equal(3, world_int(w, "GET gate"));
        proxy_once(p, copies[i], 1, once);
        assert_lk(0, lk_latch_countdown(&rig->gate));
        assert_lk(0, lk_latch_countdown(&rig->their_gate)); /* somebody else meanwhile */
        deliver();
        assert_int_equal(1, world_int(w, "GET gate"));
        assert_lk(0, lk_latch_countdown(&rig->gate));

        proxy_once(p, copies[i], 1, once); /* of setting it, when it opened long ago */
        assert_lk(0, lk_latch_trysetcount(&rig->gate, 1));
        assert_lk(0, lk_latch_countdown(&rig->their_gate));
        deliver();
        assert_false(world_exists(w, "gate"));
        assert_lk(0, lk_latch_waitfor(&rig->gate, 0));
    }
    rig_works(rig);
}

int main(void)
{
    return world_run(an_ask_that_comes_again, an_ask_that_comes_late, a_release_that_comes_again,
                     a_renewal_that_comes_late, a_waiter_that_comes_again, a_count_that_comes_again);
}
