/* SPDX-License-Identifier: MIT */
/*
 * long_waits_test.c - waits and holds that last longer than warn_wait and warn_hold are told once each
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 30
 */
#include "client/client.h"
#include "log.h"
#include "world.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LONG "lease=20s&poll=5s&"

enum { PATIENT_MS = 20000 };

static lk_client_t *client;
static lk_mutex_t *orders, *theirs;
static lk_owner_t *owners[3];

static struct {
    atomic_int waits, holds;
    atomic_int wrong; /* events that are not as they should be */
    _Atomic uint64_t owners;
} heard;

static void hear(const lk_event_t *event, void *arg)
{
    bool wait = event->type == LK_EVENT_LONG_WAIT, hold = event->type == LK_EVENT_LONG_HOLD;
    (void)arg;
    if (strcmp(event->name, "orders") != 0 || event->kind != LK_KIND_MUTEX || event->count != 1)
        atomic_fetch_add(&heard.wrong, 1);
    if (wait && (event->token != 0 || event->remaining_ms != 0 || event->reason != LK_REASON_NONE))
        atomic_fetch_add(&heard.wrong, 1);
    if (hold && (event->token == 0 || event->remaining_ms <= 0 || event->reason != LK_REASON_NONE))
        atomic_fetch_add(&heard.wrong, 1);
    atomic_fetch_add(&heard.waits, wait);
    atomic_fetch_add(&heard.holds, hold);
    if (wait)
        atomic_fetch_add(&heard.owners, event->owner);
}

static void begin(struct world *w, const char *options)
{
    memset(&heard, 0, sizeof heard);
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
    theirs = world_mutex(w, world_client(w, "lease=20s"), "orders", NULL);
    assert_lk(0, lk_client_addlistener(client, hear, NULL, NULL));
    assert_lk(0, log_keep(LK_LOG_WARNING));
}

static unsigned long long long_waits(void)
{
    return atomic_load(&client->stats[LK_KIND_MUTEX].long_waits);
}

static unsigned long long long_holds(void)
{
    return atomic_load(&client->stats[LK_KIND_MUTEX].long_holds);
}

/* How often the log has said that. */
static int said(const char *words)
{
    int count = 0;
    for (const char *at = log_kept(); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

static int take(int index, void *arg)
{
    lk_how_t how = LK_HOW_INIT;
    (void)arg;
    how.owner = owners[index];
    int rc = lk_mutex_lockwith(orders, &how);
    return rc != 0 ? rc : lk_mutex_unlockby(orders, owners[index]);
}

static int take_alone(void *arg)
{
    return take(0, arg);
}

static int all_take(void *arg)
{
    return run_threads(3, take, arg);
}

static uint64_t make_owners(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_owner_new(client, &owners[i]));
        sum += lk_owner_number(owners[i]);
    }
    return sum;
}

static void free_owners(void)
{
    for (int i = 0; i < 3; i++)
        assert_lk(0, lk_owner_free(owners[i]));
}

/* While it waits, long before its next poll. */
static void a_long_wait_is_told_once(struct world *w)
{
    struct worker waiter;
    begin(w, LONG "warn_wait=50ms");
    make_owners();
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, take_alone, NULL);
    eventually(atomic_load(&heard.waits) == 1, PATIENT_MS);
    assert_int_equal(1, long_waits());
    assert_true(atomic_load(&heard.owners) == lk_owner_number(owners[0]));
    sleep_ms(120);
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(0, worker_join(&waiter));
    eventually(said("mutex orders: wait") == 1, PATIENT_MS);
    free_owners();
    world_close(w, orders);
    world_close(w, client); /* listeners have been told all */
    assert_int_equal(1, atomic_load(&heard.waits));
    assert_int_equal(0, atomic_load(&heard.wrong));
    assert_int_equal(1, said("mutex orders: wait"));
}

/* The next answer says who holds it. */
static void the_log_has_the_holder(struct world *w)
{
    struct worker waiter;
    begin(w, "lease=20s&poll=300ms&warn_wait=1500ms");
    make_owners();
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, take_alone, NULL);
    eventually(said("mutex orders: waiting for more than 1500 ms; held by ") == 1, PATIENT_MS);
    assert_int_equal(1, atomic_load(&heard.waits));
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(0, worker_join(&waiter));
    assert_int_equal(1, said("mutex orders: wait"));
    free_owners();
}

/* Those that wait behind another thread of the process as well, from when they came. */
static void all_threads_that_wait_are_told_of(struct world *w)
{
    struct worker waiters;
    begin(w, LONG "warn_wait=100ms");
    uint64_t sum = make_owners();
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiters, all_take, NULL);
    eventually(atomic_load(&heard.waits) == 3, PATIENT_MS);
    assert_true(atomic_load(&heard.owners) == sum);
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(0, worker_join(&waiters));
    assert_int_equal(3, long_waits());
    free_owners();
}

static void a_short_wait_is_not_told(struct world *w)
{
    struct worker waiter;
    begin(w, LONG "warn_wait=10s");
    make_owners();
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, take_alone, NULL);
    eventually(world_queued(w, "orders") == 1, PATIENT_MS);
    sleep_ms(100);
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(0, worker_join(&waiter));
    assert_int_equal(0, long_waits());
    free_owners();
}

static void one_that_gives_up_is_told_of(struct world *w)
{
    begin(w, LONG "warn_wait=50ms");
    assert_lk(0, lk_mutex_lock(theirs));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 200));
    assert_int_equal(1, long_waits());
    eventually(said("mutex orders: wait") == 1, PATIENT_MS);
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_int_equal(1, long_waits());
    assert_lk(0, lk_mutex_unlock(theirs));
}

static void what_is_not_to_be_told_is_not(struct world *w)
{
    begin(w, LONG "warn_wait=no");
    assert_lk(0, lk_mutex_lock(theirs));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 3300)); /* longer than what is told otherwise */
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(50);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, long_waits() + long_holds());
    assert_int_equal(0, said("mutex orders"));
    world_close(w, orders);
    world_close(w, client);
    assert_int_equal(0, atomic_load(&heard.waits) + atomic_load(&heard.holds));
}

/* While it is held and good, whether it is renewed meanwhile or not. */
static void a_long_hold_is_told_once(struct world *w)
{
    begin(w, "lease=6s&warn_hold=200ms");
    assert_lk(0, lk_mutex_lock(orders));
    eventually(atomic_load(&heard.holds) == 1, PATIENT_MS);
    eventually(atomic_load(&client->dog.margins.count) >= 1, PATIENT_MS);
    assert_lk(0, lk_mutex_lock(orders)); /* a level more is the same hold */
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(1, long_holds());
    assert_lk(0, lk_mutex_lock(orders));
    eventually(atomic_load(&heard.holds) == 2, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(said("orders: held for more than 200 ms") == 2, PATIENT_MS);
    world_close(w, orders);
    world_close(w, client);
    assert_int_equal(2, atomic_load(&heard.holds));
    assert_int_equal(0, atomic_load(&heard.wrong));
}

static void a_short_hold_is_not_told(struct world *w)
{
    begin(w, "lease=20s&warn_hold=5s");
    for (int i = 0; i < 20; i++) {
        assert_lk(0, lk_mutex_lock(orders));
        assert_lk(0, lk_mutex_unlock(orders));
    }
    assert_int_equal(0, long_holds());
    world_close(w, orders);
    world_close(w, client);
    assert_int_equal(0, atomic_load(&heard.holds));
}

enum { CROWD = SANITIZED ? 600 : 3000 };

enum { HEARD_MS = 300000 /* 6,000 commands on a slow network */ };

static struct gate hearing;

static void hear_late(const lk_event_t *event, void *arg)
{
    eventually(gate_is_open(&hearing), HEARD_MS);
    atomic_fetch_add((atomic_int *)arg, event->type == LK_EVENT_LONG_HOLD);
}

static void lock_crowd(lk_mutex_t crowd[CROWD])
{
    for (int i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof name, "crowd:%d", i);
        assert_lk(0, lk_mutex_init(&crowd[i], client, name, NULL));
        assert_lk(0, lk_mutex_lock(&crowd[i]));
    }
}

static void unlock_crowd(lk_mutex_t crowd[CROWD])
{
    for (int i = 0; i < CROWD; i++) {
        assert_lk(0, lk_mutex_unlock(&crowd[i]));
        assert_lk(0, lk_mutex_destroy(&crowd[i]));
    }
}

/* Nobody hears of them for now: the watchdog goes on, and so do locks; later each is heard of once, by all. */
static void thousands_are_told_of_in_their_time(struct world *w)
{
    static lk_mutex_t crowd[CROWD];
    lk_event_t event = LK_EVENT_INIT;
    static atomic_int late;
    int fetched = 0;
    atomic_store(&late, 0);
    hearing = (struct gate){ 0 };
    begin(w, "lease=20s&warn_hold=1500ms");
    lk_events_t *queue = world_events(w, client);
    assert_lk(0, lk_client_addlistener(client, hear_late, &late, NULL));
    int64_t began_ms = now_ms();
    lock_crowd(crowd);
    eventually(long_holds() == CROWD, PATIENT_MS);
    int64_t took_ms = now_ms() - began_ms;
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, atomic_load(&late));
    eventually(said("held for more than 1500 ms") > 0, PATIENT_MS); /* logs are written by a thread of their own */
    assert_between(said("held for more than 1500 ms"), 1, took_ms / 100 + 2); /* one line each 100 ms at most */
    while (lk_events_next(queue, &event) == 0)
        fetched += event.type == LK_EVENT_LONG_HOLD;
    assert_int_equal(CROWD, fetched);
    unlock_crowd(crowd);
    gate_open(&hearing);
    eventually(atomic_load(&late) == CROWD, PATIENT_MS);
    assert_int_equal(CROWD, atomic_load(&heard.holds));
}

enum { CLOSINGS = SANITIZED ? 10 : 30, SHORT_MS = 100, HELD = 30 };

static int wait_in_vain(int index, void *arg)
{
    (void)index;
    int rc = lk_mutex_lockfor(arg, 20000);
    return rc == ECANCELED ? 0 : rc == 0 ? EBUSY : rc;
}

static int all_wait_in_vain(void *arg)
{
    return run_threads(4, wait_in_vain, arg);
}

/* Around the moment when all its waits and holds become too long: all that it held is given back, and nothing told later. */
static void a_client_closes_at_that_moment(struct world *w)
{
    struct worker waiters;
    lk_mutex_t held[HELD];
    char name[16];
    begin(w, "lease=20s");
    assert_lk(0, lk_mutex_lock(theirs));
    for (int round = 0; round < CLOSINGS; round++) {
        lk_client_t *closed = world_open(w, LONG "warn_wait=100ms&warn_hold=100ms");
        lk_mutex_t *wanted = world_mutex(w, closed, "orders", NULL);
        static atomic_int told;
        atomic_store(&told, 0);
        hearing = (struct gate){ .open = 1 };
        assert_lk(0, lk_client_addlistener(closed, hear_late, &told, NULL));
        for (int i = 0; i < HELD; i++) {
            snprintf(name, sizeof name, "held:%d", i);
            assert_lk(0, lk_mutex_init(&held[i], closed, name, NULL));
            assert_lk(0, lk_mutex_lock(&held[i]));
        }
        worker_start(&waiters, all_wait_in_vain, wanted);
        eventually(world_queued(w, "orders") > 0, PATIENT_MS);
        sleep_ms(SHORT_MS / 2 + round * SHORT_MS / CLOSINGS);
        assert_lk(0, lk_client_close(closed));
        int then = atomic_load(&told);
        assert_lk(0, worker_join(&waiters));
        for (int i = 0; i < HELD; i++)
            assert_lk(0, lk_mutex_destroy(&held[i]));
        world_close(w, wanted);
        assert_false(world_exists(w, "held:0") || world_exists(w, name));
        assert_int_equal(then, atomic_load(&told));
    }
    assert_lk(0, lk_mutex_unlock(theirs));
}

/* An event that was not fetched yet, that the hold is at risk, is not replaced by one that matters less. */
static void risk_comes_first(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    begin(w, "lease=9s&warn_hold=6200ms"); /* at risk after 6 s */
    lk_events_t *queue = world_events(w, client);
    assert_lk(0, lk_mutex_lock(orders));
    world_redis(w, "ACL SETUSER default -evalsha -eval"); /* renewals are refused */
    eventually(long_holds() == 1, PATIENT_MS);
    assert_lk(0, lk_events_next(queue, &event));
    assert_int_equal(LK_EVENT_AT_RISK, event.type);
    world_redis(w, "ACL SETUSER default +evalsha +eval");
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Whoever holds it may have written anything: a terminal obeys nothing of a line, and has all other characters. */
static void a_holder_cannot_write_to_the_terminal(struct world *w)
{
    static const char holder[] = "x:\xc2\x9b" "31m\x9b" "2J\x1b[2J\xe2\x82\xac\xe2\x80\x9c";
    begin(w, "lease=20s&poll=300ms&warn_wait=300ms");
    world_redis(w, "HSET orders %b 1", holder, sizeof holder - 1);
    world_redis(w, "PEXPIRE orders 60000");
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 3000));
    eventually(said("held by x:??31m?2J?[2J\xe2\x82\xac\xe2\x80\x9c") == 1, PATIENT_MS);
    world_redis(w, "DEL orders");
}

enum { WAITING = 20 };

static int wait_for_one_of_many(int index, void *arg)
{
    int rc = lk_mutex_lockfor((lk_mutex_t *)arg + index, 60000);
    return rc != 0 ? rc : lk_mutex_unlock((lk_mutex_t *)arg + index);
}

static int all_of_many_wait(void *arg)
{
    return run_threads(WAITING, wait_for_one_of_many, arg);
}

static int wait_for_a_latch(int index, void *arg)
{
    (void)index;
    int rc = lk_latch_waitfor(arg, 4000);
    return rc == ENOTCONN ? 0 : rc == 0 ? EBUSY : rc;
}

static int all_wait_for_a_latch(void *arg)
{
    return run_threads(WAITING, wait_for_a_latch, arg);
}

/* A server that is away is one line for all who wait for it, and one more when it is away again. */
static void an_absence_is_told_once(struct world *w)
{
    struct worker waiters;
    lk_mutex_t many[WAITING];
    char name[16];
    begin(w, LONG "command_timeout=500ms&retry_max=200ms&warn_wait=1s");
    for (int i = 0; i < WAITING; i++) {
        snprintf(name, sizeof name, "many:%d", i);
        assert_lk(0, lk_mutex_init(&many[i], client, name, NULL));
    }
    for (unsigned round = 1; round <= 2; round++) {
        world_kill_server(w);
        worker_start(&waiters, all_of_many_wait, many);
        eventually(long_waits() == round * WAITING, PATIENT_MS);
        eventually(said("mutex many:") == (int)round, PATIENT_MS);
        sleep_ms(200); /* for lines that must not come */
        world_restart_server(w);
        assert_int_equal(0, worker_join(&waiters));
        assert_int_equal(round, said("waiting for more than 1 s"));
        assert_int_equal(round, said("mutex many:"));
    }
    assert_true(strstr(log_kept(), "waiting for more than 1 s, as ") != NULL);
    for (int i = 0; i < WAITING; i++)
        assert_lk(0, lk_mutex_destroy(&many[i]));
}

/* So it is with those who wait for what a broadcast tells. */
static void likewise_where_a_latch_is_waited_for(struct world *w)
{
    struct worker waiters;
    begin(w, "lease=20s&poll=300ms&command_timeout=500ms&retry_max=200ms&warn_wait=1s");
    lk_latch_t *latch = world_latch(w, client, "gate");
    world_kill_server(w);
    worker_start(&waiters, all_wait_for_a_latch, latch);
    assert_int_equal(0, worker_join(&waiters));
    eventually(said("waiting for more than 1 s; ") >= 1, PATIENT_MS);
    assert_int_equal(1, said("waiting for more than 1 s"));
    world_restart_server(w);
}

int main(void)
{
    return world_run(a_long_wait_is_told_once, the_log_has_the_holder, all_threads_that_wait_are_told_of,
                     a_short_wait_is_not_told, one_that_gives_up_is_told_of, what_is_not_to_be_told_is_not,
                     a_long_hold_is_told_once, a_short_hold_is_not_told,
                     thousands_are_told_of_in_their_time, a_client_closes_at_that_moment, risk_comes_first,
                     a_holder_cannot_write_to_the_terminal, an_absence_is_told_once, likewise_where_a_latch_is_waited_for);
}
