/* SPDX-License-Identifier: MIT */
/*
 * dribble_test.c - F06: answers come byte by byte, or many at once; only the time of the whole one counts
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 23
 */
#include "rig.h"

enum { THREADS = 8, ROUNDS = 20 };

static struct rig *rig;
static struct proxy *p;

/* Those in queues, for the run, and at the barrier. */
static bool they_listen(struct world *w)
{
    static const char *const queues[] = { "mutex:{thing-0}", "mutex:{thing-1}", "rw:{thing-2}",
                                          "rw:{thing-3}",    "sem:{thing-4}",   "permits:{thing-5}" };
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        if (!world_listening(w, queues[i]))
            return false;
    return world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1 &&
           world_elements(w, "PUBSUB CHANNELS latchkey:met:*") == 1;
}

/* In each phase: A, W with its message, H with its renewals, R. */
static void a_slow_link_is_only_slow(struct world *w)
{
    struct errand errands[RIG_PLACES];
    struct party party;
    rig = rig_begin_behind(w, &p, "lease=9s&command_timeout=2800ms&poll=9s");
    proxy_dribble(p, PROXY_DOWN, 1); /* some 50 bytes an answer */
    for_each_place(place, rig) {
        place_take(place);
        assert_lk(0, subject_give(&place->mine));
        assert_lk(0, subject_take(&place->theirs, 5000));
        errand_start(&errands[place - rig->places], &place->mine, 10000);
        eventually(errand_waits(rig->w, &errands[place - rig->places]), 5000);
    }
    party_wait(rig, &party, &rig->stage, 10000);
    eventually(they_listen(w), 10000);
    for_each_place(place, rig) {
        struct errand *errand = &errands[place - rig->places];
        int64_t given_ms = now_ms();
        assert_lk(0, subject_give(&place->theirs));
        errand_join(errand);
        assert_lk(0, errand->took);
        assert_lk(0, errand->gave);
        assert_between(errand->took_ms - given_ms, 0, 1500 + RIG_SLACK_MS); /* by the message: a poll is 9 s away */
    }
    int64_t met_ms = now_ms();
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
    assert_between(party.went_ms - met_ms, 0, 1500 + RIG_SLACK_MS);
    for_each_place(place, rig)
        place_take(place);
    party_wait(rig, &party, &rig->stage, LK_FOREVER);
    assert_lk(0, lk_latch_trysetcount(&rig->gate, 1));
    assert_lk(0, lk_latch_countdown(&rig->gate));
    assert_lk(0, lk_latch_waitfor(&rig->gate, 0));
    sleep_ms(9000 / 3 + RIG_SLACK_MS);
    for_each_place(place, rig)
        assert_lk(0, subject_give(&place->mine));
    assert_int_equal(0, rig_count(&rig->lost));
    sleep_ms(9000 - 9000 / 3); /* the lease that it came with is over, and it is renewed */
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
    proxy_dribble(p, PROXY_DOWN, -1);
    rig_works(rig);
}

/* An answer whose last byte comes after the command timeout is none: as F04. */
static void an_answer_that_takes_too_long_is_none(struct world *w)
{
    rig = rig_begin_behind(w, &p, "lease=20s&command_timeout=200ms&poll=5s");
    for_each_place(place, rig)
        for (int giving = 0; giving < 2; giving++) {
            if (giving)
                place_take(place);
            rig_connected(rig);
            proxy_dribble(p, PROXY_DOWN, 50);
            int64_t began_ms = now_ms();
            int code = giving ? subject_give(&place->mine) : subject_take(&place->mine, 0);
            assert_true(code == EIO || (code == ENOTCONN && !giving)); /* ENOTCONN: it did not even begin */
            assert_between(now_ms() - began_ms, RIG_COMMAND_MS - 1, RIG_COMMAND_MS + RIG_SLACK_MS);
            assert_int_equal(code == EIO, lk_errorsettles() > 0);
            proxy_dribble(p, PROXY_DOWN, -1);
            eventually(subject_held(rig->w, &place->mine) == 0, 3 * RIG_COMMAND_MS + RIG_SLACK_MS);
        }
    assert_lk(0, lk_once_begin(&rig->work, 5000));
    rig_connected(rig);
    proxy_dribble(p, PROXY_DOWN, 50);
    assert_lk(EIO, lk_once_end(&rig->work, "drop by drop"));
    proxy_dribble(p, PROXY_DOWN, -1);
    rig_done(rig, "drop by drop", 3 * RIG_COMMAND_MS + RIG_SLACK_MS);
    rig_connected(rig);
    proxy_dribble(p, PROXY_DOWN, 50);
    int code = lk_barrier_waitfor(&rig->lasting, RIG_COMMAND_MS / 2);
    assert_true(code == EIO || code == ENOTCONN);
    proxy_dribble(p, PROXY_DOWN, -1);
    if (code == EIO) /* it came, and left */
        rig_mend(rig, 3 * RIG_COMMAND_MS + RIG_SLACK_MS);
    rig_works(rig);
}

static int visit(int index, void *arg)
{
    struct subject s =
        ((struct subject *)arg)[index % RIG_PLACES]; /* a shell of its own: neither is initialised anew */
    for (int i = 0; i < ROUNDS; i++) {
        int rc = subject_take(&s, 10000);
        if (rc == 0)
            rc = subject_give(&s);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int visits(void *arg)
{
    return run_threads(THREADS, visit, arg);
}

/* Many answers in one read, and cut anywhere: each goes to who asked. */
static void answers_that_come_together_are_told_apart(struct world *w)
{
    struct subject subjects[RIG_PLACES];
    struct worker worker;
    rig = rig_begin_behind(w, &p, "lease=10s&command_timeout=3s&poll=200ms");
    for (int i = 0; i < RIG_PLACES; i++)
        subjects[i] = rig->places[i].mine;
    worker_start(&worker, visits, subjects);
    for (int i = 0; i < 20; i++) {
        proxy_stall(p, PROXY_DOWN);
        sleep_ms(15);
        proxy_resume(p);
        if (i % 2 == 0)
            proxy_dribble(p, PROXY_DOWN, 0);
        else
            proxy_dribble(p, PROXY_DOWN, -1);
    }
    assert_lk(0, worker_join(&worker));
    rig_works(rig);
}

int main(void)
{
    return world_run(a_slow_link_is_only_slow, an_answer_that_takes_too_long_is_none,
                     answers_that_come_together_are_told_apart);
}
