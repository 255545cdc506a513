/* SPDX-License-Identifier: MIT */
/*
 * straight_test.c - who rests is also told where a mutex goes to the first waiter the shortest way
 *
 * One mutex alone: where many things are waited for, who began to rest long before the last of them may ask again by itself.
 *
 * labels: threads
 * simulated: yes
 * seconds: 12
 */
#include "rest.h"

enum { CLAIM_MS = 3000, ASKS_BY_MS = 2000 };

struct wish {
    lk_mutex_t *mutex;
    struct worker worker;
    int64_t had_ms;
};

static int have_it(void *arg)
{
    struct wish *wish = arg;
    int rc = lk_mutex_lockfor(wish->mutex, LIMIT_MS);
    wish->had_ms = now_ms();
    return rc == 0 ? lk_mutex_unlock(wish->mutex) : rc;
}

static void want(struct world *w, struct wish *wish)
{
    wish->mutex = world_mutex(w, world_client(w, "lease=60s"), "orders", NULL);
    worker_start(&wish->worker, have_it, wish);
}

static int want_for_ever(struct world *w, void *arg)
{
    static struct wish wish;
    (void)arg;
    want(w, &wish);
    world_ready(w);
    sleep_ms(120000);
    return 0;
}

/*
 * The first one stands still, and lets its claim end. The other one was told of that, and looks then: by itself it would ask
 * again after ten seconds at the earliest.
 */
static void who_rests_is_told_of_a_claim(struct world *w)
{
    struct wish wish = { 0 };
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=60s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    pid_t first = world_fork(w, want_for_ever, NULL);
    eventually(resting(w) == 1, RESTS_BY_MS);
    want(w, &wish);
    eventually(resting(w) == 2, RESTS_BY_MS);
    world_stop(first);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&wish.worker));
    assert_between(wish.had_ms - began_ms, 0, CLAIM_MS + ASKS_BY_MS + 5 * SLACK_MS);
    world_kill(w, first);
    world_allow(w, "latchkey:*");
}

int main(void)
{
    return world_run(who_rests_is_told_of_a_claim);
}
