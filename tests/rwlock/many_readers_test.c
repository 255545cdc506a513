/* SPDX-License-Identifier: MIT */
/*
 * many_readers_test.c - a hundred thousand readers hold a read-write lock, and one more comes
 *
 * labels: memory
 */
#include "world.h"

enum { READERS_MAX = 100000 };

static lk_client_t *client;
static lk_rwlock_t *config;

static void open_config(struct world *w)
{
    client = world_client(w, "");
    config = world_rwlock(w, client, "config", NULL);
}

static void close_config(struct world *w)
{
    world_redis(w, "DEL latchkey:rw:{config}");
    world_close(w, client);
}

/* As many readers as that many processes would be, with leases of a minute. */
static void plant(struct world *w, int readers)
{
    world_redis(w, "EVAL %s 1 latchkey:rw:{config} %d",
                "local ends = (redis.call('TIME')[1] + 60) * 1000 for i = 1, ARGV[1] do "
                "redis.call('ZADD', KEYS[1], ends, string.format('%032x:1:%d:r', i, i)) end "
                "redis.call('PEXPIRE', KEYS[1], 60000)",
                readers);
}

/* The last that there is room for comes in; the next is told, or waits behind a writer that waits. */
static void one_more_is_told(struct world *w)
{
    struct worker writer;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    open_config(w);
    plant(w, READERS_MAX - 1);
    assert_lk(0, lk_rwlock_tryrdlock(config));
    assert_int_equal(READERS_MAX, world_rwholds(w, "config"));
    assert_lk(0, lk_rwlock_info(config, &info));
    assert_int_equal(READERS_MAX, info.readers);
    assert_lk(0, lk_rwlock_unlock(config));
    plant(w, READERS_MAX);
    assert_lk(EAGAIN, lk_rwlock_rdlock(config));
    assert_lk(EAGAIN, lk_rwlock_tryrdlock(config));
    assert_lk(EAGAIN, lk_rwlock_rdlockfor(config, 100));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config));
    assert_int_equal(READERS_MAX, world_rwholds(w, "config"));
    assert_int_equal(0, world_rwqueued(w, "config"));
    worker_start(&writer, write_once, config);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(ETIMEDOUT, lk_rwlock_rdlockfor(config, 100));
    assert_lk(0, lk_rwlock_forceunlock(config));
    assert_lk(0, worker_join(&writer));
    close_config(w);
}

/* When the leases of all of them end at once, a writer comes in, and nothing of them is left. */
static void they_end_together(struct world *w)
{
    open_config(w);
    plant(w, READERS_MAX);
    world_redis(
        w, "EVAL %s 1 latchkey:rw:{config}",
        "local ends = redis.call('TIME')[1] * 1000 - 1 "
        "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], ends, id) end");
    assert_lk(0, lk_rwlock_wrlockfor(config, 3000));
    assert_int_equal(1, world_rwholds(w, "config"));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, world_rwholds(w, "config"));
    close_config(w);
}

int main(void)
{
    return world_run(one_more_is_told, they_end_together);
}
