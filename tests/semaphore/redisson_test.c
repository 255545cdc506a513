/* SPDX-License-Identifier: MIT */
/*
 * redisson_test.c - processes that run Redisson and this library share a counting semaphore
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <stdio.h>

#define CHANNEL "redisson_sc:{pool}"

static lk_client_t *client;
static lk_sem_t *pool;

static void open_pool(struct world *w, const char *options)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, options);
    pool = world_sem(w, client, "pool", 0, NULL);
}

/* As RSemaphore.release(): the new value is told. */
static void java_releases(struct world *w, int n)
{
    world_redis(w, "PUBLISH " CHANNEL " %lld", (long long)world_int(w, "INCRBY pool %d", n));
}

/* What Java sets and takes counts here, and the other way round. */
static void the_number_is_shared(struct world *w)
{
    int value;
    open_pool(w, "");
    world_redis(w, "SET pool 3");
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 7));
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    assert_int_equal(1, world_int(w, "GET pool"));
    world_redis(w, "DECRBY pool 1");
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    java_releases(w, 5);
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(5, value);
    world_redis(w, "SET pool -2"); /* reducePermits() may do that */
    assert_lk(0, lk_sem_getvalue(pool, &value));
    assert_int_equal(0, value);
    assert_lk(EAGAIN, lk_sem_trywait(pool));
    assert_lk(0, lk_sem_release(pool, 3));
    assert_lk(0, lk_sem_trywait(pool));
}

/* A Java waiter hears of each permit that becomes free, and never a number that it cannot take. */
static void java_hears_what_is_free(struct world *w)
{
    unsigned taken;
    open_pool(w, "");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_sem_trysetpermits(pool, 2));
    assert_string_equal("2", world_message(w, 5000));
    assert_lk(0, lk_sem_post(pool));
    assert_string_equal("3", world_message(w, 5000));
    assert_lk(0, lk_sem_addpermits(pool, 4));
    assert_string_equal("7", world_message(w, 5000));
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_lk(0, lk_sem_addpermits(pool, -4));
    assert_lk(0, lk_sem_release(pool, 3)); /* still below zero */
    assert_null(world_message(w, 50));
    assert_lk(0, lk_sem_release(pool, 2));
    assert_string_equal("1", world_message(w, 5000));
}

WORK(take_one, arg, lk_sem_waitfor(arg, 20000))

/* With redisson=yes a release in Java ends a wait here at once; several waiters need one message. */
static void a_release_in_java_wakes_us(struct world *w)
{
    struct worker waiters[3];
    open_pool(w, "redisson=yes&poll=10s");
    for (int i = 0; i < 3; i++) {
        worker_start(&waiters[i], take_one, pool);
        eventually(world_int(w, "ZCARD latchkey:queue:sem:{pool}") == i + 1, 3000);
    }
    eventually(world_elements(w, "PUBSUB CHANNELS " CHANNEL) == 1, 3000);
    sleep_ms(100);
    int64_t began_ms = now_ms();
    java_releases(w, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(0, worker_join(&waiters[i]));
    assert_between(now_ms() - began_ms, 0, 2 * SLACK_MS);
    assert_int_equal(0, world_int(w, "GET pool"));
}

static int keep_taking(int index, void *arg)
{
    int *stop = arg, rc = 0;
    (void)index;
    while (rc == 0 && !__atomic_load_n(stop, __ATOMIC_SEQ_CST)) {
        rc = lk_sem_wait(pool);
        if (rc == 0)
            rc = lk_sem_post(pool);
    }
    return rc;
}

static int stop;

WORK(crowd, arg, run_threads(4, keep_taking, &stop))

/* What Redisson does when it hears of permits: try, and later release and tell. */
static bool java_tries(struct world *w)
{
    static const char take[] = "if tonumber(redis.call('GET', KEYS[1])) < 1 then return 0 end "
                               "redis.call('DECRBY', KEYS[1], 1) return 1";
    if (world_int(w, "EVAL %s 1 pool", take) != 1)
        return false;
    java_releases(w, 1);
    return true;
}

/* While processes of this library always want it, Java gets its turn now and then, though it is slower than they are. */
static void java_does_not_starve(struct world *w)
{
    enum { TURNS = 20, MESSAGES = 8 * TURNS, PERMITS_MAX = 3 };
    open_pool(w, "redisson=yes");
    world_subscribe(w, CHANNEL);
    assert_lk(0, lk_sem_trysetpermits(pool, 1));
    for (int permits = 1; permits <= PERMITS_MAX; permits += 2) {
        struct worker worker;
        int turns = 0;
        stop = 0;
        worker_start(&worker, crowd, NULL);
        for (int i = 0; i < MESSAGES && turns < TURNS; i++) {
            assert_non_null(world_message(w, 5000));
            sleep_ms(5);
            turns += java_tries(w);
        }
        __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(0, worker_join(&worker));
        assert_int_equal(TURNS, turns);
        assert_int_equal(permits, world_int(w, "GET pool"));
        assert_lk(0, lk_sem_addpermits(pool, 2));
    }
}

/* Nobody of ours waits either: who has the permit again and again leaves Java its turns. */
static void java_has_turns_beside_one_of_ours(struct world *w)
{
    enum { RELEASES_MAX = 1000, ENOUGH = 5 };
    int turns = 0;
    open_pool(w, "redisson=yes");
    assert_lk(0, lk_sem_trysetpermits(pool, 1));
    for (int i = 0; i < 100; i++) {
        assert_lk(0, lk_sem_trywait(pool));
        assert_lk(0, lk_sem_post(pool));
    }
    world_subscribe(w, CHANNEL);
    for (int i = 0; i < RELEASES_MAX && turns < ENOUGH; i++) {
        assert_lk(0, lk_sem_wait(pool));
        assert_lk(0, lk_sem_post(pool));
        turns += lk_sem_trywait(pool) == EAGAIN || lk_sem_post(pool) != 0;
    }
    assert_int_equal(ENOUGH, turns);
    assert_int_not_equal(-1, world_pttl(w, "latchkey:alive:sem:{pool}")); /* it has an end */
    assert_lk(0, lk_sem_wait(pool));
}

/*
 * Without Java nothing is left to it: each permit is handed to the waiter at once. A waiter that was only told to ask
 * would find an F among its messages.
 */
static void nothing_is_left_to_nobody(struct world *w)
{
    enum { ROUNDS = 100 };
    char channel[64] = "";
    open_pool(w, "redisson=yes&poll=10s");
    lk_sem_t *same = world_sem(w, world_client(w, "redisson=yes"), "pool", 0, NULL);
    assert_lk(0, lk_sem_trysetpermits(same, 1));
    assert_lk(0, lk_sem_wait(same));
    for (int i = 0; i < ROUNDS; i++) {
        struct worker waiter;
        const char *message;
        worker_start(&waiter, take_one, pool);
        eventually(world_int(w, "ZCARD latchkey:queue:sem:{pool}") == 1, 3000);
        eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:" CHANNEL) == 1, 3000);
        if (channel[0] == '\0') {
            const char *id = world_str(w, "EVAL %s 1 latchkey:queue:sem:{pool}",
                                       "return string.sub(redis.call('ZRANGE', KEYS[1], 0, 0)[1], 1, 32)");
            snprintf(channel, sizeof channel, "latchkey:client:%s", id);
            eventually(world_elements(w, "PUBSUB CHANNELS %s", channel) == 1, 3000);
            world_subscribe(w, channel);
        }
        assert_lk(0, lk_sem_post(same));
        assert_int_equal(0, worker_join(&waiter));
        assert_non_null(message = world_message(w, 5000));
        if (message[0] != 'G')
            fail_msg("round %d: told %s", i, message);
    }
}

int main(void)
{
    return world_run(the_number_is_shared, java_hears_what_is_free, a_release_in_java_wakes_us, java_does_not_starve,
                     java_has_turns_beside_one_of_ours, nothing_is_left_to_nobody);
}
