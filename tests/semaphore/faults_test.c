/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - the server forgets scripts, ends connections, is full, goes away
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_client_t *client;
static lk_sem_t *pool, *leased;

static const lk_semattr_t with_leases = { .size = sizeof with_leases, .leased = 1, .lease_ms = 3000 };

static void open_pools(struct world *w, const char *options)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    world_allow(w, "latchkey:total:{pool}");
    world_allow(w, "latchkey:permits:{pool}");
    client = world_client(w, options);
    pool = world_sem(w, client, "pool", 3, NULL);
    leased = world_sem(w, client, "pool", 3, &with_leases);
}

static int value_of(lk_sem_t *s)
{
    int value = -1;
    assert_lk(0, lk_sem_getvalue(s, &value));
    return value;
}

/* A server that forgot the scripts gets them again, within the call. */
static void forgotten_scripts_are_sent_again(struct world *w)
{
    open_pools(w, "");
    lk_sem_t *pools[] = { pool, leased };
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_sem_wait(pools[i]));
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(0, lk_sem_trywait(pools[i]));
        world_redis(w, "SCRIPT FLUSH");
        assert_int_equal(1, value_of(pools[i]));
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(0, lk_sem_release(pools[i], 2));
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(0, lk_sem_addpermits(pools[i], 1));
        assert_int_equal(4, value_of(pools[i]));
    }
}

static int use(int index, void *arg)
{
    int *stop = arg, rc = 0;
    lk_sem_t *s = index % 2 ? leased : pool;
    while (rc == 0 && !__atomic_load_n(stop, __ATOMIC_SEQ_CST)) {
        rc = lk_sem_acquire(s, 1 + (unsigned)index % 3, LK_FOREVER);
        if (rc == 0)
            rc = lk_sem_release(s, 1 + (unsigned)index % 3);
    }
    return rc;
}

static int stop;

static int crowd(void *arg)
{
    (void)arg;
    return run_threads(8, use, &stop);
}

/* Connections end all the time, those that listen, too: nobody hangs, nothing is lost or doubled. */
static void killed_connections_lose_nothing(struct world *w)
{
    struct worker worker;
    open_pools(w, "");
    stop = 0;
    worker_start(&worker, crowd, NULL);
    for (int i = 0; i < 20; i++) {
        sleep_ms(20);
        world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
        world_redis(w, "CLIENT KILL TYPE pubsub");
        if (i % 5 == 0)
            world_redis(w, "SCRIPT FLUSH");
    }
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(0, worker_join(&worker));
    assert_int_equal(3, value_of(pool));
    assert_int_equal(3, value_of(leased));
    assert_int_equal(0, world_int(w, "EXISTS latchkey:queue:sem:{pool} latchkey:queue:permits:{pool} "
                                     "latchkey:claims:{pool}"));
}

static int wait_for_one(void *arg)
{
    int rc = lk_sem_waitfor(arg, 5000);
    return rc != 0 ? rc : lk_sem_post(arg);
}

/* When the leased permits end, by the server's clock. */
static int64_t lease_end(struct world *w)
{
    return world_int(w, "EVAL %s 1 latchkey:permits:{pool}",
                     "return redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]");
}

/* A full server grants nothing new; giving back works, serves those who wait, and leases are renewed. */
static void a_full_server_still_takes_permits_back(struct world *w)
{
    struct worker waiters[2];
    open_pools(w, "poll=6s"); /* a full server takes no sign of life */
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    worker_start(&waiters[0], wait_for_one, pool);
    worker_start(&waiters[1], wait_for_one, leased);
    eventually(world_int(w, "EXISTS latchkey:queue:sem:{pool} latchkey:queue:permits:{pool}") == 2 &&
                   world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1,
               3000);
    sleep_ms(50);
    world_redis(w, "CONFIG SET maxmemory 1");
    int64_t end = lease_end(w);
    eventually(lease_end(w) > end, 5000);
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(0, lk_sem_release(leased, 2));
    assert_int_equal(0, worker_join(&waiters[0]));
    assert_int_equal(0, worker_join(&waiters[1]));
    assert_int_equal(2, value_of(pool));
    assert_int_equal(2, value_of(leased));
    assert_lk(ENOSPC, lk_sem_trywait(pool));
    assert_lk(ENOSPC, lk_sem_trywait(leased));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_post(leased));
    world_redis(w, "CONFIG SET maxmemory 0");
    assert_int_equal(3, value_of(pool));
    assert_int_equal(3, value_of(leased));
}

/* A server that loses all its data: the number to begin with is set again, leased permits are lost. */
static void lost_data_begins_anew(struct world *w)
{
    open_pools(w, "");
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_wait(leased));
    world_redis(w, "FLUSHALL");
    assert_int_equal(3, value_of(pool));
    assert_int_equal(3, value_of(leased));
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    assert_lk(ESTALE, lk_sem_post(leased));
    assert_int_equal(0, value_of(leased));
    assert_lk(0, lk_sem_release(leased, 3));
}

/* A leased semaphore looks at two keys; neither of another type is touched. */
static void another_type_is_eproto_and_unchanged(struct world *w)
{
    int value;
    char id[LK_PERMIT_ID];
    open_pools(w, "");
    static const char *const make[] = { "SET latchkey:permits:{pool} 1", "HSET latchkey:total:{pool} a 1" };
    for (int i = 0; i < 2; i++) {
        world_redis(w, make[i]);
        assert_lk(EPROTO, lk_sem_wait(leased));
        assert_lk(EPROTO, lk_sem_trywait(leased));
        assert_lk(EPROTO, lk_sem_acquireid(leased, 0, id));
        assert_lk(EPROTO, lk_sem_getvalue(leased, &value));
        assert_lk(EPROTO, lk_sem_releaseid(leased, "00112233445566778899aabbccddeeff"));
        if (i == 1)
            assert_lk(EPROTO, lk_sem_addpermits(leased, 1));
        world_redis(w, "DEL latchkey:settings:sem:{pool}");
        assert_int_equal(1, world_int(w, "DBSIZE"));
        world_redis(w, "FLUSHALL");
    }
}

int main(void)
{
    return world_run(forgotten_scripts_are_sent_again, killed_connections_lose_nothing,
                     a_full_server_still_takes_permits_back, lost_data_begins_anew,
                     another_type_is_eproto_and_unchanged);
}
