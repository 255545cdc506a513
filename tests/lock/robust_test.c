/* SPDX-License-Identifier: MIT */
/*
 * robust_test.c - a robust mutex tells that its holder died, until somebody repaired what it guards
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

static lk_client_t *client;
static lk_mutex_t *orders;

static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
static const lk_mutexattr_t brief = { .size = sizeof brief, .robust = 1, .lease_ms = 400 }; /* of who dies */

static void open_with(struct world *w, const lk_mutexattr_t *attr)
{
    client = world_client(w, "");
    orders = world_mutex(w, client, "orders", attr);
}

static void open_orders(struct world *w)
{
    open_with(w, &robust);
}

static int hold_until_killed(struct world *w, void *arg)
{
    open_with(w, &brief);
    assert_lk(0, lk_mutex_lock(orders));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* Somebody held it and died. */
static void leave_it_dead(struct world *w)
{
    world_kill(w, world_fork(w, hold_until_killed, world_shared(w, sizeof(struct gate))));
}

/* Who comes after a dead holder must not believe that what is guarded is in order. */
static void after_a_dead_holder_it_says_so_until_repaired(struct world *w)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    leave_it_dead(w);
    open_orders(w);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_lock(orders)); /* told once */
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(1, info.recoverable);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lock_and_unlock(orders));
}

/* Every way to lock tells. */
static void trying_and_waiting_tell_as_well(struct world *w)
{
    struct timespec past = { 1, 0 };
    for (int i = 0; i < 3; i++) {
        leave_it_dead(w);
        open_orders(w);
        eventually(!world_exists(w, "orders"), 2000);
        assert_lk(EOWNERDEAD, i == 0   ? lk_mutex_trylock(orders)
                              : i == 1 ? lk_mutex_timedlock(orders, &past)
                                       : lk_mutex_lockfor(orders, 0));
        assert_lk(0, lk_mutex_consistent(orders));
        assert_lk(0, lk_mutex_unlock(orders));
        world_close(w, client);
    }
}

/* Who gives it back unrepaired says that it cannot be repaired; nobody gets it any more. */
static void given_back_unrepaired_it_is_refused_to_all(struct world *w)
{
    struct worker waiter;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    leave_it_dead(w);
    open_orders(w);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    worker_start(&waiter, lock_mutex, orders);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(ENOTRECOVERABLE, worker_join(&waiter)); /* also one that waited already */
    assert_lk(ENOTRECOVERABLE, lk_mutex_lock(orders));
    assert_lk(ENOTRECOVERABLE, lk_mutex_trylock(orders));
    assert_lk(ENOTRECOVERABLE, lk_mutex_lockfor(orders, 5000));
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(0, info.recoverable);
    assert_int_equal(0, info.held);
    assert_int_equal(0, world_queued(w, "orders"));

    assert_lk(0, lk_mutex_forceunlock(orders)); /* an operator repaired it */
    assert_lk(0, lock_and_unlock(orders));
}

/* All who wait, and by themselves would ask late: those that the release tells tell the others. */
static void a_crowd_is_refused_at_once(struct world *w)
{
    enum { CROWD = 150, AT_ONCE_MS = 4000 };
    struct worker crowd[CROWD];
    lk_mutexattr_t fair = robust;
    fair.fair = 1;
    leave_it_dead(w);
    open_orders(w);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, "lease=60s&poll=20s"), "orders", &fair);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    for (int i = 0; i < CROWD; i++)
        worker_start(&crowd[i], lock_mutex, same_name);
    eventually(world_queued(w, "orders") == CROWD, 10000);
    eventually(world_listening(w, "mutex:{orders}"), 10000);
    assert_lk(0, lk_mutex_unlock(orders));
    int64_t began_ms = now_ms();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ENOTRECOVERABLE, worker_join(&crowd[i]));
    assert_between(now_ms() - began_ms, 0, AT_ONCE_MS);
    assert_lk(0, lk_mutex_forceunlock(orders));
}

/* Being unrecoverable does not lapse: nobody repaired anything meanwhile. */
static void unrecoverable_has_no_end(struct world *w)
{
    leave_it_dead(w);
    open_orders(w);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(-1, world_pttl(w, "latchkey:robust:mutex:{orders}"));
    world_allow(w, "latchkey:robust:mutex:{orders}");
}

/* A second death before the repair is told again. */
static int take_over_and_die(struct world *w, void *arg)
{
    open_with(w, &brief);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

static void a_repairer_that_dies_is_told_too(struct world *w)
{
    struct gate *never = world_shared(w, sizeof *never);
    leave_it_dead(w);
    world_kill(w, world_fork(w, take_over_and_die, never));
    open_orders(w);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A hold that was lost is a dead holder to the next one, though its process lives. */
static void a_lost_hold_counts_as_dead(struct world *w)
{
    open_with(w, &brief);
    assert_lk(0, in_thread(lock_mutex, orders)); /* the thread ends holding it */
    orders = world_mutex(w, client, "orders", &robust);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A thread ends and holds it; then its client is closed. */
static void die_and_close(struct world *w, int code)
{
    lk_client_t *mortal = world_open(w, "");
    lk_mutex_t mutex;
    assert_lk(0, lk_mutex_init(&mutex, mortal, "orders", &brief));
    assert_lk(code, in_thread(lock_mutex, &mutex));
    assert_lk(0, lk_client_close(mortal));
    assert_lk(0, lk_mutex_destroy(&mutex));
}

/* A client gives nothing back in the name of a thread that died. */
static void a_close_does_not_hide_a_death(struct world *w)
{
    die_and_close(w, 0);
    die_and_close(w, EOWNERDEAD);
    open_orders(w);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Whose answer was lost was not told of the death: what it gives back unseen tells the next one. */
static void who_was_not_told_leaves_it_to_the_next(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    client = proxy_client(p, "command_timeout=500ms");
    orders = world_mutex(w, client, "orders", &robust);
    assert_lk(0, lk_mutex_lock(orders)); /* from now on the server knows the scripts */
    assert_lk(0, lk_mutex_unlock(orders));
    leave_it_dead(w);
    eventually(!world_exists(w, "orders"), 5000);
    proxy_stall(p, PROXY_DOWN);
    assert_lk(EIO, lk_mutex_trylock(orders));
    proxy_resume(p);
    eventually(!world_exists(w, "orders"), 5000);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lock_and_unlock(orders));
}

/* An operator need not know that it is robust: its mark tells, also for those who wait already. */
static void taken_away_by_who_does_not_know_it_is_told(struct world *w)
{
    struct worker waiter;
    open_orders(w);
    lk_mutex_t *same_name = world_mutex(w, world_client(w, ""), "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_mutex, world_mutex(w, world_client(w, ""), "orders", &robust));
    eventually(world_queued(w, "orders") == 1, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_lk(EOWNERDEAD, worker_join(&waiter)); /* its thread ends unrepaired: it died, too */
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(ENOTRECOVERABLE, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_forceunlock(same_name));
    assert_lk(0, lock_and_unlock(orders));
}

/* Repairing what is not broken is a mistake, as POSIX says. */
static void there_is_nothing_to_repair(struct world *w)
{
    open_orders(w);
    lk_mutex_t *plain = world_mutex(w, client, "plain", NULL);
    assert_lk(EPERM, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EINVAL, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(plain));
    assert_lk(EINVAL, lk_mutex_consistent(plain));
    assert_lk(0, lk_mutex_unlock(plain));
}

int main(void)
{
    return world_run(after_a_dead_holder_it_says_so_until_repaired, trying_and_waiting_tell_as_well,
                     given_back_unrepaired_it_is_refused_to_all, a_crowd_is_refused_at_once, unrecoverable_has_no_end,
                     a_repairer_that_dies_is_told_too, a_lost_hold_counts_as_dead, a_close_does_not_hide_a_death,
                     who_was_not_told_leaves_it_to_the_next, taken_away_by_who_does_not_know_it_is_told, there_is_nothing_to_repair);
}
