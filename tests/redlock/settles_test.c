/* SPDX-License-Identifier: MIT */
/*
 * settles_test.c - a server that refused an extend for less has the longer lease still, and is told of the end until that
 * is over
 *
 * labels: threads
 * simulated: yes
 */
#include "quorum.h"

enum { SHORT_MS = 2000 };

#define OPTIONS "lease=9s&command_timeout=300ms&retry_max=50ms"

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1 };

/* So many of three refuse what changes anything, the last ones. */
static void refuse(struct quorum *q, int count)
{
    for (int i = 0; i < 3; i++)
        quorum_str(q, i, i < 3 - count ? "REPLICAOF NO ONE" : "REPLICAOF 127.0.0.1 1");
}

/* All three have it, then so many of them refuse. */
static lk_redlock_t *begin(struct world *w, struct quorum **q, int refusing)
{
    *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(*q, OPTIONS), "jobs", &no_wait);
    quorum_lockall(*q, r, "jobs");
    refuse(*q, refusing);
    return r;
}

/* The last server serves again when the short lease would be over, and the longer one is not. */
static void assert_given_back(struct quorum *q)
{
    sleep_ms(SHORT_MS + 1000);
    assert_same(1, quorum_int(q, 2, "EXISTS jobs"));
    refuse(q, 0);
    eventually(quorum_int(q, 2, "EXISTS jobs") == 0, 1000);
}

static void an_unlock_outlasts_the_longer_lease(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = begin(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    assert_lk(0, lk_redlock_unlock(r));
    assert_given_back(q);
}

static void an_unlock_says_when_the_longer_lease_is_over(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = begin(w, &q, 2);
    assert_lk(EIO, lk_redlock_extend(r, SHORT_MS));
    assert_lk(EIO, lk_redlock_unlock(r));
    sleep_ms(lk_errorsettles());
    assert_same(0, quorum_having(q, "jobs"));
}

static void an_unlock_ends_with_the_shorter_lease_that_all_have(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = begin(w, &q, 0);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    eventually(quorum_int(q, 0, "PTTL jobs") <= SHORT_MS && quorum_int(q, 1, "PTTL jobs") <= SHORT_MS &&
                   quorum_int(q, 2, "PTTL jobs") <= SHORT_MS,
               1000);
    sleep_ms(100); /* the last answer is here */
    refuse(q, 2);
    assert_lk(EIO, lk_redlock_unlock(r));
    assert_between(lk_errorsettles(), 1, SHORT_MS + 700);
    refuse(q, 0);
    eventually(quorum_having(q, "jobs") == 0, 1000);
}

/* The others renew it. */
static void a_part_that_ran_out_is_given_back(struct world *w)
{
    struct quorum *q;
    lk_redlock_t *r = begin(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    assert_given_back(q);
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
}

/* Two no longer know it: what the third one has is given back with the whole. */
static void what_is_left_of_a_loss_is_given_back(struct world *w)
{
    struct quorum *q;
    int64_t left_ms;
    lk_redlock_t *r = begin(w, &q, 1);
    assert_answer(0, lk_redlock_extend(r, SHORT_MS));
    quorum_str(q, 0, "DEL jobs");
    quorum_str(q, 1, "DEL jobs");
    eventually(lk_redlock_remaining(r, &left_ms) == ESTALE, SHORT_MS);
    assert_given_back(q);
    assert_lk(ESTALE, lk_redlock_unlock(r));
}

int main(void)
{
    return world_run(an_unlock_outlasts_the_longer_lease, an_unlock_says_when_the_longer_lease_is_over,
                     an_unlock_ends_with_the_shorter_lease_that_all_have, a_part_that_ran_out_is_given_back,
                     what_is_left_of_a_loss_is_given_back);
}
