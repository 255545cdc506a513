/* SPDX-License-Identifier: MIT */
/*
 * capped_test.c - a lease that reaches max_hold_ms is renewed no more
 *
 * labels: memory
 * simulated: yes
 */
#include "world.h"

enum { LEASE_MS = 1500, MOST_MS = 2500 };

/*
 * It is renewed after a third of the lease, and after a third of what that gave it. From then on a renewal gives it nothing:
 * one that took the limit for a part of a millisecond away was followed by others, each after a third of what was left.
 */
static void a_lease_that_reaches_its_limit_is_renewed_no_more(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.lease_ms = LEASE_MS;
    attr.max_hold_ms = MOST_MS;
    lk_mutex_t *orders = world_mutex(w, world_client(w, ""), "orders", &attr);
    for (int i = 0; i < 5; i++) {
        assert_lk(0, lk_mutex_lock(orders));
        int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
        sleep_ms(MOST_MS);
        assert_between(world_commands(w, "evalsha") + world_commands(w, "eval") - before, 2, 4);
        assert_lk(ESTALE, lk_mutex_unlock(orders));
    }
}

int main(void)
{
    return world_run(a_lease_that_reaches_its_limit_is_renewed_no_more);
}
