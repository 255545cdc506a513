/* SPDX-License-Identifier: MIT */
/*
 * wakeup_test.c - who waits for what the other side has, Java or C, is woken by a message, not by a timer
 *
 * Leases and polls are so long that nobody who missed a message would come within the time allowed.
 *
 * seconds: 12
 * processors: 3
 */
#include "java.h"

#include <string.h>

#define LOCKS "redisson_lock__channel:{orders}"
#define PERMITS "redisson_sc:{pool}"
#define PATIENT "redisson=yes&lease=20s&poll=10s"

enum { ROUNDS = 5 };

/* Java is slower than a test, and both may wait for a processor. */
#define WAKES_WITHIN_MS (1000 + 4 * SLACK_MS)

static int64_t got_ms;

static int lock_and_note(void *mutex)
{
    int rc = lk_mutex_lock(mutex);
    got_ms = now_ms();
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

static int take_and_note(void *semaphore)
{
    int rc = lk_sem_wait(semaphore);
    got_ms = now_ms();
    return rc;
}

static int64_t listeners(struct world *w, const char *channel)
{
    return world_int(w, "EVAL %s 1 %s", "return redis.call('PUBSUB', 'NUMSUB', KEYS[1])[2]", channel);
}

/* It tries once more behind its subscription: from then on it needs a message. */
static void java_waits(struct world *w, struct java *java, char who, const char *words, const char *channel)
{
    java_tell(java, who, "%s", words);
    eventually(listeners(w, channel) >= 1, 20000);
    sleep_ms(300);
    assert_string_equal("", java_says(java, who, 0));
}

static void we_wait_for_java(struct world *w, const lk_mutexattr_t *attr)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *orders = world_mutex(w, world_client(w, PATIENT), "orders", attr);
    world_allow(w, "redisson_lock_token:*");
    for (int i = 0; i < ROUNDS; i++) {
        struct worker waiter;
        assert_string_equal("ok", java_does(java, 'a', "lock orders %d", i % 2 == 0 ? 60000 : -1));
        worker_start(&waiter, lock_and_note, orders);
        eventually(world_queued(w, "orders") == 1 && listeners(w, LOCKS) == 1, 10000);
        sleep_ms(50);
        int64_t began_ms = now_ms();
        assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(got_ms - began_ms, 0, WAKES_WITHIN_MS);
    }
}

static void javas_unlock_wakes_us(struct world *w)
{
    we_wait_for_java(w, NULL);
}

static void javas_unlock_wakes_the_first_of_a_fair_queue(struct world *w)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    fair.fair = 1;
    we_wait_for_java(w, &fair);
}

/* Whatever options we were opened with. */
static void our_unlock_wakes_java(struct world *w)
{
    static const char *const options[] = { PATIENT, "lease=20s&poll=10s" };
    struct java *java = java_open(w, 30000);
    world_allow(w, "redisson_lock_token:*");
    for (int i = 0; i < 2 * ROUNDS; i++) {
        lk_client_t *client = world_client(w, options[i % 2]);
        lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
        assert_lk(0, lk_mutex_lock(orders));
        java_waits(w, java, 'a', "lock orders -1", LOCKS);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_mutex_unlock(orders));
        assert_string_equal("ok", java_says(java, 'a', 15000));
        assert_between(now_ms() - began_ms, 0, WAKES_WITHIN_MS);
        assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
        world_close(w, client);
    }
}

/* Java's thread and ours wait at once, for one of ours: each has it soon, whoever comes first. */
static void both_wait_for_us(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_mutex_t *held = world_mutex(w, world_client(w, PATIENT), "orders", NULL);
    lk_mutex_t *wanted = world_mutex(w, world_client(w, PATIENT), "orders", NULL);
    world_allow(w, "redisson_lock_token:*");
    for (int i = 0; i < ROUNDS; i++) {
        struct worker waiter;
        assert_lk(0, lk_mutex_lock(held));
        java_waits(w, java, 'a', "lock orders -1", LOCKS);
        worker_start(&waiter, lock_and_note, wanted);
        eventually(world_queued(w, "orders") == 1, 10000);
        sleep_ms(50);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_mutex_unlock(held));
        assert_string_equal("ok", java_says(java, 'a', 15000));
        assert_string_equal("ok", java_does(java, 'a', "unlock orders"));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, 2 * WAKES_WITHIN_MS);
    }
}

static void javas_release_wakes_us(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_sem_t *pool = world_sem(w, world_client(w, PATIENT), "pool", 0, NULL);
    world_allow(w, "pool");
    assert_string_equal("true", java_does(java, 'a', "set pool 1"));
    assert_string_equal("ok", java_does(java, 'a', "acquire pool 1"));
    for (int i = 0; i < ROUNDS; i++) {
        struct worker waiter;
        worker_start(&waiter, take_and_note, pool);
        eventually(world_semqueued(w, "pool") == 1 && listeners(w, PERMITS) == 1, 10000);
        sleep_ms(50);
        int64_t began_ms = now_ms();
        assert_string_equal("ok", java_does(java, 'a', "release pool 1"));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(got_ms - began_ms, 0, WAKES_WITHIN_MS);
    }
}

static void our_release_wakes_java(struct world *w)
{
    struct java *java = java_open(w, 30000);
    lk_sem_t *pool = world_sem(w, world_client(w, PATIENT), "pool", 1, NULL);
    world_allow(w, "pool");
    assert_lk(0, lk_sem_wait(pool));
    for (int i = 0; i < ROUNDS; i++) {
        java_waits(w, java, 'a', "acquire pool 1", PERMITS);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_sem_post(pool));
        assert_string_equal("ok", java_says(java, 'a', 15000));
        assert_between(now_ms() - began_ms, 0, WAKES_WITHIN_MS);
    }
}

int main(void)
{
    java_begin();
    return world_run(javas_unlock_wakes_us, javas_unlock_wakes_the_first_of_a_fair_queue, our_unlock_wakes_java,
                     both_wait_for_us, javas_release_wakes_us, our_release_wakes_java);
}
