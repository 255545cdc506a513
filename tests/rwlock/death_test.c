/* SPDX-License-Identifier: MIT */
/*
 * death_test.c - holders and waiters that die, hang or forget: each lease ends for itself, no place blocks
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 12
 */
#include "world.h"

enum { LEASE_MS = 2000 };

static lk_client_t *client;
static lk_rwlock_t *config;

static void open_config(struct world *w, const char *options)
{
    client = world_client(w, options);
    config = world_rwlock(w, client, "config", NULL);
}

/* How long the leases of all holders last yet. */
static int64_t left_ms(struct world *w)
{
    return world_pttl(w, "latchkey:rw:{config}");
}

struct role {
    bool write;
    struct gate leave;
};

static int hold(struct world *w, void *arg)
{
    struct role *role = arg;
    open_config(w, "lease=2s&command_timeout=650ms");
    assert_lk(0, role->write ? lk_rwlock_wrlock(config) : lk_rwlock_rdlock(config));
    world_ready(w);
    gate_pass(&role->leave);
    assert_lk(0, lk_rwlock_unlock(config));
    return 0;
}

static int wait_in_vain(struct world *w, void *arg)
{
    struct role *role = arg;
    open_config(w, "");
    world_ready(w);
    return role->write ? lk_rwlock_wrlock(config) : lk_rwlock_rdlock(config);
}

static struct role *new_role(struct world *w, bool write)
{
    struct role *role = world_shared(w, sizeof *role);
    role->write = write;
    return role;
}

/* The other readers go on renewing, which must not keep the dead one alive. */
static void a_killed_readers_own_lease_ends_whoever_else_renews(struct world *w)
{
    struct role *second = new_role(w, false);
    pid_t killed = world_fork(w, hold, new_role(w, false)), living = world_fork(w, hold, second);
    open_config(w, "lease=20s");
    assert_int_equal(2, world_int(w, "ZCARD latchkey:rw:{config}"));
    world_kill(w, killed);
    assert_lk(ETIMEDOUT, lk_rwlock_wrlockfor(config, LEASE_MS + 200)); /* the second was renewed meanwhile */
    assert_int_equal(1, world_int(w, "ZCARD latchkey:rw:{config}"));
    gate_open(&second->leave);
    assert_int_equal(0, world_wait(w, living));
    assert_lk(0, lk_rwlock_trywrlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
}

/* The last reader leaves first: then the dead one's lease is all that is waited for. */
static void the_writer_comes_when_the_dead_readers_lease_ends(struct world *w)
{
    struct role *second = new_role(w, false);
    pid_t killed = world_fork(w, hold, new_role(w, false)), living = world_fork(w, hold, second);
    open_config(w, "lease=20s");
    world_kill(w, killed);
    int64_t began_ms = now_ms();
    gate_open(&second->leave);
    assert_int_equal(0, world_wait(w, living));
    assert_lk(0, lk_rwlock_wrlockfor(config, 5000));
    assert_between(now_ms() - began_ms, 0, LEASE_MS + 2 * SLACK_MS);
    assert_lk(0, lk_rwlock_unlock(config));
}

/* ... and new readers, who would wait behind a living writer, one short delay, however many died. */
static void killed_writers_keep_readers_out_for_a_moment(struct world *w)
{
    struct role *holder = new_role(w, false);
    pid_t pids[3], reading = world_fork(w, hold, holder);
    for (int i = 0; i < 3; i++)
        pids[i] = world_fork(w, wait_in_vain, new_role(w, true));
    eventually(world_rwqueued(w, "config") == 3, 5000);
    for (int i = 0; i < 3; i++)
        world_kill(w, pids[i]);
    open_config(w, "");
    int64_t began_ms = now_ms();
    assert_lk(0, lk_rwlock_rdlockfor(config, 10000));
    assert_between(now_ms() - began_ms, 0, 2500 + 2000 + SLACK_MS); /* their silence, and a poll */
    assert_lk(0, lk_rwlock_tryrdlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    world_allow(w, "latchkey:queue:writers:{config}");
    world_allow(w, "latchkey:alive:rw:{config}");
    gate_open(&holder->leave);
    assert_int_equal(0, world_wait(w, reading));
}

/* A fixed lease is not renewed, a capped one not beyond its cap, all others as long as it takes. */
static void leases_are_renewed_as_the_attributes_say(struct world *w)
{
    lk_rwlockattr_t fixed = { .size = sizeof fixed, .fixed = 1, .lease_ms = 400 };
    lk_rwlockattr_t capped = { .size = sizeof capped, .max_hold_ms = 400 };
    open_config(w, "lease=2s&command_timeout=650ms");
    lk_rwlock_t *one = world_rwlock(w, client, "one", &fixed);
    lk_rwlock_t *two = world_rwlock(w, client, "two", &capped);
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_rdlock(one));
    assert_lk(0, lk_rwlock_wrlock(two));
    sleep_ms(LEASE_MS * 3 / 2);
    assert_lk(0, lk_rwlock_check(config));
    assert_between(left_ms(w), 1, LEASE_MS);
    assert_lk(ESTALE, lk_rwlock_unlock(one));
    assert_lk(ESTALE, lk_rwlock_unlock(two));
    assert_lk(0, lk_rwlock_unlock(config));
}

int main(void)
{
    return world_run(a_killed_readers_own_lease_ends_whoever_else_renews,
                     the_writer_comes_when_the_dead_readers_lease_ends, killed_writers_keep_readers_out_for_a_moment,
                     leases_are_renewed_as_the_attributes_say);
}
