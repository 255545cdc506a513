/* SPDX-License-Identifier: MIT */
/*
 * calm_test.c - nothing is wrong: what the faults of this folder are compared with
 *
 * labels: memory
 */
#include "subject.h"

/* Taken, refused to another client, waited for in vain, handed over, given back: nothing is left. */
static void calm(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *one = world_client(w, "lease=3s"), *other = world_client(w, "lease=3s");
    struct errand errand;
    uint64_t first, second;
    int64_t ms;
    struct subject *mine = world_subject(w, one, kind, "thing");
    struct subject *theirs = world_subject(w, other, kind, "thing");
    struct subject *keeper = world_subject(w, other, subject_keeper(kind), "thing");

    assert_lk(0, subject_take(keeper, 1000));
    assert_int_equal(1, subject_held(w, keeper));
    assert_lk(ETIMEDOUT, subject_take(mine, 0));
    assert_lk(ETIMEDOUT, subject_take(mine, 50));
    assert_int_equal(0, subject_queued(w, mine));

    errand_start(&errand, mine, 5000);
    eventually(subject_queued(w, mine) == 1, 1000);
    assert_lk(0, subject_give(keeper));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
    assert_int_equal(0, subject_held(w, mine));

    assert_lk(0, subject_take(mine, 1000));
    if (kind->fenced)
        assert_lk(0, kind->token(mine, &first));
    assert_lk(0, subject_remaining(mine, &ms));
    if (kind->leased)
        assert_between(ms, 1, 2970);
    assert_lk(0, subject_give(mine));
    assert_lk(0, subject_take(theirs, 1000));
    if (kind->fenced) {
        assert_lk(0, kind->token(theirs, &second));
        assert_true(second > first);
    }
    assert_lk(0, subject_give(theirs));
}

int main(void)
{
    return subject_run(calm);
}
