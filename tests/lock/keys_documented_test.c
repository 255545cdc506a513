/* SPDX-License-Identifier: MIT */
/*
 * keys_documented_test.c - what a mutex keeps in Redis is what docs/keys.md says, after each operation
 *
 * labels: memory
 */
#include "page.h"

static struct page page;

/* There are just these keys. */
static void check(struct world *w, int expected)
{
    assert_int_equal(expected, page_compare(w, &page, NULL));
}

static void each_operation_leaves_what_the_page_says(struct world *w)
{
    const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
    struct worker waiter;
    page_read(&page, "a mutex", "orders", 20000);
    lk_mutex_t *orders = world_mutex(w, world_client(w, "lease=20s"), "orders", &robust);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, "lease=20s"), "orders", &robust);
    check(w, 0);
    assert_lk(0, lk_mutex_lock(orders));
    check(w, 4); /* hash, token, robust mark, settings */
    assert_lk(0, lk_mutex_lock(orders));
    check(w, 4);
    assert_string_equal("2", world_str(w, "HGET orders %s", world_owner(w, "orders")));
    worker_start(&waiter, lock_and_unlock, same_name);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    check(w, 6); /* queue and liveness as well */
    assert_int_equal(1, world_int(w, "HLEN latchkey:alive:mutex:{orders}"));
    assert_lk(0, lk_mutex_unlock(orders));
    check(w, 6);
    assert_lk(0, lk_mutex_extend(orders, 15000));
    assert_lk(0, lk_mutex_check(orders));
    check(w, 6);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    check(w, 2); /* the token outlives it by a day, the settings by an hour */
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    check(w, 3); /* who comes next is told EOWNERDEAD: the mark stays */
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    check(w, 3);
    assert_string_equal("unrecoverable", world_str(w, "GET latchkey:robust:mutex:{orders}"));
    assert_lk(ENOTRECOVERABLE, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(orders));
    check(w, 2);
    page_was_seen(&page);
}

int main(void)
{
    return world_run(each_operation_leaves_what_the_page_says);
}
