/* SPDX-License-Identifier: MIT */
/*
 * connections_test.c - a process has two connections while nobody in it waits: one for commands, one for renewals
 *
 * simulated: yes
 */
#include "subject.h"

/* Beside the test's own. */
static int64_t connections(struct world *w)
{
    return world_counter(w, "connected_clients") - 1;
}

/* The third one, for messages, is made by the first wait. A try waits for nobody. */
static void only_who_waits_listens(struct world *w, const struct subject_kind *kind)
{
    struct errand errand;
    struct subject *held = world_subject(w, world_client(w, ""), subject_keeper(kind), "thing");
    assert_int_equal(1, connections(w));
    for (int i = 0; i < 2; i++) {
        assert_lk(0, subject_take(held, 0));
        assert_lk(0, subject_give(held));
    }
    eventually(connections(w) == 2, 5000);
    sleep_ms(200);
    assert_int_equal(2, connections(w));
    assert_lk(0, subject_take(held, 0));
    struct subject *wanted = world_subject(w, world_client(w, ""), kind, "thing");
    assert_true(subject_take(wanted, 0) != 0);
    eventually(connections(w) == 4, 5000);
    sleep_ms(200);
    assert_int_equal(4, connections(w));
    errand_start(&errand, wanted, 10000);
    eventually(connections(w) == 5, 5000);
    assert_lk(0, subject_give(held));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
}

int main(void)
{
    return subject_run(only_who_waits_listens);
}
