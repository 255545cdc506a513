/* SPDX-License-Identifier: MIT */
/*
 * compositions_test.c - Java's RedLock and ours, and Java's multi-lock and ours, exclude each other, wait for each other, and
 * outlive each other's deaths
 *
 * seconds: 30
 * processors: 4
 */
#include "java.h"

enum { NODES = 3, MAJORITY = 2, LEASE_MS = 3000, PATIENT_MS = 30000, WITHIN_MS = 20000 };

/* Java asks one server after the other, and for each of them waits for some time. */
#define LATE_MS (3000 + 4 * SLACK_MS)

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1 };

static int lock_redlock(void *r)
{
    return lk_redlock_lockfor(r, WITHIN_MS);
}

static int lock_and_unlock_redlock(void *r)
{
    int rc = lock_redlock(r);
    return rc != 0 ? rc : lk_redlock_unlock(r);
}

static void java_must(struct java *java, const char *answer, const char *words)
{
    assert_string_equal(answer, java_does(java, 'a', "%s", words));
}

/* --- at a majority of servers -------------------------------------------------------------------------------------------- */

static struct quorum *begin(struct world *w, struct java *java, int watchdog_ms)
{
    struct quorum *q = quorum_begin(w, NODES);
    java_quorum(java, q, watchdog_ms);
    return q;
}

static lk_redlock_t *redlock_of(struct world *w, struct quorum *q, const char *options)
{
    return quorum_redlock(w, quorum_client(q, options), "orders", &no_wait);
}

/* When a majority may be had again, of what stands now. */
static int64_t majority_left(struct quorum *q)
{
    int64_t least_ms = LEASE_MS, second_ms = LEASE_MS;
    for (int i = 0; i < NODES; i++) {
        int64_t left_ms = quorum_int(q, i, "PTTL orders");
        second_ms = left_ms < least_ms ? least_ms : left_ms < second_ms ? left_ms : second_ms;
        least_ms = left_ms < least_ms ? left_ms : least_ms;
    }
    return second_ms;
}

static void a_redlock_of_either_side_keeps_the_other_out(struct world *w)
{
    struct java *java = java_open(w, PATIENT_MS);
    struct quorum *q = begin(w, java, PATIENT_MS);
    lk_redlock_t *r = redlock_of(w, q, "redisson=yes&lease=30s");
    java_must(java, "ok", "lock orders* -1");
    assert_lk(EBUSY, lk_redlock_trylock(r));
    assert_lk(ETIMEDOUT, lk_redlock_lockfor(r, 300));
    java_must(java, "ok", "unlock orders*");
    eventually(quorum_having(q, "orders") == 0, WITHIN_MS);

    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    java_must(java, "false", "trylock orders* -1 -1");
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "orders") == 0, WITHIN_MS);
    java_must(java, "true", "trylock orders* -1 -1");
    java_must(java, "ok", "unlock orders*");
}

/* One of three servers is no majority for either side. */
static void a_minority_keeps_nobody_out(struct world *w)
{
    struct java *java = java_open(w, PATIENT_MS);
    struct quorum *q = begin(w, java, PATIENT_MS);
    lk_redlock_t *r = redlock_of(w, q, "redisson=yes&lease=30s");
    quorum_int(q, 1, "HSET orders someone 1");
    quorum_int(q, 1, "PEXPIRE orders 60000");
    java_must(java, "true", "trylock orders* -1 -1");
    assert_lk(EBUSY, lk_redlock_trylock(r));
    java_must(java, "ok", "unlock orders*");
    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    java_must(java, "false", "trylock orders* -1 -1");
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "orders") == 1, WITHIN_MS);
}

static void who_waits_at_the_servers_gets_it_from_the_other_side(struct world *w)
{
    struct worker waiter;
    struct java *java = java_open(w, PATIENT_MS);
    struct quorum *q = begin(w, java, PATIENT_MS);
    lk_redlock_t *r = redlock_of(w, q, "redisson=yes&lease=30s");
    java_must(java, "ok", "lock orders* -1");
    worker_start(&waiter, lock_and_unlock_redlock, r);
    sleep_ms(300);
    java_must(java, "ok", "unlock orders*");
    assert_int_equal(0, worker_join(&waiter));

    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    java_tell(java, 'a', "lock orders* -1");
    assert_string_equal("", java_says(java, 'a', 1000));
    assert_lk(0, lk_redlock_unlock(r));
    assert_string_equal("ok", java_says(java, 'a', WITHIN_MS));
    assert_lk(EBUSY, lk_redlock_trylock(r));
    java_must(java, "ok", "unlock orders*");
}

/* Its watchdog renewed at each server while it lived. */
static void a_dead_holder_of_java_at_the_servers(struct world *w)
{
    struct java *java = java_start(w, LEASE_MS);
    struct quorum *q = begin(w, java, LEASE_MS);
    lk_redlock_t *r = redlock_of(w, q, "redisson=yes&lease=20s");
    java_must(java, "ok", "lock orders* -1");
    assert_lk(ETIMEDOUT, lk_redlock_lockfor(r, 2 * LEASE_MS));
    java_kill(w, java, "orders");
    int64_t began_ms = now_ms(), left_ms = majority_left(q);
    assert_between(left_ms, 1, LEASE_MS);
    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + LATE_MS);
    assert_lk(0, lk_redlock_unlock(r));
}

static int hold_redlock(struct world *w, void *q)
{
    assert_lk(0, lk_redlock_lockfor(redlock_of(w, q, "redisson=yes&lease=3s"), WITHIN_MS));
    world_ready(w);
    sleep_ms(60000);
    return 1;
}

static void a_dead_holder_of_ours_at_the_servers(struct world *w)
{
    struct java *java = java_open(w, PATIENT_MS);
    struct quorum *q = begin(w, java, PATIENT_MS);
    pid_t holder = world_fork(w, hold_redlock, q);
    java_tell(java, 'a', "lock orders* -1");
    assert_string_equal("", java_says(java, 'a', 2 * LEASE_MS)); /* our watchdog renews, too */
    world_kill(w, holder);
    int64_t began_ms = now_ms(), left_ms = majority_left(q);
    assert_between(left_ms, 1, LEASE_MS);
    assert_string_equal("ok", java_says(java, 'a', PATIENT_MS));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + LATE_MS);
    java_must(java, "ok", "unlock orders*");
}

/* --- several at one server ------------------------------------------------------------------------------------------------ */

/* Added in another order than they are taken in. */
static lk_multi_t *several(struct world *w, const char *options)
{
    lk_client_t *client = world_client(w, options);
    lk_multi_t *s = world_multi(w, client);
    world_allow(w, "redisson_lock_token:*");
    for (const char *const *name = (const char *const[]){ "b", "a", "c", NULL }; *name != NULL; name++)
        assert_lk(0, lk_multi_addmutex(s, world_mutex(w, client, *name, NULL)));
    return s;
}

static bool has_none(struct world *w)
{
    return !world_exists(w, "a") && !world_exists(w, "b") && !world_exists(w, "c");
}

/* They share some members, and not all; who fails has none. */
static void a_multilock_of_either_side_keeps_the_other_out(struct world *w)
{
    struct java *java = java_open(w, PATIENT_MS);
    lk_multi_t *s = several(w, "redisson=yes&lease=30s");
    java_must(java, "ok", "lock c+d -1");
    assert_lk(EBUSY, lk_multi_trylock(s));
    assert_lk(ETIMEDOUT, lk_multi_lockfor(s, 300));
    assert_true(!world_exists(w, "a") && !world_exists(w, "b"));
    java_must(java, "ok", "unlock c+d");

    assert_lk(0, lk_multi_lockfor(s, WITHIN_MS));
    java_must(java, "false", "trylock d+c -1 -1");
    assert_false(world_exists(w, "d"));
    java_must(java, "false", "trylock b -1 -1"); /* each by itself, too */
    assert_lk(0, lk_multi_check(s));
    assert_lk(0, lk_multi_unlock(s));
    assert_true(has_none(w));
    java_must(java, "true", "trylock d+c -1 -1");
    java_must(java, "ok", "unlock d+c");
}

/* Also where Java takes them in another order than this library. */
static void who_waits_for_several_gets_them_from_the_other_side(struct world *w)
{
    struct worker waiter;
    struct java *java = java_open(w, PATIENT_MS);
    lk_multi_t *s = several(w, "redisson=yes&lease=30s");
    java_must(java, "ok", "lock c+b+a -1");
    worker_start(&waiter, lock_and_unlock_all, s);
    eventually(world_queued(w, "a") == 1, WITHIN_MS);
    java_must(java, "ok", "unlock c+b+a");
    assert_int_equal(0, worker_join(&waiter));

    assert_lk(0, lk_multi_lockfor(s, WITHIN_MS));
    java_tell(java, 'a', "lock c+b+a -1");
    assert_string_equal("", java_says(java, 'a', 1000));
    assert_lk(0, lk_multi_unlock(s));
    assert_string_equal("ok", java_says(java, 'a', WITHIN_MS));
    assert_lk(EBUSY, lk_multi_trylock(s));
    java_must(java, "ok", "unlock c+b+a");
}

static void a_dead_holder_of_javas_multilock(struct world *w)
{
    struct java *java = java_start(w, LEASE_MS);
    lk_multi_t *s = several(w, "redisson=yes&lease=20s&poll=10s");
    java_must(java, "ok", "lock a+c -1");
    assert_lk(ETIMEDOUT, lk_multi_lockfor(s, 2 * LEASE_MS));
    int64_t left_ms = java_kill(w, java, "a"), began_ms = now_ms();
    assert_between(left_ms, 1, LEASE_MS);
    assert_lk(0, lk_multi_lockfor(s, WITHIN_MS));
    assert_between(now_ms() - began_ms, 0, LEASE_MS + LATE_MS);
    assert_lk(0, lk_multi_unlock(s));
}

static int hold_several(struct world *w, void *arg)
{
    (void)arg;
    assert_lk(0, lk_multi_lockfor(several(w, "redisson=yes&lease=3s"), WITHIN_MS));
    world_ready(w);
    sleep_ms(60000);
    return 1;
}

static void a_dead_holder_of_our_multilock(struct world *w)
{
    struct java *java = java_open(w, PATIENT_MS);
    world_allow(w, "*");
    pid_t holder = world_fork(w, hold_several, NULL);
    java_tell(java, 'a', "lock a+b -1");
    assert_string_equal("", java_says(java, 'a', 2 * LEASE_MS));
    int64_t began_ms = now_ms(), left_ms = world_killholder(w, holder, "b");
    assert_between(left_ms, 1, LEASE_MS);
    assert_string_equal("ok", java_says(java, 'a', PATIENT_MS));
    assert_between(now_ms() - began_ms, left_ms - 1, left_ms + LATE_MS);
    java_must(java, "ok", "unlock a+b");
}

int main(void)
{
    java_begin();
    return world_run(a_redlock_of_either_side_keeps_the_other_out, a_minority_keeps_nobody_out,
                     who_waits_at_the_servers_gets_it_from_the_other_side, a_dead_holder_of_java_at_the_servers,
                     a_dead_holder_of_ours_at_the_servers, a_multilock_of_either_side_keeps_the_other_out,
                     who_waits_for_several_gets_them_from_the_other_side, a_dead_holder_of_javas_multilock,
                     a_dead_holder_of_our_multilock);
}
