/* SPDX-License-Identifier: MIT */
/*
 * record_test.c - the idempotency record stays small, and whose entry must stay keeps it
 *
 * labels: threads memory
 * simulated: yes
 */
#include "semaphore/semaphore.h"
#include "world.h"

#include <string.h>

enum { THREADS = 200, ROUNDS = 10, WAITING = 70 };

static lk_client_t *client;
static lk_sem_t *pool;

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
    return world_run(the_record_has_an_entry_for_each_thread_at_most, nor_do_those_that_give_up_need_more,
                     nor_do_those_that_are_gone, waiters_leave_room_for_posts,
                     a_slot_without_an_answer_is_not_used_again);
}
