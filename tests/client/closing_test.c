/* SPDX-License-Identifier: MIT */
/*
 * closing_test.c - objects are made, used and destroyed while their client is being closed
 *
 * labels: memory threads
 * simulated: yes
 * processors: 2
 */
#include "world.h"

#include <stdio.h>

enum { THREADS = 4, NAMES = 10000, NAMES_MS = 5000 };

struct factory {
    lk_client_t *client;
    int made;     /* names, in all; atomic */
    bool stopped; /* atomic */
};

static bool is_expected(int rc)
{
    return rc == 0 || rc == ECANCELED || rc == ETIMEDOUT;
}

/* A name of its own each time; every fourth is held by somebody, so that it is waited for. */
static int use_a_mutex(struct factory *factory, int index, int number)
{
    lk_mutex_t m;
    char name[32];
    if (number % 4 == 0)
        snprintf(name, sizeof name, "held-%d", index);
    else
        snprintf(name, sizeof name, "order-%d", number);
    int rc = lk_mutex_init(&m, factory->client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_mutex_lockfor(&m, number % 4 == 0 ? 3 : 1000);
    if (rc == 0)
        rc = lk_mutex_unlock(&m);
    int destroyed = lk_mutex_destroy(&m);
    return destroyed != 0 ? destroyed : rc;
}

/* Listens on a channel of its own, and stops when its last shell goes. */
static int use_a_latch(struct factory *factory, int index)
{
    lk_latch_t l;
    char name[32];
    snprintf(name, sizeof name, "gate-%d", index);
    int rc = lk_latch_init(&l, factory->client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_latch_waitfor(&l, 2);
    int destroyed = lk_latch_destroy(&l);
    return destroyed != 0 ? destroyed : rc;
}

/* Likewise: somebody else runs it, and nobody else comes to meet. */
static int use_a_run_and_a_barrier(struct factory *factory, int index)
{
    lk_once_t o;
    lk_barrier_t b;
    char name[32];
    snprintf(name, sizeof name, "run-%d", index);
    int rc = lk_once_init(&o, factory->client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_once_begin(&o, 2);
    int destroyed = lk_once_destroy(&o);
    if (rc == ECANCELED || !is_expected(rc) || destroyed != 0)
        return destroyed != 0 ? destroyed : rc;
    rc = lk_barrier_init(&b, factory->client, name, 2, NULL);
    if (rc != 0)
        return rc;
    rc = lk_barrier_waitfor(&b, 2);
    if (rc == ETIMEDOUT)
        rc = lk_barrier_reset(&b);
    if (rc == EIO)
        rc = ECANCELED; /* it left when the client was being closed */
    destroyed = lk_barrier_destroy(&b);
    return destroyed != 0 ? destroyed : rc;
}

static int make_names(int index, void *arg)
{
    struct factory *factory = arg;
    int rc = 0;
    while (rc != ECANCELED && is_expected(rc)) {
        int number = __atomic_add_fetch(&factory->made, 1, __ATOMIC_RELAXED);
        rc = use_a_mutex(factory, index, number);
        if (is_expected(rc) && rc != ECANCELED && number % 3 == 0)
            rc = use_a_latch(factory, index);
        if (is_expected(rc) && rc != ECANCELED && number % 5 == 0)
            rc = use_a_run_and_a_barrier(factory, index);
        if (__atomic_load_n(&factory->stopped, __ATOMIC_RELAXED))
            break;
    }
    return is_expected(rc) ? 0 : rc;
}

/*
 * The objects of a closing client may be destroyed by their threads at the same moment. The handle itself is used to
 * make new ones, so it has to live until those threads are through: an object that stays keeps it.
 */
static int make_names_of_one_client(void *arg)
{
    return run_threads(THREADS, make_names, arg);
}

static void names_come_and_go(struct world *w, const char *options)
{
    struct factory factory = { 0 };
    int64_t until_ms = now_ms() + NAMES_MS / 2;
    for (int i = 0; i < THREADS; i++) {
        world_redis(w, "HSET held-%d somebody:1 1", i);
        world_redis(w, "SET gate-%d 1", i);
        world_redis(w, "SET latchkey:run:{run-%d} %s", i, "somebody:1:1 7");
    }
    for (unsigned round = 0; factory.made < NAMES / 2 && now_ms() < until_ms; round++) {
        struct worker workers;
        lk_mutex_t anchor;
        factory.client = world_open(w, options);
        assert_lk(0, lk_mutex_init(&anchor, factory.client, "anchor", NULL));
        worker_start(&workers, make_names_of_one_client, &factory);
        sleep_ms(5 + 7 * (round % 16));
        int rc = lk_client_close(factory.client);
        assert_true(rc == 0 || rc == EIO);
        assert_lk(0, worker_join(&workers));
        assert_lk(0, lk_mutex_destroy(&anchor));
    }
    for (int i = 0; i < THREADS; i++)
        world_redis(w, "DEL held-%d gate-%d latchkey:run:{run-%d}", i, i, i);
    world_allow(w, "latchkey:*");
    world_allow(w, "redisson_lock_token:*");
}

static void ten_thousand_names_come_and_go_beside_a_close(struct world *w)
{
    names_come_and_go(w, "");
}

static void with_channels_of_their_own_too(struct world *w)
{
    names_come_and_go(w, "redisson=yes");
}

static int use_static_ones(int index, void *arg)
{
    struct factory *factory = arg;
    char name[32];
    int rc = 0;
    snprintf(name, sizeof name, "order-%d", index);
    while (rc == 0 && !__atomic_load_n(&factory->stopped, __ATOMIC_RELAXED)) {
        lk_mutex_t m = LK_MUTEX_INITIALIZER(name);
        lk_latch_t l = LK_LATCH_INITIALIZER(name);
        rc = index % 2 == 0 ? lk_mutex_lock(&m) : lk_latch_trysetcount(&l, 1);
        if (rc == 0 && index % 2 == 0)
            lk_mutex_unlock(&m); /* ECANCELED, and given back, if the client was closed meanwhile */
        if (rc == ECANCELED || rc == EEXIST)
            rc = 0;
        if (lk_mutex_destroy(&m) != 0 || lk_latch_destroy(&l) != 0)
            return -1;
    }
    return rc;
}

static int use_the_default_client(void *arg)
{
    return run_threads(THREADS, use_static_ones, arg);
}

static void close_used_default(void)
{
    lk_client_t *client;
    assert_lk(0, lk_client_default(&client));
    int rc = lk_client_close(client);
    assert_true(rc == 0 || rc == EIO);
}

/* Static objects are used for the first time, again and again, while the default client is closed under them. */
static void the_default_client_may_be_closed_beside_first_uses(struct world *w)
{
    struct factory factory = { 0 };
    struct worker users;
    use_default(world_url(w, "connect_timeout=10s&command_timeout=5s"));
    worker_start(&users, use_the_default_client, &factory);
    int64_t until_ms = now_ms() + 1000;
    while (now_ms() < until_ms) {
        close_used_default();
        sleep_ms(now_ms() % 3);
    }
    __atomic_store_n(&factory.stopped, true, __ATOMIC_RELAXED);
    assert_lk(0, worker_join(&users));
    close_used_default();
    world_redis(w, "DEL order-1 order-3");
    world_allow(w, "latchkey:*order-*");
}

/* --- what a thread left behind ------------------------------------------------------------------------------------------ */

static int lock_and_end(void *arg)
{
    return lk_mutex_lock(arg);
}

static int read_and_end(void *arg)
{
    return lk_rwlock_rdlock(arg);
}

static int write_and_end(void *arg)
{
    return lk_rwlock_wrlock(arg);
}

static int take_and_end(void *arg)
{
    return lk_sem_wait(arg);
}

static int begin_and_end(void *arg)
{
    return lk_once_begin(arg, 0);
}

/* Nobody can unlock it any more: the object need not be kept for that. The lease ends by itself. */
static void a_hold_whose_thread_ended_keeps_no_object(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=3s&command_timeout=900ms");
    lk_semattr_t leased = LK_SEMATTR_INIT;
    lk_mutex_t m;
    lk_rwlock_t read, written;
    lk_sem_t s;
    lk_once_t o;
    leased.leased = 1;
    assert_lk(0, lk_mutex_init(&m, client, "orders", NULL));
    assert_lk(0, lk_rwlock_init(&read, client, "read", NULL));
    assert_lk(0, lk_rwlock_init(&written, client, "written", NULL));
    assert_lk(0, lk_sem_init(&s, client, "permits", 1, &leased));
    assert_lk(0, lk_once_init(&o, client, "work", NULL));
    assert_lk(0, in_thread(lock_and_end, &m));
    assert_lk(0, in_thread(read_and_end, &read));
    assert_lk(0, in_thread(write_and_end, &written));
    assert_lk(0, in_thread(take_and_end, &s));
    assert_lk(0, in_thread(begin_and_end, &o));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_rwlock_destroy(&read));
    assert_lk(0, lk_rwlock_destroy(&written));
    assert_lk(0, lk_sem_destroy(&s));
    assert_lk(0, lk_once_destroy(&o));
    assert_true(world_exists(w, "latchkey:run:{work}"));
    assert_true(world_exists(w, "orders")); /* not given back: what it guarded may be half done */

    lk_mutex_t again; /* renewed no more, and a new object knows nothing of it */
    assert_lk(0, lk_mutex_init(&again, client, "orders", NULL));
    assert_lk(0, lk_mutex_lockfor(&again, 3000 + SLACK_MS));
    assert_lk(EBUSY, lk_mutex_destroy(&again));
    assert_lk(0, lk_mutex_unlock(&again));
    assert_lk(0, lk_mutex_destroy(&again));
    world_allow(w, "*permits*");
    world_allow(w, "latchkey:rw:*");
}

int main(void)
{
    return world_run(ten_thousand_names_come_and_go_beside_a_close, with_channels_of_their_own_too,
                     the_default_client_may_be_closed_beside_first_uses, a_hold_whose_thread_ended_keeps_no_object);
}
