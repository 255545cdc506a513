/* SPDX-License-Identifier: MIT */
/*
 * counting_test.c - each function of a counting semaphore, what it leaves in Redis, what it refuses
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

static lk_client_t *client;
static lk_sem_t *pool;

static void open_pool(struct world *w, unsigned value)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, ""); /* keys are counted */
    pool = world_sem(w, client, "pool", value, NULL);
}

static int value_of(lk_sem_t *s)
{
    int value = -1;
    assert_lk(0, lk_sem_getvalue(s, &value));
    return value;
}

/* The value given is set once, by whoever comes first, and is what getvalue says until then. */
static void the_first_operation_sets_the_value(struct world *w)
{
    open_pool(w, 3);
    assert_int_equal(3, value_of(pool));
    assert_false(world_exists(w, "pool"));
    assert_lk(0, lk_sem_wait(pool));
    assert_int_equal(2, world_int(w, "GET pool"));
    lk_sem_t *other = world_sem(w, client, "pool", 100, NULL);
    assert_lk(0, lk_sem_wait(other));
    assert_int_equal(1, value_of(other));
}

/* Without a value there are no permits until somebody posts. */
static void a_semaphore_of_none_waits_for_the_first_post(struct world *w)
{
    open_pool(w, 0);
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(pool, 0));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(pool, 20));
    assert_false(world_exists(w, "pool"));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_int_equal(0, value_of(pool));
}

/* Several at once, or none. */
static void several_are_taken_at_once_or_none(struct world *w)
{
    open_pool(w, 5);
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    assert_lk(ETIMEDOUT, lk_sem_acquire(pool, 3, 0));
    assert_lk(ETIMEDOUT, lk_sem_acquire(pool, 3, 20));
    assert_int_equal(2, value_of(pool));
    assert_lk(0, lk_sem_release(pool, 3));
    assert_lk(0, lk_sem_acquire(pool, 5, 0));
    assert_int_equal(0, value_of(pool));
}

/* Set once; added to and reduced, even below zero; emptied. */
static void the_number_is_changed_from_outside(struct world *w)
{
    unsigned taken = 77;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    open_pool(w, 0);
    assert_lk(0, lk_sem_trysetpermits(pool, 4));
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 9));
    assert_lk(0, lk_sem_addpermits(pool, 3));
    assert_int_equal(7, value_of(pool));
    assert_lk(0, lk_sem_addpermits(pool, -9));
    assert_int_equal(0, value_of(pool));
    assert_lk(0, lk_sem_info(pool, &info));
    assert_int_equal(-2, info.available);
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_int_equal(0, taken);
    assert_lk(0, lk_sem_addpermits(pool, 8));
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_int_equal(6, taken);
    assert_int_equal(0, world_int(w, "GET pool"));
}

/* Visible mistakes are told, and change nothing. */
static void mistakes_are_refused(struct world *w)
{
    lk_sem_t bad;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    char id[LK_PERMIT_ID];
    int64_t ms;
    uint64_t token;
    const struct timespec no_time = { 0, 1000000000 };
    open_pool(w, 2);
    assert_lk(EINVAL, lk_sem_acquire(pool, 0, 0));
    assert_lk(EINVAL, lk_sem_acquire(pool, LK_SEM_PERMITS_MAX + 1, 0));
    assert_lk(EINVAL, lk_sem_acquire(pool, 1, -2));
    assert_lk(EINVAL, lk_sem_release(pool, LK_SEM_VALUE_MAX + 1U));
    assert_lk(EINVAL, lk_sem_addpermits(pool, 0));
    assert_lk(EINVAL, lk_sem_addpermits(pool, LK_SEM_VALUE_MAX + 1L));
    assert_lk(EINVAL, lk_sem_trysetpermits(pool, LK_SEM_VALUE_MAX + 1U));
    assert_lk(EINVAL, lk_sem_timedwait(pool, &no_time));
    assert_lk(EINVAL, lk_sem_getvalue(pool, NULL));
    assert_lk(EINVAL, lk_sem_drain(pool, NULL));
    assert_lk(EINVAL, lk_sem_wait(NULL));
    assert_lk(EINVAL, lk_sem_post(NULL));
    assert_lk(ENOTSUP, lk_sem_acquireid(pool, 0, id));
    assert_lk(ENOTSUP, lk_sem_releaseid(pool, "00000000000000000000000000000000"));
    assert_lk(ENOTSUP, lk_sem_remaining(pool, &ms));
    assert_lk(ENOTSUP, lk_sem_token(pool, &token));
    assert_lk(EINVAL, lk_sem_init(&bad, client, "a{b", 1, NULL));
    assert_lk(EINVAL, lk_sem_init(&bad, client, "a", LK_SEM_VALUE_MAX + 1U, NULL));
    attr.lease_ms = 1000;
    assert_lk(EINVAL, lk_sem_init(&bad, client, "a", 1, &attr));
    attr.leased = 1;
    assert_lk(EINVAL, lk_sem_init(&bad, client, "a", LK_SEM_PERMITS_MAX + 1, &attr));
    attr.size = 0;
    assert_lk(EINVAL, lk_sem_init(&bad, client, "a", 1, &attr));
    assert_false(world_exists(w, "pool"));
}

/* What a drain took goes back in one call, however much it was; giving back nothing changes nothing. */
static void what_was_drained_goes_back(struct world *w)
{
    static const char *const numbers[] = { "0", "3000000", "2147483647" };
    unsigned taken;
    open_pool(w, 0);
    assert_lk(0, lk_sem_release(pool, 0));
    assert_false(world_exists(w, "pool"));
    for (int i = 0; i < 3; i++) {
        world_redis(w, "SET pool %s", numbers[i]);
        assert_lk(0, lk_sem_drain(pool, &taken));
        assert_int_equal(0, world_int(w, "GET pool"));
        assert_lk(0, lk_sem_release(pool, taken));
        assert_string_equal(numbers[i], world_str(w, "GET pool"));
    }
}

/* Redisson's numbers are 32 bits: no release makes more of it. */
static void the_number_does_not_overflow(struct world *w)
{
    open_pool(w, 0);
    world_redis(w, "SET pool 2147483646");
    assert_lk(0, lk_sem_post(pool));
    assert_lk(EOVERFLOW, lk_sem_post(pool));
    assert_lk(EOVERFLOW, lk_sem_addpermits(pool, 1000));
    assert_int_equal(2147483647, value_of(pool));
}

/* What is no number is left alone by every call. */
static void another_type_is_eproto_and_unchanged(struct world *w)
{
    static const char *const make[] = { "HSET pool a 1", "SET pool apples", "SET pool 1.5", "RPUSH pool 7" };
    unsigned taken;
    int value;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    open_pool(w, 3);
    for (int i = 0; i < 4; i++) {
        world_redis(w, make[i]);
        char *before = strdup(world_str(w, "DUMP pool"));
        assert_lk(EPROTO, lk_sem_wait(pool));
        assert_lk(EPROTO, lk_sem_trywait(pool));
        assert_lk(EPROTO, lk_sem_post(pool));
        assert_lk(EPROTO, lk_sem_trysetpermits(pool, 1));
        assert_lk(EPROTO, lk_sem_addpermits(pool, -1));
        assert_lk(EPROTO, lk_sem_drain(pool, &taken));
        assert_lk(EPROTO, lk_sem_getvalue(pool, &value));
        assert_lk(EPROTO, lk_sem_info(pool, &info));
        assert_string_equal(before, world_str(w, "DUMP pool"));
        free(before);
        world_redis(w, "DEL latchkey:settings:sem:{pool}");
        assert_int_equal(1, world_int(w, "DBSIZE"));
        world_redis(w, "DEL pool");
    }
}

static int post_later(void *arg)
{
    sleep_ms(50);
    return lk_sem_post(arg);
}

/* A post ends a wait at once, by a message and not by a poll; the queue is empty then. */
static void a_post_wakes_a_waiter(struct world *w)
{
    struct worker poster;
    struct timespec soon;
    open_pool(w, 0);
    for (int i = 0; i < 10; i++) {
        int64_t began_ms = now_ms();
        worker_start(&poster, post_later, pool);
        assert_lk(0, clock_gettime(i % 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC, &soon));
        soon.tv_sec += 5;
        assert_lk(0, i % 2 ? lk_sem_timedwait(pool, &soon) : lk_sem_clockwait(pool, CLOCK_MONOTONIC, &soon));
        assert_between(now_ms() - began_ms, 49, 50 + SLACK_MS);
        assert_int_equal(0, worker_join(&poster));
        assert_false(world_exists(w, "latchkey:queue:sem:{pool}"));
        assert_false(world_exists(w, "latchkey:alive:sem:{pool}"));
        assert_false(world_exists(w, "latchkey:claims:{pool}"));
    }
    assert_int_equal(0, value_of(pool));
}

/* Counted: each attempt costs one command, and what is left behind has an end. */
static void one_round_trip_each(struct world *w)
{
    open_pool(w, 2);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_post(pool));
    int64_t before = world_commands(w, "evalsha");
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_lk(0, lk_sem_release(pool, 2));
    assert_int_equal(before + 4, world_commands(w, "evalsha"));
    assert_between(world_pttl(w, "latchkey:once:{pool}"), 60000, 90000);
    assert_int_equal(1, world_int(w, "HLEN latchkey:once:{pool}")); /* one owner, however many requests */
}

int main(void)
{
    return world_run(the_first_operation_sets_the_value, a_semaphore_of_none_waits_for_the_first_post,
                     several_are_taken_at_once_or_none, the_number_is_changed_from_outside, mistakes_are_refused,
                     what_was_drained_goes_back, the_number_does_not_overflow, another_type_is_eproto_and_unchanged,
                     a_post_wakes_a_waiter, one_round_trip_each);
}
