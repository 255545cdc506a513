/* SPDX-License-Identifier: MIT */
/*
 * robust_test.c - after a writer that died everybody is told, until another writer repaired what it left
 *
 * What it has in common with mutexes: lock/robust_test.c.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static const lk_rwlockattr_t robust = { .size = sizeof robust, .robust = 1 };
static const lk_rwlockattr_t brief = { .size = sizeof brief, .robust = 1, .lease_ms = 400 }; /* of who dies */

static lk_client_t *client;
static lk_rwlock_t *config, *briefly, *same_name;

static void open_both(struct world *w)
{
    client = world_client(w, "");
    config = world_rwlock(w, client, "config", &robust);
    briefly = world_rwlock(w, client, "config", &brief);
    same_name = world_rwlock(w, world_client(w, ""), "config", &robust);
}

WORK(write_lock, rw, lk_rwlock_wrlock(rw))
WORK(read_lock, rw, lk_rwlock_rdlock(rw))

static int read_and_tell(void *rw)
{
    int rc = lk_rwlock_rdlock(rw);
    int unlocked = lk_rwlock_unlock(rw);
    return unlocked != 0 ? unlocked : rc;
}

/* Somebody wrote, and its thread ended in the middle of it. */
static void leave_it_half_written(void)
{
    assert_lk(0, in_thread(write_lock, briefly));
}

/* Readers cannot repair anything: each is told, and none makes it worse or better by leaving. */
static void readers_are_told_until_a_writer_repaired_it(struct world *w)
{
    struct worker reader;
    open_both(w);
    leave_it_half_written();
    assert_lk(EOWNERDEAD, lk_rwlock_rdlock(config));
    assert_lk(EOWNERDEAD, lk_rwlock_tryrdlock(same_name));
    assert_lk(0, lk_rwlock_rdlock(same_name)); /* told once */
    assert_lk(EPERM, lk_rwlock_consistent(config));
    for (int i = 0; i < 2; i++)
        assert_lk(0, lk_rwlock_unlock(same_name));
    assert_lk(0, lk_rwlock_unlock(config));

    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    worker_start(&reader, read_and_tell, same_name);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(0, lk_rwlock_consistent(config));
    assert_lk(EINVAL, lk_rwlock_consistent(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, worker_join(&reader));
    assert_lk(0, lk_rwlock_wrlock(same_name));
    assert_lk(EINVAL, lk_rwlock_consistent(same_name));
    assert_lk(0, lk_rwlock_unlock(same_name));
    assert_false(world_exists(w, "latchkey:robust:rw:{config}"));
}

/* A reader changes nothing, so its death leaves nothing behind. */
static void a_reader_that_died_is_not_worth_a_word(struct world *w)
{
    open_both(w);
    assert_lk(0, in_thread(read_lock, briefly));
    assert_lk(0, write_once(config));
}

/* Those who waited when the writer died are told as well, by poll or by message. */
static void waiters_are_told(struct world *w)
{
    struct worker readers[2];
    open_both(w);
    leave_it_half_written();
    worker_start(&readers[0], read_and_tell, config);
    worker_start(&readers[1], read_and_tell, same_name);
    assert_int_equal(EOWNERDEAD, worker_join(&readers[0]));
    assert_int_equal(EOWNERDEAD, worker_join(&readers[1]));
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_consistent(config));
    assert_lk(0, lk_rwlock_unlock(config));
}

/* Who goes on reading without repair leaves it to the next writer; repaired before, it is in order. */
static void a_downgrade_keeps_what_is_known(struct world *w)
{
    open_both(w);
    for (int repaired = 0; repaired < 2; repaired++) {
        leave_it_half_written();
        assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
        if (repaired)
            assert_lk(0, lk_rwlock_consistent(config));
        assert_lk(0, lk_rwlock_downgrade(config));
        assert_lk(repaired ? 0 : EOWNERDEAD, lk_rwlock_rdlock(same_name));
        assert_lk(0, lk_rwlock_unlock(same_name));
        assert_lk(0, lk_rwlock_unlock(config));
        assert_lk(repaired ? 0 : EOWNERDEAD, lk_rwlock_wrlock(config));
        if (!repaired)
            assert_lk(0, lk_rwlock_consistent(config));
        assert_lk(0, lk_rwlock_unlock(config));
    }
}

/* Where the server may not have heard of the downgrade, to unlock does not pass for a repair. */
static void an_unknown_downgrade_is_no_repair(struct world *w)
{
    lk_rwlockattr_t attr = { .size = sizeof attr, .robust = 1, .lease_ms = 10000 };
    int rc;
    open_both(w);
    leave_it_half_written();
    lk_rwlock_t *rw = world_rwlock(w, client, "config", &attr);
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(rw));
    world_stop_server(w);
    assert_lk(EIO, lk_rwlock_downgrade(rw));
    world_cont_server(w);
    assert_lk(0, lk_rwlock_unlock(rw));
    rc = lk_rwlock_trywrlock(rw);
    assert_true(rc == EOWNERDEAD || rc == ENOTRECOVERABLE);
    if (rc == EOWNERDEAD)
        assert_lk(0, lk_rwlock_unlock(rw));
    assert_lk(0, lk_rwlock_forceunlock(rw));
}

int main(void)
{
    return world_run(readers_are_told_until_a_writer_repaired_it, a_reader_that_died_is_not_worth_a_word,
                     waiters_are_told, a_downgrade_keeps_what_is_known, an_unknown_downgrade_is_no_repair);
}
