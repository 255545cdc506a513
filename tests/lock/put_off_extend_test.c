/* SPDX-License-Identifier: MIT */
/*
 * put_off_extend_test.c - an extend that has to wait, and what is locked again before it was sent
 *
 * A request whose connection was cut may still come. Until it cannot, an extend with another lease is put off and
 * answers ENOTCONN; what the owner sends meanwhile must not ask for that lease either.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "client/client.h"
#include "proxy.h"

enum { LEASE_MS = 5000, COMMAND_MS = 1000, SHORT_MS = 400, LONG_MS = 20000, CLOCK_MS = 350 };

static struct proxy *p;
static lk_mutex_t *mine, *other;

static void open_both(struct world *w)
{
    p = proxy_begin(w);
    mine = world_mutex(w, proxy_client(p, "lease=5s&command_timeout=1s"), "orders", NULL);
    other = world_mutex(w, world_client(w, "lease=5s"), "orders", NULL);
    assert_lk(0, lk_mutex_lock(mine));
    assert_lk(0, lk_mutex_lock(mine)); /* from now on the server knows the scripts */
    assert_lk(0, lk_mutex_unlock(mine));
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
}

/* While what the first one believes is above zero, the second one does not get it. */
static void assert_one_holder(int64_t ms)
{
    for (int64_t until_ms = now_ms() + ms; now_ms() < until_ms; sleep_ms(10)) {
        int64_t left_ms;
        if (lk_mutex_trylock(other) != 0)
            continue;
        assert_lk(ESTALE, lk_mutex_remaining(mine, &left_ms));
        assert_lk(0, lk_mutex_unlock(other));
    }
}

/* 0, or lost by then: the lease is short, and this machine may be slow. */
static void unlock_all(int levels)
{
    for (; levels > 0; levels--) {
        int rc = lk_mutex_unlock(mine);
        assert_true(rc == 0 || rc == ESTALE);
    }
}

/* One renewal is cut; the extend that follows it waits, and the nested lock keeps the lease that there is. */
static void a_nested_lock_does_not_shorten_the_lease(struct world *w)
{
    int64_t left_ms;
    open_both(w);
    proxy_once(p, PROXY_CUT_REPLY, 1, "orders");
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
    assert_lk(ENOTCONN, lk_mutex_extend(mine, SHORT_MS));
    assert_lk(0, lk_mutex_lock(mine));
    assert_true(world_pttl(w, "orders") > SHORT_MS);
    assert_lk(0, lk_mutex_remaining(mine, &left_ms));
    assert_true(left_ms > SHORT_MS);
    assert_one_holder(2 * COMMAND_MS);
    unlock_all(2);
}

/* Likewise an unlock that leaves it held. */
static void a_nested_unlock_does_not_either(struct world *w)
{
    open_both(w);
    assert_lk(0, lk_mutex_lock(mine));
    proxy_once(p, PROXY_CUT_REPLY, 1, "orders");
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
    assert_lk(ENOTCONN, lk_mutex_extend(mine, SHORT_MS));
    assert_lk(0, lk_mutex_unlock(mine));
    assert_true(world_pttl(w, "orders") > SHORT_MS);
    assert_one_holder(2 * COMMAND_MS);
    unlock_all(1);
}

/*
 * The cut renewal still comes, after a nested lock that would have been believed for longer. The slow answer before
 * makes its deadline late: the server's clock is known no better.
 */
static void a_nested_lock_does_not_outlast_a_late_copy(struct world *w)
{
    int64_t left_ms;
    open_both(w);
    proxy_delay(p, CLOCK_MS);
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
    proxy_delay(p, 0);
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
    assert_lk(ENOTCONN, lk_mutex_extend(mine, LONG_MS));
    assert_lk(0, lk_mutex_lock(mine));
    proxy_release(p);
    sleep_ms(50);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_remaining(mine, &left_ms));
    int64_t there_ms = world_pttl(w, "orders");
    assert_true(there_ms + (now_ms() - began_ms) >= left_ms - 1); /* what passed between the looks is known */
    unlock_all(2);
}

/* It is not forgotten: renewals ask for it as soon as they may. */
static void the_extend_goes_out_later(struct world *w)
{
    open_both(w);
    proxy_once(p, PROXY_CUT_REPLY, 1, "orders");
    assert_lk(0, lk_mutex_extend(mine, LEASE_MS));
    assert_lk(ENOTCONN, lk_mutex_extend(mine, LONG_MS));
    assert_lk(0, lk_mutex_lock(mine));
    assert_true(world_pttl(w, "orders") <= LEASE_MS);
    eventually(world_pttl(w, "orders") > LEASE_MS, 4 * COMMAND_MS);
    unlock_all(2);
}

/*
 * A hold that was handed over has the claim's lease, which may be longer than its own: whoever sets its own, by a
 * nested lock as by a renewal, believes no more from before that is sent.
 */
static void a_nested_lock_lowers_what_is_believed_first(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=5s");
    struct lk__lease *lease = lk__lease_new(&client->dog, 0, LK__OWNER_ID);
    int64_t now_us = lk__now_us();
    assert_non_null(lease);
    lease->lease_ms = lease->wanted_ms = SHORT_MS;
    lk__lease_take(lease, now_us + 3000000, LK__NEVER);
    assert_int_equal(SHORT_MS, lk__lease_begincall(lease));
    assert_true(atomic_load(&lease->valid_until_us) < lk__now_us() + SHORT_MS * 1000);
    lk__lease_endcall(lease, true, 0);
    assert_true(atomic_load(&lease->valid_until_us) < lk__now_us() + SHORT_MS * 1000);
    lk__lease_end(lease, NULL);
    lk__lease_unref(lease);
}

int main(void)
{
    return world_run(a_nested_lock_does_not_shorten_the_lease, a_nested_unlock_does_not_either,
                     a_nested_lock_does_not_outlast_a_late_copy, the_extend_goes_out_later,
                     a_nested_lock_lowers_what_is_believed_first);
}
