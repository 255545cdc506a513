/* SPDX-License-Identifier: MIT */
/*
 * blocked_test.c - the log names the waiter that blocks all others; one that wants more than there are blocks nobody
 *
 * labels: threads
 * simulated: yes
 * seconds: 17
 */
#include "log.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

WORK(wait_for_many, arg, lk_sem_acquire(arg, 4, 7000) == ETIMEDOUT ? 0 : -1)
WORK(wait_for_one, arg, lk_sem_acquire(arg, 1, 5000) == ETIMEDOUT ? 0 : -1)

static void the_wide_ask_is_named(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_semattr_t attr = LK_SEMATTR_INIT;
        struct worker wide, narrow;
        char id[128], words[256];
        attr.leased = i;
        world_allow(w, "pool");
        world_allow(w, "latchkey:*:{pool}");
        lk_sem_t *pool = world_sem(w, world_client(w, ""), "pool", 0, &attr);
        lk_sem_t *same = world_sem(w, world_client(w, ""), "pool", 0, &attr);
        do /* they listen from their first long wait on */
            assert_lk(ETIMEDOUT, lk_sem_waitfor(i ? pool : same, 10) | lk_sem_waitfor(i ? same : pool, 10));
        while (world_elements(w, "PUBSUB CHANNELS latchkey:client:*") < 2);
        assert_lk(0, lk_sem_trysetpermits(pool, 4));
        assert_lk(0, lk_sem_acquire(pool, 3, 0));
        assert_lk(0, log_keep(LK_LOG_WARNING));
        worker_start(&wide, wait_for_many, same);
        eventually(world_semqueued(w, "pool") == 1, 3000);
        snprintf(id, sizeof id, "%s",
                 world_str(w, "EVAL %s 1 latchkey:queue:%s:{pool}", "return redis.call('ZRANGE', KEYS[1], 0, 0)[1]",
                           i == 0 ? "sem" : "permits"));
        worker_start(&narrow, wait_for_one, pool);
        assert_int_equal(0, worker_join(&narrow));
        assert_int_equal(0, worker_join(&wide));
        snprintf(words, sizeof words, "waiting for more than 3 s; the first is %s, which wants 4, for ", id);
        eventually(strstr(log_kept(), words) != NULL, 2000);
        eventually(strstr(log_kept(), "waiting for more than 3 s, as the first; wants 4, and too few are free") != NULL,
                   2000);
        assert_lk(0, lk_sem_release(pool, 3));
        world_redis(w, "FLUSHALL");
        world_close(w, NULL);
    }
}

WORK(want_all, arg, lk_sem_acquire(arg, 4, 20000))
VISIT(want_one, arg, lk_sem_acquire(arg, 1, 20000), lk_sem_release(arg, 1))

/* The first one wants more than there are from now on: it is told, and the next one served, long before they ask. */
static void one_that_wants_too_many_blocks_nobody(struct world *w)
{
    enum { AT_ONCE_MS = 5000 };
    static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    struct worker wide, narrow;
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *pool = world_sem(w, world_client(w, ""), "pool", 4, &leased);
    lk_sem_t *other = world_sem(w, world_client(w, "poll=20s"), "pool", 4, &leased);
    lk_sem_t *third = world_sem(w, world_client(w, "poll=20s"), "pool", 4, &leased);
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    worker_start(&wide, want_all, other);
    eventually(world_semqueued(w, "pool") == 1, 3000);
    sleep_ms(1000); /* it listens: else it would be passed */
    worker_start(&narrow, want_one, third);
    eventually(world_semqueued(w, "pool") == 2, 3000);
    sleep_ms(1000); /* both listen, and ask no more */
    assert_lk(0, lk_sem_addpermits(pool, -1));
    int64_t began_ms = now_ms();
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(0, worker_join(&narrow));
    assert_int_equal(EINVAL, worker_join(&wide));
    assert_between(now_ms() - began_ms, 0, AT_ONCE_MS);
    assert_lk(0, lk_sem_release(pool, 1));
    assert_lk(0, lk_sem_delete(pool));
}

int main(void)
{
    return world_run(the_wide_ask_is_named, one_that_wants_too_many_blocks_nobody);
}
