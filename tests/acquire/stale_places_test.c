/* SPDX-License-Identifier: MIT */
/*
 * stale_places_test.c - a place in the queue that nobody keeps up any more refuses nobody who tries, and delays nobody
 *
 * It is that of a thread that ended, or lost its way, in a process that lives and listens. If nobody else waits, it is
 * for the one who tries to find out.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

#include <stdio.h>

static lk_client_t *ours;
static char listener[64]; /* an id that is theirs, and listens */

static int wait_briefly(void *arg)
{
    return lk_sem_waitfor(arg, 300);
}

/* From its first wait on a client listens. */
static void begin(struct world *w)
{
    struct worker waiter;
    lk_client_t *theirs = world_client(w, "");
    ours = world_client(w, "");
    world_allow(w, "latchkey:once:*");
    lk_sem_t *sem = world_sem(w, theirs, "listens", 0, NULL);
    worker_start(&waiter, wait_briefly, sem);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    snprintf(listener, sizeof listener, "%s",
             world_str(w, "EVAL %s 0",
                       "return string.sub(redis.call('PUBSUB', 'CHANNELS', 'latchkey:client:*')[1], -32)"));
    assert_lk(ETIMEDOUT, worker_join(&waiter));
}

/* Theirs is first in that queue, and was last heard of long ago. */
static void leave_behind(struct world *w, const char *queue, const char *rest)
{
    world_redis(w, "ZADD latchkey:queue:%s:{thing} 5 %s:9:77%s", queue, listener, rest);
    world_redis(w, "HSET latchkey:alive:%s:{thing} %s %s", alive_of(queue), listener, "5 5000 3000 0");
    world_redis(w, "PEXPIRE latchkey:queue:%s:{thing} 60000", queue);
    world_redis(w, "PEXPIRE latchkey:alive:%s:{thing} 60000", alive_of(queue));
}

static void a_permit_is_taken(struct world *w)
{
    world_allow(w, "thing");
    world_allow(w, "latchkey:total:{thing}");
    world_allow(w, "latchkey:permits:{thing}");
    begin(w);
    for (int leased = 0; leased < 2; leased++) {
        lk_semattr_t attr = LK_SEMATTR_INIT;
        attr.leased = leased;
        lk_sem_t *thing = world_sem(w, ours, "thing", 1, &attr);
        leave_behind(w, leased ? "permits" : "sem", ":5"); /* it wants more than there will ever be */
        assert_lk(0, lk_sem_trywait(thing));
        assert_lk(0, lk_sem_post(thing));
        leave_behind(w, leased ? "permits" : "sem", ":1");
        assert_lk(0, lk_sem_trywait(thing));
        assert_lk(0, lk_sem_post(thing));
        world_close(w, thing);
    }
}

static void a_lock_is_taken(struct world *w)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    fair.fair = 1;
    begin(w);
    lk_mutex_t *mutex = world_mutex(w, ours, "thing", &fair);
    lk_rwlock_t *rwlock = world_rwlock(w, ours, "thing", NULL);
    leave_behind(w, "mutex", "");
    assert_lk(0, lk_mutex_trylock(mutex));
    assert_lk(0, lk_mutex_unlock(mutex));
    leave_behind(w, "writers", ":w");
    assert_lk(0, lk_rwlock_tryrdlock(rwlock));
    assert_lk(0, lk_rwlock_unlock(rwlock));
    leave_behind(w, "writers", ":w");
    assert_lk(0, lk_rwlock_trywrlock(rwlock));
    assert_lk(0, lk_rwlock_unlock(rwlock));
}

static int lock_briefly(void *mutex)
{
    return lk_mutex_lockfor(mutex, 500);
}

static int lock_patiently(void *mutex)
{
    int rc = lk_mutex_lockfor(mutex, 300000);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

/* It is in the way for as long as its client asks for others: so it is taken out when the server is there again. */
static void a_place_given_up_in_an_outage_goes(struct world *w)
{
    enum { OUTAGE_MS = 60000, SOON_MS = 1500 /* a claim lasts for 3 s */ };
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    struct proxy *p = proxy_begin(w);
    struct worker hurried, patient;
    lk_mutex_t *held = world_mutex(w, world_client(w, "lease=60s"), "orders", &fair);
    lk_mutex_t *mutex = world_mutex(w, proxy_client(p, ""), "orders", &fair);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&hurried, lock_briefly, mutex);
    eventually(world_queued(w, "orders") == 1, 3000);
    worker_start(&patient, lock_patiently, mutex);
    eventually(world_queued(w, "orders") == 2 && world_listening(w, "mutex:{orders}"), 3000);
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_int_not_equal(0, worker_join(&hurried));
    sleep_ms(OUTAGE_MS);
    proxy_refuse(p, false);
    eventually(world_queued(w, "orders") == 1, 10000);
    sleep_ms(1000); /* its subscription stands */
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(held));
    assert_lk(0, worker_join(&patient));
    assert_between(now_ms() - began_ms, 0, SOON_MS);
}

int main(void)
{
    return world_run(a_permit_is_taken, a_lock_is_taken, a_place_given_up_in_an_outage_goes);
}
