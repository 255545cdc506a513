/* SPDX-License-Identifier: MIT */
/*
 * giving_back_test.c - a hold ends here before its release is sent
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"

/*
 * The server has the release, its answer is lost, and a renewal falls due meanwhile. Nobody believes in the
 * hold any more: it is not renewed, and that the server does not know it is no loss.
 */
static void what_is_being_given_back_is_not_lost(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    lk_event_t event = LK_EVENT_INIT;
    lk_client_t *client = proxy_client(p, "lease=6s&command_timeout=1s");
    lk_events_t *events = world_events(w, client);
    attr.lease_ms = 1500; /* renewed each 500 ms, so at least once while the answer is awaited */
    lk_mutex_t *orders = world_mutex(w, client, "orders", &attr);
    for (int i = 0; i < 2; i++) { /* the second time the server knows the scripts */
        assert_lk(0, lk_mutex_lock(orders));
        if (i == 1)
            proxy_once(p, PROXY_DROP_REPLY, 1, "latchkey:alive"); /* which no renewal names */
        assert_lk(i == 1 ? EIO : 0, lk_mutex_unlock(orders));
    }
    assert_false(world_exists(w, "orders"));
    sleep_ms(200);
    assert_lk(EAGAIN, lk_events_next(events, &event));
}

int main(void)
{
    return world_run(what_is_being_given_back_is_not_lost);
}
