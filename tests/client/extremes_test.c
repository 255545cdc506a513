/* SPDX-License-Identifier: MIT */
/*
 * extremes_test.c - times at the ends of their range: refused, or as long as they say
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

enum { LEASE_MS = 4000 };

static const int64_t endless[] = { INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000, INT64_MAX / 1000 + 1, INT64_MAX / 2 };
static const int64_t senseless[] = { INT64_MIN, INT64_MIN / 1000, -1, 1, 99 };

enum { ENDLESS = sizeof endless / sizeof *endless, SENSELESS = sizeof senseless / sizeof *senseless };

/* Held on and on: the limit is farther away than any clock will come. */
static void a_hold_without_a_limit_is_renewed(struct world *w)
{
    static const char *const names[ENDLESS] = { "a", "b", "c", "d", "e" };
    lk_client_t *client = world_client(w, "lease=4s");
    lk_mutex_t *m[ENDLESS];
    lk_rwlock_t *rw[ENDLESS];
    lk_sem_t *s[ENDLESS];
    int64_t left_ms;
    for (int i = 0; i < ENDLESS; i++) {
        const lk_mutexattr_t mutex = { .size = sizeof mutex, .max_hold_ms = endless[i] };
        const lk_rwlockattr_t rwlock = { .size = sizeof rwlock, .max_hold_ms = endless[i] };
        const lk_semattr_t sem = { .size = sizeof sem, .leased = 1, .max_hold_ms = endless[i] };
        char permits[8] = "permit", lock[8] = "rwlock";
        permits[6] = lock[6] = names[i][0];
        m[i] = world_mutex(w, client, names[i], &mutex);
        rw[i] = world_rwlock(w, client, lock, &rwlock);
        s[i] = world_sem(w, client, permits, 1, &sem);
        assert_lk(0, lk_mutex_lockfor(m[i], endless[i]));
        assert_lk(0, lk_rwlock_wrlockfor(rw[i], endless[i]));
        assert_lk(0, lk_sem_waitfor(s[i], endless[i]));
    }
    world_allow(w, "latchkey:total:*"); /* permits have a total for good */
    sleep_ms(LEASE_MS * 5 / 4);
    for (int i = 0; i < ENDLESS; i++) {
        assert_lk(0, lk_mutex_remaining(m[i], &left_ms));
        assert_lk(0, lk_rwlock_remaining(rw[i], &left_ms));
        assert_lk(0, lk_sem_remaining(s[i], &left_ms));
        assert_lk(0, lk_mutex_unlock(m[i]));
        assert_lk(0, lk_rwlock_unlock(rw[i]));
        assert_lk(0, lk_sem_post(s[i]));
    }
}

/* Of a run and of a party. */
static void refuse_leases(lk_client_t *client, int64_t lease_ms)
{
    const lk_onceattr_t run = { .size = sizeof run, .lease_ms = lease_ms };
    const lk_barrierattr_t party = { .size = sizeof party, .lease_ms = lease_ms };
    lk_once_t o;
    lk_barrier_t b;
    assert_lk(EINVAL, lk_once_init(&o, client, "o", &run));
    assert_lk(EINVAL, lk_barrier_init(&b, client, "b", 2, &party));
}

/* As long as a clock can say is as long as it takes. */
static void a_wait_without_a_limit_waits_on(struct world *w)
{
    world_allow(w, "latchkey:*");
    lk_client_t *client = world_client(w, "lease=20s&command_timeout=5s");
    lk_once_t *work = world_once(w, client, "work", NULL);
    lk_barrier_t *stage = world_barrier(w, client, "stage", 1, NULL);
    for (int i = 0; i < ENDLESS; i++) {
        assert_lk(0, lk_once_begin(work, endless[i]));
        assert_lk(0, lk_once_fail(work));
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_waitfor(stage, endless[i]));
    }
    assert_lk(EINVAL, lk_once_begin(work, INT64_MIN));
    assert_lk(EINVAL, lk_barrier_waitfor(stage, INT64_MIN));
}

static void what_makes_no_sense_is_refused(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_mutex_t m;
    lk_rwlock_t rw;
    lk_sem_t s;
    for (int i = 0; i < SENSELESS; i++) {
        const lk_mutexattr_t lease = { .size = sizeof lease, .lease_ms = senseless[i] };
        const lk_mutexattr_t most = { .size = sizeof most, .max_hold_ms = senseless[i] };
        const lk_mutexattr_t least = { .size = sizeof least, .min_hold_ms = senseless[i] };
        const lk_rwlockattr_t rwlock = { .size = sizeof rwlock, .lease_ms = senseless[i] };
        const lk_semattr_t sem = { .size = sizeof sem, .leased = 1, .max_hold_ms = senseless[i] };
        assert_lk(EINVAL, lk_mutex_init(&m, client, "m", &lease));
        assert_lk(EINVAL, lk_mutex_init(&m, client, "m", &most));
        if (senseless[i] < 0)
            assert_lk(EINVAL, lk_mutex_init(&m, client, "m", &least));
        assert_lk(EINVAL, lk_rwlock_init(&rw, client, "rw", &rwlock));
        assert_lk(EINVAL, lk_sem_init(&s, client, "s", 1, &sem));
        refuse_leases(client, senseless[i]);
    }
    for (int i = 0; i < ENDLESS; i++) {
        const lk_mutexattr_t lease = { .size = sizeof lease, .lease_ms = endless[i] };
        const lk_mutexattr_t least = { .size = sizeof least, .min_hold_ms = endless[i] };
        const lk_rwlockattr_t rwlock = { .size = sizeof rwlock, .lease_ms = endless[i] };
        const lk_semattr_t sem = { .size = sizeof sem, .leased = 1, .lease_ms = endless[i] };
        assert_lk(EINVAL, lk_mutex_init(&m, client, "m", &lease));
        assert_lk(EINVAL, lk_mutex_init(&m, client, "m", &least));
        assert_lk(EINVAL, lk_rwlock_init(&rw, client, "rw", &rwlock));
        assert_lk(EINVAL, lk_sem_init(&s, client, "s", 1, &sem));
        refuse_leases(client, endless[i]);
    }
    lk_mutex_t *held = world_mutex(w, client, "m", NULL);
    assert_lk(0, lk_mutex_lock(held));
    for (int i = 0; i < SENSELESS; i++)
        assert_lk(EINVAL, lk_mutex_extend(held, senseless[i]));
    for (int i = 0; i < ENDLESS; i++)
        assert_lk(EINVAL, lk_mutex_extend(held, endless[i]));
    assert_lk(0, lk_mutex_unlock(held));
}

int main(void)
{
    return world_run(a_hold_without_a_limit_is_renewed, a_wait_without_a_limit_waits_on, what_makes_no_sense_is_refused);
}
