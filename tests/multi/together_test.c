/* SPDX-License-Identifier: MIT */
/*
 * together_test.c - all of a set or none: what is free, held by others, by the caller, and for how long
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_mutex_t *a, *b;
static lk_rwlock_t *c, *d;
static lk_multi_t *s;

/* Two mutexes, one lock to write and one to read. */
static void open_all(struct world *w, const char *options)
{
    client = world_client(w, options);
    a = world_mutex(w, client, "a", NULL);
    b = world_mutex(w, client, "b", NULL);
    c = world_rwlock(w, client, "c", NULL);
    d = world_rwlock(w, client, "d", NULL);
    s = world_multi(w, client);
    assert_lk(0, lk_multi_addread(s, d));
    assert_lk(0, lk_multi_addmutex(s, b));
    assert_lk(0, lk_multi_addwrite(s, c));
    assert_lk(0, lk_multi_addmutex(s, a));
}

static bool has_all(struct world *w)
{
    return world_holds(w, "a") == 1 && world_holds(w, "b") == 1 && world_rwholds(w, "c") == 1 &&
           world_rwholds(w, "d") == 1;
}

static bool has_none(struct world *w)
{
    return world_holds(w, "a") == -1 && world_holds(w, "b") == -1 && world_rwholds(w, "c") == 0 &&
           world_rwholds(w, "d") == 0;
}

WORK(try_all, arg, lk_multi_trylock(arg))
VISIT(read_d, arg, lk_rwlock_tryrdlock(arg), lk_rwlock_unlock(arg))

static void all_are_taken_and_given_back(struct world *w)
{
    int64_t ms = 0;
    open_all(w, "lease=5s");
    assert_lk(0, lk_multi_lock(s));
    assert_true(has_all(w));
    assert_int_equal(EBUSY, in_thread(try_all, s));
    assert_int_equal(0, in_thread(read_d, d));
    assert_lk(0, lk_multi_check(s));
    assert_lk(0, lk_mutex_extend(b, 4000));
    assert_lk(0, lk_multi_remaining(s, &ms));
    assert_between(ms, 1, 4000); /* the least */
    assert_lk(0, lk_multi_unlock(s));
    assert_true(has_none(w));
    assert_lk(EPERM, lk_multi_unlock(s));
    assert_lk(0, lk_multi_trylock(s));
    assert_lk(0, lk_multi_unlock(s));
}

/* However many are free, the tries go out together: far away from the server that is what it costs. */
static void free_ones_cost_one_round_trip(struct world *w)
{
    enum { DELAY_MS = 400 };
    struct proxy *p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=5s"); /* commands are counted */
    lk_stripes_t *many = world_stripes(w, client, "s", 16, NULL);
    s = world_multi(w, client);
    for (unsigned i = 0; i < 16; i++)
        assert_lk(0, lk_multi_addmutex(s, lk_stripes_at(many, i)));
    assert_lk(0, lk_multi_lock(s)); /* scripts are known, and settings compared */
    assert_lk(0, lk_multi_unlock(s));
    int64_t before = world_commands(w, "evalsha");
    proxy_delay(p, DELAY_MS);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_multi_lock(s));
    assert_between(now_ms() - began_ms, DELAY_MS, 4 * DELAY_MS + SLACK_MS); /* one after the other: 16 or more */
    proxy_delay(p, 0);
    assert_int_equal(16, world_commands(w, "evalsha") - before);
    assert_lk(0, lk_multi_unlock(s));
    world_close(w, s);
    proxy_end(p);
}

/* Whichever it is that somebody has, nothing of the others is kept, and the words say which. */
static void one_that_is_held_leaves_nothing(struct world *w)
{
    open_all(w, "");
    lk_client_t *other = world_client(w, "");
    lk_mutex_t *mine[] = { world_mutex(w, other, "a", NULL), world_mutex(w, other, "b", NULL) };
    lk_rwlock_t *ours[] = { world_rwlock(w, other, "c", NULL), world_rwlock(w, other, "d", NULL) };
    for (int i = 0; i < 4; i++) {
        lk_multiinfo_t info = LK_MULTIINFO_INIT;
        const char *name = (const char *[]){ "a", "b", "c", "d" }[i];
        assert_lk(0, i < 2 ? lk_mutex_lock(mine[i]) : lk_rwlock_wrlock(ours[i - 2]));
        assert_lk(EBUSY, lk_multi_trylock(s));
        assert_non_null(strstr(lk_errortext(), i < 2 ? "mutex " : "rwlock "));
        assert_between(lk_errorleft(), 1, 30000);
        assert_lk(ETIMEDOUT, lk_multi_lockfor(s, 0));
        assert_lk(ETIMEDOUT, lk_multi_lockfor(s, 30));
        assert_non_null(strstr(lk_errortext(), name));
        assert_int_equal(0, lk_errorsettles());
        assert_lk(0, lk_multi_info(s, &info));
        assert_int_equal(1, info.taken);
        assert_int_equal(0, info.waiters);
        assert_string_equal(name, info.name);
        assert_that(info.holder[0] != '\0' && info.remaining_ms > 0 && info.recoverable == 1 && info.members == 4);
        assert_lk(0, i < 2 ? lk_mutex_unlock(mine[i]) : lk_rwlock_unlock(ours[i - 2]));
        assert_true(has_none(w));
    }
    assert_lk(0, lk_rwlock_rdlock(ours[1])); /* reads, as the set does */
    assert_lk(0, lk_multi_trylock(s));
    assert_lk(0, lk_multi_unlock(s));
    assert_lk(0, lk_rwlock_unlock(ours[1]));
}

/* A waiter holds what is before the lock that it waits for, and nothing behind it: others can have that. */
static void who_waits_holds_only_what_comes_before(struct world *w)
{
    struct worker waiter;
    open_all(w, "");
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiter, lock_and_unlock_all, s);
    eventually(world_queued(w, "b") == 1, 20000);
    assert_int_equal(1, world_holds(w, "a"));
    assert_int_equal(0, world_rwholds(w, "c"));
    assert_int_equal(0, world_rwholds(w, "d"));
    assert_lk(EBUSY, lk_multi_destroy(s));
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(0, worker_join(&waiter));
    assert_true(has_none(w));
}

/* The limit is that of all together, on each clock. */
static void a_limit_is_for_all_together(struct world *w)
{
    struct timespec at;
    open_all(w, "");
    lk_mutex_t *held = world_mutex(w, world_client(w, ""), "b", NULL);
    assert_lk(0, lk_mutex_lock(held));
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += 1;
    int64_t began_ms = now_ms();
    assert_lk(ETIMEDOUT, lk_multi_clocklock(s, CLOCK_MONOTONIC, &at));
    assert_between(now_ms() - began_ms, 900, 1000 + SLACK_MS);
    clock_gettime(CLOCK_REALTIME, &at);
    assert_lk(ETIMEDOUT, lk_multi_timedlock(s, &at));
    assert_true(world_holds(w, "a") == -1 && world_rwholds(w, "c") == 0);
    assert_lk(0, lk_mutex_unlock(held));
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 20;
    assert_lk(0, lk_multi_timedlock(s, &at));
    assert_lk(0, lk_multi_unlock(s));
}

/* What the thread has already is had once more; where its type forbids that, nothing is taken. */
static void levels_count_for_each(struct world *w)
{
    const lk_mutexattr_t checking = { .size = sizeof checking, .type = LK_MUTEX_ERRORCHECK };
    open_all(w, "");
    assert_lk(0, lk_mutex_lock(b));
    assert_lk(0, lk_multi_lock(s));
    assert_int_equal(2, world_holds(w, "b"));
    assert_lk(0, lk_multi_trylock(s));
    assert_int_equal(3, world_holds(w, "b"));
    assert_lk(0, lk_multi_unlock(s));
    assert_lk(0, lk_multi_unlock(s));
    assert_int_equal(1, world_holds(w, "b"));
    assert_lk(EPERM, lk_multi_unlock(s)); /* not of all: unchanged */
    assert_int_equal(1, world_holds(w, "b"));
    assert_lk(0, lk_mutex_unlock(b));

    lk_multi_t *strict = world_multi(w, client);
    lk_mutex_t *z = world_mutex(w, client, "z", &checking);
    assert_lk(0, lk_multi_addmutex(strict, z));
    assert_lk(0, lk_multi_addmutex(strict, a));
    assert_lk(0, lk_mutex_lock(z));
    assert_lk(EDEADLK, lk_multi_lock(strict));
    assert_lk(EBUSY, lk_multi_trylock(strict));
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(0, lk_mutex_unlock(z));
    assert_lk(0, lk_rwlock_rdlock(c)); /* to write what one reads would wait for oneself */
    assert_lk(EDEADLK, lk_multi_lock(s));
    assert_lk(0, lk_rwlock_unlock(c));
    assert_true(has_none(w));
}

/* A request on a pool is an owner, whatever thread works on it. */
static void owners_have_sets_of_their_own(struct world *w)
{
    lk_owner_t *one, *two, *stranger;
    lk_how_t how = LK_HOW_INIT;
    int64_t ms = 0;
    open_all(w, "");
    lk_client_t *other = world_client(w, "");
    one = world_newowner(w, client);
    two = world_newowner(w, client);
    stranger = world_newowner(w, other);
    how.owner = one;
    how.lease_ms = 6000;
    assert_lk(0, lk_multi_lockwith(s, &how));
    assert_true(has_all(w));
    how.owner = two;
    how.timeout_ms = 0;
    assert_lk(ETIMEDOUT, lk_multi_lockwith(s, &how));
    how.owner = stranger;
    assert_lk(EINVAL, lk_multi_lockwith(s, &how));
    assert_lk(EPERM, lk_multi_unlockby(s, two));
    assert_lk(EINVAL, lk_multi_unlockby(s, stranger));
    assert_lk(EPERM, lk_multi_unlock(s));
    assert_lk(0, lk_multi_checkby(s, one));
    assert_lk(0, lk_multi_remainingby(s, one, &ms));
    assert_between(ms, 1, 6000);
    assert_lk(0, lk_multi_unlockby(s, one));
    assert_true(has_none(w));
}

int main(void)
{
    return world_run(all_are_taken_and_given_back, free_ones_cost_one_round_trip, one_that_is_held_leaves_nothing,
                     who_waits_holds_only_what_comes_before, a_limit_is_for_all_together, levels_count_for_each,
                     owners_have_sets_of_their_own);
}
