/* SPDX-License-Identifier: MIT */
/*
 * robust_test.c - after a writer that died everybody is told, until another writer repaired what it left
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

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

/* A writer that gives it back unrepaired says that it cannot be repaired; nobody gets it any more. */
static void given_back_unrepaired_it_is_refused_to_all(struct world *w)
{
    struct worker reader;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    open_both(w);
    leave_it_half_written();
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    worker_start(&reader, read_lock, same_name);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(ENOTRECOVERABLE, worker_join(&reader));
    assert_lk(ENOTRECOVERABLE, lk_rwlock_rdlock(config));
    assert_lk(ENOTRECOVERABLE, lk_rwlock_trywrlock(config));
    assert_lk(0, lk_rwlock_info(config, &info));
    assert_int_equal(0, info.recoverable);
    assert_int_equal(-1, world_pttl(w, "latchkey:robust:rw:{config}"));
    assert_lk(0, lk_rwlock_forceunlock(config)); /* an operator repaired it */
    assert_lk(0, write_once(config));
}

/* All who wait, and by themselves would ask late: those that the release tells tell the others. */
static void a_crowd_is_refused_at_once(struct world *w)
{
    enum { CROWD = 150, AT_ONCE_MS = 4000 };
    struct worker crowd[CROWD];
    open_both(w);
    same_name = world_rwlock(w, world_client(w, "lease=60s&poll=20s"), "config", &robust);
    leave_it_half_written();
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    for (int i = 0; i < CROWD; i++)
        worker_start(&crowd[i], write_lock, same_name);
    eventually(world_rwqueued(w, "config") == CROWD, 10000);
    eventually(world_listening(w, "rw:{config}"), 10000);
    assert_lk(0, lk_rwlock_unlock(config));
    int64_t began_ms = now_ms();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ENOTRECOVERABLE, worker_join(&crowd[i]));
    assert_between(now_ms() - began_ms, 0, AT_ONCE_MS);
    assert_lk(0, lk_rwlock_forceunlock(config));
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

/* A writer that was robbed may have been in the middle of it, too. */
static void who_was_robbed_counts_as_dead(struct world *w)
{
    open_both(w);
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_forceunlock(same_name));
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(same_name));
    assert_lk(0, lk_rwlock_consistent(same_name));
    assert_lk(ESTALE, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_check(same_name));
    assert_lk(0, lk_rwlock_unlock(same_name));
}

/* An operator need not know that it is robust: its mark tells, also for those who wait already. */
static void robbed_by_who_does_not_know_it_counts_as_dead(struct world *w)
{
    struct worker reader;
    open_both(w);
    lk_rwlock_t *plain = world_rwlock(w, world_client(w, ""), "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(config));
    worker_start(&reader, read_and_tell, same_name);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    eventually(world_listening(w, "rw:{config}"), 5000); /* else it asks, and the mark is looked at then */
    assert_lk(0, lk_rwlock_forceunlock(plain));
    assert_int_equal(EOWNERDEAD, worker_join(&reader));
    assert_lk(ESTALE, lk_rwlock_unlock(config));

    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(ENOTRECOVERABLE, lk_rwlock_rdlock(same_name));
    assert_lk(0, lk_rwlock_forceunlock(plain));
    assert_lk(0, write_once(config));
}

/* A writer whose answer was lost was not told of the death: what it gives back unseen tells the next one. */
static void who_was_not_told_leaves_it_to_the_next(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_rwlock_t *unheard = world_rwlock(w, proxy_client(p, "command_timeout=500ms"), "config", &robust);
    open_both(w);
    assert_lk(0, lk_rwlock_wrlock(unheard)); /* from now on the server knows the scripts */
    assert_lk(0, lk_rwlock_unlock(unheard));
    leave_it_half_written();
    eventually(!world_exists(w, "latchkey:rw:{config}"), 5000);
    proxy_stall(p, PROXY_DOWN);
    assert_lk(EIO, lk_rwlock_trywrlock(unheard));
    proxy_resume(p);
    eventually(!world_exists(w, "latchkey:rw:{config}"), 5000);
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_consistent(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, write_once(config));
}

/* A client gives nothing back in the name of a thread that died. */
static void a_close_does_not_hide_a_death(struct world *w)
{
    lk_client_t *mortal = world_open(w, "");
    lk_rwlock_t rw;
    assert_lk(0, lk_rwlock_init(&rw, mortal, "config", &brief));
    assert_lk(0, in_thread(write_lock, &rw));
    assert_lk(0, lk_client_close(mortal));
    assert_lk(0, lk_rwlock_destroy(&rw));
    open_both(w);
    assert_lk(EOWNERDEAD, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_consistent(config));
    assert_lk(0, lk_rwlock_unlock(config));
}

int main(void)
{
    return world_run(readers_are_told_until_a_writer_repaired_it, a_reader_that_died_is_not_worth_a_word,
                     waiters_are_told, given_back_unrepaired_it_is_refused_to_all, a_crowd_is_refused_at_once, a_downgrade_keeps_what_is_known,
                     an_unknown_downgrade_is_no_repair, who_was_robbed_counts_as_dead,
                     robbed_by_who_does_not_know_it_counts_as_dead, who_was_not_told_leaves_it_to_the_next,
                     a_close_does_not_hide_a_death);
}
