/* SPDX-License-Identifier: MIT */
/*
 * faults_test.c - waiters that die, time out or are cancelled, connections that are cut, leases that are lost: no signal
 * is lost, and nobody believes in a mutex that it does not hold
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <pthread.h>
#include <unistd.h>

enum { DEAD_THREADS = 8 };

static lk_client_t *client;
static lk_mutex_t *jobs;
static lk_cond_t *some;
static int ready; /* under jobs */

static void open_jobs(struct world *w, const char *options, const lk_mutexattr_t *attr)
{
    client = world_client(w, options);
    jobs = world_mutex(w, client, "jobs", attr);
    some = world_cond(w, client, "jobs", NULL);
    ready = 0;
}

/* Once: it comes back when it is woken, with a signal or without. */
static int wait_once(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_wait(some, jobs);
    if (rc != 0)
        return rc;
    return lk_mutex_unlock(jobs);
}

static void await_waiters(struct world *w, int count)
{
    eventually(world_condqueued(w, "jobs") == count, 10000);
}

static int wait_in_child(struct world *w, void *arg)
{
    open_jobs(w, arg, NULL);
    world_ready(w);
    return wait_once(NULL);
}

static pid_t fork_waiter(struct world *w, const char *options)
{
    return world_fork(w, wait_in_child, (void *)(uintptr_t)options);
}

/* A process that was killed is not there: its waiter is not told, and the next one is. */
static void a_signal_does_not_end_with_a_dead_waiter(struct world *w)
{
    struct worker waiter;
    pid_t dead = fork_waiter(w, "");
    await_waiters(w, 1);
    open_jobs(w, "", NULL);
    worker_start(&waiter, wait_once, NULL);
    await_waiters(w, 2);
    world_kill(w, dead);
    world_allow(w, "latchkey:*:cond:{jobs}"); /* passed over, its place is there until it ends */
    world_allow(w, "latchkey:cond:{jobs}");
    assert_lk(0, lk_cond_signal(some));
    int64_t began_ms = now_ms();
    assert_lk(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, 20000);
}

static int crowd_in_child(struct world *w, void *arg)
{
    struct worker crowd[DEAD_THREADS];
    (void)arg;
    open_jobs(w, "", NULL);
    for (int i = 0; i < DEAD_THREADS; i++)
        worker_start(&crowd[i], wait_once, NULL);
    world_ready(w);
    for (int i = 0; i < DEAD_THREADS; i++)
        worker_join(&crowd[i]);
    return 0;
}

/* Nobody listens for a process that was killed, however many of its threads waited. */
static void a_signal_passes_all_threads_of_the_dead(struct world *w)
{
    enum { AT_ONCE_MS = 4000 }; /* one that was moved, and is not heard of, takes 5 s */
    struct worker waiter;
    pid_t dead = world_fork(w, crowd_in_child, NULL);
    await_waiters(w, DEAD_THREADS);
    eventually(world_listening(w, "cond:{jobs}"), 5000);
    open_jobs(w, "", NULL);
    worker_start(&waiter, wait_once, NULL);
    await_waiters(w, DEAD_THREADS + 1);
    eventually(world_listening(w, "cond:{jobs}"), 5000);
    world_kill(w, dead);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 5000);
    world_allow(w, "latchkey:*:cond:{jobs}");
    world_allow(w, "latchkey:cond:{jobs}");
    int64_t began_ms = now_ms();
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, worker_join(&waiter));
    assert_between(now_ms() - began_ms, 0, AT_ONCE_MS);
}

/* One that stands still takes in what it is told, and does not confirm. */
static void a_signal_goes_on_from_a_waiter_that_stands_still(struct world *w)
{
    struct worker waiter;
    pid_t still = fork_waiter(w, "");
    await_waiters(w, 1);
    open_jobs(w, "", NULL);
    worker_start(&waiter, wait_once, NULL);
    await_waiters(w, 2);
    world_stop(still);
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, worker_join(&waiter));
    world_cont(still);
    assert_int_equal(0, world_wait(w, still)); /* and wakes as well, which is legal */
}

static int wait_for_a_while(void *arg)
{
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_waitfor(some, jobs, *(int *)arg);
    if (rc != 0 && rc != ETIMEDOUT)
        return rc;
    int unlocked = lk_mutex_unlock(jobs);
    return rc != 0 ? rc : unlocked;
}

/* It is signalled, cannot have the mutex yet, and its time is over: the next one is woken in its place. */
static void a_signal_goes_on_when_its_waiter_times_out(struct world *w)
{
    struct worker first, second;
    int while_ms = 1500;
    open_jobs(w, "", NULL);
    worker_start(&first, wait_for_a_while, &while_ms);
    await_waiters(w, 1);
    worker_start(&second, wait_once, NULL);
    await_waiters(w, 2);
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    assert_int_equal(1, world_condqueued(w, "jobs"));
    eventually(world_condqueued(w, "jobs") == 0, 5000);
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_lk(ETIMEDOUT, worker_join(&first));
    assert_lk(0, worker_join(&second));
}

static int held_in_cleanup; /* 1: a cleanup handler ran, and held the mutex; atomic builtins */

static void clean_up(void *arg)
{
    (void)arg;
    int rc = lk_mutex_check(jobs);
    if (rc == 0)
        rc = lk_mutex_unlock(jobs);
    __atomic_store_n(&held_in_cleanup, rc == 0 ? 1 : -rc, __ATOMIC_RELEASE);
}

static void *wait_to_be_cancelled(void *arg)
{
    int rc = lk_mutex_lock(jobs);
    pthread_cleanup_push(clean_up, NULL);
    while (rc == 0)
        rc = lk_cond_wait(some, jobs);
    pthread_cleanup_pop(0);
    return arg;
}

static void cancel(pthread_t thread)
{
    void *result;
    assert_int_equal(0, pthread_cancel(thread));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(PTHREAD_CANCELED, result);
    assert_int_equal(1, __atomic_load_n(&held_in_cleanup, __ATOMIC_ACQUIRE));
}

/* At whatever moment it comes, cleanup handlers run with the mutex. */
static void a_cancelled_waiter_holds_the_mutex(struct world *w)
{
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_jobs(w, "", NULL);
    for (int i = 0; i < 12; i++) {
        pthread_t thread;
        held_in_cleanup = 0;
        assert_int_equal(0, pthread_create(&thread, NULL, wait_to_be_cancelled, NULL));
        await_waiters(w, 1);
        sleep_ms(i % 4);
        if (i >= 6)
            assert_lk(0, lk_cond_signal(some)); /* woken, or waiting again, by then */
        cancel(thread);
        assert_int_equal(0, world_condqueued(w, "jobs"));
        assert_int_equal(0, world_queued(w, "jobs"));
        assert_lk(0, lk_mutex_trylock(jobs));
        assert_lk(0, lk_mutex_unlock(jobs));
    }
}

/* Without a server the mutex is not to be had: the thread is gone soon, long before the lease of 30 s would be over. */
static void a_cancelled_waiter_does_not_wait_for_a_server(struct world *w)
{
    const int64_t gone_ms = 1000 + 4 * SLACK_MS; /* a command timeout */
    pthread_t thread;
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_jobs(w, "", NULL);
    held_in_cleanup = 0;
    assert_int_equal(0, pthread_create(&thread, NULL, wait_to_be_cancelled, NULL));
    await_waiters(w, 1);
    world_kill_server(w);
    int64_t began_ms = now_ms();
    assert_int_equal(0, pthread_cancel(thread));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_between(now_ms() - began_ms, 0, gone_ms);
    assert_int_equal(-EPERM, held_in_cleanup);
    world_restart_server(w);
    eventually(lk_mutex_trylock(jobs) == 0, 10000);
    assert_lk(0, lk_mutex_unlock(jobs));
}

/* Cancelled with the signal: the next one gets it. */
static void a_signal_goes_on_when_its_waiter_is_cancelled(struct world *w)
{
    struct worker second;
    pthread_t first;
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_jobs(w, "", NULL);
    held_in_cleanup = 0;
    assert_int_equal(0, pthread_create(&first, NULL, wait_to_be_cancelled, NULL));
    await_waiters(w, 1);
    worker_start(&second, wait_once, NULL);
    await_waiters(w, 2);
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    assert_int_equal(0, pthread_cancel(first));
    eventually(world_condqueued(w, "jobs") == 0, 5000);
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_int_equal(0, pthread_join(first, NULL));
    assert_int_equal(1, held_in_cleanup);
    assert_lk(0, worker_join(&second));
}

/* Messages, answers and whole connections are lost while it waits, is moved, and is granted. */
static void connections_are_cut_all_the_time(struct world *w)
{
    struct worker waiter;
    open_jobs(w, "poll=100ms", NULL);
    for (int i = 0; i < 20; i++) {
        worker_start(&waiter, wait_once, NULL);
        await_waiters(w, 1);
        if (i % 4 != 3)
            world_blow(w, i % WORLD_BLOWS);
        assert_lk(0, lk_cond_signal(some));
        world_blow(w, (i + 1) % WORLD_BLOWS);
        assert_lk(0, worker_join(&waiter));
    }
}

/* The server is restarted empty: nobody knows of the waiter, so it is woken. */
static void a_server_without_memory_wakes_all(struct world *w)
{
    struct worker waiters[3];
    open_jobs(w, "poll=100ms", NULL);
    for (int i = 0; i < 3; i++)
        worker_start(&waiters[i], wait_once, NULL);
    await_waiters(w, 3);
    world_kill_server(w);
    world_restart_server(w);
    for (int i = 0; i < 3; i++)
        assert_lk(0, worker_join(&waiters[i]));
}

/* It believed that it held the mutex, and learns at once that it did not. */
static void a_lost_lease_is_told_at_once(struct world *w)
{
    open_jobs(w, "lease=2s", NULL);
    assert_lk(0, lk_mutex_lock(jobs));
    world_redis(w, "DEL jobs");
    int64_t began_ms = now_ms();
    assert_lk(ESTALE, lk_cond_wait(some, jobs));
    assert_between(now_ms() - began_ms, 0, 3000);
    assert_lk(EPERM, lk_mutex_unlock(jobs)); /* there is nothing to unlock */
    assert_int_equal(0, world_condqueued(w, "jobs"));

    assert_lk(0, lk_mutex_lock(jobs));
    world_stop_server(w);
    eventually(lk_mutex_check(jobs) == ESTALE, 10000);
    assert_lk(ESTALE, lk_cond_wait(some, jobs));
    assert_lk(EPERM, lk_mutex_unlock(jobs));
    world_cont_server(w);
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_mutex_unlock(jobs));
}

/* What a wait gave back is gone some time, as after an unlock that no server heard of. */
static void what_is_still_given_back_is_told(struct world *w)
{
    open_jobs(w, "lease=20s&retry_max=50ms", NULL);
    assert_lk(0, lk_mutex_lock(jobs));
    world_kill_server(w);
    int rc = lk_cond_waitfor(some, jobs, 200);
    assert_true(rc == ENOTCONN || rc == EIO);
    assert_between(lk_errorsettles(), 1, 30000);
    assert_lk(EPERM, lk_mutex_unlock(jobs));
    world_restart_server(w);
    assert_lk(0, lk_mutex_lockfor(jobs, 10000));
    assert_lk(0, lk_mutex_unlock(jobs));
}

static const lk_mutexattr_t robust = { .size = sizeof robust, .robust = 1 };
static const lk_mutexattr_t brief = { .size = sizeof brief, .robust = 1, .lease_ms = 400 }; /* of who dies */

static int die_holding(struct world *w, void *arg)
{
    open_jobs(w, "", &brief);
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

static int come_back_after_the_dead(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_wait(some, jobs);
    if (rc != EOWNERDEAD)
        return ERANGE;
    if (lk_cond_waitfor(some, jobs, 10) != EINVAL) /* it is to be repaired first */
        return ERANGE;
    rc = lk_mutex_consistent(jobs);
    if (rc == 0 && lk_cond_waitfor(some, jobs, 10) != ETIMEDOUT)
        return ERANGE;
    return rc != 0 ? rc : lk_mutex_unlock(jobs);
}

/* Who signalled died before it gave the mutex back. */
static void a_waiter_is_told_of_a_dead_holder(struct world *w)
{
    struct worker waiter;
    struct gate *never = world_shared(w, sizeof *never);
    open_jobs(w, "", &robust);
    worker_start(&waiter, come_back_after_the_dead, NULL);
    await_waiters(w, 1);
    world_kill(w, world_fork(w, die_holding, never));
    assert_lk(0, worker_join(&waiter));
}

/* A client that is closed lets its waiters go; they hold nothing. */
static void a_closed_client_ends_waits(struct world *w)
{
    struct worker waiter;
    open_jobs(w, "", NULL);
    worker_start(&waiter, wait_once, NULL);
    await_waiters(w, 1);
    assert_lk(0, close_by_hand(w, client));
    assert_lk(ECANCELED, worker_join(&waiter));
    eventually(world_condqueued(w, "jobs") == 0, 5000);
    assert_string_equal("", world_owner(w, "jobs"));
}

/* --- notes that somebody still needs do not end ----------------------------------------------------------------------- */

enum { SILENT_MS = 21500 }; /* longer than notes last that are made for a waiter which asks often */

struct place {
    lk_mutex_t *mutex;
    lk_cond_t *cond;
    int woken; /* atomic builtins */
};

static void open_place(struct world *w, struct place *place, const char *name, const char *options)
{
    lk_client_t *waiters = world_client(w, options);
    *place = (struct place){ world_mutex(w, waiters, name, NULL), world_cond(w, waiters, name, NULL), 0 };
}

static int wait_at(void *arg)
{
    struct place *place = arg;
    int rc = lk_mutex_lock(place->mutex);
    if (rc == 0)
        rc = lk_cond_wait(place->cond, place->mutex);
    __atomic_store_n(&place->woken, rc == 0, __ATOMIC_RELEASE);
    return rc != 0 ? rc : lk_mutex_unlock(place->mutex);
}

static void come_and_leave(struct place *place)
{
    assert_lk(0, lk_mutex_lock(place->mutex));
    assert_lk(ETIMEDOUT, lk_cond_waitfor(place->cond, place->mutex, 100));
    assert_lk(0, lk_mutex_unlock(place->mutex));
}

/* Waiters that ask often come, leave and are signalled beside one that asks seldom: all that it relies on outlasts it. */
static void notes_outlast_the_waiter_that_asks_seldom(struct world *w)
{
    struct worker second;
    struct place seldom;
    pid_t first = fork_waiter(w, "");
    await_waiters(w, 1);
    open_place(w, &seldom, "jobs", "lease=60s&poll=60s");
    worker_start(&second, wait_at, &seldom);
    await_waiters(w, 2);
    open_jobs(w, "", NULL);
    struct place often = { jobs, some, 0 };
    come_and_leave(&often);
    int64_t record_ms = world_int(w, "PTTL latchkey:cond:{jobs}");
    assert_between(record_ms - world_int(w, "PTTL latchkey:queue:cond:{jobs}"), -1000, 3600000);

    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some)); /* the first one is moved */
    int64_t moved_ms = world_int(w, "PTTL latchkey:moved:cond:{jobs}");
    assert_between(moved_ms - world_int(w, "PTTL latchkey:queue:cond:{jobs}"), -1000, 3600000);
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_int_equal(0, world_wait(w, first));
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, worker_join(&second));
}

/*
 * Two signals at once: one for a waiter that asks seldom, behind which another one came and left; and one whose waiter dies
 * long after it was moved, as somebody holds the mutex all the time.
 */
static void signals_outlast_long_silences(struct world *w)
{
    struct worker second, slow;
    struct place seldom, other;
    pid_t dead = fork_waiter(w, "lease=5s");
    await_waiters(w, 1);
    open_place(w, &other, "jobs", "lease=5s");
    worker_start(&second, wait_at, &other);
    await_waiters(w, 2);
    open_place(w, &seldom, "rare", "lease=60s&poll=60s");
    worker_start(&slow, wait_at, &seldom);
    eventually(world_condqueued(w, "rare") == 1, 10000);
    open_jobs(w, "lease=5s", NULL);
    struct place often = { world_mutex(w, client, "rare", NULL), world_cond(w, client, "rare", NULL), 0 };
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_cond_signal(some));
    sleep_ms(8000); /* the one that asks seldom has asked for the second time, and will not for long */
    come_and_leave(&often);
    sleep_ms(10000);
    assert_int_equal(1, world_condqueued(w, "jobs"));
    world_kill(w, dead);
    world_allow(w, "latchkey:*:{jobs}");
    sleep_ms(SILENT_MS - 10000);
    assert_lk(0, lk_cond_signal(often.cond));
    eventually(__atomic_load_n(&seldom.woken, __ATOMIC_ACQUIRE) == 1, 5000);
    assert_lk(0, lk_mutex_unlock(jobs));
    eventually(__atomic_load_n(&other.woken, __ATOMIC_ACQUIRE) == 1, 15000);
    assert_lk(0, worker_join(&slow));
    assert_lk(0, worker_join(&second));
}

int main(void)
{
    return world_run(a_signal_does_not_end_with_a_dead_waiter, a_signal_passes_all_threads_of_the_dead,
                     a_signal_goes_on_from_a_waiter_that_stands_still,
                     a_signal_goes_on_when_its_waiter_times_out, a_cancelled_waiter_holds_the_mutex,
                     a_cancelled_waiter_does_not_wait_for_a_server,
                     a_signal_goes_on_when_its_waiter_is_cancelled, connections_are_cut_all_the_time,
                     a_server_without_memory_wakes_all, a_lost_lease_is_told_at_once,
                     what_is_still_given_back_is_told, a_waiter_is_told_of_a_dead_holder, a_closed_client_ends_waits,
                     notes_outlast_the_waiter_that_asks_seldom, signals_outlast_long_silences);
}
