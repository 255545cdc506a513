/* SPDX-License-Identifier: MIT */
/*
 * owner_test.c - a read-write lock that explicit owners hold
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_client_t *client;
static lk_rwlock_t *rates;
static lk_owner_t *owner, *other;

static void open_rates(struct world *w, const lk_rwlockattr_t *attr)
{
    client = world_client(w, "");
    rates = world_rwlock(w, client, "rates", attr);
    owner = world_newowner(w, client);
    other = world_newowner(w, client);
}

static lk_how_t how_of(lk_owner_t *by, int64_t timeout_ms)
{
    return (lk_how_t){ .size = sizeof(lk_how_t), .timeout_ms = timeout_ms, .owner = by };
}

static int read_by(lk_owner_t *by, int64_t timeout_ms)
{
    const lk_how_t how = how_of(by, timeout_ms);
    return lk_rwlock_rdlockwith(rates, &how);
}

static int write_by(lk_owner_t *by, int64_t timeout_ms)
{
    const lk_how_t how = how_of(by, timeout_ms);
    return lk_rwlock_wrlockwith(rates, &how);
}

WORK(write_patiently, by, write_by(by, 10000))
WORK(unlock_it, by, lk_rwlock_unlockby(rates, by))
WORK(downgrade, by, lk_rwlock_downgradeby(rates, by))

/* Two owners may read at once, and one of them writes when the other is gone; threads do not matter. */
static void owners_read_together_and_write_alone(struct world *w)
{
    struct worker writer;
    uint64_t token;
    int64_t left_ms;
    open_rates(w, NULL);
    assert_lk(0, read_by(owner, 0));
    assert_lk(0, read_by(other, 0));
    assert_int_equal(2, world_rwholds(w, "rates"));
    assert_lk(EDEADLK, write_by(owner, 0));
    assert_lk(EPERM, lk_rwlock_unlock(rates));
    assert_lk(EPERM, lk_rwlock_tokenby(rates, owner, &token));
    assert_lk(0, lk_rwlock_remainingby(rates, owner, &left_ms));
    assert_lk(0, in_thread(unlock_it, owner));
    worker_start(&writer, write_patiently, owner);
    eventually(world_rwqueued(w, "rates") == 1, 5000);
    assert_lk(EPERM, unlock_it(owner));
    assert_lk(0, unlock_it(other));
    assert_lk(0, worker_join(&writer));
    assert_lk(0, lk_rwlock_tokenby(rates, owner, &token));
    assert_lk(0, lk_rwlock_checkby(rates, owner));
    assert_lk(0, lk_rwlock_extendby(rates, owner, 60000));
    assert_lk(0, lk_rwlock_remainingby(rates, owner, &left_ms));
    assert_between(left_ms, 30001, 60000);
    assert_lk(EPERM, lk_rwlock_extendby(rates, other, 60000));
    assert_lk(EPERM, lk_rwlock_extend(rates, 60000));
    assert_lk(0, read_by(owner, 0)); /* a writer may read as well */
    assert_lk(ETIMEDOUT, read_by(other, 0));
    assert_lk(0, in_thread(unlock_it, owner));
    assert_lk(0, unlock_it(owner));
    assert_lk(EPERM, unlock_it(owner));
}

/* From writing to reading, by another thread of the same owner. */
static void an_owner_goes_from_writing_to_reading(struct world *w)
{
    open_rates(w, NULL);
    assert_lk(0, write_by(owner, 0));
    assert_lk(0, write_by(owner, 0));
    assert_lk(EPERM, downgrade(other));
    assert_lk(EPERM, lk_rwlock_downgrade(rates));
    assert_lk(0, in_thread(downgrade, owner));
    assert_lk(EPERM, downgrade(owner));
    assert_lk(0, read_by(other, 0));
    assert_lk(0, unlock_it(owner));
    assert_lk(0, unlock_it(owner));
    assert_lk(0, unlock_it(other));
}

/* Lease and fixed of one call, as Redisson's tryLock() has them. */
static void a_call_says_its_lease(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .timeout_ms = 0, .lease_ms = 1500, .fixed = 1 };
    int64_t left_ms;
    open_rates(w, NULL);
    how.owner = owner;
    assert_lk(0, lk_rwlock_wrlockwith(rates, &how));
    assert_lk(0, lk_rwlock_remainingby(rates, owner, &left_ms));
    assert_between(left_ms, 1, 1500);
    assert_lk(0, write_by(other, 5000));
    assert_lk(ESTALE, unlock_it(owner));
    assert_lk(0, unlock_it(other));
    assert_lk(0, lk_rwlock_rdlockwith(rates, NULL));
    assert_lk(0, lk_rwlock_unlock(rates));
}

static int write_until_killed(struct world *w, void *arg)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .robust = 1, .lease_ms = 400 };
    open_rates(w, &attr);
    assert_lk(0, write_by(owner, 0));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* Who writes next is told of a dead owner, and repairs for its own. */
static void who_follows_a_dead_owner_is_told(struct world *w)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .robust = 1 };
    world_kill(w, world_fork(w, write_until_killed, world_shared(w, sizeof(struct gate))));
    open_rates(w, &attr);
    assert_lk(EOWNERDEAD, in_thread(write_patiently, owner));
    assert_lk(EPERM, lk_rwlock_consistentby(rates, other));
    assert_lk(0, lk_rwlock_consistentby(rates, owner));
    assert_lk(0, unlock_it(owner));
    assert_lk(0, read_by(other, 0));
    assert_lk(0, unlock_it(other));
}

/* All that reads and writes for owners adds up, on many threads. */
static int visit(int index, void *arg)
{
    lk_owner_t *by = index % 2 == 0 ? owner : other;
    int rc = 0, *counter = arg;
    for (int i = 0; i < 20 && rc == 0; i++) {
        bool write = i % 4 == 0;
        rc = write ? write_by(by, LK_FOREVER) : read_by(by, LK_FOREVER);
        if (rc == EDEADLK) { /* another thread of the owner reads */
            rc = 0;
            continue;
        }
        if (rc == 0 && write)
            __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        if (rc == 0)
            rc = lk_rwlock_unlockby(rates, by);
    }
    return rc;
}

static void levels_of_many_threads_add_up(struct world *w)
{
    int counter = 0;
    open_rates(w, NULL);
    assert_lk(0, run_threads(6, visit, &counter));
    assert_true(counter > 0);
    assert_int_equal(0, world_rwholds(w, "rates"));
    assert_lk(EPERM, unlock_it(owner));
    assert_lk(EPERM, unlock_it(other));
}

int main(void)
{
    return world_run(owners_read_together_and_write_alone, an_owner_goes_from_writing_to_reading, a_call_says_its_lease,
                     who_follows_a_dead_owner_is_told, levels_of_many_threads_add_up);
}
