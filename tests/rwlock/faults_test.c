/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - scripts flushed, connections killed, a server without memory, a key of another type
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 22
 */
#include "world.h"

static lk_client_t *client, *other;
static lk_rwlock_t *held, *wanted; /* one name, two clients */

static void open_both(struct world *w, const char *options)
{
    client = world_client(w, options);
    other = world_client(w, options);
    held = world_rwlock(w, client, "config", NULL);
    wanted = world_rwlock(w, other, "config", NULL);
}

/* Each step of a hold's life with a fault before it. */
static void a_holder_does_not_notice(struct world *w)
{
    uint64_t token, later;
    open_both(w, "lease=3s&command_timeout=980ms");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        world_blow(w, i);
        assert_lk(0, lk_rwlock_wrlock(held));
        assert_lk(0, lk_rwlock_token(held, &token));
        world_blow(w, i);
        assert_lk(EBUSY, lk_rwlock_tryrdlock(wanted));
        sleep_ms(1100); /* a renewal */
        world_blow(w, i);
        assert_lk(0, lk_rwlock_check(held));
        world_blow(w, i);
        assert_lk(0, lk_rwlock_downgrade(held));
        world_blow(w, i);
        assert_lk(0, lk_rwlock_rdlock(wanted));
        sleep_ms(1100);
        world_blow(w, i);
        assert_lk(0, lk_rwlock_unlock(held));
        world_blow(w, i);
        assert_lk(0, lk_rwlock_unlock(wanted));
        assert_false(world_exists(w, "latchkey:rw:{config}"));
        assert_lk(0, lk_rwlock_wrlock(wanted));
        assert_lk(0, lk_rwlock_token(wanted, &later));
        assert_true(later > token);
        assert_lk(0, lk_rwlock_unlock(wanted));
    }
}

/* Waiters of both modes whose connections are gone hear of the unlock all the same, long before their poll. */
static void waiters_do_not_notice(struct world *w)
{
    struct worker readers[2], writer;
    open_both(w, "lease=20s&poll=5s");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        assert_lk(0, lk_rwlock_wrlock(held));
        worker_start(&readers[0], read_once, wanted);
        eventually(world_rwqueued(w, "config") == 1, 5000);
        worker_start(&writer, write_once, wanted);
        eventually(world_rwqueued(w, "config") == 2, 5000);
        worker_start(&readers[1], read_once, wanted);
        eventually(world_rwqueued(w, "config") == 3, 5000);
        world_blow(w, i);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_rwlock_unlock(held)); /* at once: the messages may find nobody there */
        assert_int_equal(0, worker_join(&readers[0]));
        assert_int_equal(0, worker_join(&readers[1]));
        assert_int_equal(0, worker_join(&writer));
        assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
        assert_false(world_exists(w, "latchkey:rw:{config}"));
    }
}

struct traffic {
    int writers, readers; /* atomic builtins */
    int rounds;
    struct gate stop;
};

static struct traffic traffic;

static int visit_until_stopped(int index, void *arg)
{
    lk_rwlock_t *rw = index % 2 == 0 ? held : wanted;
    (void)arg;
    for (int i = index; !gate_is_open(&traffic.stop); i++) {
        bool write = i % 3 == 0;
        int *mine = write ? &traffic.writers : &traffic.readers;
        int rc = write ? lk_rwlock_wrlock(rw) : lk_rwlock_rdlock(rw);
        if (rc != 0)
            return rc;
        int among = __atomic_add_fetch(mine, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(write ? &traffic.readers : &traffic.writers, __ATOMIC_SEQ_CST) != 0 ||
            (write && among != 1))
            return -1;
        __atomic_add_fetch(&traffic.rounds, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(mine, 1, __ATOMIC_SEQ_CST);
        rc = lk_rwlock_unlock(rw);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Faults at every moment under load: nobody fails, nobody meets a writer, nothing stays behind. */
static void traffic_goes_on_under_a_hail_of_faults(struct world *w)
{
    traffic = (struct traffic){ 0 };
    open_both(w, "lease=10s&poll=300ms");
    assert_int_equal(0, world_hail(w, visit_until_stopped, &traffic.stop));
    assert_true(traffic.rounds > 8);
    assert_int_equal(0, world_rwqueued(w, "config"));
}

static void set_memory(struct world *w, const char *bytes)
{
    world_redis(w, "CONFIG SET maxmemory %s", bytes);
}

/* A full server takes no new holders; those it has are renewed, go down, give back, hand over. */
static void a_server_without_memory_serves_its_holders(struct world *w)
{
    struct worker readers[2];
    open_both(w, "lease=3s");
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
    for (int write = 0; write < 2; write++) {
        assert_lk(0, write ? lk_rwlock_wrlock(held) : lk_rwlock_rdlock(held));
        set_memory(w, "1");
        assert_lk(write ? EBUSY : ENOSPC, lk_rwlock_tryrdlock(wanted));
        assert_lk(EBUSY, lk_rwlock_trywrlock(wanted));
        assert_lk(ENOSPC, lk_rwlock_wrlockfor(wanted, 1000));
        assert_int_equal(0, world_rwqueued(w, "config"));
        sleep_ms(3500); /* longer than the lease: it is renewed */
        assert_lk(0, lk_rwlock_check(held));
        assert_lk(0, lk_rwlock_unlock(held));
        assert_false(world_exists(w, "latchkey:rw:{config}"));
        set_memory(w, "0");
    }
    assert_lk(0, lk_rwlock_wrlock(held));
    worker_start(&readers[0], read_once, wanted);
    worker_start(&readers[1], read_once, held);
    eventually(world_rwqueued(w, "config") == 2, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 2, 5000); /* asking again would need memory */
    set_memory(w, "1");
    assert_lk(0, lk_rwlock_downgrade(held));
    assert_int_equal(0, worker_join(&readers[0]));
    assert_int_equal(0, worker_join(&readers[1]));
    assert_lk(0, lk_rwlock_unlock(held));
    set_memory(w, "0");
}

/* What is not a lock of ours stays what it is. */
static void a_key_of_another_type_is_left_alone(struct world *w)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    open_both(w, "lease=3s");
    world_redis(w, "SET latchkey:rw:{config} text");
    assert_lk(EPROTO, lk_rwlock_rdlock(held));
    assert_lk(EPROTO, lk_rwlock_trywrlock(held));
    assert_lk(EPROTO, lk_rwlock_wrlockfor(held, 100));
    assert_lk(EPROTO, lk_rwlock_info(held, &info));
    assert_lk(EPROTO, lk_rwlock_forceunlock(held));
    assert_string_equal("text", world_str(w, "GET latchkey:rw:{config}"));
    assert_int_equal(0, world_rwqueued(w, "config"));
    world_redis(w, "DEL latchkey:rw:{config}");

    assert_lk(0, lk_rwlock_wrlock(held)); /* and when it is replaced under a holder */
    world_redis(w, "SET latchkey:rw:{config} text");
    int64_t ms;
    eventually(lk_rwlock_remaining(held, &ms) == ESTALE, 4000);
    assert_lk(ESTALE, lk_rwlock_unlock(held));
    assert_string_equal("text", world_str(w, "GET latchkey:rw:{config}"));
    world_redis(w, "DEL latchkey:rw:{config}");
}

/* Closing a client gives back what it holds, and ends what it waits for. */
static int closed_waiter(void *rw)
{
    return lk_rwlock_wrlock(rw);
}

static void closing_releases_and_cancels(struct world *w)
{
    struct worker waiter;
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(held));
    worker_start(&waiter, closed_waiter, wanted);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(0, close_by_hand(w, other));
    assert_lk(ECANCELED, worker_join(&waiter));
    assert_int_equal(0, world_rwqueued(w, "config"));
    assert_lk(ECANCELED, lk_rwlock_rdlock(wanted));
    assert_lk(0, close_by_hand(w, client));
    assert_false(world_exists(w, "latchkey:rw:{config}"));
}

/* Without pub/sub it is slower, and otherwise the same. */
static void polling_works_as_well(struct world *w)
{
    struct worker readers[2], writer;
    open_both(w, "pubsub=no&poll=100ms");
    assert_lk(0, lk_rwlock_wrlock(held));
    worker_start(&readers[0], read_once, wanted);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    worker_start(&readers[1], read_once, wanted); /* at the same place, or behind the writer */
    worker_start(&writer, write_once, wanted);
    eventually(world_rwqueued(w, "config") >= 2, 5000);
    assert_lk(0, lk_rwlock_unlock(held));
    assert_int_equal(0, worker_join(&readers[0]));
    assert_int_equal(0, worker_join(&readers[1]));
    assert_int_equal(0, worker_join(&writer));
}

int main(void)
{
    return world_run(a_holder_does_not_notice, waiters_do_not_notice, traffic_goes_on_under_a_hail_of_faults,
                     a_server_without_memory_serves_its_holders, a_key_of_another_type_is_left_alone,
                     closing_releases_and_cancels, polling_works_as_well);
}
