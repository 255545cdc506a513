/* SPDX-License-Identifier: MIT */
/*
 * reentrancy_test.c - a thread locks again what it holds, as the type of the mutex says
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_mutex_t *orders;

static void open_orders(struct world *w, const lk_mutexattr_t *attr)
{
    orders = world_mutex(w, world_client(w, ""), "orders", attr);
}

/* A function that does not know what its caller holds. */
static void add_line(struct world *w, int64_t expected_holds)
{
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(expected_holds, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Code that locks can be called by code that locks; operators and Java see how deep it is. */
static void a_function_may_lock_what_its_caller_holds(struct world *w)
{
    open_orders(w, NULL);
    add_line(w, 1);
    assert_false(world_exists(w, "orders"));
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(1, world_holds(w, "orders"));
    add_line(w, 2);
    add_line(w, 2);
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* Each way to lock goes one level down, each unlock one up, and there is no level above the ground. */
static void every_way_to_lock_counts_one_level(struct world *w)
{
    struct timespec past = { 1, 0 };
    open_orders(w, NULL);
    assert_lk(0, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_trylock(orders));
    assert_lk(0, lk_mutex_lockfor(orders, 0));
    assert_lk(0, lk_mutex_timedlock(orders, &past));
    assert_lk(0, lk_mutex_clocklock(orders, CLOCK_MONOTONIC, &past));
    for (int holds = 5; holds > 0; holds--) {
        assert_int_equal(holds, world_holds(w, "orders"));
        assert_lk(0, lk_mutex_unlock(orders));
    }
    assert_lk(EPERM, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* Inner levels keep the token: it names the grant, and there was one grant. */
static void the_token_stays_while_it_is_held(struct world *w)
{
    uint64_t outer, inner, next;
    open_orders(w, NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &outer));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &inner));
    assert_true(inner == outer);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &next));
    assert_true(next > outer);
    assert_lk(0, lk_mutex_unlock(orders));
}

static int64_t scripts_run(struct world *w)
{
    return world_commands(w, "evalsha") + world_commands(w, "eval");
}

/* Who locks in deep loops need not pay a round trip for each level. */
static void nested_local_counts_without_the_server(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t scripts;
    attr.nested_local = 1;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    scripts = scripts_run(w);
    for (int i = 0; i < 10; i++)
        assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < 10; i++)
        assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(scripts, scripts_run(w));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

/* The error-checking type finds the recursion that was not meant. */
static void an_errorcheck_mutex_refuses_its_holder(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.type = LK_MUTEX_ERRORCHECK;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EDEADLK, lk_mutex_lock(orders));
    assert_lk(EDEADLK, lk_mutex_lockfor(orders, 50));
    assert_lk(EDEADLK, lk_mutex_lockfor(orders, 0)); /* whatever the time, as POSIX has it ... */
    assert_lk(EDEADLK, lk_mutex_timedlock(orders, &(struct timespec){ 1, 0 }));
    assert_lk(EDEADLK, lk_mutex_clocklock(orders, CLOCK_MONOTONIC, &(struct timespec){ 0, 0 }));
    assert_lk(EBUSY, lk_mutex_trylock(orders)); /* ... but a try never would wait */
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(EPERM, lk_mutex_unlock(orders));
}

/* The normal type waits for itself, as POSIX says; a limit ends that. */
static void a_normal_mutex_times_out_on_itself(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t began_ms;
    attr.type = LK_MUTEX_NORMAL;
    open_orders(w, &attr);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    began_ms = now_ms();
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 100));
    assert_between(now_ms() - began_ms, 100, 100 + SLACK_MS);
    assert_int_equal(1, world_holds(w, "orders"));
    assert_int_equal(0, world_queued(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_false(world_exists(w, "orders"));
}

int main(void)
{
    return world_run(a_function_may_lock_what_its_caller_holds, every_way_to_lock_counts_one_level,
                     the_token_stays_while_it_is_held, nested_local_counts_without_the_server,
                     an_errorcheck_mutex_refuses_its_holder, a_normal_mutex_times_out_on_itself);
}
