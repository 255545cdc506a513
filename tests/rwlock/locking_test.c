/* SPDX-License-Identifier: MIT */
/*
 * locking_test.c - many readers or one writer, nested as one likes, by every call that locks
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <time.h>

static lk_client_t *client;
static lk_rwlock_t *config, *same_name;

static void open_both(struct world *w, const char *options)
{
    client = world_client(w, options);
    config = world_rwlock(w, client, "config", NULL);
    same_name = world_rwlock(w, world_client(w, options), "config", NULL);
}

VISIT(try_read, rw, lk_rwlock_tryrdlock(rw), lk_rwlock_unlock(rw))
VISIT(try_write, rw, lk_rwlock_trywrlock(rw), lk_rwlock_unlock(rw))

/* What the lock is for: readers share it, a writer has it alone; in one process and across two. */
static void readers_share_and_a_writer_is_alone(struct world *w)
{
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_rdlock(same_name));
    assert_int_equal(0, in_thread(try_read, config));
    assert_int_equal(EBUSY, in_thread(try_write, config));
    assert_int_equal(2, world_rwholds(w, "config"));
    assert_lk(0, lk_rwlock_unlock(same_name));
    assert_lk(EBUSY, lk_rwlock_trywrlock(same_name));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_trywrlock(same_name));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(config));
    assert_int_equal(EBUSY, in_thread(try_read, same_name));
    assert_lk(0, lk_rwlock_unlock(same_name));
    assert_lk(EPERM, lk_rwlock_unlock(same_name));
    assert_false(world_exists(w, "latchkey:rw:{config}"));
}

/* Levels are counted here; the server sees one hold, and hears of the last unlock only. */
static void both_modes_nest_without_a_round_trip(struct world *w)
{
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    int64_t before = world_commands(w, "evalsha");
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, lk_rwlock_tryrdlock(config));
    assert_lk(0, lk_rwlock_rdlockfor(config, 0));
    for (int i = 0; i < 3; i++)
        assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(before, world_commands(w, "evalsha"));
    assert_int_equal(1, world_rwholds(w, "config"));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EPERM, lk_rwlock_unlock(config));

    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_trywrlock(config));
    assert_int_equal(1, world_rwholds(w, "config"));
    for (int i = 0; i < 3; i++) {
        assert_lk(EBUSY, lk_rwlock_tryrdlock(same_name));
        assert_lk(0, lk_rwlock_unlock(config));
    }
    assert_lk(EPERM, lk_rwlock_unlock(config));
    assert_false(world_exists(w, "latchkey:rw:{config}"));
}

/* A writer may call what only reads. Its reading ends first; what is left is writing. */
static void a_writer_may_read_and_unlock_ends_that_first(struct world *w)
{
    uint64_t token;
    open_both(w, "");
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(0, write_once(config)); /* the read */
    assert_lk(EBUSY, lk_rwlock_tryrdlock(same_name));
    assert_lk(0, lk_rwlock_token(config, &token));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(same_name));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_tryrdlock(same_name));
    assert_lk(0, lk_rwlock_unlock(same_name));
}

/* To go up would wait for itself, for ever: that is said at once, and nothing changes. */
static void a_reader_that_wants_to_write_is_told(struct world *w)
{
    struct timespec past = { 1, 0 };
    uint64_t token;
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(EDEADLK, lk_rwlock_wrlockfor(config, LK_FOREVER));
    assert_lk(EDEADLK, lk_rwlock_wrlockfor(config, 0));
    assert_lk(EDEADLK, lk_rwlock_timedwrlock(config, &past));
    assert_lk(EBUSY, lk_rwlock_trywrlock(config)); /* as POSIX */
    assert_lk(EPERM, lk_rwlock_token(config, &token));
    assert_lk(0, lk_rwlock_check(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EPERM, lk_rwlock_unlock(config));
}

static struct timespec in_ms(clockid_t clock, int64_t ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Each timed call ends in time, and leaves nothing in the queue. */
static void every_timed_call_times_out(struct world *w)
{
    enum { WAIT_MS = 60 };
    static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
    open_both(w, "");
    for (int writer = 0; writer < 2; writer++) {
        assert_lk(0, writer ? lk_rwlock_wrlock(config) : lk_rwlock_rdlock(config));
        for (int i = 0; i < 10; i++) {
            struct timespec at = in_ms(clocks[i % 3], WAIT_MS);
            int64_t began_ms = now_ms();
            if (!writer && i % 2 == 1)
                continue; /* readers would come in */
            assert_lk(ETIMEDOUT, i == 0   ? lk_rwlock_timedwrlock(same_name, &at)
                                 : i == 3 ? lk_rwlock_timedrdlock(same_name, &at)
                                 : i == 6 ? lk_rwlock_wrlockfor(same_name, WAIT_MS)
                                 : i == 7 ? lk_rwlock_rdlockfor(same_name, WAIT_MS)
                                 : i % 2  ? lk_rwlock_clockrdlock(same_name, clocks[i % 3], &at)
                                          : lk_rwlock_clockwrlock(same_name, clocks[i % 3], &at));
            assert_between(now_ms() - began_ms, WAIT_MS - 2, WAIT_MS + SLACK_MS);
            assert_int_equal(0, world_rwqueued(w, "config"));
        }
        assert_lk(ETIMEDOUT, lk_rwlock_wrlockfor(same_name, 0));
        assert_lk(0, lk_rwlock_unlock(config));
    }
}

/* A time that has passed still takes what there is; times and attributes against the rules are refused. */
static void the_rules_for_times_and_attributes(struct world *w)
{
    struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 };
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    lk_rwlock_t rw;
    open_both(w, "");
    assert_lk(0, lk_rwlock_timedrdlock(config, &past));
    assert_lk(0, lk_rwlock_clockrdlock(same_name, CLOCK_MONOTONIC, &past));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(same_name));
    assert_lk(0, lk_rwlock_timedwrlock(config, &past));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(EINVAL, lk_rwlock_timedrdlock(config, &wrong));
    assert_lk(EINVAL, lk_rwlock_clockwrlock(config, CLOCK_PROCESS_CPUTIME_ID, &past));
    assert_lk(EINVAL, lk_rwlock_rdlockfor(config, -2));
    assert_lk(EINVAL, lk_rwlock_rdlock(NULL));
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "latchkey:config", NULL));

    attr.prefer = 4;
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "new", &attr));
    attr.prefer = LK_RWLOCK_PREFER_WRITER;
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "config", &attr)); /* belongs to the name */
    attr.robust = 2;
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "new", &attr));
    attr.robust = 0;
    attr.lease_ms = 99;
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "new", &attr));
    attr.lease_ms = 0;
    attr.size = 0;
    assert_lk(EINVAL, lk_rwlock_init(&rw, client, "new", &attr));
    attr.size = sizeof attr;
    assert_lk(0, lk_rwlock_init(&rw, client, "new", &attr));
    assert_lk(0, lk_rwlock_destroy(&rw));
}

static int read_at_gate(void *gate)
{
    int rc = lk_rwlock_rdlock(config);
    gate_pass(gate);
    return rc != 0 ? rc : lk_rwlock_unlock(config);
}

/* What is held or waited for is not destroyed. */
static void destroy_refuses_while_in_use(struct world *w)
{
    struct gate gate = { 0 };
    struct worker reader;
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(EBUSY, lk_rwlock_destroy(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_wrlock(same_name));
    worker_start(&reader, read_at_gate, &gate);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    assert_lk(EBUSY, lk_rwlock_destroy(config));
    assert_lk(0, lk_rwlock_unlock(same_name));
    gate_open(&gate);
    assert_int_equal(0, worker_join(&reader));
}

/* A name with a tag, behind a client's prefix, has keys of its own in the slot of that tag. */
static void names_follow_the_rule(struct world *w)
{
    lk_client_t *prefixed = world_client(w, "prefix=shop:");
    lk_rwlock_t *tagged = world_rwlock(w, prefixed, "{a}", NULL);
    lk_rwlock_t *plain = world_rwlock(w, prefixed, "a", NULL);
    assert_lk(0, lk_rwlock_wrlock(tagged));
    assert_string_equal("latchkey:rw::shop:{a} latchkey:settings:rw::shop:{a} redisson_lock_token:shop:{a}",
                        world_str(w, "EVAL %s 0",
                                  "local k = redis.call('KEYS', '*') table.sort(k) "
                                  "return table.concat(k, ' ')"));
    assert_lk(0, lk_rwlock_trywrlock(plain));
    assert_true(world_exists(w, "latchkey:rw:{shop:a}"));
    assert_lk(0, lk_rwlock_unlock(plain));
    assert_lk(0, lk_rwlock_unlock(tagged));
}

/* A time that has passed changes nothing of what it is to lock again, as POSIX has it. */
static void a_passed_time_is_not_looked_at_by_a_holder(struct world *w)
{
    static const struct timespec past = { 1, 0 };
    open_both(w, "");
    assert_lk(0, lk_rwlock_rdlock(config));
    assert_lk(EDEADLK, lk_rwlock_timedwrlock(config, &past));
    assert_lk(EDEADLK, lk_rwlock_wrlockfor(config, 0));
    assert_lk(0, lk_rwlock_timedrdlock(config, &past));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_timedwrlock(config, &past));
    assert_lk(0, lk_rwlock_timedrdlock(config, &past));
    for (int i = 0; i < 3; i++)
        assert_lk(0, lk_rwlock_unlock(config));
    assert_int_equal(0, world_rwholds(w, "config"));
}

/* --- one that is not reentrant ------------------------------------------------------------------------------------------ */

static lk_rwlock_t *rival;

static void open_nonreentrant(struct world *w)
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
    open_nonreentrant(w);
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
    open_nonreentrant(w);
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
    open_nonreentrant(w);
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
    open_nonreentrant(w);
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
    open_nonreentrant(w);
    lk_rwlock_t *reentrant = world_rwlock(w, client, "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_wrlock(reentrant));
    assert_lk(EDEADLK, lk_rwlock_wrlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    assert_lk(0, lk_rwlock_unlock(config));
    how.owner = world_newowner(w, client);
    assert_lk(0, lk_rwlock_wrlockwith(config, &how));
    assert_lk(EDEADLK, lk_rwlock_wrlockwith(config, &how));
    assert_lk(EDEADLK, lk_rwlock_rdlockwith(config, &how));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(config)); /* this thread: another owner */
    assert_lk(0, lk_rwlock_unlockby(config, how.owner));
}

static void attributes_are_checked(struct world *w)
{
    lk_rwlockattr_t odd = LK_RWLOCKATTR_INIT, room = LK_RWLOCKATTR_INIT;
    lk_rwlock_t other;
    open_nonreentrant(w);
    odd.nonreentrant = 2;
    room.lk_room = 1;
    assert_lk(EINVAL, lk_rwlock_init(&other, client, "other", &odd));
    assert_lk(EINVAL, lk_rwlock_init(&other, client, "other", &room));
}

int main(void)
{
    return world_run(a_passed_time_is_not_looked_at_by_a_holder, readers_share_and_a_writer_is_alone,
                     both_modes_nest_without_a_round_trip, a_writer_may_read_and_unlock_ends_that_first,
                     a_reader_that_wants_to_write_is_told, every_timed_call_times_out,
                     the_rules_for_times_and_attributes, destroy_refuses_while_in_use, names_follow_the_rule,
                     a_writer_does_not_write_again, a_writer_does_not_read_as_well, a_reader_reads_again,
                     who_went_down_reads_again, objects_and_owners_are_told_apart, attributes_are_checked);
}
