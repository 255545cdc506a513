/* SPDX-License-Identifier: MIT */
/*
 * fair_test.c - a fair mutex goes to its waiters in the order in which they came, whatever their process
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 8
 */
#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PROCESSES = 8, THREADS = 4, WAITERS = PROCESSES * THREADS, LEASE_MS = 2000 };

/* The dead keep their places for 40 s; the holder is gone after one lease. */
enum { OUTLIVE_MS = 10000 };

/* Who asks a little late on a busy machine is not passed over: that takes 10 s of silence. */
#define PATIENT "lease=8s&poll=4s"

static const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };

/* What all processes see: who may ask, and who was served when. */
struct order {
    atomic_int asked;          /* waiter of this number may ask now */
    atomic_int served;         /* so many were */
    atomic_int place[WAITERS]; /* 1 + the order in which it was served */
    atomic_int inside;
    atomic_int met; /* somebody else was inside */
    atomic_int failed;
    atomic_ullong token; /* of the last one inside */
    struct gate stop;
};

/* One of the threads of one of the processes. */
struct waiter {
    struct order *order;
    lk_mutex_t *mutex;
    int number;
};

static int wait_for_turn(struct waiter *me)
{
    struct order *order = me->order;
    uint64_t token = 0;
    while (atomic_load(&order->asked) < me->number)
        sleep_ms(1);
    int rc = lk_mutex_lock(me->mutex);
    if (rc != 0)
        return rc;
    rc = lk_mutex_token(me->mutex, &token);
    if (atomic_fetch_add(&order->inside, 1) != 0 || token <= atomic_exchange(&order->token, token))
        atomic_fetch_add(&order->met, 1);
    atomic_store(&order->place[me->number], atomic_fetch_add(&order->served, 1) + 1);
    atomic_fetch_sub(&order->inside, 1);
    return rc != 0 ? rc : lk_mutex_unlock(me->mutex);
}

/* A process of four threads; thread t of process p is waiter t * PROCESSES + p, so processes take turns. */
static struct {
    struct order *order;
    lk_mutex_t *mutex;
    int process;
} crew;

static int crew_member(int index, void *arg)
{
    struct waiter me = { crew.order, crew.mutex, index * PROCESSES + crew.process };
    (void)arg;
    return wait_for_turn(&me);
}

struct crewing {
    struct order *order;
    const char *options;
    int process;
};

static int run_crew(struct world *w, void *arg)
{
    struct crewing *crewing = arg;
    lk_mutex_t *orders = world_mutex(w, world_client(w, crewing->options), "orders", &fair);
    crew.order = crewing->order;
    crew.mutex = orders;
    crew.process = crewing->process;
    world_ready(w);
    if (run_threads(THREADS, crew_member, NULL) != 0)
        atomic_fetch_add(&crewing->order->failed, 1);
    return 0;
}

struct crews {
    struct order *order;
    struct crewing crewings[PROCESSES];
    pid_t pids[PROCESSES];
};

/* Eight processes that wait until they may ask; before this process has threads of its own. */
static void begin_crews(struct world *w, struct crews *crews, const char *options)
{
    crews->order = world_shared(w, sizeof *crews->order);
    atomic_store(&crews->order->asked, -1);
    for (int p = 0; p < PROCESSES; p++) {
        crews->crewings[p] = (struct crewing){ crews->order, options, p };
        crews->pids[p] = world_fork(w, run_crew, &crews->crewings[p]);
    }
}

static void end_crews(struct world *w, struct crews *crews)
{
    for (int p = 0; p < PROCESSES; p++)
        assert_int_equal(0, world_wait(w, crews->pids[p]));
    assert_int_equal(0, atomic_load(&crews->order->failed));
    assert_int_equal(0, atomic_load(&crews->order->met));
}

static void served_in_order(const struct crews *crews)
{
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(i + 1, atomic_load(&crews->order->place[i]));
}

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", &fair);
}

/* Thirty-two threads of eight processes come one after the other, and are served in just that order. */
static void grants_follow_arrivals(struct world *w)
{
    struct crews crews;
    begin_crews(w, &crews, PATIENT);
    open_orders(w, PATIENT);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < WAITERS; i++) {
        atomic_store(&crews.order->asked, i);
        eventually(world_queued(w, "orders") == i + 1, 5000);
    }
    assert_lk(0, lk_mutex_unlock(orders));
    end_crews(w, &crews);
    served_in_order(&crews);
}

/* Nobody who comes later passes somebody who listens: not by trying, not by asking at the right moment. */
static void a_newcomer_passes_nobody(struct world *w)
{
    struct worker waiter;
    open_orders(w, PATIENT);
    lk_mutex_t *newcomers = world_mutex(w, world_client(w, PATIENT), "orders", &fair);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, newcomers);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders)); /* and it is the waiter's at once */
    int rc = lk_mutex_trylock(orders);     /* too late for this one, or after it */
    if (rc == 0)
        assert_lk(0, lk_mutex_unlock(orders));
    else
        assert_int_equal(EBUSY, rc);
    assert_int_equal(0, worker_join(&waiter));
}

static int wait_in_vain(struct world *w, void *arg)
{
    (void)arg;
    lk_mutex_t *mutex = world_mutex(w, world_client(w, "lease=10s&poll=10s"), "orders", &fair);
    world_ready(w);
    int rc = lk_mutex_lock(mutex);
    return rc != 0 ? rc : 1; /* 1: it ends as it is, holding it */
}

VISIT(outlive_the_dead, arg, lk_mutex_lockfor(arg, OUTLIVE_MS), lk_mutex_unlock(arg))

/*
 * Ten dead waiters in front cost the living one no delay each: their processes are gone, so the server skips them, long
 * before their places lapse.
 */
static void the_dead_delay_nobody(struct world *w)
{
    pid_t dead[10];
    struct worker living;
    world_redis(w, "HSET orders somebody:1 1"); /* until all of them wait */
    for (int i = 0; i < 10; i++)
        dead[i] = world_fork(w, wait_in_vain, NULL);
    open_orders(w, "lease=2s");
    eventually(world_queued(w, "orders") == 10, 5000);
    worker_start(&living, outlive_the_dead, orders);
    eventually(world_queued(w, "orders") == 11 && world_listening(w, "mutex:{orders}"), 5000);
    int64_t began_ms = now_ms();
    world_redis(w, "PEXPIRE orders %d", LEASE_MS);
    for (int i = 0; i < 10; i++)
        world_kill(w, dead[i]);
    assert_int_equal(0, worker_join(&living));
    assert_between(now_ms() - began_ms, 0, 2 * LEASE_MS + 2 * SLACK_MS); /* the holder's lease, and one poll */
    world_close(w, client);
    sleep_ms(100);
    world_redis(w, "DEL latchkey:queue:mutex:{orders} latchkey:alive:mutex:{orders}"); /* the dead lapse by themselves */
}

/* Who waits is listed with its place; who gives up leaves no gap. */
static void the_queue_can_be_looked_at(struct world *w)
{
    struct worker waiters[3];
    lk_mutex_t *mutexes[3];
    lk_client_t *clients[3];
    lk_waiter_t seen[3];
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    unsigned count;
    open_orders(w, PATIENT);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_queue(orders, NULL, sizeof(lk_waiter_t), 0, &count));
    assert_int_equal(0, count);
    for (int i = 0; i < 3; i++) {
        clients[i] = world_client(w, PATIENT);
        mutexes[i] = world_mutex(w, clients[i], "orders", &fair);
        worker_start(&waiters[i], lock_and_unlock, mutexes[i]);
        eventually(world_queued(w, "orders") == i + 1, 5000);
    }
    assert_lk(0, lk_mutex_queue(orders, seen, sizeof(lk_waiter_t), 3, &count));
    assert_int_equal(3, count);
    for (int i = 0; i < 3; i++)
        assert_string_equal(seen[i].id, world_str(w, "EVAL %s 1 latchkey:queue:mutex:{orders} %d",
                                                  "return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1]", i));
    assert_lk(0, lk_mutex_queue(orders, seen, sizeof(lk_waiter_t), 1, &count));
    assert_int_equal(3, count);
    assert_lk(0, lk_mutex_info(orders, &info));
    assert_int_equal(3, info.waiters);
    assert_lk(EINVAL, lk_mutex_queue(orders, NULL, sizeof(lk_waiter_t), 3, &count));
    assert_lk(0, lk_mutex_unlock(orders));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(0, worker_join(&waiters[i]));
        world_close(w, clients[i]);
    }
}

WORK(lock_briefly, arg, lk_mutex_lockfor(arg, 1000))

/* One that gives up, in the middle of the queue, is passed over and leaves nothing behind. */
static void who_gives_up_is_passed_over(struct world *w)
{
    struct worker patient, hasty;
    open_orders(w, PATIENT);
    lk_mutex_t *first = world_mutex(w, world_client(w, PATIENT), "orders", &fair);
    lk_mutex_t *second = world_mutex(w, world_client(w, PATIENT), "orders", &fair);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&hasty, lock_briefly, first);
    eventually(world_queued(w, "orders") == 1, 5000);
    worker_start(&patient, lock_and_unlock, second);
    assert_int_equal(ETIMEDOUT, worker_join(&hasty));
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&patient));
}

/* Its holder may lock it again while others queue: that is no new arrival. */
static void the_holder_may_lock_it_again(struct world *w)
{
    struct worker waiter;
    open_orders(w, PATIENT);
    lk_mutex_t *theirs = world_mutex(w, world_client(w, PATIENT), "orders", &fair);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, theirs);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(2, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
}

/* Thirty-two who wait for three seconds ask a few times each: nobody spins. */
static void nobody_spins(struct world *w)
{
    struct crews crews;
    begin_crews(w, &crews, "lease=2s&command_timeout=650ms");
    open_orders(w, "lease=4s"); /* who waits for the end of a longer one may rest */
    assert_lk(0, lk_mutex_lock(orders));
    atomic_store(&crews.order->asked, WAITERS);
    eventually(world_queued(w, "orders") == WAITERS && world_listening(w, "mutex:{orders}"), 5000);
    sleep_ms(100);
    int64_t began_ms = now_ms(), before = world_commands(w, "evalsha");
    sleep_ms(3000);
    int64_t asks = world_commands(w, "evalsha") - before;
    /* the first two ask once a poll ceiling (lease/2 at most), the others every Lw/3; the holder renews */
    assert_between(asks, 1, (2 * WAITERS + 20 + 12) * (now_ms() - began_ms) / 3000);
    assert_lk(0, lk_mutex_unlock(orders));
    end_crews(w, &crews);
}

/* Connections go while they wait: they come back to their places. */
static void places_survive_a_lost_subscription(struct world *w)
{
    struct crews crews;
    begin_crews(w, &crews, PATIENT);
    open_orders(w, PATIENT);
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < WAITERS; i++) {
        atomic_store(&crews.order->asked, i);
        eventually(world_queued(w, "orders") == i + 1, 5000);
        if (i % 8 == 3)
            world_redis(w, "CLIENT KILL TYPE pubsub");
        if (i % 8 == 7)
            world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
    }
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:*") == PROCESSES, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    end_crews(w, &crews);
    served_in_order(&crews);
}

int main(void)
{
    return world_run(
        /* those with processes first: a thread sanitizer does not like forks of a process that had threads */
        grants_follow_arrivals, places_survive_a_lost_subscription, nobody_spins, the_dead_delay_nobody,
        a_newcomer_passes_nobody, the_queue_can_be_looked_at, who_gives_up_is_passed_over,
        the_holder_may_lock_it_again);
}
