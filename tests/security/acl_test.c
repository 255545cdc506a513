/* SPDX-License-Identifier: MIT */
/*
 * acl_test.c - everything works for the user of docs/security.md, and a right that is taken away is named
 *
 * A user with too few rights must hear of it when the client is opened, not when half a lock was made.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "log.h"
#include "quorum.h"
#include "rights.h"

#include "object/keys.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAST "lease=20s&command_timeout=2s&poll=1s&prefix=shop:"

static lk_client_t *client, *other;

/* What is left of a lease only grows when it is renewed. `*low_ms`: INT64_MAX, and then what was seen last. */
static bool grows(int64_t *low_ms, int64_t left_ms)
{
    bool grown = left_ms > *low_ms;
    *low_ms = left_ms;
    return grown;
}

static struct timespec in_5s(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += 5;
    return at;
}

static void make_the_user(struct world *w)
{
    struct words rights;
    rights_documented(&rights);
    rights_user(w, &rights, "~shop:*", NULL);
}

static void open_clients(struct world *w, const char *options)
{
    client = world_client_at(w, NULL, rights_url(w, options));
    other = world_client_at(w, NULL, rights_url(w, options));
}

static void open_both(struct world *w, const char *options)
{
    make_the_user(w);
    open_clients(w, options);
}

/* --- the whole range ------------------------------------------------------------------------------------------- */

static lk_mutex_t orders, same_orders;

/* After a forced unlock of a robust one the next is told that the holder died. */
static int lock_repaired(void *arg)
{
    int rc = lk_mutex_lock(arg);
    if (rc == EOWNERDEAD)
        rc = lk_mutex_consistent(arg);
    return rc != 0 ? rc : lk_mutex_unlock(arg);
}

/* It expires while it is held: what happens to one that was suspended for too long. */
static void die_holding(struct world *w, lk_mutex_t *m, const char *key)
{
    assert_lk(0, lk_mutex_lock(m));
    world_redis(w, "DEL %s", key);
    assert_lk(ESTALE, lk_mutex_check(m));
    assert_lk(ESTALE, lk_mutex_unlock(m));
}

static void use_mutex(struct world *w, const lk_mutexattr_t *attr)
{
    struct worker waiter;
    struct timespec at = in_5s(CLOCK_REALTIME), monotonic_at = in_5s(CLOCK_MONOTONIC);
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_waiter_t waiters[4];
    unsigned count;
    uint64_t token;
    int64_t ms;
    assert_lk(0, lk_mutex_init(&orders, client, "orders", attr));
    assert_lk(0, lk_mutex_init(&same_orders, other, "orders", attr));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(EBUSY, lk_mutex_trylock(&same_orders));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(&same_orders, 50));
    assert_lk(0, lk_mutex_unlock(&orders));
    worker_start(&waiter, lock_repaired, &same_orders);
    eventually(world_queued(w, "shop:orders") == 1, 5000);
    assert_lk(0, lk_mutex_info(&orders, &info));
    assert_int_equal(1, info.waiters);
    assert_lk(0, lk_mutex_queue(&orders, waiters, sizeof(lk_waiter_t), 4, &count));
    assert_int_equal(1, count);
    assert_lk(0, lk_mutex_token(&orders, &token));
    assert_lk(0, lk_mutex_remaining(&orders, &ms));
    assert_lk(0, lk_mutex_check(&orders));
    assert_lk(0, lk_mutex_extend(&orders, 3000));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_mutex_timedlock(&orders, &at));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_clocklock(&orders, CLOCK_MONOTONIC, &monotonic_at));
    worker_start(&waiter, lock_repaired, &same_orders);
    eventually(world_queued(w, "shop:orders") == 1, 5000);
    assert_lk(0, lk_mutex_forceunlock(&same_orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(ESTALE, lk_mutex_unlock(&orders));
    if (attr->robust) {
        die_holding(w, &orders, "shop:orders");
        assert_lk(EOWNERDEAD, lk_mutex_lock(&same_orders));
        assert_lk(0, lk_mutex_consistent(&same_orders));
        assert_lk(0, lk_mutex_unlock(&same_orders));
        die_holding(w, &orders, "shop:orders");
        assert_lk(EOWNERDEAD, lk_mutex_lock(&same_orders));
        assert_lk(0, lk_mutex_unlock(&same_orders));
        assert_lk(ENOTRECOVERABLE, lk_mutex_lock(&orders));
        assert_lk(0, lk_mutex_forceunlock(&orders));
    }
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_mutex_destroy(&same_orders));
}

static lk_rwlock_t config, same_config;

static int write_repaired(void *arg)
{
    int rc = lk_rwlock_wrlock(arg);
    if (rc == EOWNERDEAD)
        rc = lk_rwlock_consistent(arg);
    return rc != 0 ? rc : lk_rwlock_unlock(arg);
}

static int64_t queue_of(struct world *w, const char *kind, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:%s:{%s}", kind, name);
}

static void use_rwlock(struct world *w, const lk_rwlockattr_t *attr)
{
    struct worker writer;
    struct timespec at = in_5s(CLOCK_REALTIME), monotonic_at = in_5s(CLOCK_MONOTONIC);
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    lk_waiter_t waiters[4];
    unsigned count;
    uint64_t token;
    int64_t ms;
    assert_lk(0, lk_rwlock_init(&config, client, "config", attr));
    assert_lk(0, lk_rwlock_init(&same_config, other, "config", attr));
    assert_lk(0, lk_rwlock_rdlock(&config));
    assert_lk(0, lk_rwlock_tryrdlock(&same_config));
    assert_lk(0, lk_rwlock_unlock(&same_config));
    worker_start(&writer, write_repaired, &same_config);
    eventually(queue_of(w, "writers", "shop:config") == 1, 5000);
    assert_lk(0, lk_rwlock_info(&config, &info));
    assert_lk(0, lk_rwlock_queue(&config, waiters, sizeof(lk_waiter_t), 4, &count));
    assert_int_equal(1, count);
    assert_lk(0, lk_rwlock_check(&config));
    assert_lk(0, lk_rwlock_extend(&config, 3000));
    assert_lk(0, lk_rwlock_remaining(&config, &ms));
    assert_lk(0, lk_rwlock_unlock(&config));
    assert_int_equal(0, worker_join(&writer));
    assert_lk(0, lk_rwlock_timedrdlock(&config, &at));
    assert_lk(0, lk_rwlock_unlock(&config));
    assert_lk(0, lk_rwlock_clockrdlock(&config, CLOCK_MONOTONIC, &monotonic_at));
    assert_lk(0, lk_rwlock_unlock(&config));
    assert_lk(0, lk_rwlock_rdlockfor(&config, 5000));
    assert_lk(0, lk_rwlock_unlock(&config));
    assert_lk(0, lk_rwlock_timedwrlock(&config, &at));
    assert_lk(EBUSY, lk_rwlock_trywrlock(&same_config));
    assert_lk(ETIMEDOUT, lk_rwlock_wrlockfor(&same_config, 50));
    assert_lk(0, lk_rwlock_token(&config, &token));
    worker_start(&writer, write_repaired, &same_config);
    eventually(queue_of(w, "writers", "shop:config") == 1, 5000);
    assert_lk(0, lk_rwlock_downgrade(&config));
    assert_lk(0, lk_rwlock_unlock(&config));
    assert_int_equal(0, worker_join(&writer));
    assert_lk(0, lk_rwlock_clockwrlock(&config, CLOCK_MONOTONIC, &monotonic_at));
    assert_lk(0, lk_rwlock_forceunlock(&same_config));
    assert_lk(ESTALE, lk_rwlock_check(&config));
    assert_lk(ESTALE, lk_rwlock_unlock(&config));
    if (attr->robust) {
        assert_lk(EOWNERDEAD, lk_rwlock_wrlock(&same_config)); /* taken away, not given back */
        assert_lk(0, lk_rwlock_consistent(&same_config));
        assert_lk(0, lk_rwlock_unlock(&same_config));
    }
    assert_lk(0, lk_rwlock_destroy(&config));
    assert_lk(0, lk_rwlock_destroy(&same_config));
}

static lk_sem_t pool, same_pool;

static int take_two(void *arg)
{
    int rc = lk_sem_acquire(arg, 2, 10000);
    return rc != 0 ? rc : lk_sem_release(arg, 2);
}

static void use_sem(struct world *w, const lk_semattr_t *attr)
{
    struct worker waiter;
    struct timespec at = in_5s(CLOCK_REALTIME), monotonic_at = in_5s(CLOCK_MONOTONIC);
    lk_seminfo_t info = LK_SEMINFO_INIT;
    lk_waiter_t waiters[4];
    const char *queue = attr->leased ? "permits" : "sem";
    char id[LK_PERMIT_ID];
    uint64_t token;
    unsigned taken, count, total;
    int64_t ms;
    int value;
    assert_lk(0, lk_sem_init(&pool, client, queue, 0, attr));
    assert_lk(0, lk_sem_init(&same_pool, other, queue, 0, attr));
    assert_lk(0, lk_sem_trysetpermits(&pool, 2));
    assert_lk(EEXIST, lk_sem_trysetpermits(&pool, 2));
    assert_lk(0, lk_sem_wait(&pool));
    assert_lk(0, lk_sem_trywait(&pool));
    assert_lk(EAGAIN, lk_sem_trywait(&same_pool));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(&same_pool, 50));
    char name[32];
    snprintf(name, sizeof name, "shop:%s", queue);
    worker_start(&waiter, take_two, &same_pool);
    eventually(queue_of(w, queue, name) == 1, 5000);
    assert_lk(0, lk_sem_info(&pool, &info));
    assert_lk(0, lk_sem_queue(&pool, waiters, sizeof(lk_waiter_t), 4, &count));
    assert_int_equal(1, count);
    assert_int_equal(2, waiters[0].n);
    assert_lk(0, lk_sem_post(&pool));
    assert_lk(0, lk_sem_post(&pool));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_sem_getvalue(&pool, &value));
    assert_int_equal(2, value);
    assert_lk(0, lk_sem_timedwait(&pool, &at));
    assert_lk(0, lk_sem_clockwait(&pool, CLOCK_MONOTONIC, &monotonic_at));
    assert_lk(0, lk_sem_release(&pool, 2));
    assert_lk(0, lk_sem_timedacquire(&pool, 2, &at));
    assert_lk(0, lk_sem_release(&pool, 2));
    assert_lk(0, lk_sem_clockacquire(&pool, 2, CLOCK_MONOTONIC, &monotonic_at));
    assert_lk(0, lk_sem_release(&pool, 2));
    assert_lk(0, lk_sem_addpermits(&pool, 2));
    assert_lk(0, lk_sem_addpermits(&pool, -1));
    total = 3;
    assert_lk(0, lk_sem_setpermits(&pool, &total, 3));
    if (attr->leased) {
        assert_lk(0, lk_sem_acquireid(&pool, 1000, id));
        assert_lk(0, lk_sem_tokenid(&pool, id, &token));
        assert_lk(0, lk_sem_remainingid(&same_pool, id, &ms));
        assert_lk(0, lk_sem_checkid(&same_pool, id));
        assert_lk(0, lk_sem_extendid(&same_pool, id, 60000));
        assert_lk(0, lk_sem_extendid(&pool, id, 3000));
        assert_lk(0, lk_sem_releaseid(&same_pool, id));
        assert_lk(0, lk_sem_timedacquireid(&pool, &at, id));
        assert_lk(0, lk_sem_releaseid(&pool, id));
        assert_lk(0, lk_sem_clockacquireid(&pool, CLOCK_MONOTONIC, &monotonic_at, id));
        assert_lk(0, lk_sem_releaseid(&pool, id));
        assert_lk(0, lk_sem_acquireidwith(&pool, NULL, id));
        assert_lk(0, lk_sem_releaseid(&pool, id));
        assert_lk(0, lk_sem_wait(&pool));
        assert_lk(0, lk_sem_remaining(&pool, &ms));
        assert_lk(0, lk_sem_check(&pool));
        assert_lk(0, lk_sem_extend(&pool, 3000));
        assert_lk(0, lk_sem_token(&pool, &token));
        int64_t low_ms = INT64_MAX;
        eventually(lk_sem_remaining(&pool, &ms) == 0 && grows(&low_ms, ms), 3000);
        assert_lk(0, lk_sem_post(&pool));
    } else {
        assert_lk(0, lk_sem_drain(&pool, &taken));
        assert_int_equal(3, taken);
        assert_lk(ENOTSUP, lk_sem_acquireid(&pool, 0, id));
    }
    assert_lk(0, lk_sem_destroy(&same_pool));
    assert_lk(0, lk_sem_open(&same_pool, other, queue, O_CREAT, 2, attr));
    assert_lk(0, lk_sem_delete(&pool));
    assert_lk(0, lk_sem_trysetpermits(&pool, 2));
    eventually(lk_sem_destroy(&pool) == 0, 20000); /* a renewal tells it of the permit that the other one gave back */
    assert_lk(0, lk_sem_destroy(&same_pool));
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void use_once(struct world *w)
{
    lk_once_t once, same;
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    char *text;
    (void)w;
    assert_lk(0, lk_once_init(&once, client, "migrated", NULL));
    assert_lk(0, lk_once_init(&same, other, "migrated", NULL));
    assert_lk(0, lk_once_begin(&once, 0));
    assert_lk(ETIMEDOUT, lk_once_begin(&same, 50));
    uint64_t token;
    int64_t ms;
    struct timespec past = { 1, 0 };
    assert_lk(ETIMEDOUT, lk_once_timedbegin(&same, &past));
    assert_lk(ETIMEDOUT, lk_once_clockbegin(&same, CLOCK_MONOTONIC, &past));
    assert_lk(0, lk_once_token(&once, &token));
    assert_lk(0, lk_once_remaining(&once, &ms));
    assert_lk(0, lk_once_check(&once));
    assert_lk(0, lk_once_fail(&once));
    assert_lk(0, lk_once_begin(&same, 0));
    assert_lk(0, lk_once_info(&once, &info));
    assert_lk(0, lk_once_end(&same, "good"));
    assert_lk(0, lk_once_result(&once, &text));
    lk_free(text);
    assert_lk(0, lk_once_info(&once, &info));
    assert_lk(0, lk_once_reset(&once));
    assert_lk(0, lk_once_call(&once, do_nothing, NULL));
    assert_lk(0, lk_once_reset(&once));
    lk_how_t how = LK_HOW_INIT;
    assert_lk(0, lk_owner_new(client, &how.owner));
    for (int ends = 0; ends < 2; ends++) {
        assert_lk(0, lk_once_beginwith(&once, &how));
        assert_lk(0, lk_once_tokenby(&once, how.owner, &token));
        assert_lk(0, lk_once_remainingby(&once, how.owner, &ms));
        assert_lk(0, lk_once_checkby(&once, how.owner));
        assert_lk(0, ends ? lk_once_endby(&once, how.owner, "good") : lk_once_failby(&once, how.owner));
    }
    assert_lk(0, lk_once_reset(&once));
    assert_lk(0, lk_owner_free(how.owner));
    assert_lk(0, lk_once_destroy(&once));
    assert_lk(0, lk_once_destroy(&same));
}

static lk_barrier_t stage, same_stage;

static int wait_at_stage(void *barrier)
{
    return lk_barrier_waitfor(barrier, 20000);
}

static void use_barrier(struct world *w)
{
    struct worker waiter;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    assert_lk(0, lk_barrier_init(&stage, client, "stage", 2, NULL));
    assert_lk(0, lk_barrier_init(&same_stage, other, "stage", 2, NULL));
    worker_start(&waiter, wait_at_stage, &same_stage);
    eventually(world_int(w, "ZCARD latchkey:parties:{shop:stage}") == 1, 5000);
    assert_lk(0, lk_barrier_info(&stage, &info));
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(&stage));
    assert_int_equal(0, worker_join(&waiter));
    struct timespec past = { 1, 0 };
    assert_lk(ETIMEDOUT, lk_barrier_timedwait(&stage, &past));
    assert_lk(ETIMEDOUT, lk_barrier_clockwait(&stage, CLOCK_MONOTONIC, &past));
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(&stage, 100));
    assert_lk(0, lk_barrier_reset(&stage));
    assert_lk(0, lk_barrier_destroy(&stage));
    assert_lk(0, lk_barrier_destroy(&same_stage));
}

static lk_latch_t gate, same_gate;

static int wait_for_gate(void *arg)
{
    return lk_latch_wait(arg);
}

static void use_latch(struct world *w, bool listens)
{
    struct worker waiter;
    struct timespec at = in_5s(CLOCK_REALTIME), monotonic_at = in_5s(CLOCK_MONOTONIC);
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    unsigned left;
    assert_lk(0, lk_latch_init(&gate, client, "gate", NULL));
    assert_lk(0, lk_latch_init(&same_gate, other, "gate", NULL));
    assert_lk(0, lk_latch_trysetcount(&gate, 4));
    assert_lk(ETIMEDOUT, lk_latch_waitfor(&gate, 50));
    worker_start(&waiter, wait_for_gate, &same_gate);
    if (listens)
        eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch__channel__{shop:gate}") == 1, 5000);
    assert_lk(0, lk_latch_countdown(&gate));
    assert_lk(0, lk_latch_getcount(&gate, &left));
    assert_int_equal(3, left);
    assert_lk(0, lk_latch_info(&gate, &info));
    assert_lk(0, lk_latch_setcount(&gate, 3));
    assert_lk(0, lk_latch_countdownby(&gate, 3));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_latch_timedwait(&gate, &at));
    assert_lk(0, lk_latch_clockwait(&gate, CLOCK_MONOTONIC, &monotonic_at));
    assert_lk(0, lk_latch_trysetcount(&gate, 1));
    assert_lk(0, lk_latch_delete(&gate));
    assert_lk(0, lk_latch_destroy(&gate));
    assert_lk(0, lk_latch_destroy(&same_gate));
}

/* What an explicit owner holds needs no other rights than what a thread does. */
static void use_owner(void)
{
    lk_how_t how = LK_HOW_INIT;
    uint64_t token;
    int64_t ms;
    assert_lk(0, lk_owner_new(client, &how.owner));
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_lockwith(&orders, &how));
    assert_lk(0, lk_mutex_tokenby(&orders, how.owner, &token));
    assert_lk(0, lk_mutex_checkby(&orders, how.owner));
    assert_lk(0, lk_mutex_extendby(&orders, how.owner, 3000));
    assert_lk(0, lk_mutex_remainingby(&orders, how.owner, &ms));
    assert_lk(EINVAL, lk_mutex_consistentby(&orders, how.owner));
    assert_lk(0, lk_mutex_unlockby(&orders, how.owner));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_rwlock_init(&config, client, "config", NULL));
    assert_lk(0, lk_rwlock_wrlockwith(&config, &how));
    assert_lk(0, lk_rwlock_tokenby(&config, how.owner, &token));
    assert_lk(EINVAL, lk_rwlock_consistentby(&config, how.owner));
    assert_lk(0, lk_rwlock_downgradeby(&config, how.owner));
    assert_lk(0, lk_rwlock_rdlockwith(&config, &how));
    assert_lk(0, lk_rwlock_checkby(&config, how.owner));
    assert_lk(0, lk_rwlock_extendby(&config, how.owner, 3000));
    assert_lk(0, lk_rwlock_remainingby(&config, how.owner, &ms));
    assert_lk(0, lk_rwlock_unlockby(&config, how.owner));
    assert_lk(0, lk_rwlock_unlockby(&config, how.owner));
    assert_lk(0, lk_rwlock_destroy(&config));
    assert_lk(0,
              lk_sem_init(&pool, client, "permits", 2, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = 1 }));
    assert_lk(0, lk_sem_acquirewith(&pool, 2, &how));
    assert_lk(0, lk_sem_checkby(&pool, how.owner));
    assert_lk(0, lk_sem_tokenby(&pool, how.owner, &token));
    assert_lk(0, lk_sem_extendby(&pool, how.owner, 3000));
    assert_lk(0, lk_sem_remainingby(&pool, how.owner, &ms));
    assert_lk(0, lk_sem_tokenby(&pool, how.owner, &token));
    assert_lk(0, lk_sem_releaseby(&pool, how.owner, 2));
    assert_lk(0, lk_sem_destroy(&pool));
    assert_lk(0, lk_owner_free(how.owner));
}

/* What a client itself does; nothing of it needs a right beyond those of its objects. */
static void on_event(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

static void use_client(void)
{
    lk_event_t event = LK_EVENT_INIT;
    lk_events_t *queue;
    uint64_t handle;
    char *json;
    int fd;
    assert_lk(0, lk_client_addlistener(client, on_event, NULL, &handle));
    assert_lk(0, lk_events_open(client, &queue));
    assert_lk(0, lk_events_fd(queue, &fd));
    assert_lk(EAGAIN, lk_events_next(queue, &event));
    assert_lk(0, lk_events_close(queue));
    assert_lk(0, lk_client_removelistener(client, handle));
    assert_lk(0, lk_client_stats(client, &json));
    lk_free(json);
    assert_lk(0, lk_client_metrics(client, 1, &json));
    lk_free(json);
}

static void use_stripes(void)
{
    lk_stripes_t stock;
    lk_owner_t *owner;
    unsigned at;
    assert_lk(0, lk_owner_new(client, &owner));
    assert_lk(0, lk_stripes_init(&stock, client, "stock", 2));
    assert_lk(0, lk_stripes_trylockany(&stock, lk_stripes_index(&stock, "bolts", 5), &at));
    lk_mutex_t *any = lk_stripes_at(&stock, at);
    assert_lk(0, lk_mutex_unlock(any));
    assert_lk(0, lk_stripes_trylockanyby(&stock, owner, lk_stripes_count(&stock), &at));
    any = lk_stripes_at(&stock, at);
    assert_lk(0, lk_mutex_unlockby(any, owner));
    lk_mutex_t *nuts = lk_stripes_of(&stock, "nuts", 4);
    assert_lk(0, lk_mutex_lock(nuts));
    assert_lk(0, lk_mutex_unlock(nuts));
    assert_lk(0, lk_stripes_destroy(&stock));
    assert_lk(0, lk_stripes_initattr(&stock, client, "stock", 2, &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t) }));
    assert_lk(0, lk_stripes_destroy(&stock));
    assert_lk(0, lk_owner_free(owner));
}

static void use_multi(void)
{
    lk_multi_t both;
    lk_multiinfo_t info = LK_MULTIINFO_INIT;
    lk_mutex_t first;
    lk_rwlock_t read, written;
    lk_how_t how = LK_HOW_INIT;
    const struct timespec past = { .tv_sec = 1 };
    int64_t ms;
    assert_lk(0, lk_owner_new(client, &how.owner));
    assert_lk(0, lk_mutex_init(&first, client, "first", NULL));
    assert_lk(0, lk_rwlock_init(&read, client, "read", NULL));
    assert_lk(0, lk_rwlock_init(&written, client, "written", NULL));
    assert_lk(0, lk_multi_init(&both));
    assert_lk(0, lk_multi_addmutex(&both, &first));
    assert_lk(0, lk_multi_addread(&both, &read));
    assert_lk(0, lk_multi_addwrite(&both, &written));
    for (int i = 0; i < 5; i++) {
        assert_lk(0, i == 0   ? lk_multi_lock(&both)
                     : i == 1 ? lk_multi_trylock(&both)
                     : i == 2 ? lk_multi_timedlock(&both, &past)
                     : i == 3 ? lk_multi_clocklock(&both, CLOCK_MONOTONIC, &past)
                              : lk_multi_lockfor(&both, 1000));
        assert_lk(0, lk_multi_check(&both));
        assert_lk(0, lk_multi_remaining(&both, &ms));
        assert_lk(0, lk_multi_info(&both, &info));
        assert_lk(0, lk_multi_unlock(&both));
    }
    assert_lk(0, lk_multi_lockwith(&both, &how));
    assert_lk(0, lk_multi_checkby(&both, how.owner));
    assert_lk(0, lk_multi_remainingby(&both, how.owner, &ms));
    assert_lk(0, lk_multi_unlockby(&both, how.owner));
    assert_lk(0, lk_multi_destroy(&both));
    assert_lk(0, lk_mutex_destroy(&first));
    assert_lk(0, lk_rwlock_destroy(&read));
    assert_lk(0, lk_rwlock_destroy(&written));
    assert_lk(0, lk_owner_free(how.owner));
}

static int wait_for_signal(void *arg)
{
    lk_cond_t *cond = ((void **)arg)[0];
    lk_mutex_t *mutex = ((void **)arg)[1];
    int rc = lk_mutex_lock(mutex);
    if (rc == 0)
        rc = lk_cond_wait(cond, mutex);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

static void use_cond(struct world *w)
{
    struct worker waiters[3];
    lk_mutex_t mutex;
    lk_cond_t cond;
    lk_condinfo_t info = LK_CONDINFO_INIT;
    struct timespec past = { 1, 0 };
    void *both[] = { &cond, &mutex };
    assert_lk(0, lk_mutex_init(&mutex, client, "jobs", NULL));
    assert_lk(0, lk_cond_init(&cond, client, "jobs", NULL));
    for (int i = 0; i < 3; i++)
        worker_start(&waiters[i], wait_for_signal, both);
    eventually(world_condqueued(w, "shop:jobs") == 3, 5000);
    assert_lk(0, lk_cond_info(&cond, &info));
    assert_int_equal(3, info.waiters);
    assert_lk(0, lk_mutex_lock(&mutex));
    assert_lk(ETIMEDOUT, lk_cond_waitfor(&cond, &mutex, 10));
    assert_lk(ETIMEDOUT, lk_cond_timedwait(&cond, &mutex, &past));
    assert_lk(ETIMEDOUT, lk_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past));
    assert_lk(0, lk_cond_signal(&cond));
    assert_lk(0, lk_mutex_unlock(&mutex));
    assert_lk(0, lk_cond_broadcast(&cond));
    for (int i = 0; i < 3; i++)
        assert_lk(0, worker_join(&waiters[i]));
    assert_lk(0, lk_cond_destroy(&cond));
    assert_lk(0, lk_mutex_destroy(&mutex));
    eventually(world_condqueued(w, "shop:jobs") == 0, 5000);
}

static void use_everything(struct world *w, bool listens)
{
    use_client();
    use_mutex(w, &(lk_mutexattr_t)LK_MUTEXATTR_INIT);
    world_redis(w, "SCRIPT FLUSH"); /* each comes by EVAL again */
    use_mutex(w, &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t), .fair = 1, .robust = 1 });
    world_redis(w, "DEL latchkey:robust:mutex:{shop:orders}");
    use_mutex(w, &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t), .fixed = 1, .min_hold_ms = 100, .lease_ms = 2000 });
    eventually(!world_exists(w, "shop:orders"), 5000);
    use_rwlock(w, &(lk_rwlockattr_t)LK_RWLOCKATTR_INIT);
    use_rwlock(w, &(lk_rwlockattr_t){ .size = sizeof(lk_rwlockattr_t), .robust = 1 });
    use_sem(w, &(lk_semattr_t)LK_SEMATTR_INIT);
    use_sem(w, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = 1 });
    use_owner();
    use_stripes();
    use_multi();
    use_latch(w, listens);
    use_once(w);
    use_barrier(w);
    use_cond(w);
    world_redis(w, "DEL shop:sem latchkey:total:{shop:permits} latchkey:permits:{shop:permits} "
                   "latchkey:claims:{shop:sem} latchkey:robust:rw:{shop:config}");
}

static void nothing_was_denied(struct world *w)
{
    world_close(w, NULL);
    if (world_elements(w, "ACL LOG") != 0)
        fail_msg("something was denied: ACL LOG has %d entries", (int)world_elements(w, "ACL LOG"));
    world_redis(w, "FLUSHALL");
}

static void all_works_for_that_user(struct world *w)
{
    open_both(w, FAST);
    use_everything(w, true);
    nothing_was_denied(w);
}

static void all_works_beside_redisson(struct world *w)
{
    open_both(w, FAST "&redisson=yes");
    use_everything(w, true);
    nothing_was_denied(w);
}

static void all_works_without_messages(struct world *w)
{
    open_both(w, "lease=20s&command_timeout=2s&poll=100ms&prefix=shop:&pubsub=no");
    use_everything(w, false);
    nothing_was_denied(w);
}

/* A hold is renewed, on a connection of its own, also when that was made anew. */
static void renewals_are_permitted(struct world *w)
{
    int64_t ms, low_ms = INT64_MAX;
    open_both(w, "lease=4500ms&command_timeout=1400ms&prefix=shop:");
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    eventually(lk_mutex_remaining(&orders, &ms) == 0 && grows(&low_ms, ms), 4500);
    world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
    eventually(lk_mutex_remaining(&orders, &ms) == 0 && grows(&low_ms, ms), 4500);
    assert_lk(0, lk_mutex_check(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    nothing_was_denied(w);
}

/* To look at everything takes one right more, and the holders of a name none. */
static const char *who_key(const char *id)
{
    static char key[64];
    snprintf(key, sizeof key, "latchkey:who:%.32s", id);
    return key;
}

static void an_operator_may_scan(struct world *w)
{
    lk_inspect_t *walk;
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    lk_holder_t holder;
    lk_who_t who = LK_WHO_INIT;
    unsigned count;
    open_both(w, FAST);
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_inspect_holders(client, LK_KIND_MUTEX, "orders", &holder, sizeof holder, 1, &count));
    assert_int_equal(1, count);
    eventually(world_exists(w, who_key(holder.id)), 5000);
    assert_lk(0, lk_inspect_who(other, holder.id, &who));
    world_redis(w, "ACL SETUSER app +scan");
    assert_lk(0, lk_inspect_open(&walk, other, NULL));
    assert_lk(0, lk_inspect_next(walk, &object));
    assert_string_equal("orders", object.name);
    assert_lk(ENOENT, lk_inspect_next(walk, &object));
    assert_lk(0, lk_inspect_stats(walk, &stats));
    lk_inspect_close(walk);
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    nothing_was_denied(w);
}

/* Each server of a quorum has such a user. */
static lk_client_t *open_quorum(struct world *w)
{
    enum { NODES = 3 };
    struct words rights;
    char url[256];
    struct quorum *q = quorum_begin(w, NODES);
    rights_documented(&rights);
    for (int node = 0; node < NODES; node++) {
        quorum_str(q, node, "ACL SETUSER app reset on >secret resetkeys resetchannels -@all");
        for (int i = 0; i < rights.count; i++)
            quorum_str(q, node, "ACL SETUSER app %s", strcmp(rights.at[i], "~PREFIX*") == 0 ? "~shop:*" : rights.at[i]);
    }
    snprintf(url, sizeof url,
             "redis-quorum://app:secret@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?command_timeout=3s&prefix=shop:",
             quorum_port(q, 0), quorum_port(q, 1), quorum_port(q, 2));
    return world_client_at(w, q, url);
}

/* The same rule, at each of its servers. */
static void a_quorum_needs_no_more(struct world *w)
{
    const lk_redlockattr_t attr = { .size = sizeof attr, .fenced = 1, .longest_lease_ms = -1, .node_timeout_ms = 1000 };
    lk_redlock_t jobs;
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    lk_how_t how = LK_HOW_INIT;
    const struct timespec real_at = in_5s(CLOCK_REALTIME), monotonic_at = in_5s(CLOCK_MONOTONIC);
    uint64_t token;
    int64_t ms;
    lk_client_t *quorum = open_quorum(w);
    assert_lk(0, lk_owner_new(quorum, &how.owner));
    assert_lk(0, lk_redlock_init(&jobs, quorum, "jobs", &attr));
    for (int i = 0; i < 5; i++) {
        assert_answer(0, i == 0   ? lk_redlock_lock(&jobs)
                         : i == 1 ? lk_redlock_trylock(&jobs)
                         : i == 2 ? lk_redlock_timedlock(&jobs, &real_at)
                         : i == 3 ? lk_redlock_clocklock(&jobs, CLOCK_MONOTONIC, &monotonic_at)
                                  : lk_redlock_lockfor(&jobs, 5000));
        assert_lk(0, lk_redlock_token(&jobs, &token));
        assert_lk(0, lk_redlock_remaining(&jobs, &ms));
        assert_lk(0, lk_redlock_check(&jobs));
        assert_lk(0, lk_redlock_extend(&jobs, 20000));
        assert_lk(0, lk_redlock_info(&jobs, &info));
        assert_lk(0, lk_redlock_unlock(&jobs));
    }
    assert_lk(0, lk_redlock_lockwith(&jobs, &how));
    assert_lk(0, lk_redlock_tokenby(&jobs, how.owner, &token));
    assert_lk(0, lk_redlock_remainingby(&jobs, how.owner, &ms));
    assert_lk(0, lk_redlock_checkby(&jobs, how.owner));
    assert_lk(0, lk_redlock_extendby(&jobs, how.owner, 20000));
    assert_lk(0, lk_redlock_unlockby(&jobs, how.owner));
    assert_lk(0, lk_redlock_destroy(&jobs));
    assert_lk(0, lk_owner_free(how.owner));
}

/* The way of a static object, and of a file. */
static void other_ways_to_a_client(struct world *w)
{
    char path[96], json[256];
    lk_client_t *opened;
    make_the_user(w);
    snprintf(path, sizeof path, "%s/client.json", w->dir);
    int length = snprintf(json, sizeof json,
                          "{\"path\": \"%s\", \"username\": \"app\", \"password\": \"secret\", \"prefix\": \"shop:\"}",
                          w->socket);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(length, fwrite(json, 1, (size_t)length, file));
    fclose(file);
    assert_int_equal(0, chmod(path, 0600));
    int rc = lk_client_open_file(&opened, path);
    if (rc != 0)
        fail_msg("%s", lk_errortext());
    assert_lk(0, lk_client_setdefault(opened));
    assert_lk(0, lk_client_setdefault(NULL));
    assert_lk(0, lk_client_close(opened));
    assert_lk(0, lk_client_setdefaulturl(NULL));
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.json_path = path;
    assert_lk(0, lk_client_openwith(&opened, &attr));
    assert_lk(0, lk_client_close(opened));
    use_default(rights_url(w, "prefix=shop:"));
    assert_lk(0, lk_client_default(&opened));
    assert_lk(0, lk_client_close(opened));
    nothing_was_denied(w);
    char *says; /* which does without what it is denied, CONFIG GET */
    assert_lk(0, lk_survey(&attr, &says));
    lk_free(says);
}

/* A function that is not used here is one of which nobody knows what rights it needs. */
static void each_public_function_is_used_here(void)
{
    static const char *const local[] = { "lk_addlog",    "lk_errorleft", "lk_errorsettles",
                                         "lk_errortext", "lk_free",      "lk_owner_number",
                                         "lk_removelog", "lk_strerror",  "lk_version" };
    char *own = source_text("tests/security/acl_test.c"), *symbols = source_text("tests/build/symbols.txt"), *save;
    int count = 0;
    for (char *name = strtok_r(symbols, "\n", &save); name != NULL; name = strtok_r(NULL, "\n", &save)) {
        char call[64];
        bool is_local = false;
        for (size_t i = 0; i < sizeof local / sizeof *local; i++)
            is_local |= strcmp(local[i], name) == 0;
        snprintf(call, sizeof call, " %s(", name);
        if (!is_local && strstr(own, call) == NULL)
            fail_msg("%s is not used in acl_test.c", name);
        count++;
    }
    assert_true(count > 60);
    free(own);
    free(symbols);
}

/* --- rights that are lacking ------------------------------------------------------------------------------------ */

/* Which of all rights do these words name? */
static void expect_only(const char *text, const struct words *rights, const char *expected, const char *without)
{
    char padded[1200];
    snprintf(padded, sizeof padded, "%s ", text);
    for (char *c = padded; *c != '\0'; c++)
        if (strchr(",:;\n", *c) != NULL && (c[1] == ' ' || c[1] == '\0'))
            *c = ' ';
    for (int i = 0; i < rights->count; i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", strcmp(rights->at[i], "~PREFIX*") == 0 ? "~shop:*" : rights->at[i]);
        bool named = strstr(padded, word) != NULL, wanted = strcmp(rights->at[i], expected) == 0;
        if (named != wanted)
            fail_msg("without %s, %s is %s in: %s", without, rights->at[i], named ? "" : "not", text);
    }
}

static bool can_be_done_without(const char *right)
{
    static const char *const words[] = { "+role", "+info", "+client|setname", "+pubsub|numsub", "+pubsub|shardnumsub" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], right) == 0)
            return true;
    return false;
}

/* Needed by some objects only, or for safety: a client is there without, and says what it lacks. */
static bool is_for_some(const char *right)
{
    static const char *const words[] = { "+decrby", "+echo", "+incrby", "+rename", "+zcount", "+zmscore", "+zrangebyscore", "+zremrangebyscore" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], right) == 0)
            return true;
    return right[0] == '&';
}

static void try_without(struct world *w, const struct words *rights, const char *right)
{
    lk_client_t *opened = NULL;
    rights_user(w, rights, "~shop:*", right);
    assert_lk(0, log_keep(LK_LOG_WARNING));
    int rc = lk_client_open(&opened, rights_url(w, "prefix=shop:"));
    int expected = can_be_done_without(right) || is_for_some(right) ? 0 : EACCES;
    if (rc != expected)
        fail_msg("without %s: %s, not %s; %s", right, code_name(rc), code_name(expected), lk_errortext());
    if (rc == EACCES) {
        expect_only(lk_errortext(), rights, right, right);
        assert_non_null(strstr(lk_errortext(), "user app"));
        return;
    }
    if (can_be_done_without(right))
        assert_string_equal("", log_kept());
    else
        expect_only(log_kept(), rights, right, right);
    assert_lk(0, lk_client_close(opened));
}

/* Each single word of the rule, taken away, is named when the client is opened: that one and no other. */
static void a_missing_right_is_named(struct world *w)
{
    struct words rights;
    rights_documented(&rights);
    for (int i = 0; i < rights.count; i++)
        try_without(w, &rights, rights.at[i]);
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    assert_string_equal("", world_keys(w)); /* to look leaves nothing behind */
}

/* All that is lacking is named at once, not one after the other. */
static void all_missing_rights_are_named_at_once(struct world *w)
{
    lk_client_t *opened;
    world_redis(w, "ACL SETUSER app on >secret resetkeys ~shop:* resetchannels &* -@all +eval +time +get");
    assert_lk(EACCES, lk_client_open(&opened, rights_url(w, "prefix=shop:")));
    static const char *const lacking[] = {
        " +zadd", " +evalsha", " +ping", " +subscribe", " +publish", " ~latchkey:*", " ~redisson_lock_token:*"
    };
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        if (strstr(lk_errortext(), lacking[i]) == NULL)
            fail_msg("no%s in: %s", lacking[i], lk_errortext());
    assert_null(strstr(lk_errortext(), "+get"));
    assert_null(strstr(lk_errortext(), "~shop:*"));
}

/* Who gives the rights of mutexes only gets mutexes; the rest says what it lacks before it sends anything. */
static void what_a_user_may_not_use_is_refused_at_once(struct world *w)
{
    lk_rwlock_t rw;
    lk_sem_t sem;
    lk_latch_t latch;
    make_the_user(w);
    world_redis(w, "ACL SETUSER app -decrby -incrby -zremrangebyscore");
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    client = world_client_at(w, NULL, rights_url(w, "prefix=shop:&describe=no")); /* evals are counted */
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    int64_t evals = world_commands(w, "eval");
    assert_lk(EACCES, lk_rwlock_init(&rw, client, "config", NULL));
    assert_non_null(strstr(lk_errortext(), "+zremrangebyscore"));
    assert_lk(EACCES, lk_sem_init(&sem, client, "pool", 1, NULL));
    assert_non_null(strstr(lk_errortext(), "+decrby"));
    assert_lk(EACCES, lk_latch_init(&latch, client, "gate", NULL));
    assert_non_null(strstr(lk_errortext(), "+decrby"));
    assert_true(world_commands(w, "eval") == evals);
    assert_lk(0, lk_mutex_destroy(&orders));
}

/* Names that are not covered are the one thing that nobody can know before they are used. */
static void a_name_that_is_not_covered_is_named(struct world *w)
{
    lk_sem_t sem;
    make_the_user(w);
    assert_lk(0, lk_client_open(&client, rights_url(w, "")));
    assert_lk(0, lk_mutex_init(&orders, client, "alien", NULL));
    assert_lk(EACCES, lk_mutex_lock(&orders));
    assert_non_null(strstr(lk_errortext(), "~alien"));
    assert_lk(EACCES, lk_mutex_trylock(&orders));
    assert_lk(EACCES, lk_mutex_forceunlock(&orders));
    assert_non_null(strstr(lk_errortext(), "~alien"));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_sem_init(&sem, client, "alien", 1, NULL));
    assert_lk(EACCES, lk_sem_trywait(&sem));
    assert_non_null(strstr(lk_errortext(), "~alien"));
    assert_lk(0, lk_sem_destroy(&sem));
    assert_lk(0, lk_client_close(client));
    assert_string_equal("", world_keys(w));
}

/* The page's other rule: for dashboards. */
static void an_observer_may_look_and_not_touch(struct world *w)
{
    static const char *const may[] = { "HGETALL PREFIXorders", "GET redisson_lock_token:{PREFIXorders}",
                                       "ZRANGE latchkey:queue:mutex:{PREFIXorders} 0 -1 WITHSCORES",
                                       "PTTL latchkey:robust:mutex:{PREFIXorders}",
                                       "GET latchkey:who:00112233445566778899aabbccddeeff", "SCAN 0" };
    static const char *const may_not[] = { "DEL PREFIXorders",
                                           "SET PREFIXorders 1",
                                           "GET other",
                                           "EVAL 1 0",
                                           "PUBLISH latchkey:client:x y",
                                           "SUBSCRIBE latchkey:client:x",
                                           "KEYS *" };
    char *docs = source_text("docs/security.md"), *rule = strstr(docs, "ACL SETUSER observer");
    assert_non_null(rule);
    *strstr(rule, "\n\n") = '\0';
    char *save, *word = strtok_r(rule + strlen("ACL SETUSER observer"), " \n", &save);
    for (; word != NULL; word = strtok_r(NULL, " \n", &save))
        world_redis(w, "ACL SETUSER observer %s", word);
    for (size_t i = 0; i < sizeof may / sizeof *may; i++) {
        char command[128];
        snprintf(command, sizeof command, "ACL DRYRUN observer %s", may[i]);
        assert_string_equal("OK", world_str(w, command));
    }
    for (size_t i = 0; i < sizeof may_not / sizeof *may_not; i++) {
        char command[128];
        snprintf(command, sizeof command, "ACL DRYRUN observer %s", may_not[i]);
        if (strcmp("OK", world_str(w, command)) == 0)
            fail_msg("an observer may %s", may_not[i]);
    }
    free(docs);
}

/* Without a channel a release is a release, and waiters poll. */
static void without_channels_waiters_poll(struct world *w)
{
    struct worker waiter;
    make_the_user(w);
    world_redis(w, "ACL SETUSER app resetchannels");
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    open_clients(w, "lease=20s&command_timeout=2s&poll=200ms&prefix=shop:");
    use_mutex(w, &(lk_mutexattr_t)LK_MUTEXATTR_INIT);
    use_rwlock(w, &(lk_rwlockattr_t)LK_RWLOCKATTR_INIT);
    use_sem(w, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = 1 });
    use_latch(w, false);
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_init(&same_orders, other, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    worker_start(&waiter, lock_repaired, &same_orders);
    eventually(world_queued(w, "shop:orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_mutex_destroy(&same_orders));
    world_close(w, NULL);
    world_redis(w, "FLUSHALL");
}

int main(void)
{
    if (access(LK_SOURCE_DIR "/docs/security.md", R_OK) != 0)
        return 77; /* built without its sources at hand */
    int failed = plain_run(each_public_function_is_used_here);
    return failed + world_run(all_works_for_that_user, all_works_beside_redisson, all_works_without_messages,
                              renewals_are_permitted, an_operator_may_scan, other_ways_to_a_client,
                              a_quorum_needs_no_more,
                              a_missing_right_is_named, all_missing_rights_are_named_at_once,
                              what_a_user_may_not_use_is_refused_at_once, a_name_that_is_not_covered_is_named,
                              without_channels_waiters_poll, an_observer_may_look_and_not_touch);
}
