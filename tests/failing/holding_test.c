/* SPDX-License-Identifier: MIT */
/*
 * holding_test.c - who holds something needs no memory to keep it and to give it back, even if the server has
 * forgotten the scripts meanwhile
 *
 * labels: memory
 * simulated: yes
 * seconds: 12
 * support: failing
 */
#include "failing/failing.h"

#define LEASE_MS 3000 /* a connection that is taken for dead cannot be replaced: give it time */
#define OPTIONS "lease=3s&command_timeout=950ms"
#define MANY 300 /* answers: more than a small buffer takes */

static lk_client_t *client;
static lk_mutex_t *plain, *fair;
static lk_rwlock_t *reader, *writer, *downgraded;
static lk_sem_t *permits;

static void nothing_may_be_allocated(void)
{
    failing_plan(&(struct failure){ .kind = FAIL_ALLOCATION, .nth = 1, .lasting = true });
    failing_begin();
}

static void make_all(struct world *w)
{
    client = world_client(w, OPTIONS);
    plain = world_mutex(w, client, "plain", NULL);
    fair = world_mutex(w, client, "fair", &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t), .fair = 1 });
    reader = world_rwlock(w, client, "reader", NULL);
    writer = world_rwlock(w, client, "writer", NULL);
    downgraded = world_rwlock(w, client, "downgraded", NULL);
    permits = world_sem(w, client, "permits", 2, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = 1 });
    world_allow(w, "latchkey:total:*");
}

static void take_all(void)
{
    assert_lk(0, lk_mutex_lock(plain));
    assert_lk(0, lk_mutex_lock(fair));
    assert_lk(0, lk_rwlock_rdlock(reader));
    assert_lk(0, lk_rwlock_wrlock(writer));
    assert_lk(0, lk_rwlock_wrlock(downgraded));
    assert_lk(0, lk_sem_acquire(permits, 2, LEASE_MS));
    eventually(lk_mutex_extend(fair, LEASE_MS) == 0, 2 * LEASE_MS); /* the watchdog has its connection */
}

/* What asks the server while holding. */
static void use_all(void)
{
    for (int i = 0; i < MANY; i++) {
        assert_lk(0, lk_mutex_lock(plain));
        assert_lk(0, lk_mutex_unlock(plain));
        assert_lk(0, lk_mutex_extend(fair, LEASE_MS));
    }
}

static void give_all(void)
{
    assert_lk(0, lk_mutex_unlock(plain));
    assert_lk(0, lk_mutex_unlock(fair));
    assert_lk(0, lk_rwlock_unlock(reader));
    assert_lk(0, lk_rwlock_unlock(writer));
    assert_lk(0, lk_rwlock_downgrade(downgraded));
    assert_lk(0, lk_rwlock_unlock(downgraded));
    assert_lk(0, lk_sem_release(permits, 2));
}

static int forget_scripts(struct world *w)
{
    world_redis(w, "SCRIPT FLUSH");
    return 0;
}

static void hold_all(struct world *w, bool forgotten)
{
    take_all();
    nothing_may_be_allocated();
    if (forgotten)
        spared(forget_scripts(w));
    sleep_ms(LEASE_MS + LEASE_MS / 2); /* renewed, or lost by now */
    use_all();
    if (forgotten)
        spared(forget_scripts(w));
    give_all();
    assert_that(!failing_happened());
    failing_end();
    assert_that(world_left(w) == NULL);
}

static void a_hold_is_kept_without_memory(struct world *w)
{
    make_all(w);
    hold_all(w, false);
    hold_all(w, true);
}

/* Closing is a way to give back, too. */
static void a_client_is_closed_without_memory(struct world *w)
{
    make_all(w);
    take_all();
    nothing_may_be_allocated();
    assert_lk(0, close_by_hand(w, client));
    failing_end();
    assert_that(world_left(w) == NULL);
}

int main(void)
{
    return failing_run(a_hold_is_kept_without_memory, a_client_is_closed_without_memory);
}
