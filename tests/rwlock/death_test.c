/* SPDX-License-Identifier: MIT */
/*
 * death_test.c - holders and waiters that die, hang or forget: each lease ends for itself, no place blocks
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 24
 */
#include "world.h"

#include <stdio.h>

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

/* A writer that is killed keeps the lock for its lease, not longer and not less. */
static void a_killed_writer_is_waited_for_once(struct world *w)
{
    for (int write = 0; write < 2; write++) {
        pid_t writer = world_fork(w, hold, new_role(w, true));
        open_config(w, "");
        int64_t began_ms = now_ms(), before_ms = world_killholder(w, writer, "config");
        assert_between(before_ms, 1, LEASE_MS);
        assert_lk(0, write ? lk_rwlock_wrlockfor(config, 5000) : lk_rwlock_rdlockfor(config, 5000));
        assert_between(now_ms() - began_ms, before_ms - 2, before_ms + 2 * SLACK_MS);
        assert_lk(0, lk_rwlock_unlock(config));
        world_close(w, client);
    }
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

/* Places of the dead cost those behind them nothing when the lock is free ... */
static void killed_waiters_are_passed_over(struct world *w)
{
    struct role *holder = new_role(w, true);
    pid_t pids[4], holding = world_fork(w, hold, holder);
    for (int i = 0; i < 4; i++) {
        pids[i] = world_fork(w, wait_in_vain, new_role(w, i % 2 == 0));
        eventually(world_rwqueued(w, "config") == i + 1, 5000);
    }
    eventually(world_listening(w, "rw:{config}"), 5000); /* those who do not yet would have a short claim each */
    for (int i = 0; i < 4; i++)
        world_kill(w, pids[i]);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 0, 5000); /* the server has noticed */
    gate_open(&holder->leave);
    assert_int_equal(0, world_wait(w, holding));
    open_config(w, "");
    for (int i = 0; i < 3; i++) {
        int64_t began_ms = now_ms();
        assert_lk(0, lk_rwlock_wrlockfor(config, 5000));
        assert_lk(0, lk_rwlock_unlock(config));
        assert_lk(0, lk_rwlock_rdlockfor(config, 5000));
        assert_lk(0, lk_rwlock_unlock(config));
        assert_between(now_ms() - began_ms, 0, SLACK_MS);
    }
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

/* What a suspended child found out when it went on. */
struct findings {
    bool write;
    struct gate resumed, looked, close;
    int remaining, again, unlock, twice;
};

static int hold_and_look(struct world *w, void *arg)
{
    struct findings *found = arg;
    int64_t ms;
    open_config(w, "lease=2s");
    assert_lk(0, found->write ? lk_rwlock_wrlock(config) : lk_rwlock_rdlock(config));
    world_ready(w);
    gate_pass(&found->resumed);
    found->remaining = lk_rwlock_remaining(config, &ms);
    found->again = lk_rwlock_rdlock(config);
    found->unlock = lk_rwlock_unlock(config);
    found->twice = lk_rwlock_unlock(config);
    gate_open(&found->looked);
    gate_pass(&found->close);
    return 0;
}

/* Who sleeps through its lease finds out by itself; whoever came in meanwhile does not notice. */
static void a_stopped_holder_learns_of_its_loss(struct world *w)
{
    for (int write = 0; write < 2; write++) {
        struct findings *found = world_shared(w, sizeof *found);
        found->write = write;
        pid_t holder = world_fork(w, hold_and_look, found);
        open_config(w, "lease=20s");
        world_stop(holder);
        assert_lk(0, lk_rwlock_wrlockfor(config, 5000));
        world_stop_server(w); /* so nobody can tell it */
        gate_open(&found->resumed);
        world_cont(holder);
        gate_pass(&found->looked);
        world_cont_server(w);
        gate_open(&found->close);
        assert_int_equal(0, world_wait(w, holder));
        assert_int_equal(ESTALE, found->remaining);
        assert_int_equal(ESTALE, found->again);
        assert_int_equal(ESTALE, found->unlock);
        assert_int_equal(EPERM, found->twice);
        assert_lk(0, lk_rwlock_check(config));
        assert_lk(0, lk_rwlock_unlock(config));
        world_close(w, client);
    }
}

static int read_and_end(void *rw)
{
    return lk_rwlock_rdlock(rw);
}

static struct {
    int lost, kind, reason; /* atomic builtins */
    char name[32];
} heard;

static void hear(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type != LK_EVENT_LOST)
        return;
    snprintf(heard.name, sizeof heard.name, "%s", event->name);
    __atomic_store_n(&heard.kind, event->kind, __ATOMIC_SEQ_CST);
    __atomic_store_n(&heard.reason, event->reason, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&heard.lost, 1, __ATOMIC_SEQ_CST);
}

/* A reading thread that ends cannot unlock: its hold ends with its lease, and somebody is told whose it was. */
static void a_thread_that_ended_is_not_renewed(struct world *w)
{
    open_config(w, "lease=2s");
    __builtin_memset(&heard, 0, sizeof heard);
    assert_lk(0, lk_client_addlistener(client, hear, NULL, NULL));
    assert_lk(0, in_thread(read_and_end, config));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config));
    assert_lk(0, lk_rwlock_wrlockfor(config, LEASE_MS + 2 * SLACK_MS));
    eventually(__atomic_load_n(&heard.lost, __ATOMIC_SEQ_CST) == 1, SLACK_MS);
    assert_int_equal(LK_REASON_THREAD_EXIT, heard.reason);
    assert_int_equal(LK_KIND_RWLOCK, heard.kind);
    assert_string_equal("config", heard.name);

    world_redis(w, "DEL latchkey:rw:{config}");
    eventually(__atomic_load_n(&heard.lost, __ATOMIC_SEQ_CST) == 2, LEASE_MS);
    assert_int_equal(LK_REASON_GONE, heard.reason);
    assert_lk(ESTALE, lk_rwlock_unlock(config));
    assert_false(world_exists(w, "latchkey:rw:{config}")); /* nothing was brought back */
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
    return world_run(a_killed_writer_is_waited_for_once, a_killed_readers_own_lease_ends_whoever_else_renews,
                     the_writer_comes_when_the_dead_readers_lease_ends, killed_waiters_are_passed_over,
                     killed_writers_keep_readers_out_for_a_moment, a_stopped_holder_learns_of_its_loss,
                     a_thread_that_ended_is_not_renewed, leases_are_renewed_as_the_attributes_say);
}
