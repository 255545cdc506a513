/* SPDX-License-Identifier: MIT */
/*
 * full_server_test.c - a server out of memory takes a mutex back, and hands it over
 *
 * labels: threads memory
 */
#include "world.h"

/* It accepts no new holder; but who holds one could else not give it back just when memory is short. */
static void who_holds_can_give_back(struct world *w)
{
    struct worker waiter;
    lk_client_t *client = world_client(w, "lease=20s&poll=10s"), *other = world_client(w, "lease=20s&poll=10s");
    lk_mutex_t *held = world_mutex(w, client, "orders", NULL);
    lk_mutex_t *wanted = world_mutex(w, other, "orders", NULL);
    for (int waited_for = 0; waited_for < 2; waited_for++) {
        assert_lk(0, lk_mutex_lock(held));
        assert_lk(0, lk_mutex_lock(held));
        if (waited_for) {
            worker_start(&waiter, lock_and_unlock, wanted);
            eventually(world_queued(w, "orders") == 1, 5000);
            eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
            sleep_ms(100); /* it has asked again, which needs memory, and sleeps */
        }
        world_redis(w, "CONFIG SET maxmemory 1");
        assert_lk(0, lk_mutex_unlock(held));
        assert_lk(0, lk_mutex_unlock(held));
        if (waited_for)
            assert_int_equal(0, worker_join(&waiter));
        assert_false(world_exists(w, "orders"));
        assert_lk(ENOSPC, lk_mutex_trylock(held));
        world_redis(w, "CONFIG SET maxmemory 0");
    }
}

int main(void)
{
    return world_run(who_holds_can_give_back);
}
