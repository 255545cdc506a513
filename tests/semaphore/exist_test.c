/* SPDX-License-Identifier: MIT */
/*
 * exist_test.c - semaphores that are made, opened and deleted: counting and leased ones alike
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { WAITERS = 6, MAKERS = 8 };

static lk_client_t *client;

static const lk_semattr_t kinds[] = { { .size = sizeof *kinds }, { .size = sizeof *kinds, .leased = 1 } };

static void begin(struct world *w)
{
    world_allow(w, "latchkey:once:*");
    world_allow(w, "latchkey:total:sem:*"); /* when it was deleted */
    client = world_client(w, "");
}

static lk_seminfo_t look(lk_sem_t *s)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    assert_lk(0, lk_sem_info(s, &info));
    return info;
}

/* As sem_open() and sem_unlink(); a failed open leaves nothing to destroy. */
static void it_is_made_and_opened_and_deleted(struct world *w)
{
    begin(w);
    for (int i = 0; i < 2; i++) {
        lk_sem_t s, same;
        assert_lk(ENOENT, lk_sem_open(&s, client, "pool", 0, 3, &kinds[i]));
        assert_lk(0, lk_sem_open(&s, client, "pool", O_CREAT | O_EXCL, 3, &kinds[i]));
        assert_lk(EEXIST, lk_sem_open(&same, client, "pool", O_CREAT | O_EXCL, 3, &kinds[i]));
        assert_lk(0, lk_sem_open(&same, client, "pool", 0, 0, &kinds[i]));
        assert_int_equal(3, look(&same).available);
        assert_int_equal(1, look(&same).exists);
        assert_lk(0, lk_sem_trywait(&same));
        assert_lk(0, lk_sem_post(&same));
        assert_lk(0, lk_sem_destroy(&same));
        assert_lk(0, lk_sem_open(&same, client, "pool", O_CREAT, 3, &kinds[i]));
        assert_lk(0, lk_sem_delete(&same));
        assert_lk(ENOENT, lk_sem_delete(&same));
        assert_int_equal(0, look(&s).exists);
        assert_int_equal(0, look(&s).available);
        assert_lk(EAGAIN, lk_sem_trywait(&s)); /* O_EXCL made it, once */
        assert_int_equal(0, look(&s).exists);
        assert_int_equal(3, look(&same).available);
        assert_lk(0, lk_sem_trywait(&same)); /* O_CREAT makes it anew */
        assert_int_equal(2, look(&s).available);
        assert_lk(0, lk_sem_post(&same));
        assert_lk(0, lk_sem_delete(&s));
        assert_lk(0, lk_sem_destroy(&s));
        assert_lk(0, lk_sem_destroy(&same));
        assert_lk(0, lk_sem_open(&s, client, "pool", O_CREAT, 0, &kinds[i])); /* of none */
        assert_int_equal(1, look(&s).exists);
        assert_lk(0, lk_sem_delete(&s));
        assert_lk(0, lk_sem_destroy(&s));
    }
}

/* Nor does one of what other threads of this client hold permits of. */
static void what_cannot_be_opened_while_it_is_held_leaves_nothing(struct world *w)
{
    begin(w);
    for (int i = 0; i < 2; i++) {
        lk_sem_t s, same;
        assert_lk(0, lk_sem_open(&s, client, "pool", O_CREAT, 3, &kinds[i]));
        assert_lk(0, lk_sem_trywait(&s));
        assert_lk(EEXIST, lk_sem_open(&same, client, "pool", O_CREAT | O_EXCL, 3, &kinds[i]));
        assert_null(strstr(lk_errortext(), "held or waited for"));
        assert_null(same.lk_name);
        assert_lk(0, lk_sem_destroy(&same));
        assert_lk(0, lk_sem_post(&s));
        assert_lk(0, lk_sem_delete(&s));
        assert_lk(0, lk_sem_destroy(&s));
    }
}

static void mistakes_are_refused(struct world *w)
{
    lk_sem_t s;
    begin(w);
    assert_lk(EINVAL, lk_sem_open(&s, client, "pool", O_EXCL, 3, NULL));
    assert_lk(EINVAL, lk_sem_open(&s, client, "pool", O_CREAT | O_RDWR, 3, NULL));
    assert_lk(EINVAL, lk_sem_open(NULL, client, "pool", O_CREAT, 3, NULL));
    assert_lk(EINVAL, lk_sem_open(&s, client, "a{b", O_CREAT, 3, NULL));
    assert_lk(EINVAL, lk_sem_open(&s, client, "pool", O_CREAT, LK_SEM_VALUE_MAX + 1U, NULL));
    assert_lk(EINVAL, lk_sem_delete(NULL));
    world_redis(w, "SET pool apples");
    assert_lk(EPROTO, lk_sem_open(&s, client, "pool", O_CREAT, 3, NULL));
    assert_lk(EPROTO, lk_sem_open(&s, client, "pool", 0, 3, NULL));
    lk_sem_t *pool = world_sem(w, client, "pool", 3, NULL);
    assert_lk(EPROTO, lk_sem_delete(pool));
    assert_string_equal("apples", world_str(w, "GET pool"));
    world_redis(w, "DEL pool");
}

static int made;

static int make_it(int index, void *arg)
{
    lk_sem_t s;
    (void)index;
    int rc = lk_sem_open(&s, client, "pool", O_CREAT | O_EXCL, 3, arg);
    if (rc == 0) {
        __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
        rc = lk_sem_destroy(&s);
    }
    return rc == EEXIST ? 0 : rc;
}

/* Of many that make it at once, one does. */
static void one_of_many_makes_it(struct world *w)
{
    begin(w);
    for (int i = 0; i < 2; i++) {
        lk_sem_t s;
        made = 0;
        assert_int_equal(0, run_threads(MAKERS, make_it, (void *)&kinds[i]));
        assert_int_equal(1, made);
        assert_lk(0, lk_sem_open(&s, client, "pool", 0, 0, &kinds[i]));
        assert_lk(0, lk_sem_delete(&s));
        assert_lk(0, lk_sem_destroy(&s));
    }
}

WORK(wait_long, arg, lk_sem_acquire(arg, 2, 20000))

/* Who waits for it ends with it, at once, also those that would make it anew. */
static void waiters_end_with_it(struct world *w)
{
    struct worker waiters[WAITERS];
    begin(w);
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = world_sem(w, client, "pool", 3, &kinds[i]);
        lk_sem_t *far = world_sem(w, world_client(w, ""), "pool", 3, &kinds[i]);
        assert_lk(0, lk_sem_acquire(s, 2, 0));
        for (int k = 0; k < WAITERS; k++)
            worker_start(&waiters[k], wait_long, k % 2 ? s : far);
        eventually(world_semqueued(w, "pool") == WAITERS && world_elements(w, "PUBSUB CHANNELS latchkey:client:*") >= 2,
                   5000);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_sem_delete(s));
        for (int k = 0; k < WAITERS; k++)
            assert_int_equal(ECANCELED, worker_join(&waiters[k]));
        assert_between(now_ms() - began_ms, 0, 2 * SLACK_MS);
        assert_false(world_exists(w, "pool"));
        assert_false(world_exists(w, "latchkey:total:{pool}"));
        assert_int_equal(0, world_semqueued(w, "pool"));
        assert_lk(0, lk_sem_trywait(far)); /* made anew, whole */
        assert_int_equal(2, look(far).available);
        assert_lk(0, lk_sem_post(far));
        assert_lk(kinds[i].leased ? ESTALE : 0, lk_sem_release(s, 2));
        assert_lk(0, lk_sem_delete(s));
        world_close(w, far);
        world_close(w, s);
    }
    assert_between(world_pttl(w, "latchkey:total:sem:{pool}"), 1, 600000);
}

static int wait_as_child(struct world *w, void *arg)
{
    lk_sem_t *s = world_sem(w, world_client(w, ""), "pool", 0, arg);
    world_ready(w);
    return lk_sem_wait(s);
}

/* What was granted to a waiter that did not notice yet is not put back into the next semaphore of that name. */
static void no_claim_outlives_it(struct world *w)
{
    pid_t waiter = world_fork(w, wait_as_child, (void *)&kinds[0]);
    begin(w);
    lk_sem_t *s = world_sem(w, client, "pool", 0, NULL);
    eventually(world_semqueued(w, "pool") == 1 && world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    sleep_ms(600); /* by now it listens, and has whole claims */
    world_stop(waiter);
    assert_lk(0, lk_sem_post(s));
    assert_int_equal(1, world_int(w, "ZCARD latchkey:claims:{pool}"));
    assert_lk(0, lk_sem_delete(s));
    assert_false(world_exists(w, "latchkey:claims:{pool}"));
    assert_lk(0, lk_sem_trysetpermits(s, 5));
    world_cont(waiter);
    assert_int_equal(ECANCELED, world_wait(w, waiter));
    assert_int_equal(5, look(s).available);
    assert_lk(0, lk_sem_acquire(s, 5, 0));
    assert_lk(EAGAIN, lk_sem_trywait(s));
    assert_lk(0, lk_sem_delete(s));
}

/* A waiter of the next semaphore is not taken for one of the last. */
static void later_waiters_wait(struct world *w)
{
    struct worker waiter;
    begin(w);
    for (int i = 0; i < 2; i++) {
        lk_sem_t *s = world_sem(w, client, "pool", 2, &kinds[i]), *far;
        assert_lk(0, lk_sem_acquire(s, 2, 0));
        assert_lk(0, lk_sem_delete(s));
        far = world_sem(w, world_client(w, "poll=100ms"), "pool", 2, &kinds[i]);
        assert_lk(0, lk_sem_acquire(far, 2, 0));
        worker_start(&waiter, wait_long, far);
        eventually(world_semqueued(w, "pool") == 1, 3000);
        sleep_ms(300); /* it polls */
        assert_lk(0, lk_sem_release(far, 2));
        assert_int_equal(0, worker_join(&waiter));
        if (kinds[i].leased) {
            sleep_ms(1); /* the thread of the waiter ended: its permits end with their lease, or with this */
            assert_lk(ESTALE, lk_sem_release(s, 2));
        }
        assert_lk(0, lk_sem_delete(far));
        world_close(w, far);
    }
}

int main(void)
{
    return world_run(it_is_made_and_opened_and_deleted, what_cannot_be_opened_while_it_is_held_leaves_nothing,
                     mistakes_are_refused, one_of_many_makes_it, waiters_end_with_it, no_claim_outlives_it,
                     later_waiters_wait);
}
