/* SPDX-License-Identifier: MIT */
/*
 * blows_test.c - scripts that are forgotten and connections that end in the middle of anything are not noticed
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 40
 * processors: 2
 */
#include "subject.h"

#include <string.h>

static struct subject *held, *wanted; /* one name, two clients */

static void open_both(struct world *w, const struct subject_kind *holder, const struct subject_kind *waiter,
                      const char *options)
{
    held = world_subject(w, world_client(w, options), holder, "thing");
    wanted = world_subject(w, world_client(w, options), waiter, "thing");
}

/* Each step of a hold's life with a fault before it. */
static void a_holder_does_not_notice(struct world *w, const struct subject_kind *kind)
{
    bool nests = strstr(kind->name, "mutex") != NULL;
    uint64_t last = 0;
    open_both(w, kind, subject_keeper(kind), "lease=3s&command_timeout=980ms");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        world_blow(w, i);
        assert_lk(0, subject_take(held, PATIENT_MS));
        uint64_t token = subject_token(held);
        assert_true(!kind->fenced || token > last);
        last = token;
        world_blow(w, i);
        assert_lk(nests ? 0 : ETIMEDOUT, subject_take(nests ? held : wanted, 0));
        assert_true(!nests || world_holds(w, "thing") == 2);
        world_blow(w, i);
        assert_lk(ETIMEDOUT, subject_take(wanted, 0));
        sleep_ms(1100); /* a renewal */
        world_blow(w, i);
        assert_lk(0, kind->leased ? subject_check(held) : 0);
        assert_true(subject_token(held) == token);
        for (int level = nests ? 2 : 1; level > 0; level--) {
            world_blow(w, i);
            assert_lk(0, subject_give(held));
        }
        assert_int_equal(0, subject_held(w, held));
    }
}

/* A waiter whose connections are gone hears of the release all the same, long before its poll. */
static void a_waiter_does_not_notice(struct world *w, const struct subject_kind *kind)
{
    struct errand errand;
    open_both(w, subject_keeper(kind), kind, "lease=20s&poll=5s");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        assert_lk(0, subject_take(held, PATIENT_MS));
        errand_start(&errand, wanted, PATIENT_MS);
        eventually(errand_waits(w, &errand), 5000);
        world_blow(w, i);
        int64_t began_ms = now_ms();
        assert_lk(0, subject_give(held)); /* at once: the message may find nobody there */
        errand_join(&errand);
        assert_int_equal(0, errand.took);
        assert_int_equal(0, errand.gave);
        assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
        assert_int_equal(0, subject_held(w, held));
    }
}

static struct {
    int alone, together; /* who is inside, by what it keeps out; atomic builtins */
    int rounds;
    struct gate stop;
} traffic;

static int visit_until_stopped(int index, void *arg)
{
    struct subject *s = index % 2 == 0 ? held : wanted;
    bool alone = subject_keeper(s->kind) == s->kind;
    int rc = 0;
    (void)arg;
    while (rc == 0 && !gate_is_open(&traffic.stop)) {
        rc = subject_take(s, LK_FOREVER);
        if (rc != 0)
            break;
        int among = __atomic_add_fetch(alone ? &traffic.alone : &traffic.together, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(alone ? &traffic.together : &traffic.alone, __ATOMIC_SEQ_CST) != 0 || (alone && among != 1))
            return -1;
        __atomic_add_fetch(&traffic.rounds, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(alone ? &traffic.alone : &traffic.together, 1, __ATOMIC_SEQ_CST);
        rc = subject_give(s);
    }
    return rc;
}

/* Faults at every moment under load: nobody fails, nobody meets who keeps it out, nothing stays behind. */
static void traffic_goes_on_under_a_hail_of_faults(struct world *w, const struct subject_kind *kind)
{
    memset(&traffic, 0, sizeof traffic);
    open_both(w, subject_keeper(kind), kind, "lease=10s&poll=300ms");
    assert_int_equal(0, world_hail(w, visit_until_stopped, &traffic.stop));
    assert_true(traffic.rounds > 8);
    assert_int_equal(0, subject_queued(w, wanted));
    assert_int_equal(0, subject_held(w, wanted));
}

int main(void)
{
    return subject_run(a_holder_does_not_notice, a_waiter_does_not_notice, traffic_goes_on_under_a_hail_of_faults);
}
