/* SPDX-License-Identifier: MIT */
/*
 * lost_subscription_test.c - an unlock that nobody heard is found out when the subscription stands again
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

VISIT(wait_for_it, arg, lk_mutex_lockfor(arg, 8000), lk_mutex_unlock(arg))

/* The subscription connection is lost, and the mutex is unlocked while the next one is being made. */
static void an_unlock_without_a_listener_is_seen(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker waiter;
    lk_client_t *near = world_client(w, "lease=20s"), *far;
    far = proxy_client(p, "lease=30s&poll=30s");
    lk_mutex_t *held = world_mutex(w, near, "orders", NULL);
    lk_mutex_t *wanted = world_mutex(w, far, "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, wait_for_it, wanted);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"),
               3000); /* it asked again, sleeps */

    proxy_once(p, PROXY_HOLD_REQUEST, 1, "*2\r\n$9\r\nSUBSCRIBE");
    world_redis(w, "CLIENT KILL TYPE pubsub");
    eventually(proxy_faults(p) == 1, 2000);
    assert_lk(0, lk_mutex_unlock(held));
    int64_t began_ms = now_ms();
    proxy_release(p);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 2500); /* it gives up, and polls again, later than that */
}

int main(void)
{
    return world_run(an_unlock_without_a_listener_is_seen);
}
