/* SPDX-License-Identifier: MIT */
/*
 * late_subscription_test.c - an opening between the last look and the subscription is not missed
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

WORK(wait_for_it, arg, lk_latch_waitfor(arg, 4000))

/* The server hears of the subscription late, and the latch opens before: the message finds nobody. */
static void an_opening_before_the_subscription_stands_is_seen(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker waiter;
    unsigned count;
    lk_latch_t *opened = world_latch(w, world_client(w, "lease=20s"), "gate");
    lk_latch_t *awaited = world_latch(w, proxy_client(p, "lease=20s&poll=10s"), "gate");
    assert_lk(0, lk_latch_trysetcount(opened, 1));
    assert_lk(0, lk_latch_getcount(awaited, &count)); /* from now on the server knows the script */

    proxy_once(p, PROXY_HOLD_REQUEST, 1, "*2\r\n$9\r\nSUBSCRIBE");
    int64_t looks = world_commands(w, "evalsha");
    worker_start(&waiter, wait_for_it, awaited);
    eventually(proxy_faults(p) == 1, 5000);
    eventually(world_commands(w, "evalsha") >= looks + 2, 5000); /* it looked for the last time */
    assert_lk(0, lk_latch_countdown(opened));
    int64_t began_ms = now_ms();
    proxy_release(p);
    assert_int_equal(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 3000); /* polls are 8 s apart at least */
}

int main(void)
{
    return world_run(an_opening_before_the_subscription_stands_is_seen);
}
