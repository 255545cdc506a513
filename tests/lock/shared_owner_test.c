/* SPDX-License-Identifier: MIT */
/*
 * shared_owner_test.c - several threads use one owner at a time
 *
 * processors: 2
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 8, OWNERS = 3, ROUNDS = SANITIZED ? 12 : 40 };

static lk_client_t *client;
static lk_mutex_t *orders, *stock;
static lk_owner_t *owners[OWNERS];

static void open_both(struct world *w, int count)
{
    client = world_client(w, "command_timeout=1500ms");
    orders = world_mutex(w, client, "orders", NULL);
    stock = world_mutex(w, client, "stock", NULL);
    for (int i = 0; i < count; i++)
        owners[i] = world_newowner(w, client);
}

static int lock_by(lk_mutex_t *m, lk_owner_t *owner, int64_t timeout_ms)
{
    const lk_how_t how = { .size = sizeof how, .timeout_ms = timeout_ms, .owner = owner };
    return lk_mutex_lockwith(m, &how);
}

WORK(lock_orders, owner, lock_by(orders, owner, 20000))

/* A lock that waits for somebody else keeps no call of its owner waiting, but one that locks the same mutex. */
static void a_waiting_call_is_in_nobody_s_way(struct world *w)
{
    struct worker waiter, second;
    int64_t left_ms;
    open_both(w, 1);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lock_by(stock, owners[0], 0));
    worker_start(&waiter, lock_orders, owners[0]);
    eventually(world_queued(w, "orders") == 1, 5000);

    int64_t began_ms = now_ms();
    assert_lk(EPERM, lk_mutex_unlockby(orders, owners[0]));
    assert_lk(EPERM, lk_mutex_remainingby(orders, owners[0], &left_ms));
    assert_lk(0, lock_by(stock, owners[0], 0));
    assert_lk(0, lk_mutex_unlockby(stock, owners[0]));
    assert_lk(0, lk_mutex_unlockby(stock, owners[0]));
    assert_lk(ETIMEDOUT, lock_by(orders, owners[0], 0));
    assert_lk(ETIMEDOUT, lock_by(orders, owners[0], 50));
    assert_between(now_ms() - began_ms, 50, 50 + 4 * SLACK_MS);

    worker_start(&second, lock_orders, owners[0]); /* it becomes the second level */
    sleep_ms(50);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, worker_join(&waiter));
    assert_lk(0, worker_join(&second));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlockby(orders, owners[0]));
    assert_lk(0, lk_mutex_unlockby(orders, owners[0]));
}

/* Threads that hold for one owner may be many; those of two owners never meet. */
static struct {
    atomic_int inside[OWNERS];
    atomic_int met;
    int counter[OWNERS]; /* of the owner that holds: guarded by the mutex and, among its threads, by `mine` */
    pthread_mutex_t mine[OWNERS];
} guarded = { .mine = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER } };

static void visit(int mine)
{
    atomic_fetch_add(&guarded.inside[mine], 1);
    sched_yield();
    for (int i = 0; i < OWNERS; i++)
        if (i != mine && atomic_load(&guarded.inside[i]) != 0)
            atomic_fetch_add(&guarded.met, 1);
    pthread_mutex_lock(&guarded.mine[mine]);
    guarded.counter[mine]++;
    pthread_mutex_unlock(&guarded.mine[mine]);
    atomic_fetch_sub(&guarded.inside[mine], 1);
}

static int share_an_owner(int index, void *arg)
{
    int mine = index % OWNERS, rc = 0;
    uint64_t token;
    (void)arg;
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = lock_by(orders, owners[mine], LK_FOREVER);
        if (rc != 0)
            break;
        visit(mine);
        rc = lk_mutex_tokenby(orders, owners[mine], &token);
        if (rc == 0)
            rc = lk_mutex_unlockby(orders, owners[mine]);
    }
    return rc;
}

static void levels_of_many_threads_add_up(struct world *w)
{
    open_both(w, OWNERS);
    assert_lk(0, run_threads(THREADS, share_an_owner, NULL));
    assert_int_equal(0, atomic_load(&guarded.met));
    int sum = 0;
    for (int i = 0; i < OWNERS; i++) {
        sum += guarded.counter[i];
        assert_lk(EPERM, lk_mutex_unlockby(orders, owners[i]));
    }
    assert_int_equal(THREADS * ROUNDS, sum);
    assert_false(world_exists(w, "orders"));
    assert_int_equal(0, world_queued(w, "orders"));
}

/* One owner goes round: who gets it finds it holding, does its part, and passes it on. */
static struct {
    pthread_mutex_t mu;
    pthread_cond_t passed;
    int turn, laps; /* under mu */
    int counter;    /* of who has the turn; another process' worth of rivals comes in between */
} baton = { .mu = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER };

static int take_part(int lap)
{
    int rc = lap > 0 ? lk_mutex_checkby(orders, owners[0]) : lock_by(orders, owners[0], LK_FOREVER);
    if (rc == 0)
        rc = lock_by(orders, owners[0], 0);
    if (rc == 0)
        baton.counter++;
    if (rc == 0)
        rc = lk_mutex_unlockby(orders, owners[0]);
    if (rc == 0 && lap % 5 == 4) { /* let others in */
        rc = lk_mutex_unlockby(orders, owners[0]);
        if (rc == 0)
            rc = lock_by(orders, owners[0], LK_FOREVER);
    }
    return rc;
}

static int run_laps(int index, void *arg)
{
    int rc = 0;
    (void)arg;
    pthread_mutex_lock(&baton.mu);
    while (rc == 0 && baton.laps < THREADS * ROUNDS) {
        while (baton.turn != index && baton.laps < THREADS * ROUNDS)
            pthread_cond_wait(&baton.passed, &baton.mu);
        if (baton.laps == THREADS * ROUNDS)
            break;
        int lap = baton.laps;
        pthread_mutex_unlock(&baton.mu);
        rc = take_part(lap);
        pthread_mutex_lock(&baton.mu);
        baton.laps = rc == 0 ? baton.laps + 1 : THREADS * ROUNDS;
        baton.turn = (index + 1) % THREADS;
        pthread_cond_broadcast(&baton.passed);
    }
    pthread_mutex_unlock(&baton.mu);
    return rc;
}

static int rival(void *stop)
{
    int rc = 0;
    while (rc == 0 && !gate_is_open(stop)) {
        rc = lk_mutex_lockfor(orders, 20);
        if (rc == 0) {
            baton.counter++;
            baton.counter--;
            rc = lk_mutex_unlock(orders);
        } else if (rc == ETIMEDOUT) {
            rc = 0;
        }
    }
    return rc;
}

static void one_owner_is_passed_around(struct world *w)
{
    struct worker other;
    struct gate *stop = world_shared(w, sizeof *stop);
    open_both(w, 1);
    worker_start(&other, rival, stop);
    assert_lk(0, run_threads(THREADS, run_laps, NULL));
    assert_lk(0, lk_mutex_unlockby(orders, owners[0]));
    gate_open(stop);
    assert_lk(0, worker_join(&other));
    assert_int_equal(THREADS * ROUNDS, baton.counter);
}

static struct gate stop;

static int visit_until_stopped(int index, void *arg)
{
    int mine = index % OWNERS, rc = 0;
    (void)arg;
    while (!gate_is_open(&stop) && rc == 0) {
        rc = lock_by(orders, owners[mine], LK_FOREVER);
        if (rc == 0) {
            visit(mine);
            rc = lk_mutex_unlockby(orders, owners[mine]);
        }
    }
    return rc;
}

/* Connections end and scripts are forgotten at every moment: no call fails, and none keeps the others of its owner. */
static void traffic_goes_on_under_a_hail_of_faults(struct world *w)
{
    open_both(w, OWNERS);
    stop = (struct gate){ 0 };
    assert_int_equal(0, world_hail(w, visit_until_stopped, &stop));
    assert_int_equal(0, atomic_load(&guarded.met));
    assert_int_equal(0, world_queued(w, "orders"));
}

static int check_orders(int index, void *owner)
{
    (void)index;
    int rc = lk_mutex_checkby(orders, owner);
    return rc == EIO || rc == ENOTCONN ? 0 : -1;
}

/* The server stands still: each call of an owner ends, after one timeout for each before it, and the hold is good. */
static void without_answers_each_call_takes_one_timeout(struct world *w)
{
    enum { CALLS = 3, COMMAND_MS = 300 };
    client = world_client(w, "command_timeout=300ms");
    orders = world_mutex(w, client, "orders", NULL);
    owners[0] = world_newowner(w, client);
    assert_lk(0, lock_by(orders, owners[0], LK_FOREVER));
    eventually(lk_mutex_checkby(orders, owners[0]) == 0, 5000); /* the server knows the script */
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_int_equal(0, run_threads(CALLS, check_orders, owners[0]));
    assert_between(now_ms() - began_ms, COMMAND_MS, CALLS * COMMAND_MS + CALLS * SLACK_MS);
    world_cont_server(w);
    eventually(lk_mutex_checkby(orders, owners[0]) == 0, 5000);
    assert_lk(0, lk_mutex_unlockby(orders, owners[0]));
}

int main(void)
{
    return world_run(a_waiting_call_is_in_nobody_s_way, levels_of_many_threads_add_up, one_owner_is_passed_around,
                     traffic_goes_on_under_a_hail_of_faults, without_answers_each_call_takes_one_timeout);
}
