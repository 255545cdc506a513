/* SPDX-License-Identifier: MIT */
/*
 * order_test.c - waiters are served in order of arrival, those for many among those for one
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

enum { WAITERS = 12 };

static lk_sem_t *pools[3];

static void open_pools_of(struct world *w, const char *options, bool leased)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = leased;
    if (w->allowed_count == 0) {
        world_allow(w, "pool");
        world_allow(w, "latchkey:once:{pool}");
        world_allow(w, "latchkey:total:{pool}");
    }
    for (int i = 0; i < 3; i++) {
        pools[i] = world_sem(w, world_client(w, options), "pool", 0, &attr);
        do
            assert_lk(ETIMEDOUT, lk_sem_waitfor(pools[i], 10)); /* it listens from its first long wait on */
        while (world_elements(w, "PUBSUB CHANNELS latchkey:client:*") < i + 1);
    }
}

static void open_pools(struct world *w, bool leased)
{
    open_pools_of(w, "", leased);
}

struct waiter {
    struct worker worker;
    lk_sem_t *pool;
    unsigned n;
    bool keep;
    int got; /* atomic builtins: its place among the grants */
};

static int grants;

static int wait_here(void *arg)
{
    struct waiter *waiter = arg;
    int rc = lk_sem_acquire(waiter->pool, waiter->n, 20000);
    if (rc != 0)
        return rc;
    __atomic_store_n(&waiter->got, __atomic_add_fetch(&grants, 1, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
    return waiter->keep ? 0 : lk_sem_release(waiter->pool, waiter->n);
}

static bool is_served(struct waiter *waiter)
{
    return __atomic_load_n(&waiter->got, __ATOMIC_SEQ_CST) != 0;
}

/* Each permit that comes goes to who came first, over all clients. */
static void grants_follow_arrival(struct world *w)
{
    static struct waiter waiters[WAITERS];
    open_pools_of(w, "poll=6s", false); /* who asks often, and stands still for a moment, may be passed over */
    grants = 0;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){ .pool = pools[i % 3], .n = i % 4 == 2 ? 3 : 1, .keep = true };
        worker_start(&waiters[i].worker, wait_here, &waiters[i]);
        eventually(world_semqueued(w, "pool") == i + 1, 3000);
    }
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(i, __atomic_load_n(&grants, __ATOMIC_SEQ_CST));
        for (unsigned n = 0; n < waiters[i].n; n++)
            assert_lk(0, lk_sem_post(pools[n]));
        eventually(is_served(&waiters[i]), 3000);
        assert_int_equal(i + 1, waiters[i].got);
        assert_int_equal(0, worker_join(&waiters[i].worker));
    }
    assert_int_equal(0, world_int(w, "GET pool"));
}

static int keep_taking(int index, void *arg)
{
    int *stop = arg;
    while (!__atomic_load_n(stop, __ATOMIC_SEQ_CST)) {
        int rc = lk_sem_wait(pools[index % 3]);
        if (rc != 0)
            return rc;
        sleep_ms(1);
        rc = lk_sem_post(pools[index % 3]);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int stop;

WORK(crowd_of_one, arg, run_threads(6, keep_taking, &stop))

/* A crowd that always wants one must not keep away who wants them all. */
static void who_wants_many_does_not_starve(struct world *w)
{
    struct worker crowd;
    for (int leased = 0; leased < 2; leased++) {
        open_pools(w, leased);
        stop = 0;
        assert_lk(0, lk_sem_trysetpermits(pools[0], 4));
        worker_start(&crowd, crowd_of_one, NULL);
        sleep_ms(100);
        for (int i = 0; i < 5; i++) {
            assert_lk(0, lk_sem_acquire(pools[1], 4, 5000));
            assert_lk(EAGAIN, lk_sem_trywait(pools[2]));
            assert_lk(0, lk_sem_release(pools[1], 4));
        }
        __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(0, worker_join(&crowd));
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

/* Nor does a try pass those who wait for more than there is. */
static void a_try_passes_nobody(struct world *w)
{
    open_pools(w, false);
    struct waiter big = { .pool = pools[1], .n = 3 };
    assert_lk(0, lk_sem_trysetpermits(pools[0], 2));
    worker_start(&big.worker, wait_here, &big);
    eventually(world_semqueued(w, "pool") == 1, 3000);
    assert_lk(EAGAIN, lk_sem_trywait(pools[0]));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(pools[0], 50));
    assert_lk(0, lk_sem_post(pools[0]));
    assert_int_equal(0, worker_join(&big.worker));
    assert_lk(0, lk_sem_trywait(pools[0]));
}

/* Who gives up waiting lets those behind pass at once. */
static void who_gives_up_holds_up_nobody(struct world *w)
{
    for (int leased = 0; leased < 2; leased++) {
        open_pools(w, leased);
        struct waiter small = { .pool = pools[0], .n = 1 };
        assert_lk(0, lk_sem_trysetpermits(pools[0], 3));
        assert_lk(0, lk_sem_waitfor(pools[2], 0));
        int64_t began_ms = now_ms();
        struct waiter big = { .pool = pools[1], .n = 3 };
        worker_start(&big.worker, wait_here, &big);
        eventually(world_semqueued(w, "pool") == 1, 3000);
        worker_start(&small.worker, wait_here, &small);
        eventually(world_semqueued(w, "pool") == 2, 3000);
        assert_false(is_served(&small));
        assert_lk(0, lk_sem_addpermits(pools[0], -1)); /* the leased big one now asks for too many */
        if (!leased)
            assert_lk(0, lk_sem_addpermits(pools[0], 2));
        assert_int_equal(leased ? EINVAL : 0, worker_join(&big.worker));
        assert_int_equal(0, worker_join(&small.worker));
        assert_between(now_ms() - began_ms, 0, 3000);
        assert_lk(0, lk_sem_post(pools[2]));
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

/* Nor does who died waiting for more than there is. */
static void who_died_holds_up_nobody(struct world *w)
{
    for (int leased = 0; leased < 2; leased++) {
        const char *kind = leased ? "permits" : "sem";
        open_pools(w, leased);
        assert_lk(0, lk_sem_trysetpermits(pools[0], 2));
        world_redis(w, "ZADD latchkey:queue:%s:{pool} 1 %s", kind, "dddddddddddddddddddddddddddddddd:1:1:3");
        world_redis(w, "HSET latchkey:alive:%s:{pool} %s %s", kind, "dddddddddddddddddddddddddddddddd",
                    "4000000000000 5000 3000 0");
        assert_lk(0, lk_sem_trywait(pools[0]));
        assert_lk(0, lk_sem_waitfor(pools[1], 3000));
        assert_int_equal(0, world_semqueued(w, "pool"));
        assert_lk(0, lk_sem_post(pools[0]));
        assert_lk(0, lk_sem_post(pools[1]));
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

int main(void)
{
    return world_run(grants_follow_arrival, who_wants_many_does_not_starve, a_try_passes_nobody,
                     who_gives_up_holds_up_nobody, who_died_holds_up_nobody);
}
