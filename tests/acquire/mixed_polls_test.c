/* SPDX-License-Identifier: MIT */
/*
 * mixed_polls_test.c - clients that ask rarely and clients that ask often wait for one object
 *
 * labels: threads
 * simulated: yes
 */
#include "subject.h"

enum { SELDOM_MS = 20000, LIVENESS_MS = 3 * SELDOM_MS };

static int wait_long(void *arg)
{
    int rc = subject_take(arg, LK_FOREVER);
    return rc != 0 ? rc : subject_give(arg);
}

/* When the first key of that pattern ends; -1: it has no end, or there is none. */
static int64_t ends_in(struct world *w, const char *pattern)
{
    return world_int(w, "EVAL %s 0 %s",
                     "local key = redis.call('KEYS', ARGV[1])[1] "
                     "return key and redis.call('PTTL', key) or -1",
                     pattern);
}

/*
 * Who asks rarely keeps its place for long, and the queue lasts for as long, though others come and go that ask
 * often. Else the queue would be gone at the unlock, and its waiter sleep on beside a free object.
 */
static void mixed_polls(struct world *w, const struct subject_kind *kind)
{
    struct subject *keeper, *seldom, *passing;
    struct worker waiter;
    lk_client_t *holding = world_client(w, "lease=30s"), *passer = world_client(w, "lease=30s");
    lk_client_t *sleeper = world_client(w, "poll=20s");
    keeper = world_subject(w, holding, subject_keeper(kind), "thing");
    seldom = world_subject(w, sleeper, kind, "thing");
    assert_lk(0, subject_take(keeper, 0));
    worker_start(&waiter, wait_long, seldom);
    eventually(subject_queued(w, seldom) == 1, 5000);

    passing = world_subject(w, passer, kind, "thing");
    assert_lk(ETIMEDOUT, subject_take(passing, 50));
    assert_true(ends_in(w, "latchkey:queue:*") > LIVENESS_MS);
    assert_true(ends_in(w, "latchkey:alive:*") > LIVENESS_MS);

    assert_lk(0, subject_give(keeper));
    assert_lk(0, worker_join(&waiter));
}

int main(void)
{
    return subject_run(mixed_polls);
}
