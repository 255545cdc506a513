/* SPDX-License-Identifier: MIT */
/*
 * clock_test.c - F61, F62: the machine was suspended; somebody sets this machine's clock
 *
 * The program's clock_gettime() is this file's: it adds what a test wants to each clock.
 *
 * labels: memory
 */
#include "subject.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

#define OPTIONS "lease=900ms&command_timeout=150ms&poll=200ms"

static int64_t suspended_s, set_by_s;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_BOOTTIME)
        time->tv_sec += __atomic_load_n(&suspended_s, __ATOMIC_SEQ_CST);
    if (clock == CLOCK_REALTIME)
        time->tv_sec += __atomic_load_n(&set_by_s, __ATOMIC_SEQ_CST);
    return rc;
}

static void pass(int64_t *clock, int64_t seconds)
{
    __atomic_add_fetch(clock, seconds, __ATOMIC_SEQ_CST);
}

static struct {
    int lost;
} heard;

static void hear(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&heard.lost, 1, __ATOMIC_SEQ_CST);
}

struct waiter {
    struct subject *subject;
    int64_t timeout_ms, took_ms;
};

static int wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    int64_t began_ms = now_ms();
    int rc = subject_take(waiter->subject, waiter->timeout_ms);
    waiter->took_ms = now_ms() - began_ms;
    return rc;
}

/* Ten minutes without power: the first call afterwards says that the hold is lost, and waits are over. */
static void suspended(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    struct worker worker;
    int64_t left_ms;
    heard.lost = 0;
    assert_lk(0, lk_client_listen(ours, hear, NULL));
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");

    assert_lk(0, subject_take(mine, 1000));
    pass(&suspended_s, 600);
    assert_lk(kind->leased ? ESTALE : 0, subject_remaining(mine, &left_ms));
    assert_lk(kind->leased ? ESTALE : 0, subject_give(mine));
    if (kind->leased)
        eventually(__atomic_load_n(&heard.lost, __ATOMIC_SEQ_CST) == 1, SLACK_MS);
    assert_lk(0, subject_take(keeper, 2000)); /* the server slept through nothing */

    struct waiter waiter = { mine, 60000, 0 };
    worker_start(&worker, wait_for_it, &waiter);
    eventually(subject_queued(w, mine) == 1, 1000);
    pass(&suspended_s, 600);
    assert_int_equal(ETIMEDOUT, worker_join(&worker));
    assert_between(waiter.took_ms, 0, 2000 + SLACK_MS);
    assert_int_equal(0, subject_queued(w, mine));
    subject_give(keeper); /* lost as well: it is the same machine */
    assert_lk(0, subject_take(mine, 2000));
    assert_lk(0, subject_give(mine));
}

/* A day forth, two days back: leases, renewals and limits do not notice. */
static void set(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    heard.lost = 0;
    assert_lk(0, lk_client_listen(ours, hear, NULL));
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    for (int way = -1; way <= 1; way += 2) {
        struct waiter waiter = { keeper, 700, 0 };
        struct worker worker;
        int64_t left_ms;
        assert_lk(0, subject_take(mine, 1000));
        worker_start(&worker, wait_for_it, &waiter);
        eventually(subject_queued(w, mine) == 1, 1000);
        pass(&set_by_s, way * 2 * DAY_S);
        assert_int_equal(ETIMEDOUT, worker_join(&worker));
        assert_between(waiter.took_ms, 700, 700 + SLACK_MS);
        sleep_ms(300); /* by now it was renewed twice */
        assert_lk(0, subject_remaining(mine, &left_ms));
        if (kind->leased)
            assert_between(left_ms, 1, 900);
        assert_lk(0, subject_give(mine));
        pass(&set_by_s, -way * DAY_S);
    }
    assert_int_equal(0, heard.lost);
}

/* A moment on the wall clock is converted once: setting the clock moves no limit that is under way. */
static void a_limit_is_converted_once(struct world *w)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    struct timespec until;
    lk_mutex_t *mine = world_mutex(w, ours, "thing", NULL);
    lk_mutex_t *other = world_mutex(w, theirs, "thing", NULL);
    assert_lk(0, lk_mutex_lock(other));
    pass(&set_by_s, DAY_S);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    int64_t began_ms = now_ms();
    assert_lk(ETIMEDOUT, lk_mutex_timedlock(mine, &until));
    assert_between(now_ms() - began_ms, 999, 1000 + SLACK_MS);
    pass(&set_by_s, -DAY_S);
    assert_lk(0, lk_mutex_unlock(other));
}

int main(void)
{
    int failed = subject_run(suspended, set);
    return failed + world_run(a_limit_is_converted_once);
}
