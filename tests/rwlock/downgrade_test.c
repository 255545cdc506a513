/* SPDX-License-Identifier: MIT */
/*
 * downgrade_test.c - from writing to reading: nobody writes in between, and readers that wait come in
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_client_t *client;
static lk_rwlock_t *config, *same_name;

static void open_both(struct world *w, const char *options)
{
    client = world_client(w, options);
    config = world_rwlock(w, client, "config", NULL);
    same_name = world_rwlock(w, world_client(w, options), "config", NULL);
}

/* A writer that is done changing goes on reading; readers that wait need not wait for the rest. */
static void waiting_readers_come_in_up_to_the_next_writer(struct world *w)
{
    struct worker readers[3], writer;
    open_both(w, "lease=20s&poll=5s");
    assert_lk(0, lk_rwlock_wrlock(config));
    worker_start(&readers[0], read_once, config);
    worker_start(&readers[1], read_once, same_name);
    eventually(world_rwqueued(w, "config") == 2, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 2, 5000); /* who is deaf is passed over */
    worker_start(&writer, write_once, same_name);
    eventually(world_rwqueued(w, "config") == 3, 5000);
    worker_start(&readers[2], read_once, config);
    eventually(world_rwqueued(w, "config") == 4, 5000);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_int_equal(0, worker_join(&readers[0]));
    assert_int_equal(0, worker_join(&readers[1]));
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
    sleep_ms(20);
    assert_int_equal(2, world_rwqueued(w, "config")); /* the writer, and the reader behind it */
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_check(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, worker_join(&writer));
    assert_int_equal(0, worker_join(&readers[2]));
}

/* All levels become reading, so a program that unlocks as often as it locked goes on working. */
static void nested_levels_become_reading(struct world *w)
{
    uint64_t token;
    open_both(w, "");
    assert_lk(EPERM, lk_rwlock_downgrade(config));
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_lk(EPERM, lk_rwlock_downgrade(config));
    assert_lk(EPERM, lk_rwlock_token(config, &token));
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_rwlock_rdlock(same_name));
        assert_lk(EBUSY, lk_rwlock_trywrlock(same_name));
        assert_lk(0, lk_rwlock_unlock(same_name));
        assert_lk(0, lk_rwlock_unlock(config));
    }
    assert_lk(EPERM, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_trywrlock(same_name));
    assert_lk(0, lk_rwlock_unlock(same_name));
}

/* What was a writer is renewed as a reader, under the name the server knows it by. */
static void it_is_renewed_afterwards(struct world *w)
{
    open_both(w, "lease=2s&command_timeout=650ms");
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_downgrade(config));
    sleep_ms(2600);
    assert_lk(0, lk_rwlock_check(config));
    assert_lk(EBUSY, lk_rwlock_trywrlock(same_name));
    world_redis(w, "SCRIPT FLUSH");
    assert_lk(0, lk_rwlock_unlock(config));
    assert_false(world_exists(w, "latchkey:rw:{config}"));
}

/* Who lost its hold keeps nothing, and brings nothing back. */
static void a_lost_writer_cannot_go_down(struct world *w)
{
    open_both(w, "");
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_forceunlock(same_name));
    assert_lk(ESTALE, lk_rwlock_downgrade(config));
    assert_false(world_exists(w, "latchkey:rw:{config}"));
    assert_lk(ESTALE, lk_rwlock_downgrade(config));
    assert_lk(ESTALE, lk_rwlock_unlock(config));
}

/* While it is not known whether others read already, nobody may go on writing. */
static void an_unknown_outcome_counts_as_reading(struct world *w)
{
    uint64_t token;
    open_both(w, "lease=10s&command_timeout=500ms");
    assert_lk(0, lk_rwlock_wrlock(config));
    world_stop_server(w);
    assert_lk(EIO, lk_rwlock_downgrade(config));
    assert_lk(EPERM, lk_rwlock_token(config, &token));
    world_cont_server(w);
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_check(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, write_once(same_name));
}

static struct gate stop;

static int write_again_and_again(int index, void *arg)
{
    (void)index;
    while (!gate_is_open(&stop)) {
        int rc = lk_rwlock_wrlock(same_name);
        if (rc != 0)
            return rc;
        ++*(int *)arg;
        rc = lk_rwlock_unlock(same_name);
        if (rc != 0)
            return rc;
    }
    return 0;
}

WORK(writers, arg, run_threads(3, write_again_and_again, arg))

/* With writers waiting at each moment, none comes in between the change and the reading of it. */
static void there_is_no_gap(struct world *w)
{
    struct worker crowd;
    int changes = 0;
    open_both(w, "");
    stop = (struct gate){ 0 };
    worker_start(&crowd, writers, &changes);
    for (int i = 0; i < 100; i++) {
        assert_lk(0, lk_rwlock_wrlock(config));
        int mine = ++changes;
        assert_lk(0, lk_rwlock_downgrade(config));
        assert_int_equal(mine, changes);
        sleep_ms(1);
        assert_int_equal(mine, changes);
        assert_lk(0, lk_rwlock_unlock(config));
    }
    gate_open(&stop);
    assert_int_equal(0, worker_join(&crowd));
}

/* With faults between its steps nobody notices it. */
static void it_goes_on_when_connections_end(struct world *w)
{
    open_both(w, "lease=3s&command_timeout=980ms");
    for (int i = 0; i < WORLD_BLOWS; i++) {
        assert_lk(0, lk_rwlock_wrlock(config));
        world_blow(w, i);
        assert_lk(0, lk_rwlock_downgrade(config));
        world_blow(w, i);
        assert_lk(0, lk_rwlock_rdlock(same_name));
        sleep_ms(1100); /* a renewal */
        world_blow(w, i);
        assert_lk(0, lk_rwlock_unlock(config));
        assert_lk(0, lk_rwlock_unlock(same_name));
        assert_false(world_exists(w, "latchkey:rw:{config}"));
    }
}

/* A full server takes no new holders, but its writer goes down, and hands over to those who wait. */
static void a_full_server_serves_its_writer(struct world *w)
{
    struct worker readers[2];
    open_both(w, "lease=3s");
    assert_lk(0, lk_rwlock_wrlock(config));
    worker_start(&readers[0], read_once, same_name);
    worker_start(&readers[1], read_once, config);
    eventually(world_rwqueued(w, "config") == 2, 5000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 2, 5000); /* asking again would need memory */
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
    world_redis(w, "CONFIG SET maxmemory 1");
    assert_lk(EBUSY, lk_rwlock_trywrlock(same_name));
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_int_equal(0, worker_join(&readers[0]));
    assert_int_equal(0, worker_join(&readers[1]));
    assert_lk(ENOSPC, lk_rwlock_tryrdlock(same_name));
    assert_lk(0, lk_rwlock_unlock(config));
    world_redis(w, "CONFIG SET maxmemory 0");
}

/* What is not a lock of ours stays what it is. */
static void a_key_of_another_type_is_left_alone(struct world *w)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    open_both(w, "lease=3s");
    world_redis(w, "SET latchkey:rw:{config} text");
    assert_lk(EPROTO, lk_rwlock_info(config, &info));
    assert_lk(EPROTO, lk_rwlock_forceunlock(config));
    assert_string_equal("text", world_str(w, "GET latchkey:rw:{config}"));
    world_redis(w, "DEL latchkey:rw:{config}");
}

/* Without pub/sub it is slower, and otherwise the same. */
static void polling_works_as_well(struct world *w)
{
    struct worker readers[2], writer;
    open_both(w, "pubsub=no&poll=100ms");
    assert_lk(0, lk_rwlock_wrlock(config));
    worker_start(&readers[0], read_once, same_name);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    worker_start(&readers[1], read_once, same_name); /* at the same place, or behind the writer */
    worker_start(&writer, write_once, same_name);
    eventually(world_rwqueued(w, "config") >= 2, 5000);
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, worker_join(&readers[0]));
    assert_int_equal(0, worker_join(&readers[1]));
    assert_int_equal(0, worker_join(&writer));
}

int main(void)
{
    return world_run(waiting_readers_come_in_up_to_the_next_writer, nested_levels_become_reading,
                     it_is_renewed_afterwards, a_lost_writer_cannot_go_down, an_unknown_outcome_counts_as_reading,
                     there_is_no_gap,
                     it_goes_on_when_connections_end, a_full_server_serves_its_writer,
                     a_key_of_another_type_is_left_alone, polling_works_as_well);
}
