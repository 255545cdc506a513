/* SPDX-License-Identifier: MIT */
/*
 * clock_test.c - F61, F62: the machine was suspended; somebody sets this machine's clock
 *
 * The program's clock_gettime() is this file's: it adds what a test wants to each clock.
 *
 * labels: memory
 * simulated: yes
 * seconds: 32
 */
#include "news.h"
#include "subject.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

#define OPTIONS "lease=1500ms&command_timeout=450ms&poll=200ms"

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

/* Ten minutes without power: the first call afterwards says that the hold is lost, and waits are over. */
static void suspended(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    struct errand errand;
    int64_t left_ms;
    struct news *n = news_of(w, ours, "thing");
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");

    assert_lk(0, subject_take(mine, 1000));
    pass(&suspended_s, 600);
    assert_lk(kind->leased ? ESTALE : 0, subject_remaining(mine, &left_ms));
    assert_lk(kind->leased ? ESTALE : 0, subject_give(mine));
    if (kind->leased)
        eventually(news(n, LK_EVENT_LOST) == 1, 5000);
    assert_lk(0, subject_take(keeper, 5000)); /* the server slept through nothing */

    errand_start(&errand, mine, 60000);
    eventually(subject_queued(w, mine) == 1, 5000);
    pass(&suspended_s, 600);
    errand_join(&errand);
    assert_int_equal(ETIMEDOUT, errand.took);
    assert_between(errand.took_ms - errand.began_ms, 0, 2000 + SLACK_MS);
    assert_int_equal(0, subject_queued(w, mine));
    subject_give(keeper); /* lost as well: it is the same machine */
    assert_lk(0, subject_take(mine, 2000));
    assert_lk(0, subject_give(mine));
}

/* A day forth, two days back: leases, renewals and limits do not notice. */
static void set(struct world *w, const struct subject_kind *kind)
{
    static const char times[] = "lease=2400ms&command_timeout=750ms&poll=200ms";
    lk_client_t *ours = world_client(w, times), *theirs = world_client(w, times);
    struct news *n = news_of(w, ours, "thing");
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    for (int way = -1; way <= 1; way += 2) {
        struct errand errand;
        int64_t left_ms;
        assert_lk(0, subject_take(mine, 1000));
        int64_t taken_ms = now_ms();
        errand_start(&errand, keeper, 700);
        eventually(subject_queued(w, mine) == 1 || errand_took(&errand), 5000);
        pass(&set_by_s, way * 2 * DAY_S);
        errand_join(&errand);
        assert_int_equal(ETIMEDOUT, errand.took);
        assert_between(errand.took_ms - errand.began_ms, 700, 700 + SLACK_MS);
        eventually(subject_remaining(mine, &left_ms) != 0 || left_ms > 2400 - (now_ms() - taken_ms), 2400); /* renewed */
        assert_lk(0, subject_remaining(mine, &left_ms));
        if (kind->leased)
            assert_between(left_ms, 1, 2400);
        assert_lk(0, subject_give(mine));
        pass(&set_by_s, -way * DAY_S);
    }
    assert_int_equal(0, news(n, LK_EVENT_LOST));
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
