/* SPDX-License-Identifier: MIT */
/*
 * thread_exits_test.c - F56: a signal handler ends its thread by pthread_exit() while the thread sleeps in a wait
 *
 * What it waited for stays usable: another thread gets it and gives it back, and the client closes. The last is what
 * world_end() looks for.
 *
 * labels: threads
 * simulated: yes
 */
#include "client/client.h"
#include "quorum.h"
#include "subject.h"

#include <signal.h>

#define OPTIONS "poll=5s"

/* One that waits, and is ended. */
struct leaver {
    pthread_t thread;
    int (*wait)(void *arg);
    void *arg;
    bool uncancelable;
};

static const char left; /* what pthread_join() tells of those who left */

static void leave(int number)
{
    (void)number;
    pthread_exit((void *)&left);
}

static void *run(void *arg)
{
    struct leaver *leaver = arg;
    if (leaver->uncancelable)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    leaver->wait(leaver->arg);
    return NULL;
}

static void start(struct leaver *leaver, int (*wait)(void *arg), void *arg)
{
    *leaver = (struct leaver){ .wait = wait, .arg = arg, .uncancelable = leaver->uncancelable };
    assert_int_equal(0, pthread_create(&leaver->thread, NULL, run, leaver));
}

/* It sleeps now. */
static void expect_left_now(const struct leaver *leaver)
{
    struct timespec until;
    void *result = NULL;
    signal(SIGUSR1, leave);
    pthread_kill(leaver->thread, SIGUSR1);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 15;
    assert_int_equal(0, pthread_timedjoin_np(leaver->thread, &result, &until));
    signal(SIGUSR1, SIG_DFL);
    assert_ptr_equal(&left, result);
}

static void expect_left(const struct leaver *leaver)
{
    sleep_ms(100);
    threads_rest(); /* its last answer is read, and it is parked */
    expect_left_now(leaver);
}

/* --- what can be held --------------------------------------------------------------------------------------------------- */

static int take(void *subject)
{
    return subject_take(subject, LK_FOREVER);
}

/* The second one is behind the first, in the process or at the server; each leaves, whoever is before it. */
static void two_leave(struct world *w, const struct subject_kind *kind, bool uncancelable)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, "");
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    struct leaver first = { .uncancelable = uncancelable }, second = first;
    struct errand errand;
    assert_lk(0, subject_take(keeper, 1000));
    start(&first, take, mine);
    eventually(kind->queued == NULL || subject_queued(w, mine) == 1, 3000);
    start(&second, take, mine);
    expect_left(&second);
    start(&second, take, mine);
    sleep_ms(50);
    expect_left(&first);
    eventually(kind->queued == NULL || subject_queued(w, mine) == 1, 3000);
    expect_left(&second);
    assert_int_equal(0, subject_queued(w, mine));
    errand_start(&errand, mine, PATIENT_MS);
    sleep_ms(50);
    assert_lk(0, subject_give(keeper));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
}

static void what_they_waited_for_is_had_by_others(struct world *w, const struct subject_kind *kind)
{
    two_leave(w, kind, false);
    world_close(w, NULL);
    two_leave(w, kind, true);
}

static void a_run_is_begun_by_others(struct world *w)
{
    two_leave(w, &subject_run_kind, false);
    world_close(w, NULL);
    two_leave(w, &subject_run_kind, true);
}

static int acquire_id(void *sem)
{
    char id[LK_PERMIT_ID];
    return lk_sem_acquireid(sem, LK_FOREVER, id);
}

static void a_permit_with_an_id_is_had_by_others(struct world *w)
{
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    char id[LK_PERMIT_ID], next[LK_PERMIT_ID];
    struct leaver leaver = { 0 };
    lk_sem_t *keeper = world_sem(w, world_client(w, ""), "permits", 1, &leased);
    lk_sem_t *mine = world_sem(w, world_client(w, OPTIONS), "permits", 1, &leased);
    world_allow(w, "latchkey:*:{permits}");
    world_allow(w, "redisson_lock_token:*");
    assert_lk(0, lk_sem_acquireid(keeper, 1000, id));
    start(&leaver, acquire_id, mine);
    eventually(world_semqueued(w, "permits") == 1, 3000);
    expect_left(&leaver);
    assert_int_equal(0, world_semqueued(w, "permits"));
    assert_lk(0, lk_sem_releaseid(keeper, id));
    assert_lk(0, lk_sem_acquireid(mine, 5000, next));
    assert_lk(0, lk_sem_releaseid(mine, next));
}

static int lock_stripe(void *stripes)
{
    return lk_mutex_lock(lk_stripes_at(stripes, 1));
}

static void a_stripe_is_had_by_others(struct world *w)
{
    struct leaver leaver = { 0 };
    lk_stripes_t *theirs = world_stripes(w, world_client(w, ""), "parts", 2, NULL);
    lk_stripes_t *mine = world_stripes(w, world_client(w, OPTIONS), "parts", 2, NULL);
    assert_lk(0, lock_stripe(theirs));
    start(&leaver, lock_stripe, mine);
    eventually(world_queued(w, "parts:1") == 1, 3000);
    expect_left(&leaver);
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(theirs, 1)));
    assert_lk(0, in_thread(lock_and_unlock, lk_stripes_at(mine, 1)));
}

/* --- several at once ---------------------------------------------------------------------------------------------------- */

static int lock_all(void *multi)
{
    return lk_multi_lock(multi);
}

/* What it had of them already is given back. */
static void all_of_a_set_are_had_by_others(struct world *w)
{
    struct leaver leaver = { 0 };
    lk_client_t *ours = world_client(w, OPTIONS);
    lk_mutex_t *keeper = world_mutex(w, world_client(w, ""), "b", NULL);
    lk_multi_t *s = world_multi(w, ours);
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, ours, "a", NULL)));
    assert_lk(0, lk_multi_addmutex(s, world_mutex(w, ours, "b", NULL)));
    assert_lk(0, lk_mutex_lock(keeper));
    start(&leaver, lock_all, s);
    eventually(world_queued(w, "b") == 1, 3000);
    assert_int_equal(1, world_holds(w, "a"));
    expect_left(&leaver);
    assert_int_equal(-1, world_holds(w, "a"));
    assert_lk(0, lk_mutex_unlock(keeper));
    assert_lk(0, in_thread(lock_and_unlock_all, s));
}

static int lock_redlock(void *redlock)
{
    return lk_redlock_lock(redlock);
}

static int visit_redlock(void *redlock)
{
    int rc = lk_redlock_lockfor(redlock, PATIENT_MS);
    return rc == 0 ? lk_redlock_unlock(redlock) : rc;
}

/* Those who wait for it ask anew after a pause, which begins soon after the first of their answers. */
static void expect_left_in_a_pause(const struct leaver *leaver, lk_client_t *client)
{
    unsigned long long answers = lk__node_stats(&client->node).round_trips;
    eventually(lk__node_stats(&client->node).round_trips != answers, PATIENT_MS);
    sleep_ms(20);
    expect_left_now(leaver);
}

static void a_redlock_is_had_by_others(struct world *w)
{
    const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 1000 };
    struct quorum *q = quorum_begin(w, 3);
    struct leaver leaver = { 0 };
    lk_redlock_t *keeper = quorum_redlock(w, quorum_client(q, "lease=30s"), "jobs", &no_wait);
    lk_client_t *ours = quorum_client(q, "lease=30s");
    lk_redlock_t *mine = quorum_redlock(w, ours, "jobs", &no_wait);
    quorum_lockall(q, keeper, "jobs");
    start(&leaver, lock_redlock, mine);
    sleep_ms(1000); /* the pauses are long by now */
    expect_left_in_a_pause(&leaver, ours);
    assert_lk(0, lk_redlock_unlock(keeper));
    assert_lk(0, in_thread(visit_redlock, mine));
}

/* --- waits in which nothing is held ----------------------------------------------------------------------------------------- */

static int wait_for_latch(void *latch)
{
    return lk_latch_wait(latch);
}

static void a_latch_opens_for_others(struct world *w)
{
    for (int uncancelable = 0; uncancelable < 2; uncancelable++) {
        struct leaver leaver = { .uncancelable = uncancelable != 0 };
        struct worker other;
        lk_latch_t *gate = world_latch(w, world_client(w, OPTIONS), "gate");
        world_allow(w, "latchkey:*:{gate}");
        assert_lk(0, lk_latch_trysetcount(gate, 1));
        start(&leaver, wait_for_latch, gate);
        sleep_ms(100);
        expect_left(&leaver);
        worker_start(&other, await_latch_patiently, gate);
        assert_lk(0, lk_latch_countdown(gate));
        assert_lk(0, worker_join(&other));
        world_close(w, NULL);
    }
}

static int wait_at_barrier(void *barrier)
{
    return lk_barrier_wait(barrier);
}

/* A party that leaves breaks the round, as a cancelled one does; the next round is as any. */
static void a_barrier_is_met_by_others(struct world *w)
{
    struct leaver leaver = { 0 };
    struct worker other;
    lk_barrier_t *meeting = world_barrier(w, world_client(w, OPTIONS), "meeting", 2, NULL);
    world_allow(w, "latchkey:*:{meeting}");
    start(&leaver, wait_at_barrier, meeting);
    sleep_ms(200);
    expect_left(&leaver);
    lk_barrier_reset(meeting);
    worker_start(&other, wait_at_barrier, meeting);
    int rc = lk_barrier_waitfor(meeting, PATIENT_MS), others = worker_join(&other);
    assert_true((rc == 0 && others == LK_BARRIER_SERIAL) || (rc == LK_BARRIER_SERIAL && others == 0));
}

/* --- a condition ---------------------------------------------------------------------------------------------------------- */

static lk_mutex_t *jobs;
static lk_cond_t *some;

static void unlock_jobs(void *arg)
{
    (void)arg;
    lk_mutex_unlock(jobs);
}

/* `arg`: its limit. */
static int wait_for_some(void *arg)
{
    const int64_t *limit_ms = arg;
    int rc = lk_mutex_lock(jobs);
    pthread_cleanup_push(unlock_jobs, NULL);
    if (rc == 0)
        rc = lk_cond_waitfor(some, jobs, *limit_ms);
    pthread_cleanup_pop(1);
    return rc;
}

/* Its handlers run with the mutex held, as those of one that is cancelled. */
static void a_condition_and_its_mutex_are_had_by_others(struct world *w)
{
    static int64_t forever = LK_FOREVER, briefly = 1000;
    struct leaver leaver = { 0 };
    struct worker other;
    lk_client_t *client = world_client(w, OPTIONS);
    lk_mutex_t *keeper = world_mutex(w, world_client(w, ""), "jobs", NULL);
    jobs = world_mutex(w, client, "jobs", NULL);
    some = world_cond(w, client, "jobs", NULL);
    start(&leaver, wait_for_some, &forever);
    eventually(world_condqueued(w, "jobs") == 1, 3000);
    expect_left(&leaver);
    assert_int_equal(0, world_condqueued(w, "jobs"));
    assert_int_equal(-1, world_holds(w, "jobs"));
    start(&leaver, wait_for_some, &briefly); /* its time is over, and it waits for the mutex again */
    eventually(world_condqueued(w, "jobs") == 1, 3000);
    assert_lk(0, lk_mutex_lock(keeper));
    eventually(world_condqueued(w, "jobs") == 0 && world_queued(w, "jobs") == 1, 3000);
    expect_left(&leaver);
    assert_int_equal(0, world_queued(w, "jobs"));
    assert_lk(0, lk_mutex_unlock(keeper));
    worker_start(&other, wait_for_some, &forever);
    eventually(world_condqueued(w, "jobs") == 1, 3000);
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, worker_join(&other));
}

int main(void)
{
    if (SANITIZED)
        return 77; /* the frames that such a thread left are taken for live ones, and signals in poll() are put off */
    int failed = subject_run(what_they_waited_for_is_had_by_others);
    return failed + world_run(a_run_is_begun_by_others, a_permit_with_an_id_is_had_by_others, a_stripe_is_had_by_others,
                              all_of_a_set_are_had_by_others, a_redlock_is_had_by_others, a_latch_opens_for_others,
                              a_barrier_is_met_by_others, a_condition_and_its_mutex_are_had_by_others);
}
