/* SPDX-License-Identifier: MIT */
/*
 * once_test.c - requests and answers get lost, late or doubled on the way, and the number stays exact; the record of it stays small
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 43
 */
#include "proxy.h"
#include "semaphore/semaphore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MS = 900 };

static struct proxy *p;
static lk_client_t *client;
static lk_sem_t *pool;

static void open_pool(struct world *w)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    p = proxy_begin(w);
    client = proxy_client(p, "command_timeout=900ms");
    pool = world_sem(w, client, "pool", 10, NULL);
    unsigned taken;
    assert_lk(0, lk_sem_wait(pool)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_drain(pool, &taken));
    assert_lk(0, lk_sem_addpermits(pool, 10));
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 1));
}

static int64_t permits(struct world *w)
{
    return world_int(w, "GET pool");
}

static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_PARK_REQUEST };
static const enum proxy_fault losses[] = { PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
enum { CUTS = sizeof cuts / sizeof cuts[0], LOSSES = sizeof losses / sizeof losses[0] };

/* Let the fault befall the next request of the semaphore. */
static void arm(enum proxy_fault fault)
{
    proxy_once(p, fault, 1, "pool");
}

/* A copy that was held back comes after all. */
static void let_copies_come(void)
{
    proxy_release(p);
    sleep_ms(60);
}

/* Until the library is through with what got lost, on a connection that misses nothing. */
static void settle(void)
{
    int value;
    sleep_ms(COMMAND_MS);
    eventually(lk_sem_getvalue(pool, &value) == 0, 3000);
}

/* The connection ends at the request or at the answer, and a copy may come later: each counts once. */
static void a_cut_connection_counts_once(struct world *w)
{
    unsigned taken;
    open_pool(w);
    for (int i = 0; i < CUTS; i++) {
        int64_t faults = proxy_faults(p);
        arm(cuts[i]);
        assert_lk(0, lk_sem_wait(pool));
        assert_int_equal(faults + 1, proxy_faults(p));
        assert_int_equal(9, permits(w));
        let_copies_come();
        assert_int_equal(9, permits(w));
        arm(cuts[i]);
        assert_lk(0, lk_sem_trywait(pool));
        let_copies_come();
        assert_int_equal(8, permits(w));
        arm(cuts[i]);
        assert_lk(0, lk_sem_release(pool, 2));
        assert_int_equal(10, permits(w));
        let_copies_come();
        assert_int_equal(10, permits(w));
        arm(cuts[i]);
        assert_lk(0, lk_sem_addpermits(pool, -3));
        let_copies_come();
        assert_int_equal(7, permits(w));
        arm(cuts[i]);
        assert_lk(0, lk_sem_drain(pool, &taken));
        assert_int_equal(7, taken);
        world_redis(w, "DEL pool");
        arm(cuts[i]);
        assert_lk(0, lk_sem_trysetpermits(pool, 10));
        let_copies_come();
        assert_int_equal(10, permits(w));
    }
    assert_int_equal(3 * CUTS * 2, proxy_faults(p));
}

/* A total that is set, and a semaphore that is deleted: a copy finds what the first one did. */
static void what_changes_the_whole_counts_once(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1, .lease_ms = 20000 };
    open_pool(w);
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *leased = world_sem(w, client, "pool", 10, &attr);
    assert_lk(0, lk_sem_wait(leased));
    assert_lk(0, lk_sem_delete(pool));
    assert_lk(0, lk_sem_trysetpermits(pool, 10));
    for (int i = 0; i < 2 * CUTS; i++) {
        lk_sem_t *s = i % 2 == 0 ? pool : leased;
        unsigned total = 10;
        arm(cuts[i / 2]);
        assert_lk(0, lk_sem_setpermits(s, &total, 7));
        let_copies_come();
        arm(cuts[i / 2]);
        assert_lk(EEXIST, lk_sem_setpermits(s, &total, 7));
        assert_int_equal(7, total);
        let_copies_come();
        arm(cuts[i / 2]);
        assert_lk(0, lk_sem_delete(s));
        let_copies_come();
        arm(cuts[i / 2]);
        assert_lk(ENOENT, lk_sem_delete(s));
        assert_lk(0, lk_sem_trysetpermits(s, 10));
        let_copies_come();
        lk_seminfo_t info = LK_SEMINFO_INIT;
        assert_lk(0, lk_sem_info(s, &info));
        assert_int_equal(10, info.total);
    }
    assert_lk(ESTALE, lk_sem_post(leased));
}

/* A copy that comes when the same thread is two requests further does nothing either. */
static void a_late_copy_of_an_older_request_does_nothing(struct world *w)
{
    open_pool(w);
    arm(PROXY_PARK_REQUEST);
    assert_lk(0, lk_sem_wait(pool));
    assert_lk(0, lk_sem_post(pool));
    assert_lk(0, lk_sem_acquire(pool, 2, 0));
    let_copies_come();
    assert_int_equal(8, permits(w));
    arm(PROXY_PARK_REQUEST);
    assert_lk(0, lk_sem_release(pool, 2));
    assert_lk(0, lk_sem_wait(pool));
    let_copies_come();
    assert_int_equal(9, permits(w));
    assert_lk(0, lk_sem_post(pool));
}

/* No answer in time: the caller does not have it, and it comes back by itself, once. */
static void a_take_without_an_answer_is_given_back(struct world *w)
{
    open_pool(w);
    for (int i = 0; i < LOSSES; i++) {
        arm(losses[i]);
        assert_lk(EIO, lk_sem_trywait(pool));
        let_copies_come();
        eventually(permits(w) == 10, 3000);
        settle();
        arm(losses[i]);
        int64_t began_ms = now_ms();
        int rc = lk_sem_acquire(pool, 4, 20); /* it may have the time to ask once more, and to find it */
        assert_true(rc == EIO || rc == 0);
        assert_between(now_ms() - began_ms, COMMAND_MS - 5, COMMAND_MS + 20 + SLACK_MS);
        if (rc == 0)
            assert_lk(0, lk_sem_release(pool, 4));
        let_copies_come();
        eventually(permits(w) == 10, 3000);
        sleep_ms(2 * COMMAND_MS);
        assert_int_equal(10, permits(w));
        assert_lk(0, lk_sem_wait(pool)); /* of the same thread, and nobody takes it for the lost one */
        assert_int_equal(9, permits(w));
        let_copies_come();
        assert_int_equal(9, permits(w));
        assert_lk(0, lk_sem_post(pool));
    }
}

/* A release without an answer is told so, and still happens, once. */
static void a_release_without_an_answer_is_done_once(struct world *w)
{
    open_pool(w);
    assert_lk(0, lk_sem_acquire(pool, 4, 0));
    for (int i = 0; i < LOSSES; i++) {
        arm(losses[i]);
        assert_lk(EIO, lk_sem_post(pool));
        eventually(permits(w) == 7 + 2 * i, 3000);
        settle();
        arm(losses[i]);
        assert_lk(EIO, lk_sem_addpermits(pool, 1));
        eventually(permits(w) == 8 + 2 * i, 3000);
        let_copies_come();
        sleep_ms(COMMAND_MS);
        assert_int_equal(8 + 2 * i, permits(w));
    }
}

/* A drain without an answer took nothing: what the server took off comes back, also to who waits. */
static void a_drain_without_an_answer_is_undone(struct world *w)
{
    unsigned taken = 77;
    open_pool(w);
    for (int i = 0; i < LOSSES; i++) {
        arm(losses[i]);
        assert_lk(EIO, lk_sem_drain(pool, &taken));
        assert_int_equal(77, taken);
        assert_between(lk_errorsettles(), 20000, 30000);
        eventually(permits(w) == 10, 3000);
        let_copies_come();
        settle();
        assert_int_equal(10, permits(w));
        assert_lk(0, lk_sem_acquire(pool, 10, 0));
        assert_lk(0, lk_sem_release(pool, 10));
    }
}

WORK(take_one, arg, lk_sem_trywait(arg))

static int take_all(void *arg)
{
    unsigned taken;
    return lk_sem_drain(arg, &taken);
}

/* While the answer is awaited somebody deletes the semaphore and makes it anew: that one was not taken from. */
static void nothing_comes_back_to_the_next_semaphore(struct world *w)
{
    static int (*const take[])(void *arg) = { take_one, take_all };
    open_pool(w);
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *far = world_sem(w, world_client(w, ""), "pool", 0, NULL);
    for (int i = 0; i < 2; i++) {
        struct worker taker;
        arm(PROXY_DROP_REPLY);
        worker_start(&taker, take[i], pool);
        eventually(permits(w) < 10, 3000);
        assert_lk(0, lk_sem_delete(far));
        assert_lk(0, lk_sem_trysetpermits(far, 10));
        assert_int_equal(EIO, worker_join(&taker));
        settle();
        assert_int_equal(10, permits(w));
        arm(PROXY_DROP_REPLY); /* what is taken from the next one comes back to it */
        worker_start(&taker, take[i], pool);
        assert_int_equal(EIO, worker_join(&taker));
        eventually(permits(w) == 10, 3000);
        settle();
    }
}

WORK(wait_for_two, arg, lk_sem_acquire(arg, 2, 5000))

/* The same while waiting: the answers "queued" and "yours" get lost, and so does the give-back. */
static void a_waiter_is_granted_once(struct world *w)
{
    struct worker waiter;
    open_pool(w);
    lk_sem_t *same = world_sem(w, world_client(w, ""), "pool", 10, NULL);
    for (int i = 0; i < CUTS; i++) {
        assert_lk(0, lk_sem_acquire(pool, 10, 0));
        arm(cuts[i]);
        worker_start(&waiter, wait_for_two, pool);
        eventually(world_int(w, "ZCARD latchkey:queue:sem:{pool}") == 1, 3000);
        sleep_ms(50);
        arm(cuts[i]); /* its confirmation */
        assert_lk(0, lk_sem_release(same, 3));
        assert_int_equal(0, worker_join(&waiter));
        let_copies_come();
        assert_int_equal(1, permits(w));
        assert_false(world_exists(w, "latchkey:claims:{pool}"));
        assert_lk(0, lk_sem_release(same, 9));
    }
    assert_lk(0, lk_sem_acquire(pool, 10, 0));
    proxy_once(p, PROXY_CUT_REPLY, 2, "pool"); /* of what leaves the queue */
    assert_lk(ETIMEDOUT, lk_sem_acquire(pool, 2, 50));
    assert_false(world_exists(w, "latchkey:queue:sem:{pool}"));
    assert_lk(0, lk_sem_release(same, 10));
    assert_int_equal(10, permits(w));
}

/* As if each slot's last request were a later one. */
static void overtake(struct world *w)
{
    world_redis(w, "EVAL %s 1 latchkey:once:{pool}",
                "for _, slot in ipairs(redis.call('HKEYS', KEYS[1])) do redis.call('HSET', KEYS[1], slot,"
                "'9000000000000000 1 ' .. redis.call('TIME')[1] .. '000000') end");
}

/* No answer to the first copy, and the second is overtaken: nobody knows what became of the first. */
static void overtaken_after_a_lost_answer_is_unknown(struct world *w)
{
    open_pool(w);
    overtake(w);
    arm(PROXY_CUT_REQUEST);
    assert_lk(EIO, lk_sem_post(pool));
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(11, permits(w));
    overtake(w);
    arm(PROXY_CUT_REQUEST);
    assert_lk(EIO, lk_sem_trywait(pool));
    assert_lk(0, lk_sem_trywait(pool));
    assert_int_equal(10, permits(w));
}

static void expect_held(lk_sem_t *s, unsigned held)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(s, &info));
    assert_int_equal(held, info.held);
    assert_int_equal(info.total, info.available + held);
}

/* Leased permits know their owner: a copy of a take finds it, one that comes too late is taken back. */
static void leased_permits_count_once(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1, .lease_ms = 20000 };
    lk_seminfo_t info = LK_SEMINFO_INIT;
    open_pool(w);
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *leased = world_sem(w, client, "pool", 5, &attr);
    assert_lk(0, lk_sem_wait(leased));
    assert_lk(0, lk_sem_post(leased));
    assert_lk(0, lk_sem_addpermits(leased, 1));
    for (int i = 0; i < CUTS; i++) {
        arm(cuts[i]);
        assert_lk(0, lk_sem_acquire(leased, 2, 0));
        expect_held(leased, 2);
        arm(cuts[i]);
        assert_lk(0, lk_sem_post(leased));
        let_copies_come();
        expect_held(leased, 1);
        arm(cuts[i]);
        assert_lk(0, lk_sem_addpermits(leased, 1));
        let_copies_come();
        assert_lk(0, lk_sem_info(leased, &info));
        assert_int_equal(7 + i, info.total);
        arm(cuts[i]);
        assert_lk(0, lk_sem_post(leased));
        let_copies_come();
        sleep_ms(3 * COMMAND_MS);
        expect_held(leased, 0);
    }
    arm(PROXY_DROP_REPLY);
    assert_lk(EIO, lk_sem_trywait(leased));
    eventually(world_int(w, "ZCOUNT latchkey:permits:{pool} 0 inf") == 0, 3000);
    settle();
}

static const char *first_permit(struct world *w)
{
    return world_str(w, "EVAL %s 1 latchkey:permits:{pool}",
                     "return redis.call('ZRANGEBYSCORE', KEYS[1], 0, '+inf')[1]");
}

/* A copy of the take comes when a part was given back: nobody gets that again, and the others may have it. */
static void a_late_copy_of_a_take_lends_no_part_again(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1, .lease_ms = 20000 };
    open_pool(w);
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *leased = world_sem(w, client, "pool", 5, &attr);
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    assert_lk(0, lk_sem_release(leased, 2));
    assert_lk(0, lk_sem_post(leased));
    arm(PROXY_PARK_REQUEST);
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    assert_lk(0, lk_sem_release(leased, 2));
    let_copies_come();
    expect_held(leased, 1);
    assert_lk(0, lk_sem_acquire(leased, 4, 0));
    assert_lk(0, lk_sem_release(leased, 5));
    expect_held(leased, 0);
}

/* Somebody took parts of it away before it was known here: the rest goes back, and all are asked for anew. */
static void a_grant_in_parts_is_none(struct world *w)
{
    static const lk_semattr_t attr = { .size = sizeof attr, .leased = 1, .lease_ms = 20000 };
    char id[128], *at;
    open_pool(w);
    world_allow(w, "latchkey:*:{pool}");
    lk_sem_t *leased = world_sem(w, client, "pool", 5, &attr);
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    snprintf(id, sizeof id, "%s", first_permit(w)); /* <client id>:<owner>:<acquisition>:3 */
    assert_lk(0, lk_sem_release(leased, 3));
    at = strchr(strchr(id, ':') + 1, ':') + 1;
    sprintf(at, "%ld:3", strtol(at, NULL, 10) + 1);
    world_redis(w, "ZADD latchkey:permits:{pool} 9000000000000 %s", id);
    assert_lk(0, lk_sem_acquire(leased, 3, 0));
    expect_held(leased, 3);
    assert_string_not_equal(id, first_permit(w));
    assert_lk(0, lk_sem_release(leased, 3));
    expect_held(leased, 0);
}

enum { THREADS = 200, ROUNDS = 10, WAITING = 70 };

static void begin(struct world *w)
{
    world_allow(w, "pool");
    world_allow(w, "latchkey:once:{pool}");
    client = world_client(w, "command_timeout=9s"); /* two hundred threads, on a busy machine */
    pool = world_sem(w, client, "pool", 2, NULL);
}

static int use(int index, void *arg)
{
    int rc = 0;
    (void)index, (void)arg;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = lk_sem_acquire(pool, 1, 60000);
        if (rc == 0)
            rc = lk_sem_post(pool);
    }
    return rc;
}

/* Most of two hundred threads wait at any time: their requests, and those of the others, share few entries. */
static void the_record_has_an_entry_for_each_thread_at_most(struct world *w)
{
    begin(w);
    assert_int_equal(0, run_threads(THREADS, use, NULL));
    assert_int_equal(2, world_int(w, "GET pool"));
    assert_between(world_int(w, "HLEN latchkey:once:{pool}"), 1, THREADS);
}

static int gave_up; /* atomic builtins */

static int use_or_give_up(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = lk_sem_acquire(pool, 1, 10 + (index + i) % 50);
        if (rc == 0) {
            rc = lk_sem_post(pool);
        } else if (rc == ETIMEDOUT) {
            rc = 0;
            __atomic_add_fetch(&gave_up, 1, __ATOMIC_SEQ_CST);
        } else {
            print_message("%s\n", lk_errortext());
        }
    }
    return rc;
}

/* To give up leaves no entry behind that is not used again. */
static void nor_do_those_that_give_up_need_more(struct world *w)
{
    begin(w);
    assert_lk(0, lk_sem_wait(pool)); /* connects */
    assert_lk(0, lk_sem_post(pool));
    assert_int_equal(0, run_threads(THREADS, use_or_give_up, NULL));
    assert_true(gave_up > 0);
    eventually(world_int(w, "GET pool") == 2, 5000);
    assert_between(world_int(w, "HLEN latchkey:once:{pool}"), 1, THREADS);
}

/* Entries of owners that are gone are deleted by those that come. */
static void nor_do_those_that_are_gone(struct world *w)
{
    enum { GONE = 300 };
    begin(w);
    for (int i = 0; i < GONE; i++)
        world_redis(w, "HSET latchkey:once:{pool} %s:s%d %s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i, "7 1 1000000");
    assert_int_equal(0, run_threads(THREADS, use, NULL));
    assert_between(world_int(w, "HLEN latchkey:once:{pool}"), 1, 249);
}

WORK(wait_once, arg, lk_sem_acquire(arg, 1, 60000))

/* While many wait, each post needs no entry of its own. */
static void waiters_leave_room_for_posts(struct world *w)
{
    struct worker waiters[WAITING];
    lk_sem_t *none;
    begin(w);
    world_allow(w, "latchkey:once:{none}");
    world_allow(w, "none");
    none = world_sem(w, client, "none", 0, NULL);
    for (int i = 0; i < WAITING; i++)
        worker_start(&waiters[i], wait_once, none);
    eventually(world_int(w, "ZCARD latchkey:queue:sem:{none}") == WAITING, 20000);
    for (int i = 0; i < 50; i++) {
        assert_lk(0, lk_sem_addpermits(none, -2));
        assert_lk(0, lk_sem_addpermits(none, 2));
    }
    assert_between(world_int(w, "HLEN latchkey:once:{none}"), 1, 2);
    assert_lk(0, lk_sem_release(none, WAITING));
    for (int i = 0; i < WAITING; i++)
        assert_int_equal(0, worker_join(&waiters[i]));
}

static struct lk__sem *sem_of(const lk_sem_t *s)
{
    return LK__CONTAINER(((struct lk__binding *)s->lk_impl)->object, struct lk__sem, object);
}

/* The name under which the next request would be asked; `answered`: whether it got an answer. */
static const char *next_owner(char *owner, bool answered)
{
    struct lk__sem *sem = sem_of(pool);
    struct lk__slot slot;
    assert_int_equal(0, lk__slot_take(&sem->object, &sem->slots, &slot));
    lk__slot_put(&sem->object, &sem->slots, &slot, answered);
    return strcpy(owner, slot.owner);
}

/* The entry of a request without an answer is what its give-back goes by: nobody overwrites it. */
static void a_slot_without_an_answer_is_not_used_again(struct world *w)
{
    char first[80], second[80], third[80];
    begin(w);
    next_owner(first, true);
    assert_string_equal(first, next_owner(second, false));
    assert_string_not_equal(first, next_owner(second, true));
    assert_string_equal(second, next_owner(third, false));
    world_close(w, pool);
    pool = world_sem(w, client, "pool", 2, NULL); /* the same object, made anew */
    next_owner(third, true);
    assert_string_not_equal(first, third);
    assert_string_not_equal(second, third);
    world_close(w, pool);
    pool = world_sem(w, client, "pool", 2, NULL);
    assert_string_equal(third, next_owner(first, true)); /* which needs no other name when all was answered */
}

int main(void)
{
    return world_run(a_cut_connection_counts_once, what_changes_the_whole_counts_once,
                     a_late_copy_of_an_older_request_does_nothing, a_take_without_an_answer_is_given_back,
                     a_release_without_an_answer_is_done_once, a_drain_without_an_answer_is_undone,
                     nothing_comes_back_to_the_next_semaphore, a_waiter_is_granted_once,
                     overtaken_after_a_lost_answer_is_unknown, leased_permits_count_once,
                     a_late_copy_of_a_take_lends_no_part_again, a_grant_in_parts_is_none,
                     the_record_has_an_entry_for_each_thread_at_most, nor_do_those_that_give_up_need_more,
                     nor_do_those_that_are_gone, waiters_leave_room_for_posts,
                     a_slot_without_an_answer_is_not_used_again);
}
