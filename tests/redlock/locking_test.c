/* SPDX-License-Identifier: MIT */
/*
 * locking_test.c - a redlock is a mutex at each of three servers, and is held when two of them say so
 *
 * labels: threads memory
 * simulated: yes
 */
#include "news.h"
#include "quorum.h"

#include <stdio.h>
#include <string.h>

#define TIMES "lease=10s&command_timeout=2500ms"

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 200 };

static int try_it(void *redlock)
{
    int rc = lk_redlock_trylock(redlock);
    return rc == 0 ? lk_redlock_unlock(redlock) : rc;
}

/* One of the servers may hear of the last unlock after this. */
static int visit(void *redlock)
{
    int rc = lk_redlock_lockfor(redlock, 10000);
    return rc == 0 ? lk_redlock_unlock(redlock) : rc;
}

static void one_holds_it_at_all_servers(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *mine = quorum_client(q, TIMES), *theirs = quorum_client(q, TIMES);
    lk_redlock_t *r = quorum_redlock(w, mine, "jobs", &no_wait), *other = quorum_redlock(w, theirs, "jobs", &no_wait);

    quorum_lockall(q, r, "jobs");
    assert_answer(EBUSY, lk_redlock_trylock(other));
    assert_answer(ETIMEDOUT, lk_redlock_lockfor(other, 100));
    assert_answer(EBUSY, in_thread(try_it, r));
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
    assert_lk(0, lk_redlock_lockfor(other, 5000));
    assert_lk(0, lk_redlock_unlock(other));
    eventually(quorum_having(q, "jobs") == 0, 5000);
    assert_lk(EPERM, lk_redlock_unlock(other));
}

/* Until it has been told of a wait, which it is once: on a busy machine one round may take up all the time of a wait. */
static void wait_too_long(lk_redlock_t *r, lk_events_t *told, lk_event_t *event)
{
    int rc = ENOTCONN, next = EAGAIN;
    for (int i = 0; i < 10 && (rc != ETIMEDOUT || next != 0); i++) {
        rc = lk_redlock_lockfor(r, 600);
        assert_true(rc == ETIMEDOUT || rc == ENOTCONN);
        next = lk_events_next(told, event);
    }
    assert_int_equal(ETIMEDOUT, rc);
    assert_int_equal(0, next);
}

static void a_wait_and_a_hold_that_last_too_long_are_told(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_event_t event = LK_EVENT_INIT;
    lk_client_t *mine = quorum_client(q, TIMES "&warn_hold=1s"), *theirs = quorum_client(q, TIMES "&warn_wait=100ms");
    lk_redlock_t *r = quorum_redlock(w, mine, "jobs", &no_wait), *other = quorum_redlock(w, theirs, "jobs", &no_wait);
    lk_events_t *of_hold = world_events(w, mine), *of_wait = world_events(w, theirs);

    quorum_lockall(q, r, "jobs");
    wait_too_long(other, of_wait, &event);
    assert_int_equal(LK_EVENT_LONG_WAIT, event.type);
    assert_int_equal(LK_KIND_REDLOCK, event.kind);
    assert_true(event.owner == lk_owner_number(NULL));
    assert_lk(EAGAIN, lk_events_next(of_wait, &event));
    eventually(lk_events_next(of_hold, &event) == 0, 5000);
    assert_int_equal(LK_EVENT_LONG_HOLD, event.type);
    assert_int_equal(LK_KIND_REDLOCK, event.kind);
    while (lk_events_next(of_hold, &event) == 0) /* its servers' leases are no holds */
        assert_int_not_equal(LK_EVENT_LONG_HOLD, event.type);
    assert_lk(0, lk_redlock_unlock(r));
}

/* What a mutex of that name on one of the servers has is what the redlock has there, and the other way round. */
static void at_each_server_it_is_the_mutex_of_that_name(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    char url[64];
    lk_mutex_t mutexes[2];
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &no_wait);
    for (int i = 0; i < 2; i++) {
        snprintf(url, sizeof url, "redis://127.0.0.1:%d?" TIMES, quorum_port(q, i));
        assert_lk(0, lk_mutex_init(&mutexes[i], world_client_at(w, q, url), "jobs", NULL));
    }
    quorum_lockall(q, r, "jobs");
    assert_string_equal(quorum_str(q, 0, "TYPE jobs"), "hash");
    assert_same(1, quorum_int(q, 0, "HLEN jobs"));
    assert_between(quorum_int(q, 0, "PTTL jobs"), 1, 10000);
    assert_lk(EBUSY, lk_mutex_trylock(&mutexes[0]));
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 0, 5000);

    assert_lk(0, lk_mutex_lock(&mutexes[0]));
    assert_lk(0, lk_redlock_lockfor(r, 10000)); /* two of three */
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 1, 5000);
    assert_lk(0, lk_mutex_lock(&mutexes[1]));
    assert_answer(EBUSY, lk_redlock_trylock(r));
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_mutex_unlock(&mutexes[i]));
        assert_lk(0, lk_mutex_destroy(&mutexes[i]));
    }
}

/* What Redisson writes, by hand: the RedLock of Java is that at a majority. */
static void javas_redlock_and_this_one_exclude_each_other(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &no_wait);
    for (int i = 0; i < 2; i++) {
        quorum_int(q, i, "HSET jobs 285475da-9152-4c83-822a-67ee2f116a7%d:1 1", i);
        quorum_int(q, i, "PEXPIRE jobs 30000");
    }
    assert_answer(EBUSY, lk_redlock_trylock(r));
    eventually(quorum_having(q, "jobs") == 2, 5000); /* what the third one granted was given back */
    quorum_int(q, 1, "DEL jobs");
    assert_lk(0, lk_redlock_lockfor(r, 10000));
    assert_lk(0, lk_redlock_unlock(r));
    quorum_int(q, 0, "DEL jobs");
}

static void no_more_is_trusted_than_drifting_clocks_allow(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, "lease=10s"), "jobs", &no_wait);
    int64_t left_ms, began_ms = now_ms();
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(0, lk_redlock_remaining(r, &left_ms));
    assert_between(left_ms, 10000 - 102 - (now_ms() - began_ms) - 1, 10000 - 102);
    assert_lk(0, lk_redlock_unlock(r));
    assert_lk(EPERM, lk_redlock_remaining(r, &left_ms));
}

static void the_watchdog_keeps_it_at_all_of_them(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, "lease=4s&command_timeout=1300ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    quorum_lockall(q, r, "jobs");
    for (int64_t until_ms = now_ms() + 5000; now_ms() < until_ms; sleep_ms(100))
        assert_answer(0, lk_redlock_check(r));
    for (int i = 0; i < 3; i++)
        assert_same(1, quorum_int(q, i, "HLEN jobs"));
    assert_same(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_redlock_unlock(r));
}

static void levels_and_types_are_those_of_a_mutex(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlockattr_t attr = no_wait;
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    attr.type = LK_REDLOCK_ERRORCHECK;
    lk_redlock_t *checked = quorum_redlock(w, client, "checked", &attr);
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(EBUSY, lk_redlock_destroy(r));
    assert_lk(0, lk_redlock_unlock(r));
    assert_answer(EBUSY, in_thread(try_it, r));
    assert_lk(0, lk_redlock_unlock(r));
    assert_lk(0, in_thread(visit, r));
    assert_lk(0, lk_redlock_lock(checked));
    assert_lk(EDEADLK, lk_redlock_lock(checked));
    assert_lk(EBUSY, lk_redlock_trylock(checked));
    assert_lk(0, lk_redlock_unlock(checked));
}

struct owned {
    lk_redlock_t *r;
    lk_owner_t *owner;
};

static int unlock_owned(void *arg)
{
    struct owned *owned = arg;
    int64_t left_ms;
    int rc = lk_redlock_remainingby(owned->r, owned->owner, &left_ms);
    rc = rc == 0 ? lk_redlock_unlockby(owned->r, owned->owner) : rc;
    if (rc != 0)
        print_message("%s\n", lk_errortext());
    return rc;
}

static void an_owner_holds_it_for_any_thread(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES);
    uint64_t token;
    struct owned owned = { .r = quorum_redlock(w, client, "jobs", &no_wait) };
    owned.owner = world_newowner(w, client);
    const lk_how_t how = { .size = sizeof how, .timeout_ms = 5000, .lease_ms = 6000, .owner = owned.owner };
    assert_lk(0, lk_redlock_lockwith(owned.r, &how));
    assert_between(quorum_int(q, 0, "PTTL jobs"), -2, 6000);
    assert_lk(EPERM, lk_redlock_unlock(owned.r));
    assert_lk(0, lk_redlock_checkby(owned.r, owned.owner));
    assert_lk(0, lk_redlock_extendby(owned.r, owned.owner, 6500));
    assert_lk(ENOTSUP, lk_redlock_tokenby(owned.r, owned.owner, &token));
    assert_lk(0, in_thread(unlock_owned, &owned));
}

static void a_fixed_lease_ends_by_itself(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlockattr_t attr = no_wait;
    attr.fixed = 1;
    attr.lease_ms = 1000;
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &attr);
    struct news *n = news_of(w, client, "jobs");
    assert_lk(0, lk_redlock_lock(r));
    eventually(news(n, LK_EVENT_LOST) == 1, 3000);
    assert_same(LK_REASON_FIXED, news_reason(n));
    assert_lk(ESTALE, lk_redlock_unlock(r));
}

static void it_is_held_no_longer_than_it_may_be(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, "lease=1490ms"); /* its first renewal is the last one */
    lk_redlockattr_t attr = no_wait;
    attr.max_hold_ms = 1500;
    attr.node_timeout_ms = 200;
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &attr);
    struct news *n = news_of(w, client, "jobs");
    int64_t began_ms = now_ms();
    assert_lk(0, lk_redlock_lock(r));
    eventually(news(n, LK_EVENT_LOST) == 1, 5000);
    assert_between(now_ms() - began_ms, 1000, 1500 + SLACK_MS);
    assert_same(LK_REASON_MAX_HOLD, news_reason(n));
    assert_lk(ESTALE, lk_redlock_unlock(r));
}

static void it_waits_until_a_moment(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *mine = quorum_client(q, TIMES), *theirs = quorum_client(q, TIMES);
    lk_redlock_t *r = quorum_redlock(w, mine, "jobs", &no_wait), *other = quorum_redlock(w, theirs, "jobs", &no_wait);
    const struct timespec past = { 1, 0 }, wrong = { 1, -1 };
    assert_answer(0, lk_redlock_timedlock(r, &past)); /* what is free is taken all the same */
    assert_answer(ETIMEDOUT, lk_redlock_timedlock(other, &past));
    assert_answer(ETIMEDOUT, lk_redlock_clocklock(other, CLOCK_MONOTONIC, &past));
    assert_lk(EINVAL, lk_redlock_timedlock(other, &wrong));
    assert_lk(EINVAL, lk_redlock_lockfor(other, -2));
    assert_lk(0, lk_redlock_unlock(r));
}

/* What a fork's child has is the parent's. */
static int use_inherited(struct world *w, void *redlock)
{
    (void)w;
    bool right = lk_redlock_trylock(redlock) == ECANCELED && lk_redlock_unlock(redlock) == EPERM &&
                 lk_redlock_check(redlock) == ECANCELED && lk_redlock_destroy(redlock) == 0;
    world_ready(w);
    return right ? 0 : 1;
}

static void a_child_has_nothing_of_it(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &no_wait);
    assert_lk(0, lk_redlock_lock(r));
#if !THREAD_SANITIZED /* which follows no fork out of a process with threads */
    assert_same(0, world_wait(w, world_fork(w, use_inherited, r)));
#else
    (void)use_inherited;
#endif
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
}

/* Who waits is woken by a close of its client. */
WORK(lock_patiently, redlock, lk_redlock_lockfor(redlock, 30000))

static void a_close_ends_a_wait(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *mine = quorum_client(q, TIMES), *theirs = NULL;
    lk_redlock_t *r = quorum_redlock(w, mine, "jobs", &no_wait), other;
    struct worker worker;
    assert_lk(0, open_patiently(&theirs, quorum_url(q, TIMES)));
    assert_lk(0, lk_redlock_init(&other, theirs, "jobs", &no_wait));
    assert_lk(0, lk_redlock_lock(r));
    worker_start(&worker, lock_patiently, &other);
    sleep_ms(50); /* it waits, or does not yet: the answer is the same */
    assert_lk(0, lk_client_close(theirs));
    assert_lk(ECANCELED, worker_join(&worker));
    assert_lk(0, lk_redlock_destroy(&other));
    assert_lk(0, lk_redlock_unlock(r));
}

/* A hold that is shorter than the client's lease is asked for in less time. */
static void a_short_hold_needs_no_other_times(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    const lk_redlockattr_t attr = { .size = sizeof attr, .longest_lease_ms = -1, .max_hold_ms = 3000 };
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, "lease=30s"), "jobs", &attr);
    int64_t left_ms;
    assert_lk(0, lk_redlock_lockfor(r, 20000));
    assert_lk(0, lk_redlock_remaining(r, &left_ms));
    assert_between(left_ms, 1, 3000);
    assert_lk(0, lk_redlock_unlock(r));
}

static void a_lease_can_be_set_at_a_majority(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &no_wait);
    int64_t left_ms;
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(0, lk_redlock_extend(r, 20000));
    assert_lk(0, lk_redlock_remaining(r, &left_ms));
    assert_between(left_ms, 10000, 20000 - 202);
    assert_lk(0, lk_redlock_extend(r, 5000));
    assert_lk(0, lk_redlock_remaining(r, &left_ms));
    assert_between(left_ms, 1, 5000 - 52);
    assert_lk(EINVAL, lk_redlock_extend(r, 50));
    assert_lk(0, lk_redlock_unlock(r));
}

/* A server that forgets votes again after longest_lease_ms: no lease may outlast that. By default it is the redlock's lease. */
static void no_lease_is_above_the_longest(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, "lease=2s&command_timeout=500ms");
    const lk_redlockattr_t set = { .size = sizeof set, .lease_ms = 1000, .longest_lease_ms = 2000 };
    const lk_redlockattr_t *const attrs[] = { NULL, &set };
    const lk_how_t longer = { .size = sizeof longer, .timeout_ms = 10000, .lease_ms = 2001 };
    const lk_how_t longest = { .size = sizeof longest, .timeout_ms = 10000, .lease_ms = 2000 };
    int64_t left_ms;
    for (int i = 0; i < 2; i++) {
        lk_redlock_t *r = quorum_redlock(w, client, "jobs", attrs[i]);
        assert_lk(EINVAL, lk_redlock_lockwith(r, &longer));
        assert_lk(0, lk_redlock_lockwith(r, &longest));
        assert_lk(EINVAL, lk_redlock_extend(r, 2001));
        assert_lk(0, lk_redlock_remaining(r, &left_ms));
        assert_between(left_ms, 1, 2000);
        assert_lk(0, lk_redlock_extend(r, 2000));
        assert_lk(0, lk_redlock_unlock(r));
    }
}

static void info_tells_what_servers_say(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &no_wait);
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    assert_lk(0, lk_redlock_info(r, &info));
    assert_true(!info.held && info.nodes == 3 && info.answered == 3 && info.taken == 0 && info.remaining_ms == 0);
    assert_string_equal(info.holder, "");
    quorum_lockall(q, r, "jobs");
    assert_lk(0, lk_redlock_info(r, &info));
    assert_true(info.held && info.answered == 3 && info.taken == 3);
    assert_between(info.remaining_ms, 1, 10000);
    assert_same(strlen(info.holder) > 32, true);
    quorum_kill(q, 0);
    assert_lk(0, lk_redlock_info(r, &info));
    assert_true(info.held && info.answered == 2 && info.taken == 2);
    assert_lk(0, lk_redlock_unlock(r));
    quorum_start(q, 0);
}

/* The world ends only when nothing is left, and close gives back what is held. */
static void a_close_gives_it_back(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = NULL;
    lk_redlock_t r;
    assert_lk(0, open_patiently(&client, quorum_url(q, TIMES)));
    assert_lk(0, lk_redlock_init(&r, client, "jobs", &no_wait));
    assert_lk(0, lk_redlock_lock(&r));
    assert_lk(0, lk_client_close(client));
    assert_same(0, quorum_having(q, "jobs"));
    assert_lk(ECANCELED, lk_redlock_trylock(&r));
    assert_lk(0, lk_redlock_destroy(&r));
}

static int lock_and_end(void *redlock)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = 10000, .lease_ms = 1000 };
    return lk_redlock_lockwith(redlock, &how);
}

static void what_a_thread_leaves_behind_ends_with_its_lease(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    assert_lk(0, in_thread(lock_and_end, r));
    assert_lk(0, lk_redlock_lockfor(r, 10000));
    eventually(news(n, LK_EVENT_LOST) == 1, 5000);
    assert_same(LK_REASON_THREAD_EXIT, news_reason(n));
    assert_lk(0, lk_redlock_unlock(r));
}

static void attributes_are_checked(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlock_t r;
    static const lk_redlockattr_t wrong[] = {
        { .size = sizeof wrong[0], .fair = 1 },
        { .size = sizeof wrong[0], .robust = 1 },
        { .size = sizeof wrong[0], .type = 3 },
        { .size = sizeof wrong[0], .fenced = 2 },
        { .size = sizeof wrong[0], .lease_ms = 50 },
        { .size = sizeof wrong[0], .lease_ms = 2000, .longest_lease_ms = 1000 },
        { .size = sizeof wrong[0], .longest_lease_ms = -2 },
        { .size = sizeof wrong[0], .node_timeout_ms = -1 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_lk(EINVAL, lk_redlock_init(&r, client, "jobs", &wrong[i]));
    const lk_redlockattr_t slow = { .size = sizeof slow, .lease_ms = 1000, .node_timeout_ms = 300 };
    lk_redlock_t *late = quorum_redlock(w, client, "jobs", &slow);
    assert_lk(EINVAL, lk_redlock_trylock(late));
}

/* A quorum's client has redlocks alone, and redlocks have nobody else. */
static void other_objects_are_refused(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES), *single = world_client(w, TIMES);
    lk_redlock_t r;
    lk_mutex_t m;
    lk_rwlock_t rw;
    lk_sem_t s;
    lk_latch_t l;
    assert_lk(ENOTSUP, lk_mutex_init(&m, client, "jobs", NULL));
    assert_non_null(strstr(lk_errortext(), "quorum"));
    assert_lk(ENOTSUP, lk_rwlock_init(&rw, client, "jobs", NULL));
    assert_lk(ENOTSUP, lk_sem_init(&s, client, "jobs", 1, NULL));
    assert_lk(ENOTSUP, lk_latch_init(&l, client, "jobs", NULL));
    assert_lk(EINVAL, lk_redlock_init(&r, single, "jobs", NULL));
    assert_non_null(strstr(lk_errortext(), "redis-quorum"));
}

/* Whoever is not there when a majority is, a moment later, is not looked at: on a busy machine that may be the second name. */
static int open_with_all(const char *url)
{
    lk_client_t *client = NULL;
    int64_t until_ms = now_ms() + 5000;
    int rc;
    do {
        rc = lk_client_open(&client, url);
        if (rc == 0)
            rc = lk_client_close(client);
    } while ((rc == 0 || rc == ENOTCONN) && now_ms() < until_ms);
    return rc;
}

static void each_server_has_one_vote(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = NULL;
    char hosts[96], url[160];
    int a = quorum_port(q, 0), b = quorum_port(q, 1), c = quorum_port(q, 2);
    snprintf(hosts, sizeof hosts, "redis-quorum://127.0.0.1:%d,127.0.0.1:%d", a, b);
    assert_lk(EINVAL, lk_client_open(&client, hosts)); /* too few */
    snprintf(url, sizeof url, "%s,127.0.0.1:%d", hosts, a);
    assert_lk(EINVAL, lk_client_open(&client, url)); /* twice */
    snprintf(url, sizeof url, "%s,localhost:%d", hosts, a);
    assert_lk(EINVAL, open_with_all(url)); /* under two names */
    snprintf(url, sizeof url, "%s,nowhere.invalid:1,NOWHERE.invalid:1,127.0.0.1:%d", hosts, c);
    assert_lk(EINVAL, lk_client_open(&client, url)); /* one name, spelt in two ways: that is seen before anybody is asked */
    snprintf(url, sizeof url, "%s,127.0.0.1:%d,127.0.0.1:1", hosts, c);
    assert_lk(EINVAL, lk_client_open(&client, url)); /* an even number */
    snprintf(url, sizeof url, "%s,127.0.0.1:%d?wait_replicas=1", hosts, c);
    assert_lk(EINVAL, lk_client_open(&client, url));
}

int main(void)
{
    return world_run(one_holds_it_at_all_servers, a_wait_and_a_hold_that_last_too_long_are_told,
                     at_each_server_it_is_the_mutex_of_that_name,
                     javas_redlock_and_this_one_exclude_each_other, no_more_is_trusted_than_drifting_clocks_allow,
                     the_watchdog_keeps_it_at_all_of_them, levels_and_types_are_those_of_a_mutex,
                     an_owner_holds_it_for_any_thread, a_fixed_lease_ends_by_itself,
                     it_is_held_no_longer_than_it_may_be, it_waits_until_a_moment, a_child_has_nothing_of_it,
                     a_close_ends_a_wait, a_short_hold_needs_no_other_times, a_lease_can_be_set_at_a_majority,
                     no_lease_is_above_the_longest,
                     info_tells_what_servers_say, a_close_gives_it_back,
                     what_a_thread_leaves_behind_ends_with_its_lease, attributes_are_checked, other_objects_are_refused,
                     each_server_has_one_vote);
}
