/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - the server forgets scripts, ends connections, keeps something else
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

static struct gate stop;

static int use(int index, void *arg)
{
    lk_sem_t *s = index % 2 ? leased : pool;
    unsigned n = 1 + (unsigned)index % 3;
    int rc = 0;
    (void)arg;
    while (rc == 0 && !gate_is_open(&stop)) {
        rc = lk_sem_acquire(s, n, LK_FOREVER);
        if (rc == 0)
            rc = lk_sem_release(s, n);
    }
    return rc;
}

/* Connections end all the time, those that listen, too: nobody hangs, nothing is lost or doubled. */
static void killed_connections_lose_nothing(struct world *w)
{
    open_pools(w, "");
    stop.open = 0;
    assert_int_equal(0, world_hail(w, use, &stop));
    assert_int_equal(3, value_of(pool));
    assert_int_equal(3, value_of(leased));
    assert_int_equal(0, world_int(w, "EXISTS latchkey:queue:sem:{pool} latchkey:queue:permits:{pool} "
                                     "latchkey:claims:{pool}"));
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
    return world_run(forgotten_scripts_are_sent_again, killed_connections_lose_nothing, another_type_is_eproto_and_unchanged);
}
