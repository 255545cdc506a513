/* SPDX-License-Identifier: MIT */
/*
 * connection_loss_test.c - scripts flushed and connections killed in the middle are not noticed
 *
 * labels: threads memory
 * simulated: yes
 * processors: 2
 */
#include "world.h"

static lk_mutex_t *held, *wanted;

static void open_both(struct world *w, const char *options)
{
    held = world_mutex(w, world_client(w, options), "orders", NULL);
    wanted = world_mutex(w, world_client(w, options), "orders", NULL);
}

/* Each step of a hold's life with a fault before it. */
static void a_holder_does_not_notice(struct world *w)
{
    uint64_t token, later;
    open_both(w, "lease=3s&command_timeout=980ms");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        world_blow(w, i);
        assert_lk(0, lk_mutex_lock(held));
        assert_lk(0, lk_mutex_token(held, &token));
        world_blow(w, i);
        assert_lk(0, lk_mutex_lock(held));
        assert_int_equal(2, world_holds(w, "orders"));
        world_blow(w, i);
        assert_lk(EBUSY, lk_mutex_trylock(wanted));
        sleep_ms(1100); /* a renewal */
        world_blow(w, i);
        assert_lk(0, lk_mutex_check(held));
        assert_lk(0, lk_mutex_token(held, &later));
        assert_true(token == later);
        world_blow(w, i);
        assert_lk(0, lk_mutex_unlock(held));
        world_blow(w, i);
        assert_lk(0, lk_mutex_unlock(held));
        assert_false(world_exists(w, "orders"));
    }
}

/* A waiter whose connections are gone hears of the unlock all the same, long before its poll. */
static void a_waiter_does_not_notice(struct world *w)
{
    struct worker waiter;
    open_both(w, "lease=20s&poll=5s");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        assert_lk(0, lk_mutex_lock(held));
        worker_start(&waiter, lock_and_unlock, wanted);
        eventually(world_queued(w, "orders") == 1, 5000);
        world_blow(w, i);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_mutex_unlock(held)); /* at once: the message may find nobody there */
        assert_int_equal(0, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
        assert_false(world_exists(w, "orders"));
    }
}

struct traffic {
    int inside, counter;
    struct gate stop;
};

static struct traffic traffic;

static int visit_until_stopped(int index, void *arg)
{
    lk_mutex_t *m = index % 2 == 0 ? held : wanted;
    int wrong = 0;
    (void)arg;
    while (!gate_is_open(&traffic.stop) && wrong == 0) {
        int rc = lk_mutex_lock(m);
        if (rc != 0)
            return rc;
        if (traffic.inside != 0)
            return -1;
        traffic.inside = 1;
        traffic.counter++;
        traffic.inside = 0;
        wrong = lk_mutex_unlock(m);
    }
    return wrong;
}

/* Faults at every moment under load: nobody fails, nobody meets anybody, nothing stays behind. */
static void traffic_goes_on_under_a_hail_of_faults(struct world *w)
{
    traffic = (struct traffic){ 0 };
    open_both(w, "lease=10s&poll=300ms");
    assert_int_equal(0, world_hail(w, visit_until_stopped, &traffic.stop));
    assert_true(traffic.counter > 8);
    assert_int_equal(0, world_queued(w, "orders"));
}

int main(void)
{
    return world_run(a_holder_does_not_notice, a_waiter_does_not_notice, traffic_goes_on_under_a_hail_of_faults);
}
