/* SPDX-License-Identifier: MIT */
/*
 * clock_jump_test.c - F35 and F36: the server's wall clock is set forward or back by an hour
 *
 * Leases end by that clock on the server, so forward all are over at once; back they would last for an hour,
 * but renewals set a relative time and repair that.
 *
 * simulated: yes
 * seconds: 12
 */
#include "news.h"
#include "robbery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef SERVER_CLOCK

enum { HOUR_MS = 3600000, LEASE_MS = 1500, COMMAND_MS = 450, WAKES_MS = 1000 };

static const char times[] = "lease=1500ms&command_timeout=450ms&poll=100ms&retry_max=50ms&connect_timeout=1400ms";

static char clock_path[] = "/tmp/lk-clock-XXXXXX";
static int64_t *offset_us;

/* Servers that are started from now on have our clock. */
static void make_a_clock(void)
{
    int fd = mkstemp(clock_path);
    assert_that(fd >= 0 && ftruncate(fd, sizeof *offset_us) == 0);
    offset_us = mmap(NULL, sizeof *offset_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_that(offset_us != MAP_FAILED);
    close(fd);
    setenv("SERVER_CLOCK", clock_path, 1);
    setenv("LD_PRELOAD", SERVER_CLOCK, 1);
}

static void jump(struct world *w, int64_t ms)
{
    int64_t before_s = strtoll(world_str(w, "EVAL %s 0", "return redis.call('TIME')[1]"), NULL, 10);
    __atomic_add_fetch(offset_us, ms * 1000, __ATOMIC_SEQ_CST);
    int64_t after_s = strtoll(world_str(w, "EVAL %s 0", "return redis.call('TIME')[1]"), NULL, 10);
    assert_between((after_s - before_s) * 1000, ms - 1000, ms + 5000);
}

static void jump_forward(struct world *w, const char *key)
{
    (void)key;
    jump(w, HOUR_MS);
}

/* --- back ------------------------------------------------------------------------------------------------------- */

/* What the lease still has, as the server sees it. */
static int64_t lease_left(struct world *w, const struct subject *s)
{
    static const char script[] =
        "if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return redis.call('PTTL', KEYS[1]) end "
        "local t = redis.call('TIME') "
        "return redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] - t[1] * 1000 - math.floor(t[2] / 1000)";
    char key[80];
    robbery_key(s, key);
    return world_int(w, "EVAL %s 1 %s", script, key);
}

struct waiter {
    struct subject *subject;
    uint64_t token;
};

static int wait_and_give(void *arg)
{
    struct waiter *waiter = arg;
    struct subject *s = waiter->subject;
    int rc = subject_take(s, PATIENT_MS);
    if (rc == 0 && s->kind->fenced)
        rc = s->kind->token(s, &waiter->token);
    return rc != 0 ? rc : subject_give(s);
}

static void a_jump_back_is_repaired_by_renewal(struct world *w, const struct subject_kind *kind)
{
    struct worker worker;
    uint64_t token = 0;
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    struct subject *mine = world_subject(w, one, kind, "thing");
    struct subject *theirs = world_subject(w, other, subject_keeper(kind), "thing");
    struct waiter waiter = { .subject = theirs };
    struct subject *fresh = world_subject(w, other, kind, "fresh");
    struct news *n = news_of(w, one, "thing");
    assert_lk(0, subject_take(mine, PATIENT_MS));
    if (kind->fenced)
        assert_lk(0, kind->token(mine, &token));
    worker_start(&worker, wait_and_give, &waiter);
    eventually(subject_queued(w, theirs) == 1, PATIENT_MS);

    jump(w, -HOUR_MS);
    if (kind->leased)
        eventually(lease_left(w, mine) <= LEASE_MS, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
    assert_lk(0, subject_take(fresh, 0));
    assert_lk(0, subject_give(fresh));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(mine));
    assert_int_equal(0, worker_join(&worker));
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_true(!kind->fenced || waiter.token > token);
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(n, type));
    assert_int_equal(0, subject_held(w, mine));
}

/* A lease that nobody renews lasts an hour too long then, which its holder does not rely on. An operator ends it. */
static void a_lease_that_is_not_renewed_stays(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    int64_t ms;
    lk_client_t *client = world_client(w, times), *other = world_client(w, times);
    attr.fixed = 1;
    lk_mutex_t *fixed = world_mutex(w, client, "thing", &attr);
    lk_mutex_t *wanted = world_mutex(w, other, "thing", NULL);
    assert_lk(0, lk_mutex_lock(fixed));
    jump(w, -HOUR_MS);
    eventually(lk_mutex_remaining(fixed, &ms) == ESTALE, LEASE_MS + 4 * SLACK_MS);
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(wanted, 3 * SLACK_MS));
    assert_lk(0, lk_mutex_forceunlock(wanted));
    assert_lk(0, lk_mutex_lockfor(wanted, WAKES_MS));
    assert_lk(ESTALE, lk_mutex_unlock(fixed));
    assert_lk(0, lk_mutex_check(wanted));
    assert_lk(0, lk_mutex_unlock(wanted));
}

/* --- latches have no lease ----------------------------------------------------------------------------------------- */

static void a_latch_only_counts(struct world *w)
{
    struct worker waiter;
    unsigned count;
    lk_client_t *client = world_client(w, times);
    lk_latch_t *gate = world_latch(w, client, "gate");
    for (int direction = -1; direction <= 1; direction += 2) {
        assert_lk(0, lk_latch_trysetcount(gate, 3));
        worker_start(&waiter, await_latch_patiently, gate);
        eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);
        assert_lk(0, lk_latch_countdown(gate));
        jump(w, direction * (int64_t)HOUR_MS);
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, lk_latch_getcount(gate, &count));
        assert_int_equal(1, count);
        assert_lk(0, lk_latch_countdown(gate));
        assert_int_equal(0, worker_join(&waiter));
    }
}

/* --- back, with runs and barriers: what is renewed lasts as long as it should -------------------------------------- */

static int meet(void *barrier)
{
    return lk_barrier_waitfor(barrier, PATIENT_MS);
}

static void a_run_and_a_round_go_on(struct world *w)
{
    struct worker party;
    world_allow(w, "latchkey:*:{stage}");
    world_allow(w, "latchkey:done:*");
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    lk_once_t *work = world_once(w, one, "work", NULL), *wanted = world_once(w, other, "work", NULL);
    lk_barrier_t *mine = world_barrier(w, one, "stage", 2, NULL), *theirs = world_barrier(w, other, "stage", 2, NULL);
    assert_lk(0, lk_once_begin(work, 0));
    worker_start(&party, meet, mine);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, PATIENT_MS);
    jump(w, -HOUR_MS);
    eventually(world_pttl(w, "latchkey:run:{work}") <= LEASE_MS, LEASE_MS / 3 + COMMAND_MS + 4 * SLACK_MS);
    assert_lk(0, lk_once_check(work));
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    assert_int_equal(0, worker_join(&party));
    assert_lk(0, lk_once_end(work, NULL));
    assert_lk(EALREADY, lk_once_begin(wanted, 0));
}

/* --- ahead, with a condition: its first ask comes too late, and the next one is the first all the same --------------- */

static void a_wait_learns_that_its_mutex_was_lost(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=40s&command_timeout=2s");
    lk_mutex_t *jobs = world_mutex(w, client, "jobs", NULL);
    lk_cond_t *some = world_cond(w, client, "jobs", NULL);
    assert_lk(0, lk_mutex_lock(jobs));
    jump(w, HOUR_MS);
    assert_lk(ESTALE, lk_cond_waitfor(some, jobs, 10000));
    assert_lk(EPERM, lk_mutex_unlock(jobs));
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_mutex_unlock(jobs));
}

int main(void)
{
    static const struct robbery forward[] = {
        { .name = "an hour later", .commit = jump_forward, .leases_only = true },
        { 0 },
    };
    make_a_clock();
    int failed = robbery_tests(forward);
    failed += subject_run(a_jump_back_is_repaired_by_renewal);
    failed += world_run(a_lease_that_is_not_renewed_stays, a_latch_only_counts, a_run_and_a_round_go_on,
                        a_wait_learns_that_its_mutex_was_lost);
    unlink(clock_path);
    return failed;
}

#else

int main(void)
{
    print_message("skipped: a server cannot be given a clock under a sanitizer\n");
    return 77;
}

#endif
