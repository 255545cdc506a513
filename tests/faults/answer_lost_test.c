/* SPDX-License-Identifier: MIT */
/*
 * answer_lost_test.c - F04: the connection ends after so many bytes of a request or of its answer, or the
 * answer never comes; the request still takes effect once, and what nobody knows of ends
 *
 * labels: memory
 * simulated: yes
 * seconds: 54
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 16, COMMAND_MS = 400 };

/*
 * Renewals, polls and leases keep out of the way of the bytes that are counted. What is not disturbed has to be answered
 * within the command timeout, on a busy machine, too: a later answer is a lost one.
 */
#define CALM "lease=20s&command_timeout=2s&poll=5s"
#define HASTY "lease=20s&command_timeout=400ms&poll=5s"

static struct rig *rig;
static struct proxy *p;

/* The k-th of STEPS + 4 places to cut at: spread over the whole length, and the last bytes one by one. */
static int64_t cut_at(int64_t length, int k)
{
    return k < STEPS ? k * length / STEPS : length - (STEPS + 3 - k);
}

/* --- A and R ------------------------------------------------------------------------------------------------- */

/* How many bytes a take and a give send and receive; the least of some, as others may send between. */
static void measure(struct place *place, int direction, int64_t *take, int64_t *give)
{
    *take = *give = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        int64_t before = proxy_bytes(p, direction), between;
        assert_lk(0, subject_take(&place->mine, 1000));
        between = proxy_bytes(p, direction);
        assert_lk(0, subject_give(&place->mine));
        int64_t after = proxy_bytes(p, direction);
        *take = between - before < *take ? between - before : *take;
        *give = after - between < *give ? after - between : *give;
    }
}

/* One hold, of one grant: what we were told is what the server has. */
static void expect_one_hold(struct world *w, struct place *place)
{
    char key[64];
    assert_int_equal(1, subject_held(w, &place->mine));
    if (!place->mine.kind->fenced)
        return;
    snprintf(key, sizeof key, "redisson_lock_token:{%s}", place->mine.name);
    assert_int_equal((int64_t)place->token, world_int(w, "GET %s", key));
    if (strstr(place->mine.kind->name, "mutex") != NULL)
        assert_int_equal(1, world_int(w, "HLEN %s", place->mine.name));
}

static void a_request_is_carried_out_once(struct world *w)
{
    static const int directions[] = { PROXY_UP, PROXY_DOWN };
    rig = rig_begin_behind(w, &p, CALM);
    for_each_place(place, rig)
        for (int i = 0; i < 2; i++) {
            int direction = directions[i];
            int64_t take, give, connections = proxy_connections(p);
            measure(place, direction, &take, &give);
            for (int k = 0; k < STEPS + 4; k++) {
                proxy_cut_after(p, direction, cut_at(take, k));
                place_take(place);
                expect_one_hold(w, place);
                proxy_cut_after(p, direction, cut_at(give, k));
                assert_lk(0, subject_give(&place->mine));
                assert_int_equal(0, subject_held(w, &place->mine));
                proxy_cut_after(p, direction, -1);
            }
            assert_true(proxy_connections(p) - connections >= STEPS); /* it was cut */
        }
    rig_works(rig);
}

/* The latch: a count is set once and lowered once, wherever the connection ends. */
static void a_count_is_exact(struct world *w)
{
    static const int directions[] = { PROXY_UP, PROXY_DOWN };
    rig = rig_begin_behind(w, &p, CALM);
    for (int i = 0; i < 2; i++) {
        int direction = directions[i];
        int64_t before = proxy_bytes(p, direction), set, down;
        assert_lk(0, lk_latch_trysetcount(&rig->gate, 2));
        set = proxy_bytes(p, direction) - before;
        assert_lk(0, lk_latch_countdown(&rig->gate));
        down = proxy_bytes(p, direction) - before - set;
        assert_lk(0, lk_latch_countdown(&rig->gate));
        for (int k = 0; k < STEPS + 4; k++) {
            proxy_cut_after(p, direction, cut_at(set, k));
            assert_lk(0, lk_latch_trysetcount(&rig->gate, 3)); /* not EEXIST by its own copy */
            assert_int_equal(3, world_int(w, "GET gate"));
            proxy_cut_after(p, direction, cut_at(down, k));
            assert_lk(0, lk_latch_countdown(&rig->gate));
            assert_int_equal(2, world_int(w, "GET gate"));
            proxy_cut_after(p, direction, cut_at(down, k));
            assert_lk(0, lk_latch_countdownby(&rig->gate, 2)); /* not ENOENT by its own copy */
            assert_false(world_exists(w, "gate"));
            proxy_cut_after(p, direction, -1);
        }
    }
    rig_works(rig);
}

/* How many bytes each call sends or receives: to begin a run, to give it up, to end the next one. */
static void measure_run(lk_once_t *work, int direction, int64_t *begin, int64_t *fail, int64_t *end)
{
    int64_t before = proxy_bytes(p, direction), begun, failed;
    assert_lk(0, lk_once_begin(work, 0));
    begun = proxy_bytes(p, direction);
    assert_lk(0, lk_once_fail(work));
    failed = proxy_bytes(p, direction);
    assert_lk(0, lk_once_begin(work, 0));
    *begin = begun - before;
    *fail = failed - begun;
    before = proxy_bytes(p, direction);
    assert_lk(0, lk_once_end(work, "measured"));
    *end = proxy_bytes(p, direction) - before;
    assert_lk(0, lk_once_reset(work));
}

/* What is done once: one run begins, one completes, and what was given up is given up. */
static void a_run_is_exact(struct world *w)
{
    static const int directions[] = { PROXY_UP, PROXY_DOWN };
    int64_t begin, fail, end;
    world_allow(w, "latchkey:done:*");
    p = proxy_begin(w);
    lk_once_t *mine = world_once(w, proxy_client(p, CALM), "work", NULL);
    lk_once_t *theirs = world_once(w, world_client(w, CALM), "work", NULL);
    measure_run(mine, PROXY_UP, &begin, &fail, &end); /* the server knows the scripts from now on */
    for (int i = 0; i < 2; i++) {
        int direction = directions[i];
        measure_run(mine, direction, &begin, &fail, &end);
        for (int k = 0; k < STEPS + 4; k++) {
            proxy_cut_after(p, direction, cut_at(begin, k));
            assert_lk(0, lk_once_begin(mine, 0));
            assert_lk(ETIMEDOUT, lk_once_begin(theirs, 0));
            proxy_cut_after(p, direction, cut_at(fail, k));
            assert_lk(0, lk_once_fail(mine));
            assert_lk(0, lk_once_begin(theirs, 0));
            assert_lk(0, lk_once_fail(theirs));
            proxy_cut_after(p, direction, -1);
            assert_lk(0, lk_once_begin(mine, 0));
            proxy_cut_after(p, direction, cut_at(end, k));
            assert_lk(0, lk_once_end(mine, "completed"));
            assert_lk(EALREADY, lk_once_begin(theirs, 0));
            assert_lk(0, lk_once_reset(theirs));
            proxy_cut_after(p, direction, -1);
        }
    }
}

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, 10000);
}

/* Two meet, `first` before `second`. Bytes that passed in that direction meanwhile. */
static int64_t meet_in_order(struct world *w, lk_barrier_t *first, lk_barrier_t *second, int direction)
{
    struct worker party;
    worker_start(&party, meet, first);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, 5000);
    int64_t before = proxy_bytes(p, direction);
    assert_int_equal(LK_BARRIER_SERIAL, meet(second));
    assert_int_equal(0, worker_join(&party));
    assert_int_equal(0, world_int(w, "ZCARD latchkey:parties:{stage}"));
    return proxy_bytes(p, direction) - before;
}

/* A barrier: each comes once, as the first or as the last, and one is told that it is the serial party. */
static void a_party_comes_once(struct world *w)
{
    static const int directions[] = { PROXY_UP, PROXY_DOWN };
    world_allow(w, "latchkey:*:{stage}");
    p = proxy_begin(w);
    lk_barrier_t *mine = world_barrier(w, proxy_client(p, CALM), "stage", 2, NULL);
    lk_barrier_t *theirs = world_barrier(w, world_client(w, CALM), "stage", 2, NULL);
    meet_in_order(w, mine, theirs, PROXY_UP);
    for (int i = 0; i < 2; i++) {
        int direction = directions[i];
        int64_t comes = meet_in_order(w, theirs, mine, direction);
        for (int k = 0; k < STEPS + 4; k++) {
            proxy_cut_after(p, direction, cut_at(comes, k));
            meet_in_order(w, theirs, mine, direction);
            proxy_cut_after(p, direction, cut_at(comes, k));
            meet_in_order(w, mine, theirs, direction);
            proxy_cut_after(p, direction, -1);
        }
    }
}

/* --- W --------------------------------------------------------------------------------------------------------- */

/* Through the answer "queued", the subscription, the message with the grant, and what is sent after it. */
static void a_wait_goes_on(struct world *w)
{
    static const int directions[] = { PROXY_UP, PROXY_DOWN };
    struct errand errand;
    rig = rig_begin_behind(w, &p, "lease=20s&command_timeout=2s&poll=200ms");
    for_each_place(place, rig)
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < STEPS; k++) {
                assert_lk(0, subject_take(&place->theirs, 1000));
                proxy_cut_after(p, directions[i], k * (directions[i] == PROXY_UP ? 80 : 18));
                errand_start(&errand, &place->mine, 10000);
                eventually(errand_waits(w, &errand), 5000);
                int64_t given_ms = now_ms();
                assert_lk(0, subject_give(&place->theirs));
                errand_join(&errand);
                assert_lk(0, errand.took);
                assert_lk(0, errand.gave);
                assert_between(errand.took_ms - given_ms, 0, 2 * RIG_POLL_MS + RIG_SLACK_MS);
                assert_int_equal(0, subject_held(w, &place->mine));
                assert_int_equal(0, subject_queued(w, &place->mine));
                proxy_cut_after(p, directions[i], -1);
            }
    rig_works(rig);
}

/* --- H --------------------------------------------------------------------------------------------------------- */

/* A renewal whose connection ends, or that gets no answer, is sent again; the hold never notices. */
static void a_renewal_is_sent_again(struct world *w)
{
    static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY,
                                               PROXY_HOLD_REQUEST };
    int64_t ms;
    rig = rig_begin_behind(w, &p, "lease=1800ms&command_timeout=300ms");
    for_each_place(place, rig)
        place_take(place);
    for (int i = 0; i < 4; i++) {
        int64_t before = proxy_faults(p);
        proxy_once(p, faults[i], 1, "thing-");
        eventually(proxy_faults(p) > before, 600 + RIG_SLACK_MS);
    }
    for (int k = 0; k < STEPS; k++) { /* six renewals go out together */
        proxy_cut_after(p, k % 2 == 0 ? PROXY_UP : PROXY_DOWN, k % 2 == 0 ? k * 110 : k * 5);
        sleep_ms(150);
    }
    proxy_cut_after(p, PROXY_UP, -1);
    proxy_cut_after(p, PROXY_DOWN, -1);
    assert_int_equal(0, rig_count(&rig->lost));
    for_each_place(place, rig) {
        assert_lk(0, subject_remaining(&place->mine, &ms));
        expect_one_hold(w, place);
        place_give(rig, &place->mine);
    }
    proxy_release(p); /* a renewal that comes when all is over changes nothing */
    rig_works(rig);
}

/* --- no answer, and no time left ---------------------------------------------------------------------------------- */

static void a_lost_request(enum proxy_fault fault, const struct subject *s)
{
    proxy_once(p, fault, 1, s->name);
}

/* When the library says that an unknown outcome is settled, it is: nothing is held, and no late copy takes anything. */
static void what_is_unknown_ends(struct world *w)
{
    static const enum proxy_fault faults[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
    rig = rig_begin_behind(w, &p, HASTY);
    for (int i = 0; i < 2; i++)
        for_each_place(place, rig) {
            for (int giving = 0; giving < 2; giving++) {
                if (giving)
                    place_take(place);
                rig_connected(rig);
                a_lost_request(faults[i], &place->mine);
                int64_t began_ms = now_ms();
                assert_lk(EIO, giving ? subject_give(&place->mine) : subject_take(&place->mine, 0));
                int64_t settles_ms = lk_errorsettles();
                assert_between(now_ms() - began_ms, COMMAND_MS - 1, COMMAND_MS + RIG_SLACK_MS);
                assert_between(settles_ms, 1, 30000 + 2 * COMMAND_MS);
                if (place->mine.kind->leased)
                    assert_lk(EPERM, subject_give(&place->mine));
                eventually(subject_held(w, &place->mine) == 0,
                           3 * COMMAND_MS + RIG_SLACK_MS); /* and not with its lease */
                sleep_ms(2 * COMMAND_MS);                  /* until the deadline of its request, which was not more */
                proxy_release(p);
                sleep_ms(50);
                assert_int_equal(0, subject_held(w, &place->mine));
            }
        }
    rig_works(rig);
}

/* Likewise of the latch: a count that was not set in time is not set later; a countdown is finished, and counts once. */
static void an_unknown_count_is_settled(struct world *w)
{
    static const enum proxy_fault faults[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
    rig = rig_begin_behind(w, &p, HASTY);
    for (int i = 0; i < 2; i++) {
        rig_connected(rig);
        proxy_once(p, faults[i], 1, "latchkey:once:{gate}"); /* a question, and not a subscription */
        assert_lk(EIO, lk_latch_trysetcount(&rig->gate, 3));
        assert_between(lk_errorsettles(), 0, COMMAND_MS);
        sleep_ms(lk_errorsettles());
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(faults[i] == PROXY_DROP_REPLY ? 3 : -1, world_int(w, "GET gate"));
        world_redis(w, "SET gate 3");
        rig_connected(rig);
        proxy_once(p, faults[i], 1, "latchkey:once:{gate}");
        assert_lk(EIO, lk_latch_countdown(&rig->gate));
        assert_between(lk_errorsettles(), 1, 30000);
        eventually(world_int(w, "GET gate") == 2, 3 * COMMAND_MS + RIG_SLACK_MS);
        sleep_ms(2 * COMMAND_MS);
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(2, world_int(w, "GET gate"));
        assert_lk(0, lk_latch_countdownby(&rig->their_gate, 3));
    }
    rig_works(rig);
}

int main(void)
{
    return world_run(a_request_is_carried_out_once, a_count_is_exact, a_run_is_exact, a_party_comes_once, a_wait_goes_on, a_renewal_is_sent_again,
                     what_is_unknown_ends, an_unknown_count_is_settled);
}
