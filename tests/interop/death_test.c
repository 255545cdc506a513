/* SPDX-License-Identifier: MIT */
/*
 * death_test.c - who holds a lock is killed: the other side has it when the lease ends, not before
 *
 * seconds: 25
 * processors: 3
 */
#include "java.h"

enum { LEASE_MS = 3000 };

#define LATE_MS (1000 + 4 * SLACK_MS)

static lk_mutex_t *mutex_of(struct world *w, int robust)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.robust = robust;
    world_allow(w, "redisson_lock_token:*");
    return world_mutex(w, world_client(w, "redisson=yes&lease=20s&poll=10s"), "orders", &attr);
}

/* While it lives its watchdog renews, whoever waits; what it renewed last runs out. It left no mark for who is robust. */
static void we_follow(struct world *w, int robust)
{
    struct java *java = java_start(w, LEASE_MS);
    lk_mutex_t *orders = mutex_of(w, robust);
    assert_string_equal("ok", java_does(java, 'a', "lock orders -1"));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 2 * LEASE_MS));
    int64_t began_ms = now_ms(), left_ms = java_kill(w, java, "orders");
    assert_between(left_ms, 1, LEASE_MS);
    assert_lk(0, lk_mutex_lock(orders));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + LATE_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

static void we_follow_a_dead_holder_of_java(struct world *w)
{
    we_follow(w, 0);
}

static void so_does_a_robust_mutex(struct world *w)
{
    we_follow(w, 1);
}

static int hold(struct world *w, void *robust)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.robust = robust != NULL;
    lk_client_t *client = world_client(w, "redisson=yes&lease=3s");
    assert_lk(0, lk_mutex_lock(world_mutex(w, client, "orders", &attr)));
    world_ready(w);
    sleep_ms(60000);
    return 1;
}

static void java_follows(struct world *w, struct java *java, int robust)
{
    static int yes;
    pid_t holder = world_fork(w, hold, robust ? &yes : NULL);
    java_tell(java, 'a', "lock orders -1");
    assert_string_equal("", java_says(java, 'a', 2 * LEASE_MS)); /* our watchdog renews, too */
    int64_t began_ms = now_ms(), left_ms = world_killholder(w, holder, "orders");
    assert_between(left_ms, 1, LEASE_MS);
    assert_string_equal("ok", java_says(java, 'a', 30000));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + LATE_MS);
}

static void java_follows_a_dead_holder_of_ours(struct world *w)
{
    struct java *java = java_open(w, 30000);
    world_allow(w, "redisson_lock_token:*");
    java_follows(w, java, 0);
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
}

/* Java knows nothing of marks: who of ours comes after it is told that a holder died before. */
static void a_mark_outlives_javas_turn(struct world *w)
{
    struct java *java = java_open(w, 30000);
    world_allow(w, "redisson_lock_token:*");
    java_follows(w, java, 1);
    lk_mutex_t *orders = mutex_of(w, 1);
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

static int wait_for_it(struct world *w, void *arg)
{
    (void)arg;
    lk_client_t *client = world_client(w, "redisson=yes&lease=3s&poll=1s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    world_ready(w);
    return lk_mutex_lock(orders);
}

/* A place in the queue is nothing to Java: it has the lock at once. */
static void a_dead_waiter_of_ours_does_not_hold_up_java(struct world *w)
{
    struct java *java = java_open(w, 30000);
    world_allow(w, "*");
    assert_string_equal("ok", java_does(java, 'a', "lock orders 60000"));
    pid_t waiter = world_fork(w, wait_for_it, NULL);
    eventually(world_queued(w, "orders") == 1, 10000);
    world_kill(w, waiter);
    assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
    assert_string_equal("true", java_does(java, 'b', "trylock orders 0 -1"));
    assert_string_equal("ok", java_does(java, 'b', "unlock orders"));
}

/* Nor does one of Java's hold us up. */
static void a_dead_waiter_of_java_does_not_hold_up_us(struct world *w)
{
    struct java *java = java_start(w, 30000);
    lk_mutex_t *orders = mutex_of(w, 0);
    assert_lk(0, lk_mutex_lock(orders));
    java_tell(java, 'a', "lock orders -1");
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_lock__channel:*") == 1, 20000);
    java_kill(w, java, "orders");
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_between(now_ms() - began_ms, 0, LATE_MS);
}

int main(void)
{
    java_begin();
    return world_run(we_follow_a_dead_holder_of_java, so_does_a_robust_mutex, java_follows_a_dead_holder_of_ours,
                     a_mark_outlives_javas_turn, a_dead_waiter_of_ours_does_not_hold_up_java,
                     a_dead_waiter_of_java_does_not_hold_up_us);
}
