/* SPDX-License-Identifier: MIT */
/*
 * nonreentrant_test.c - locking again as pthreads have it: a writer waits for itself, and is told; readers are counted
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

static lk_client_t *client;
static lk_rwlock_t *config, *rival;

static void open_both(struct world *w)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    attr.nonreentrant = 1;
    client = world_client(w, "");
    config = world_rwlock(w, client, "config", &attr);
    rival = world_rwlock(w, world_client(w, ""), "config", &attr);
}

static void a_writer_does_not_write_again(struct world *w)
{
    struct timespec past = { 1, 0 };
    lk_how_t how = LK_HOW_INIT;
    open_both(w);
    assert_lk(0, lk_rwlock_wrlock(config));
    int64_t sent = world_commands(w, "evalsha");
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(EDEADLK, lk_rwlock_wrlockfor(config, LK_FOREVER));
    assert_lk(EDEADLK, lk_rwlock_wrlockfor(config, 0));
    assert_lk(EDEADLK, lk_rwlock_timedwrlock(config, &past));
    assert_lk(EDEADLK, lk_rwlock_wrlockwith(config, &how));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config)); /* as POSIX */
    assert_int_equal(sent, world_commands(w, "evalsha"));
    assert_lk(0, lk_rwlock_check(config));
    assert_lk(0, lk_rwlock_unlock(config)); /* one level, whatever was tried */
    assert_lk(EPERM, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_trywrlock(rival));
    assert_lk(0, lk_rwlock_unlock(rival));
}

static void a_writer_does_not_read_as_well(struct world *w)
{
    open_both(w);
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(EDEADLK, lk_rwlock_rdlock(config));
    assert_lk(EDEADLK, lk_rwlock_rdlockfor(config, 0));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(config));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(rival));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EPERM, lk_rwlock_unlock(config));
}

/* POSIX: a thread may hold several read locks, and unlocks each. */
static void a_reader_reads_again(struct world *w)
{
    open_both(w);
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_tryrdlock(config));
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config));
    for (int i = 0; i < 3; i++) {
        assert_lk(EBUSY, lk_rwlock_trywrlock(rival));
        assert_lk(0, lk_rwlock_unlock(config));
    }
    assert_lk(EPERM, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_trywrlock(rival));
    assert_lk(0, lk_rwlock_unlock(rival));
}

/* From then on it is a reader like others. */
static void who_went_down_reads_again(struct world *w)
{
    open_both(w);
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_tryrdlock(rival));
    assert_lk(0, lk_rwlock_unlock(rival));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EPERM, lk_rwlock_unlock(config));
}

/* Each object says for itself, and each owner has a hold of its own. */
static void objects_and_owners_are_told_apart(struct world *w)
{
    lk_how_t how = LK_HOW_INIT;
    open_both(w);
    lk_rwlock_t *reentrant = world_rwlock(w, client, "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_wrlock(reentrant));
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_owner_new(client, &how.owner));
    assert_lk(0, lk_rwlock_wrlockwith(config, &how));
    assert_lk(EDEADLK, lk_rwlock_wrlockwith(config, &how));
    assert_lk(EDEADLK, lk_rwlock_rdlockwith(config, &how));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(config)); /* this thread: another owner */
    assert_lk(0, lk_rwlock_unlockby(config, how.owner));
    assert_lk(0, lk_owner_free(how.owner));
}

static void attributes_are_checked(struct world *w)
{
    lk_rwlockattr_t odd = LK_RWLOCKATTR_INIT, room = LK_RWLOCKATTR_INIT;
    lk_rwlock_t other;
    open_both(w);
    odd.nonreentrant = 2;
    room.lk_room = 1;
    assert_lk(EINVAL, lk_rwlock_init(&other, client, "other", &odd));
    assert_lk(EINVAL, lk_rwlock_init(&other, client, "other", &room));
}

int main(void)
{
    return world_run(a_writer_does_not_write_again, a_writer_does_not_read_as_well, a_reader_reads_again,
                     who_went_down_reads_again, objects_and_owners_are_told_apart, attributes_are_checked);
}
