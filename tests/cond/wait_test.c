/* SPDX-License-Identifier: MIT */
/*
 * wait_test.c - waiting for a condition: a signal wakes one, a broadcast all; each comes back with the mutex
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_mutex_t *jobs;
static lk_cond_t *some;
static int ready, woken; /* under jobs */

static void open_jobs(struct world *w, const char *options, const lk_mutexattr_t *attr)
{
    client = world_client(w, options);
    jobs = world_mutex(w, client, "jobs", attr);
    some = world_cond(w, client, "jobs", NULL);
    ready = woken = 0;
}

/* Take one that is ready. */
static int take(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    while (rc == 0 && ready == 0)
        rc = lk_cond_wait(some, jobs);
    if (rc != 0)
        return rc;
    ready--;
    __atomic_add_fetch(&woken, 1, __ATOMIC_RELAXED);
    return lk_mutex_unlock(jobs);
}

static void start_takers(struct world *w, struct worker *takers, int count)
{
    for (int i = 0; i < count; i++)
        worker_start(&takers[i], take, NULL);
    eventually(world_condqueued(w, "jobs") == count, 10000);
    assert_string_equal("", world_owner(w, "jobs"));
}

static void put(int count, int (*wake)(lk_cond_t *))
{
    assert_lk(0, lk_mutex_lock(jobs));
    ready += count;
    assert_lk(0, wake(some));
    assert_lk(0, lk_mutex_unlock(jobs));
}

/* A waiter does not hold the mutex; a signal wakes one of several. */
static void a_signal_wakes_one(struct world *w)
{
    struct worker takers[3];
    open_jobs(w, "", NULL);
    start_takers(w, takers, 3);
    for (int i = 1; i <= 3; i++) {
        put(1, lk_cond_signal);
        eventually(__atomic_load_n(&woken, __ATOMIC_RELAXED) == i, 3000);
        eventually(world_condqueued(w, "jobs") == 3 - i, 3000);
    }
    for (int i = 0; i < 3; i++)
        assert_lk(0, worker_join(&takers[i]));
}

static void a_broadcast_wakes_all(struct world *w)
{
    struct worker takers[8];
    open_jobs(w, "", NULL);
    start_takers(w, takers, 8);
    put(8, lk_cond_broadcast);
    for (int i = 0; i < 8; i++)
        assert_lk(0, worker_join(&takers[i]));
    assert_int_equal(8, woken);
}

/* Nobody needs the mutex to signal: then the waiter is handed it at once. */
static void a_signal_without_the_mutex_hands_it_over(struct world *w)
{
    struct worker taker;
    open_jobs(w, "poll=30s&lease=60s", NULL);
    start_takers(w, &taker, 1);
    sleep_ms(100);
    ready = 1;
    int64_t began_ms = now_ms();
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, worker_join(&taker));
    assert_between(now_ms() - began_ms, 0, 2000);
}

/* Signals are not kept: nobody waited. */
static void a_signal_that_nobody_waits_for_is_over(struct world *w)
{
    open_jobs(w, "", NULL);
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, lk_cond_broadcast(some));
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(ETIMEDOUT, lk_cond_waitfor(some, jobs, 50));
    assert_lk(0, lk_mutex_unlock(jobs));
}

/* At its limit a wait takes the mutex again, as often as it was held. */
static void at_the_limit_the_mutex_is_held(struct world *w)
{
    open_jobs(w, "", NULL);
    struct timespec soon, past = { 1, 0 };
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += soon.tv_nsec >= 900000000;
    soon.tv_nsec = (soon.tv_nsec + 100000000) % 1000000000;
    uint64_t before, token = 0;
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(0, lk_mutex_token(jobs, &before));
    for (int i = 0; i < 4; i++) {
        assert_lk(ETIMEDOUT, i == 0   ? lk_cond_timedwait(some, jobs, &soon)
                             : i == 1 ? lk_cond_timedwait(some, jobs, &past)
                             : i == 2 ? lk_cond_clockwait(some, jobs, CLOCK_MONOTONIC, &past)
                                      : lk_cond_waitfor(some, jobs, 0));
        assert_lk(0, lk_mutex_check(jobs));
        assert_int_equal(2, world_holds(w, "jobs"));
        assert_lk(0, lk_mutex_token(jobs, &token));
        assert_true(token > before);
        before = token;
    }
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_lk(0, lk_mutex_check(jobs));
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_lk(EPERM, lk_mutex_unlock(jobs));
}

/* A moment of another clock than that of the attributes would be long past, or far off. */
static void timedwait_uses_the_clock_of_its_attributes(struct world *w)
{
    static const lk_condattr_t boot = { .size = sizeof boot, .clock = CLOCK_BOOTTIME };
    open_jobs(w, "", NULL);
    lk_cond_t *other = world_cond(w, client, "jobs", &boot);
    struct timespec soon;
    clock_gettime(CLOCK_BOOTTIME, &soon);
    soon.tv_sec += 1;
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(ETIMEDOUT, lk_cond_timedwait(other, jobs, &soon));
    assert_between(now_ms() - began_ms, 900, 5000);
    assert_lk(0, lk_mutex_unlock(jobs));
}

static int take_nested(void *arg)
{
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_mutex_lock(jobs);
    while (rc == 0 && ready == 0)
        rc = lk_cond_wait(some, jobs);
    if (rc != 0)
        return rc;
    if (world_holds(arg, "jobs") != 3)
        return ERANGE;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = lk_mutex_unlock(jobs);
    return rc != 0 ? rc : lk_mutex_unlock(jobs) == EPERM ? 0 : ECHILD;
}

/* All levels are given back, and are there again. */
static void all_levels_come_back(struct world *w)
{
    struct worker taker;
    open_jobs(w, "", NULL);
    worker_start(&taker, take_nested, w);
    eventually(world_condqueued(w, "jobs") == 1, 10000); /* it asks the server later on: no redisContext is for two */
    assert_lk(0, lk_mutex_lockfor(jobs, 5000));
    ready = 1;
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_lk(0, worker_join(&taker));
}

/* What cannot go together is refused, and the mutex stays held. */
static void what_cannot_go_together_is_refused(struct world *w)
{
    open_jobs(w, "", NULL);
    static const lk_mutexattr_t fixed = { .size = sizeof fixed, .fixed = 1 };
    static const lk_mutexattr_t kept = { .size = sizeof kept, .min_hold_ms = 10 };
    static const lk_condattr_t clock = { .size = sizeof clock, .clock = CLOCK_PROCESS_CPUTIME_ID };
    static const lk_condattr_t room = { .size = sizeof room, .lk_room = { 0, 1, 0 } };
    lk_client_t *another = world_client(w, "");
    lk_mutex_t *refused[] = { world_mutex(w, client, "elsewhere", NULL), world_mutex(w, another, "jobs", NULL),
                              world_mutex(w, client, "{jobs}fixed", &fixed),
                              world_mutex(w, client, "{jobs}kept", &kept) };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_lk(0, lk_mutex_lock(refused[i]));
        assert_lk(EINVAL, lk_cond_wait(some, refused[i]));
        assert_true(strstr(lk_errortext(), i == 0 ? "{tag}" : i == 1 ? "two clients" : "jobs") != NULL);
        assert_lk(0, lk_mutex_check(refused[i]));
        assert_lk(0, lk_mutex_unlock(refused[i]));
        if (i == 1)
            world_close(w, another);
    }
    lk_cond_t unused;
    struct timespec wrong = { 0, 1000000000 };
    assert_lk(EINVAL, lk_cond_init(&unused, client, "jobs", &clock));
    assert_lk(EINVAL, lk_cond_init(&unused, client, "jobs", &room));
    assert_lk(EINVAL, lk_cond_init(NULL, client, "jobs", NULL));
    assert_lk(EPERM, lk_cond_wait(some, jobs));
    assert_lk(EINVAL, lk_cond_wait(some, NULL));
    assert_lk(EINVAL, lk_cond_wait(NULL, jobs));
    assert_lk(EINVAL, lk_cond_signal(NULL));
    assert_lk(EINVAL, lk_cond_destroy(NULL));
    assert_lk(0, lk_mutex_lock(jobs));
    assert_lk(EINVAL, lk_cond_waitfor(some, jobs, -5));
    assert_lk(EINVAL, lk_cond_timedwait(some, jobs, &wrong));
    assert_lk(EINVAL, lk_cond_timedwait(some, jobs, NULL));
    assert_lk(EINVAL, lk_cond_clockwait(some, jobs, -1, &(struct timespec){ 0, 0 }));
    assert_lk(0, lk_mutex_check(jobs));
    assert_lk(0, lk_mutex_unlock(jobs));
}

/* One condition, two mutexes: whoever comes second is told, and holds what it held. */
static void two_mutexes_are_refused(struct world *w)
{
    struct worker taker;
    open_jobs(w, "", NULL);
    lk_mutex_t *other = world_mutex(w, client, "{jobs}other", NULL);
    start_takers(w, &taker, 1);
    assert_lk(0, lk_mutex_lock(other));
    assert_lk(0, lk_mutex_lock(other));
    assert_lk(EINVAL, lk_cond_wait(some, other));
    assert_lk(0, lk_mutex_check(other));
    assert_int_equal(2, world_holds(w, "{jobs}other"));
    assert_lk(0, lk_mutex_unlock(other));
    assert_lk(0, lk_mutex_unlock(other));
    assert_int_equal(1, world_condqueued(w, "jobs"));
    put(1, lk_cond_signal);
    assert_lk(0, worker_join(&taker));
    assert_lk(0, lk_mutex_lock(other)); /* nobody waits with the first one any more */
    assert_lk(ETIMEDOUT, lk_cond_waitfor(some, other, 20));
    assert_lk(0, lk_mutex_unlock(other));
}

/* Whoever does not know the mutex asks the server. */
static void others_need_not_know_the_mutex(struct world *w)
{
    struct worker takers[2];
    lk_condinfo_t info = LK_CONDINFO_INIT;
    open_jobs(w, "", NULL);
    jobs = world_mutex(w, client, "{jobs}of a long name", NULL);
    some = world_cond(w, client, "{jobs}some", NULL);
    lk_client_t *another = world_client(w, "");
    lk_cond_t *theirs = world_cond(w, another, "{jobs}some", NULL);
    for (int i = 0; i < 2; i++)
        worker_start(&takers[i], take, NULL);
    eventually(lk_cond_info(theirs, &info) == 0 && info.waiters == 2, 5000);
    assert_string_equal("{jobs}of a long name", info.mutex);
    assert_lk(0, lk_mutex_lock(jobs));
    ready = 2;
    assert_lk(0, lk_mutex_unlock(jobs));
    assert_lk(0, lk_cond_signal(theirs));
    int64_t sent = world_commands(w, "evalsha");
    assert_lk(0, lk_cond_signal(theirs));
    assert_between(world_commands(w, "evalsha") - sent, 1, 6); /* this one, asks and unlocks of the first */
    for (int i = 0; i < 2; i++)
        assert_lk(0, worker_join(&takers[i]));
    assert_lk(0, lk_cond_info(theirs, &info));
    assert_int_equal(0, info.waiters);
    assert_string_equal("", info.mutex);
}

/* POSIX has it so: all who waited were woken, and nobody comes any more. */
static void it_may_be_destroyed_after_a_broadcast(struct world *w)
{
    struct worker takers[4];
    open_jobs(w, "", NULL);
    lk_cond_t *own = some;
    start_takers(w, takers, 4);
    assert_lk(0, lk_mutex_lock(jobs));
    ready = 4;
    assert_lk(0, lk_cond_broadcast(own));
    world_close(w, own);
    assert_lk(0, lk_mutex_unlock(jobs));
    for (int i = 0; i < 4; i++)
        assert_lk(0, worker_join(&takers[i]));
}

/* Static ones use the default client. */
static void static_ones_need_no_init(struct world *w)
{
    static lk_mutex_t mutex = LK_MUTEX_INITIALIZER("{static}");
    static lk_cond_t cond = LK_COND_INITIALIZER("{static}some");
    use_default(world_url(w, ""));
    assert_lk(0, lk_mutex_lock(&mutex));
    assert_lk(ETIMEDOUT, lk_cond_waitfor(&cond, &mutex, 20));
    assert_lk(0, lk_cond_signal(&cond));
    assert_lk(0, lk_mutex_unlock(&mutex));
    assert_lk(0, lk_cond_destroy(&cond));
    assert_lk(0, lk_mutex_destroy(&mutex));
    close_default();
}

/* Who comes back gets the mutex in the order of signals, and nobody is woken in vain. */
static void the_order_is_that_of_arrival(struct world *w)
{
    static const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    struct worker takers[8];
    open_jobs(w, "", &fair);
    start_takers(w, takers, 8);
    int64_t sent = world_commands(w, "evalsha");
    put(8, lk_cond_broadcast);
    for (int i = 0; i < 8; i++)
        assert_lk(0, worker_join(&takers[i]));
    /* Lock, broadcast, unlock; of each: confirmation, unlock, and perhaps a poll. */
    assert_between(world_commands(w, "evalsha") - sent, 3 + 16, 3 + 16 + 8);
}

int main(void)
{
    return world_run(a_signal_wakes_one, a_broadcast_wakes_all, a_signal_without_the_mutex_hands_it_over,
                     a_signal_that_nobody_waits_for_is_over, at_the_limit_the_mutex_is_held,
                     timedwait_uses_the_clock_of_its_attributes, all_levels_come_back,
                     what_cannot_go_together_is_refused, two_mutexes_are_refused, others_need_not_know_the_mutex,
                     it_may_be_destroyed_after_a_broadcast, static_ones_need_no_init, the_order_is_that_of_arrival);
}
