/* SPDX-License-Identifier: MIT */
/*
 * acknowledged_test.c - F31, F32 with wait_replicas: what replicas have not got is not held
 *
 * labels: threads
 * simulated: yes
 * seconds: 46
 */
#include "base/base.h"
#include "failover.h"
#include "news.h"
#include "subject.h"
#include "log.h"

#include <sched.h>
#include <string.h>

enum { COMMAND_MS = 2000, HALF_MS = COMMAND_MS / 2, BUSY_US = 20000 /* another process has the processor */ };

#define OPTIONS "lease=16s&command_timeout=2s&poll=500ms"

#define PATIENTLY "lease=60s&command_timeout=8s" /* a busy machine has time */

/* A client that wants so many replicas, of the master alone: no Sentinel moves it. */
static lk_client_t *client_with(struct world *w, struct failover *f, const char *options)
{
    failover_sync(f, 0);
    return world_client_at(w, f, failover_listurl(f, options));
}

static void stop_replicas(struct failover *f)
{
    failover_stop(f, 1);
    failover_stop(f, 2);
}

static void continue_replicas(struct failover *f)
{
    failover_cont(f, 1);
    failover_cont(f, 2);
    failover_sync(f, 0);
}

static int trylock_in_time(void *mutex)
{
    return lk_mutex_trylock(mutex);
}

/* --- grants --------------------------------------------------------------------------------------------------------- */

/* When a lock returns all replicas have it; without the setting there is a moment in which they have not. */
static void a_grant_is_at_the_replicas(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = client_with(w, f, PATIENTLY "&wait_replicas=2&describe=no"); /* keys are counted */
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        struct subject *s = world_subject(w, client, kind, kind->name);
        for (int i = 0; i < 20; i++) {
            assert_lk(0, subject_take(s, i % 2 == 0 ? 0 : PATIENT_MS));
            int64_t has = failover_int(f, 0, "DBSIZE");
            assert_int_equal(has, failover_int(f, 1, "DBSIZE"));
            assert_int_equal(has, failover_int(f, 2, "DBSIZE"));
            assert_lk(0, subject_give(s));
        }
        world_close(w, s);
    }
}

struct crowd {
    lk_mutex_t *mutex; /* which all want, and one that nobody else wants */
    lk_mutex_t *own;
    int *counter;
};

static int lock_often(void *arg)
{
    struct crowd *crowd = arg;
    int rc = 0;
    for (int i = 0; i < 20 && rc == 0; i++) {
        rc = lk_mutex_lockfor(crowd->mutex, PATIENT_MS);
        if (rc == 0) {
            int seen = __atomic_load_n(crowd->counter, __ATOMIC_RELAXED);
            sched_yield();
            __atomic_store_n(crowd->counter, seen + 1, __ATOMIC_RELAXED);
            rc = lk_mutex_unlock(crowd->mutex);
        }
        if (rc == 0)
            rc = lk_mutex_lockfor(crowd->own, PATIENT_MS);
        if (rc == 0)
            rc = lk_mutex_unlock(crowd->own);
    }
    return rc;
}

/* Threads of two clients: each grant and each hand-over is acknowledged, some of them together. */
static void a_crowd_is_let_in_one_by_one(struct world *w)
{
    enum { THREADS = 8 };
    struct failover *f = failover_begin(w, NULL);
    struct worker workers[THREADS];
    struct crowd crowds[THREADS];
    int counter = 0;
    lk_client_t *clients[2] = { client_with(w, f, PATIENTLY "&wait_replicas=1"),
                                client_with(w, f, PATIENTLY "&wait_replicas=2") };
    for (int i = 0; i < THREADS; i++) {
        char name[8] = { 'm', (char)('a' + i) };
        crowds[i] = (struct crowd){ world_mutex(w, clients[i % 2], "orders", NULL),
                                    world_mutex(w, clients[i % 2], name, NULL), &counter };
    }
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], lock_often, &crowds[i]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, worker_join(&workers[i]));
    assert_int_equal(THREADS * 20, counter);
}

/* How long a try takes of what somebody else has: the median of some, in microseconds. */
static int64_t try_takes_us(lk_mutex_t *taken)
{
    enum { TRIES = 15 };
    int64_t us[TRIES];
    for (int i = 0; i < TRIES; i++) {
        int64_t began_us = lk__now_us();
        assert_lk(EBUSY, lk_mutex_trylock(taken));
        int64_t took_us = lk__now_us() - began_us;
        int at = i;
        for (; at > 0 && us[at - 1] > took_us; at--)
            us[at] = us[at - 1];
        us[at] = took_us;
    }
    return us[TRIES / 2];
}

/* No replica says anything: nothing is granted, and nothing is left. Who finds something taken is told so at once. */
static void nothing_is_granted_without_them(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker other;
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=1");
    lk_mutex_t *held = world_mutex(w, client, "held", NULL), *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* its connection is up then */
    assert_lk(0, lk_mutex_unlock(orders));
    lk_client_t *plain = client_with(w, f, OPTIONS);
    lk_mutex_t *theirs = world_mutex(w, plain, "held", NULL), *free = world_mutex(w, plain, "free", NULL);
    assert_lk(0, lk_mutex_lock(theirs));
    int64_t usual_us = try_takes_us(held); /* a round trip */
    stop_replicas(f);

    worker_start(&other, trylock_in_time, orders);
    eventually(strstr(failover_str(f, 0, "INFO clients"), "blocked_clients:1") != NULL, PATIENT_MS);
    int64_t began_ms = now_ms(), takes_us = try_takes_us(held);
    print_message("a try of what is taken: %lld us, while a WAIT is under way %lld us\n", (long long)usual_us,
                  (long long)takes_us);
    assert_between(takes_us, 0, 2 * usual_us + BUSY_US);
    assert_lk(0, lk_mutex_trylock(free));
    assert_lk(0, lk_mutex_unlock(free));
    assert_between(now_ms() - began_ms, 0, SLACK_MS);
    assert_int_equal(ENOTCONN, worker_join(&other));

    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        struct subject *s = world_subject(w, client, kind, kind->name);
        began_ms = now_ms();
        assert_lk(ENOTCONN, subject_take(s, 0));
        assert_non_null(strstr(lk_errortext(), "wait_replicas"));
        assert_between(now_ms() - began_ms, HALF_MS - 10, HALF_MS + SLACK_MS);
    }
    assert_int_equal(0, failover_int(f, 0, "EXISTS orders"));
    assert_lk(0, lk_mutex_unlock(theirs));
    continue_replicas(f);
    eventually(lk_mutex_trylock(held) == 0, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(held));
}

/* Who waits behind a WAIT that is under way has its own answer within one command timeout. */
static void many_are_told_in_time(struct world *w)
{
    enum { THREADS = 12 };
    struct failover *f = failover_begin(w, NULL);
    struct worker workers[THREADS];
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=2");
    lk_mutex_t *mutexes[THREADS];
    failover_stop(f, 1); /* one of two is too few */
    for (int i = 0; i < THREADS; i++) {
        char name[8] = { 'm', (char)('a' + i) };
        mutexes[i] = world_mutex(w, client, name, NULL);
    }
    int64_t began_ms = now_ms();
    for (int i = 0; i < THREADS; i++) {
        worker_start(&workers[i], trylock_in_time, mutexes[i]);
        sleep_ms(7);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(ENOTCONN, worker_join(&workers[i]));
    assert_between(now_ms() - began_ms, HALF_MS, COMMAND_MS + 100 + SLACK_MS);
    assert_int_equal(0, failover_int(f, 0, "EXISTS ma mb mc md me mf mg mh mi mj mk ml"));
    failover_cont(f, 1);
}

/* More than there are: a warning at open, refused if that is strict, and no lock. */
static void more_than_there_are(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = NULL;
    assert_lk(0, log_keep(LK_LOG_WARNING));
    assert_lk(ENOTSUP,
              lk_client_open(&client, failover_listurl(f, OPTIONS "&wait_replicas=3&strict=yes&clock_skew=2s")));
    assert_non_null(strstr(lk_errortext(), "2 replicas, fewer than wait_replicas=3"));
    client = client_with(w, f, OPTIONS "&wait_replicas=3");
    assert_non_null(strstr(log_kept(), "2 replicas, fewer than wait_replicas=3"));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(ENOTCONN, lk_mutex_trylock(orders));
    assert_int_equal(0, failover_int(f, 0, "EXISTS orders"));
    assert_lk(ENOTCONN, lk_mutex_lock(orders)); /* though it has time */
}

/* It is given back, and not as repaired: who comes next is told that the owner died. */
static void a_dead_owner_is_told_again(struct world *w)
{
    const lk_mutexattr_t robust = { .size = sizeof robust, .robust = true, .lease_ms = 2000 };
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=1"), *plain = client_with(w, f, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, "orders", &robust);
    lk_mutex_t *theirs = world_mutex(w, plain, "orders", &robust);
    world_allow(w, "latchkey:robust:*");
    assert_lk(0, lk_mutex_lock(theirs));
    failover_int(f, 0, "DEL orders"); /* as if its lease were over */
    stop_replicas(f);
    assert_lk(ENOTCONN, lk_mutex_trylock(orders));
    assert_int_equal(0, failover_int(f, 0, "EXISTS orders"));
    assert_lk(ESTALE, lk_mutex_unlock(theirs));
    continue_replicas(f);
    assert_lk(EOWNERDEAD, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_consistent(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* --- what an operator takes away --------------------------------------------------------------------------------------- */

enum { TIMES = 300 };

static int lock_many_times(void *mutex)
{
    int rc = 0;
    for (int i = 0; i < TIMES && rc == 0; i++) {
        rc = lk_mutex_lockfor(mutex, PATIENT_MS);
        if (rc == 0 && (rc = lk_mutex_unlock(mutex)) == ESTALE)
            rc = 0;
    }
    return rc;
}

static int take_many_permits(void *permits)
{
    int rc = 0;
    for (int i = 0; i < TIMES && rc == 0; i++) {
        rc = lk_sem_waitfor(permits, PATIENT_MS);
        if (rc == 0)
            (void)lk_sem_post(permits); /* maybe of one that was deleted */
        else if (rc == ECANCELED) /* it was deleted while this thread waited */
            rc = 0;
    }
    return rc;
}

/* A grant that is taken away before replicas acknowledge it is none: the call asks again. */
static void what_is_taken_away_is_asked_for_again(struct world *w)
{
    enum { THREADS = 4 };
    struct failover *f = failover_begin(w, NULL);
    struct worker lockers[THREADS], takers[THREADS];
    lk_client_t *client = client_with(w, f, PATIENTLY "&wait_replicas=1"), *plain = client_with(w, f, PATIENTLY);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL), *theirs = world_mutex(w, plain, "orders", NULL);
    lk_sem_t *permits = world_sem(w, client, "permits", 2, NULL), *doomed = world_sem(w, plain, "permits", 2, NULL);
    for (int i = 0; i < THREADS; i++) {
        worker_start(&lockers[i], lock_many_times, orders);
        worker_start(&takers[i], take_many_permits, permits);
    }
    for (int i = 0; i < TIMES; i++) {
        assert_lk(0, lk_mutex_forceunlock(theirs));
        (void)lk_sem_delete(doomed);
        sleep_ms(1);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, worker_join(&lockers[i]));
        assert_int_equal(0, worker_join(&takers[i]));
    }
}

/* --- hand-overs ------------------------------------------------------------------------------------------------------ */

static int lock_patiently(void *mutex)
{
    return lk_mutex_lockfor(mutex, PATIENT_MS);
}

/* What is handed over counts when the waiter's own renewal is acknowledged. */
static void a_hand_over_is_confirmed(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker waiter;
    lk_client_t *plain = client_with(w, f, OPTIONS);
    lk_client_t *client = client_with(w, f, "lease=16s&command_timeout=2s&poll=15s&wait_replicas=1"); /* asks for nothing */
    lk_mutex_t *wanted = world_mutex(w, client, "orders", NULL), *theirs = world_mutex(w, plain, "orders", NULL);
    for (int round = 0; round < 2; round++) {
        assert_lk(0, lk_mutex_lock(theirs));
        worker_start(&waiter, lock_patiently, wanted);
        eventually(failover_int(f, 0, "ZCARD latchkey:queue:mutex:{orders}") == 1, PATIENT_MS);
        eventually(failover_int(f, 0, "EVAL %s 1 latchkey:alive:mutex:{orders}", WORLD_DEAF) == 0, PATIENT_MS);
        if (round == 0)
            stop_replicas(f);
        int64_t began_ms = now_ms();
        assert_lk(0, lk_mutex_unlock(theirs));
        assert_int_equal(round == 0 ? ENOTCONN : 0, worker_join(&waiter));
        if (round == 0)
            assert_between(now_ms() - began_ms, HALF_MS - 10, HALF_MS + SLACK_MS);
        assert_int_equal(round, failover_int(f, 0, "EXISTS orders"));
        if (round == 0)
            continue_replicas(f);
    }
    assert_int_equal(1, failover_int(f, 1, "EXISTS orders"));
}

/* --- conditions ------------------------------------------------------------------------------------------------------- */

struct conditional {
    lk_mutex_t *mutex;
    lk_cond_t *cond;
    int64_t timeout_ms;
};

static int wait_and_keep(void *arg)
{
    struct conditional *c = arg;
    int rc = lk_mutex_lockfor(c->mutex, PATIENT_MS);
    return rc != 0 ? rc : lk_cond_waitfor(c->cond, c->mutex, c->timeout_ms);
}

/* A waiter of a condition has the mutex again when replicas have that, whether it was signalled or its time is over. */
static void a_wait_comes_back_confirmed(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker waiter;
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=1"), *plain = client_with(w, f, OPTIONS);
    lk_mutex_t *theirs = world_mutex(w, plain, "orders", NULL);
    lk_cond_t *told = world_cond(w, plain, "orders", NULL);
    struct conditional wanted = { world_mutex(w, client, "orders", NULL), world_cond(w, client, "orders", NULL), 0 };
    for (int round = 0; round < 3; round++) {
        bool signalled = round > 0, acknowledged = round > 1;
        wanted.timeout_ms = signalled ? PATIENT_MS : 1000;
        worker_start(&waiter, wait_and_keep, &wanted);
        eventually(failover_int(f, 0, "ZCARD latchkey:queue:cond:{orders}") == 1, PATIENT_MS);
        if (!acknowledged)
            stop_replicas(f);
        if (signalled)
            assert_lk(0, lk_cond_signal(told));
        assert_int_equal(acknowledged ? 0 : ENOTCONN, worker_join(&waiter));
        assert_int_equal(acknowledged, failover_int(f, 0, "EXISTS orders"));
        assert_int_equal(0, failover_int(f, 0, "EXISTS latchkey:queue:cond:{orders} latchkey:queue:mutex:{orders}"));
        if (!acknowledged)
            continue_replicas(f);
    }
    assert_int_equal(1, failover_int(f, 1, "EXISTS orders"));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(theirs, 100));
}

/* --- renewals -------------------------------------------------------------------------------------------------------- */

static int64_t left_ms(lk_mutex_t *m)
{
    int64_t ms = 0;
    assert_lk(0, lk_mutex_remaining(m, &ms));
    return ms;
}

/*
 * A renewal that no replica has is none: at risk, and lost when the validity is over, though the server answers. It has
 * prolonged the hold there until much later, so that is released.
 */
static void renewals_are_acknowledged(struct world *w)
{
    enum { LEASE_MS = 6000, GUARD_MS = 100 + LEASE_MS / 100 + 2, PAUSE_MS = 900 /* from one attempt to the next */ };
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = client_with(w, f, "lease=6s&command_timeout=600ms&clock_skew=100ms&wait_replicas=1");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    struct news *n = news_of(w, client, "orders");
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(LEASE_MS / 3);
    eventually(left_ms(orders) > LEASE_MS * 3 / 4, 2000 + SLACK_MS); /* it is renewed as ever */
    assert_int_equal(0, news(n, LK_EVENT_AT_RISK));

    stop_replicas(f);
    eventually(news(n, LK_EVENT_AT_RISK) == 1, LEASE_MS + SLACK_MS);
    continue_replicas(f);
    eventually(news(n, LK_EVENT_RECOVERED) == 1, PAUSE_MS + SLACK_MS);
    assert_lk(0, lk_mutex_check(orders));

    stop_replicas(f);
    int64_t began_ms = now_ms();
    eventually(news(n, LK_EVENT_LOST) == 1, LEASE_MS + SLACK_MS);
    assert_between(now_ms() - began_ms, LEASE_MS * 2 / 3 - GUARD_MS - PAUSE_MS, LEASE_MS + SLACK_MS);
    eventually(failover_int(f, 0, "EXISTS orders") == 0, LEASE_MS / 2);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    continue_replicas(f);
}

/* --- failovers ------------------------------------------------------------------------------------------------------- */

/* Somebody else has it. An answer may get lost when connections move to the next master. */
static bool is_kept_out(lk_mutex_t *m)
{
    int rc = lk_mutex_lockfor(m, 500);
    if (rc != ETIMEDOUT && rc != EIO && rc != ENOTCONN)
        fail_msg("not kept out, but %s: %s", code_name(rc), lk_errortext());
    return rc == ETIMEDOUT;
}

/* The master is cut off and goes on: what it grants does not count, and what is held there is lost before V. */
/* The master set it, so it is not "nothing was done"; the words say who is missing. */
static void a_lease_that_replicas_do_not_know_is_in_doubt(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_mutex_t *m = world_mutex(w, client_with(w, f, OPTIONS "&wait_replicas=1"), "orders", NULL);
    assert_lk(0, lk_mutex_lockfor(m, PATIENT_MS));
    stop_replicas(f);
    assert_lk(EIO, lk_mutex_extend(m, 12000));
    assert_says("wait_replicas");
    continue_replicas(f);
    eventually(lk_mutex_extend(m, 12000) == 0, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(m));
}

static void an_isolated_master_holds_nothing(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *left = failover_client(f, "lease=30s&command_timeout=2s&wait_replicas=1");
    lk_client_t *plain = failover_client(f, "lease=30s&command_timeout=2s");
    lk_mutex_t *orders = world_mutex(w, left, "orders", NULL), *bills = world_mutex(w, left, "bills", NULL);
    lk_mutex_t *next = world_mutex(w, plain, "orders", NULL);
    uint64_t token, later;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_token(orders, &token));
    failover_cutoff(f, 0);
    assert_lk(ENOTCONN, lk_mutex_trylock(bills));
    failover_await(f, 0, NULL);
    eventually(failover_connections(f, 0) == 0, FAILOVER_WITHIN_MS);
    eventually(is_kept_out(next), FAILOVER_WITHIN_MS); /* the new master has it: it was acknowledged */
    eventually(lk_mutex_check(orders) == 0, FAILOVER_WITHIN_MS);
    assert_true(left_ms(orders) > 0);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_lock(next));
    assert_lk(0, lk_mutex_token(next, &later));
    assert_true(later > token);
    assert_lk(0, lk_mutex_unlock(next));
    failover_heal(f, 0);
}

/* --- a client's end -------------------------------------------------------------------------------------------------- */

struct forked {
    lk_client_t *client;
    lk_mutex_t *mutex;
};

/* What it has of its parent's client waits for nobody. */
static int child_meanwhile(struct world *w, void *arg)
{
    struct forked *forked = arg;
    int64_t began_ms = now_ms();
    assert_lk(ECANCELED, lk_mutex_trylock(forked->mutex));
    assert_lk(0, lk_client_close(forked->client));
    assert_that(now_ms() - began_ms < SLACK_MS);
    world_ready(w);
    return 0;
}

/* A close waits for the WAIT that is under way, and no longer; a child that was forked meanwhile has nothing of it. */
static void a_close_ends_what_is_under_way(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    struct worker other;
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=1");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    struct forked forked = { client, orders };
    stop_replicas(f);
    worker_start(&other, trylock_in_time, orders);
    eventually(strstr(failover_str(f, 0, "INFO clients"), "blocked_clients:1") != NULL, PATIENT_MS);
    if (!THREAD_SANITIZED) /* it cannot follow a fork out of a process with threads */
        assert_int_equal(0, world_wait(w, world_fork(w, child_meanwhile, &forked)));
    int64_t began_ms = now_ms();
    assert_lk(0, close_by_hand(w, client));
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
    int rc = worker_join(&other);
    assert_true(rc == ENOTCONN || rc == ECANCELED || rc == EIO);
    eventually(failover_int(f, 0, "EXISTS orders") == 0, PATIENT_MS);
    continue_replicas(f);
}

/* Too few replicas end the wait for a run, too, however long it may last; nobody runs it then. */
static void a_run_begins_when_replicas_know(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    lk_client_t *client = client_with(w, f, OPTIONS "&wait_replicas=1");
    lk_once_t *work = world_once(w, client, "work", NULL);
    world_allow(w, "*:{work}");
    assert_lk(0, lk_once_begin(work, 0)); /* its connection is up then */
    assert_lk(0, lk_once_fail(work));
    stop_replicas(f);
    assert_lk(ENOTCONN, lk_once_begin(work, 0));
    assert_lk(ENOTCONN, lk_once_begin(work, LK_FOREVER));
    assert_non_null(strstr(lk_errortext(), "wait_replicas"));
    assert_lk(0, lk_once_info(work, &info));
    assert_true(!info.running && !info.done);
    continue_replicas(f);
    assert_lk(0, lk_once_begin(work, PATIENT_MS));
    stop_replicas(f);
    assert_lk(0, lk_once_end(work, "done")); /* what gives back waits for nobody */
    continue_replicas(f);
    assert_lk(EALREADY, lk_once_begin(work, 0));
}

int main(void)
{
    return world_run(a_grant_is_at_the_replicas, a_crowd_is_let_in_one_by_one, nothing_is_granted_without_them,
                     many_are_told_in_time, more_than_there_are, a_dead_owner_is_told_again,
                     what_is_taken_away_is_asked_for_again, a_hand_over_is_confirmed, a_wait_comes_back_confirmed,
                     renewals_are_acknowledged, a_lease_that_replicas_do_not_know_is_in_doubt,
                     an_isolated_master_holds_nothing, a_run_begins_when_replicas_know, a_close_ends_what_is_under_way);
}
