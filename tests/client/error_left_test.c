/* SPDX-License-Identifier: MIT */
/*
 * error_left_test.c - a refusal tells how long the lease lasts that was in the way
 *
 * labels: threads memory
 * simulated: yes
 */
#include "subject.h"

enum { LEASE_MS = 5000, SHORT_MS = 2500 };
enum { SET_MS = 100 }; /* by how much a machine's clock may be set back meanwhile */

#define OPTIONS "lease=5s"

static lk_client_t *ours, *theirs;

static void open_both(struct world *w)
{
    ours = world_client(w, OPTIONS);
    theirs = world_client(w, OPTIONS);
}

/* A try and a wait bring it with their refusal; no command more than these have. */
static void who_is_refused_knows_for_how_long(struct world *w, const struct subject_kind *kind)
{
    open_both(w);
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *other = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(other, 1000));
    for (int64_t wait_ms = 0; wait_ms <= 60; wait_ms += 60) {
        assert_lk(ETIMEDOUT, subject_take(mine, wait_ms));
        int64_t left_ms = lk_errorleft();
        if (!kind->leased) {
            assert_int_equal(-1, left_ms);
            continue;
        }
        assert_between(left_ms, LEASE_MS / 2, LEASE_MS + SET_MS);
        sleep_ms(30);
        assert_between(lk_errorleft(), 1, left_ms - 30);
    }
    assert_lk(0, subject_give(other));
    assert_lk(0, subject_take(mine, 1000));
    assert_lk(0, subject_give(mine));
}

static int trylock(void *m)
{
    return lk_mutex_trylock(m) == EBUSY ? (int)lk_errorleft() : -2;
}

static int left_here(void *arg)
{
    (void)arg;
    return (int)lk_errorleft();
}

/* It counts down to nothing, and another failure knows nothing of it; each thread has its own. */
static void it_counts_down_and_is_forgotten(struct world *w)
{
    open_both(w);
    lk_mutex_t *mine = world_mutex(w, ours, "thing", NULL), *other = world_mutex(w, theirs, "thing", NULL);
    const lk_how_t shortly = { .size = sizeof shortly, .timeout_ms = 0, .lease_ms = SHORT_MS, .fixed = 1 };
    int64_t left_ms;
    assert_int_equal(-1, in_thread(left_here, NULL)); /* nothing failed there yet */
    assert_lk(0, lk_mutex_lockwith(other, &shortly));
    assert_lk(EBUSY, lk_mutex_trylock(mine));
    assert_between(lk_errorleft(), 1, SHORT_MS + SET_MS);
    assert_between(in_thread(trylock, mine), 1, SHORT_MS + SET_MS);
    eventually(lk_errorleft() == 0, 2 * SHORT_MS);
    eventually(lk_mutex_remaining(other, &left_ms) == ESTALE, 4000);
    assert_int_equal(-1, lk_errorleft()); /* of ESTALE */
    assert_lk(ESTALE, lk_mutex_unlock(other));
    assert_lk(0, lk_mutex_lock(mine));
    assert_lk(EPERM, lk_mutex_unlock(other));
    assert_int_equal(-1, lk_errorleft());
    assert_lk(0, lk_mutex_unlock(mine));
}

/* Of what has no lease on the server nobody knows when it ends; of one's own hold one does. */
static void some_have_no_lease_and_some_are_one_s_own(struct world *w)
{
    const lk_mutexattr_t errorcheck = { .size = sizeof errorcheck, .type = LK_MUTEX_ERRORCHECK };
    open_both(w);
    lk_mutex_t *mine = world_mutex(w, ours, "thing", &errorcheck);
    lk_rwlock_t *rates = world_rwlock(w, ours, "rates", NULL);
    world_redis(w, "HSET thing 6ba7b810-9dad-11d1-80b4-00c04fd430c8:1 1"); /* as Java would without a watchdog */
    assert_lk(EBUSY, lk_mutex_trylock(mine));
    assert_int_equal(-1, lk_errorleft());
    world_redis(w, "DEL thing");
    assert_lk(0, lk_mutex_lock(mine));
    assert_lk(EBUSY, lk_mutex_trylock(mine));
    assert_between(lk_errorleft(), LEASE_MS / 2, LEASE_MS + SET_MS);
    assert_lk(EDEADLK, lk_mutex_lock(mine));
    assert_int_equal(-1, lk_errorleft());
    assert_lk(0, lk_mutex_unlock(mine));
    assert_lk(0, lk_rwlock_rdlock(rates));
    assert_lk(EBUSY, lk_rwlock_trywrlock(rates));
    assert_between(lk_errorleft(), LEASE_MS / 2, LEASE_MS + SET_MS);
    assert_lk(0, lk_rwlock_unlock(rates));
}

static int lock_and_unlock_it(void *m)
{
    int rc = lk_mutex_lock(m);
    return rc == 0 ? lk_mutex_unlock(m) : rc;
}

static int left_behind_others(void *m)
{
    return lk_mutex_lockfor(m, 30) == ETIMEDOUT ? (int)lk_errorleft() : -2;
}

/* Behind other threads of its process a waiter never asks the server; who holds it may be one of them. */
static void who_queues_locally_knows_of_a_holder_here(struct world *w)
{
    struct worker waiter;
    open_both(w);
    lk_mutex_t *mine = world_mutex(w, ours, "thing", NULL), *other = world_mutex(w, theirs, "thing", NULL);
    for (int i = 0; i < 2; i++) {
        lk_mutex_t *held = i == 0 ? mine : other;
        assert_lk(0, lk_mutex_lock(held));
        worker_start(&waiter, lock_and_unlock_it, mine);
        eventually(world_queued(w, "thing") == 1, 5000);
        int left_ms = in_thread(left_behind_others, mine);
        if (held == mine)
            assert_between(left_ms, LEASE_MS / 2, LEASE_MS + SET_MS);
        else
            assert_int_equal(-1, left_ms);
        assert_lk(0, lk_mutex_unlock(held));
        assert_lk(0, worker_join(&waiter));
    }
}

/* A semaphore tries by POSIX's name and code. */
static void a_permit_that_is_not_free_tells_as_well(struct world *w)
{
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    open_both(w);
    lk_sem_t *mine = world_sem(w, ours, "pool", 2, &leased), *other = world_sem(w, theirs, "pool", 2, &leased);
    const lk_how_t shorter = { .size = sizeof shorter, .timeout_ms = 0, .lease_ms = 2000 };
    world_allow(w, "latchkey:total:{pool}");
    assert_lk(0, lk_sem_wait(other));
    assert_lk(0, lk_sem_acquirewith(other, 1, &shorter));
    assert_lk(EAGAIN, lk_sem_trywait(mine));
    assert_between(lk_errorleft(), 1, 2000 + SET_MS); /* the next one that ends */
    assert_lk(0, lk_sem_release(other, 2));
}

static void of_each_kind(struct world *w)
{
    (void)w;
    for_each_subject(NULL, who_is_refused_knows_for_how_long);
}

int main(void)
{
    return world_run(of_each_kind, it_counts_down_and_is_forgotten, some_have_no_lease_and_some_are_one_s_own,
                     who_queues_locally_knows_of_a_holder_here, a_permit_that_is_not_free_tells_as_well);
}
