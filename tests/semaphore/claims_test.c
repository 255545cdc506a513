/* SPDX-License-Identifier: MIT */
/*
 * claims_test.c - a permit granted to a waiter that died, stopped or gave up before it knew comes back
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 8
 */
#include "proxy.h"

enum { CLAIM_MS = 3000 };

static lk_client_t *client;
static lk_sem_t *pool;

static void open_pool(struct world *w)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, "command_timeout=1500ms");
    pool = world_sem(w, client, "pool", 0, NULL);
}

static int64_t queued(struct world *w)
{
    return world_int(w, "ZCARD latchkey:queue:sem:{pool}");
}

static int wait_for_one(struct world *w, void *arg)
{
    open_pool(w);
    world_ready(w);
    int rc = lk_sem_wait(pool);
    if (rc == 0)
        gate_open(arg);
    world_close(w, client);
    return rc;
}

/* Stopped, it is still connected and so "listens"; it is killed before it looks. */
static void a_dead_waiters_permit_comes_back(struct world *w)
{
    struct gate *got = world_shared(w, sizeof *got);
    pid_t waiter = world_fork(w, wait_for_one, got);
    open_pool(w);
    eventually(queued(w) == 1 && world_listening(w, "sem:{pool}"), 3000);
    world_stop(waiter);
    int64_t posted_ms = now_ms();
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(0, world_int(w, "GET pool"));
    assert_int_equal(1, world_int(w, "ZCARD latchkey:claims:{pool}"));
    assert_true(world_pttl(w, "latchkey:claims:{pool}") > 0);
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(pool, &info));
    assert_int_equal(1, info.held);
    world_kill(w, waiter);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_sem_waitfor(pool, CLAIM_MS + 2 * SLACK_MS));
    assert_true(now_ms() - posted_ms >= CLAIM_MS - 500);
    assert_between(now_ms() - began_ms, 0, CLAIM_MS + 2 * SLACK_MS);
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    assert_int_equal(0, world_int(w, "GET pool"));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_lk(EAGAIN, lk_sem_trywait(pool));
}

static int wait_briefly(int index, void *arg)
{
    int rc = 0;
    for (int i = 0; i < 40 && (rc == 0 || rc == ETIMEDOUT); i++) {
        rc = lk_sem_acquire(arg, 1 + (unsigned)index % 2, 1 + (index + i) % 4);
        if (rc == 0)
            rc = lk_sem_release(arg, 1 + (unsigned)index % 2);
    }
    return rc == ETIMEDOUT ? 0 : rc;
}

/* Grants that meet a waiter just giving up are given back, exactly. */
static void who_gives_up_in_that_moment_keeps_nothing(struct world *w)
{
    open_pool(w);
    assert_lk(0, lk_sem_trysetpermits(pool, 2));
    assert_int_equal(0, run_threads(8, wait_briefly, pool));
    assert_int_equal(2, world_int(w, "GET pool"));
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    assert_int_equal(0, queued(w));
}

/* --- a semaphore that was deleted ---------------------------------------------------------------------------------- */

static int free_now(void)
{
    int value = -1;
    assert_lk(0, lk_sem_getvalue(pool, &value));
    return value;
}

static int count_and_drain(void)
{
    unsigned drained = 0;
    int rc = lk_sem_drain(pool, &drained);
    return rc == 0 && drained == 5 ? lk_sem_release(pool, 5) : rc == 0 ? ERANGE : rc;
}

static int take_and_post(void)
{
    int rc = lk_sem_trywait(pool);
    return rc == 0 ? lk_sem_post(pool) : rc;
}

static int add_and_take(void)
{
    int rc = lk_sem_addpermits(pool, 1);
    return rc == 0 ? lk_sem_trywait(pool) : rc;
}

static int set(void)
{
    return lk_sem_trysetpermits(pool, 5);
}

/* What a dead waiter had been granted belongs to the semaphore that was there then, not to the next of that name. */
static void claims_end_with_their_semaphore(struct world *w)
{
    static int (*const first[])(void) = { count_and_drain, take_and_post, add_and_take, set };
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", 5, NULL);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        world_redis(w, "ZADD latchkey:claims:{pool} 5 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1:1:1");
        world_redis(w, "ZADD latchkey:claims:{pool} 9999999999999 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:s1:1:2");
        world_redis(w, "EXPIRE latchkey:claims:{pool} 600");
        lk_seminfo_t info = LK_SEMINFO_INIT;
        assert_lk(0, lk_sem_info(pool, &info));
        assert_int_equal(5, info.available);
        assert_int_equal(0, info.held);
        assert_lk(0, first[i]());
        assert_false(world_exists(w, "latchkey:claims:{pool}"));
        assert_int_equal(5, free_now());
        assert_int_equal(5, world_int(w, "GET pool"));
        world_redis(w, "DEL pool");
    }
}

WORK(try_once, arg, lk_sem_trywait(arg))

/* Nor does what was taken from it without an answer become the first permit of the next one. */
static void nothing_goes_back_to_a_deleted_semaphore(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    struct worker worker;
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = proxy_client(p, "command_timeout=1s"); /* any request of it is that of the semaphore */
    pool = world_sem(w, client, "pool", 5, NULL);
    assert_int_equal(0, take_and_post());
    proxy_once(p, PROXY_DROP_REPLY, 1, NULL);
    worker_start(&worker, try_once, pool);
    eventually(world_int(w, "GET pool") == 4, 3000);
    world_redis(w, "DEL pool");
    assert_lk(EIO, worker_join(&worker));
    eventually(world_int(w, "EVAL %s 1 latchkey:once:{pool}",
                         "local n = 0 for _, r in ipairs(redis.call('HVALS', KEYS[1])) do "
                         "n = n + (string.find(r, ' 0 ', 1, true) and 1 or 0) end return n") == 1,
               5000);
    assert_false(world_exists(w, "pool"));
    assert_lk(0, lk_sem_trywait(pool));
    assert_int_equal(4, world_int(w, "GET pool"));
}

int main(void)
{
    return world_run(a_dead_waiters_permit_comes_back, who_gives_up_in_that_moment_keeps_nothing,
                     claims_end_with_their_semaphore, nothing_goes_back_to_a_deleted_semaphore);
}
