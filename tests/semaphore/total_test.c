/* SPDX-License-Identifier: MIT */
/*
 * total_test.c - how many permits there are in all: set, compared, told of, and at most
 *
 * labels: threads memory
 * simulated: yes
 */
#include "log.h"
#include "world.h"

#include <string.h>

enum { DEPLOYERS = 6, EACH = 10 };

static lk_client_t *client;

static const lk_semattr_t kinds[] = { { .size = sizeof *kinds }, { .size = sizeof *kinds, .leased = 1 } };

static lk_sem_t *open_pool(struct world *w, int kind, unsigned value)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:total:{pool}");
    client = world_client(w, "");
    return world_sem(w, client, "pool", value, &kinds[kind]);
}

static void expect(lk_sem_t *s, int64_t available, unsigned total)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(s, &info));
    assert_int_equal(available, info.available);
    assert_int_equal(total, info.total);
}

/* The total is set if it is the one expected, and told if it is not; what is taken stays taken. */
static void it_is_compared_and_set(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        unsigned total = 4;
        lk_sem_t *s = open_pool(w, i, 5);
        expect(s, 5, 5);
        assert_lk(EEXIST, lk_sem_setpermits(s, &total, 50)); /* what its first use would make */
        assert_int_equal(5, total);
        assert_lk(0, lk_sem_acquire(s, 3, 0));
        expect(s, 2, 5);
        total = 2;
        assert_lk(EEXIST, lk_sem_setpermits(s, &total, 50));
        assert_int_equal(5, total);
        assert_lk(0, lk_sem_setpermits(s, &total, 50));
        expect(s, 47, 50);
        assert_lk(0, lk_sem_addpermits(s, 2));
        expect(s, 49, 52);
        total = 52;
        assert_lk(0, lk_sem_setpermits(s, &total, 1));
        expect(s, -2, 1);
        assert_lk(0, lk_sem_release(s, 3));
        expect(s, 1, 1);
        assert_lk(EINVAL, lk_sem_setpermits(s, NULL, 1));
        assert_lk(EINVAL, lk_sem_setpermits(s, &total, LK_SEM_VALUE_MAX + 1U));
        assert_lk(EINVAL, lk_sem_setpermits(NULL, &total, 1));
        assert_lk(0, lk_sem_delete(s));
        assert_int_equal(i == 0, world_pttl(w, "latchkey:total:sem:{pool}") > 0); /* when it was deleted */
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

/* Made by that, too. */
static void it_may_be_the_first_use(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        unsigned total = 0;
        lk_sem_t *s = open_pool(w, i, 0);
        assert_lk(0, lk_sem_setpermits(s, &total, 3));
        expect(s, 3, 3);
        assert_lk(0, lk_sem_delete(s));
        world_allow(w, "latchkey:total:sem:{pool}");
        world_close(w, client);
    }
}

VISIT(wait_for_two, arg, lk_sem_acquire(arg, 2, 10000), lk_sem_release(arg, 2))

/* Those who wait get what was added. */
static void waiters_get_what_is_added(struct world *w)
{
    struct worker waiter;
    for (int i = 0; i < 2; i++) {
        unsigned total = 2;
        lk_sem_t *s = open_pool(w, i, 2);
        assert_lk(0, lk_sem_acquire(s, 2, 0));
        worker_start(&waiter, wait_for_two, s);
        eventually(world_semqueued(w, "pool") == 1, 3000);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_sem_setpermits(s, &total, 4));
        assert_int_equal(0, worker_join(&waiter));
        assert_between(now_ms() - began_ms, 0, SLACK_MS);
        assert_lk(0, lk_sem_release(s, 2));
        expect(s, 4, 4);
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

static int add_some(int index, void *arg)
{
    lk_sem_t *s = arg;
    (void)index;
    for (int i = 0; i < EACH; i++) {
        unsigned total = 0;
        int rc;
        while ((rc = lk_sem_setpermits(s, &total, total + 1)) == EEXIST)
            ;
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* No deployment is lost, and none counts twice. */
static void many_set_it_at_once(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = open_pool(w, i, 1);
        assert_lk(0, lk_sem_wait(s));
        assert_int_equal(0, run_threads(DEPLOYERS, add_some, s));
        expect(s, DEPLOYERS * EACH, 1 + DEPLOYERS * EACH);
        assert_lk(0, lk_sem_post(s));
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

/* Redisson knows the number alone. What it changes is noticed where more are free than there should be. */
static void a_foreign_change_is_noticed(struct world *w)
{
    unsigned total = 5;
    lk_sem_t *s = open_pool(w, 0, 5);
    assert_lk(0, lk_sem_acquire(s, 2, 0));
    assert_string_equal("3", world_str(w, "GET pool"));
    world_redis(w, "INCRBY pool 4"); /* addPermits() */
    assert_lk(EEXIST, lk_sem_setpermits(s, &total, 10));
    assert_int_equal(7, total);
    assert_lk(0, lk_sem_setpermits(s, &total, 10));
    expect(s, 10, 10);
    world_redis(w, "DEL pool"); /* and made anew, by trySetPermits() */
    world_redis(w, "SET pool 12");
    expect(s, 12, 12);
    world_redis(w, "DEL pool");
    expect(s, 5, 5);
    assert_lk(0, lk_sem_trywait(s)); /* made anew by this one */
    expect(s, 4, 5);
    world_redis(w, "DEL pool latchkey:total:sem:{pool}");
    world_redis(w, "SET pool 3"); /* nobody said how many there are */
    total = 5;
    assert_lk(EEXIST, lk_sem_setpermits(s, &total, 10));
    assert_int_equal(3, total);
    assert_lk(0, lk_sem_setpermits(s, &total, 10));
    assert_string_equal("10", world_str(w, "GET pool"));
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* A program that gives another number than there is gets a line in the log, once; the first one does not. */
static void another_value_is_told_once(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_sem_t *first = open_pool(w, i, 5);
        assert_lk(0, log_keep(LK_LOG_WARNING));
        assert_lk(0, lk_sem_wait(first));
        assert_lk(0, lk_sem_wait(first));
        lk_client_t *other = world_client(w, "");
        lk_sem_t *later = world_sem(w, other, "pool", 50, &kinds[i]);
        for (int k = 0; k < 3; k++) {
            assert_lk(0, lk_sem_trywait(later));
            assert_lk(0, lk_sem_post(later));
        }
        eventually(count_of(log_kept(), "5 permits in all, not the 50") == 1, 3000);
        lk_sem_t *waits = world_sem(w, world_client(w, ""), "pool", 70, &kinds[i]);
        assert_lk(ETIMEDOUT, lk_sem_acquire(waits, 5, 20)); /* one that gets none is told as well */
        eventually(count_of(log_kept(), "5 permits in all, not the 70") == 1, 3000);
        assert_int_equal(2, count_of(log_kept(), "permits in all"));
        assert_lk(0, lk_sem_release(first, 2));
        world_redis(w, "FLUSHALL");
        world_close(w, NULL);
    }
}

/* `max`: no more is asked for, set, added or given back. */
static void there_are_at_most_so_many(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        lk_semattr_t attr = kinds[i];
        unsigned total = 4;
        open_pool(w, i, 0);
        attr.max = 5;
        lk_sem_t *s = world_sem(w, client, "pool", 4, &attr), bad;
        assert_lk(EINVAL, lk_sem_init(&bad, client, "pool", 6, &attr));
        assert_lk(EINVAL, lk_sem_acquire(s, 6, 0));
        assert_lk(EINVAL, lk_sem_trysetpermits(s, 6));
        assert_lk(EINVAL, lk_sem_setpermits(s, &total, 6));
        assert_lk(0, lk_sem_acquire(s, 4, 0));
        assert_lk(EOVERFLOW, lk_sem_addpermits(s, 2));
        assert_lk(0, lk_sem_addpermits(s, 1));
        assert_lk(0, lk_sem_release(s, 4));
        expect(s, 5, 5);
        assert_lk(i == 0 ? EOVERFLOW : EPERM, lk_sem_post(s));
        expect(s, 5, 5);
        assert_lk(0, lk_sem_acquire(s, 5, 0));
        assert_lk(0, lk_sem_release(s, 5));
        attr.max = LK_SEM_VALUE_MAX + 1U;
        assert_lk(EINVAL, lk_sem_init(&bad, client, "pool", 1, &attr));
        attr.max = LK_SEM_PERMITS_MAX + 1U;
        assert_lk(i == 0 ? 0 : EINVAL, lk_sem_init(&bad, client, "pool", 1, &attr));
        if (i == 0)
            assert_lk(0, lk_sem_destroy(&bad));
        world_redis(w, "FLUSHALL");
        world_close(w, client);
    }
}

int main(void)
{
    return world_run(it_is_compared_and_set, it_may_be_the_first_use, waiters_get_what_is_added, many_set_it_at_once,
                     a_foreign_change_is_noticed, another_value_is_told_once, there_are_at_most_so_many);
}
