/* SPDX-License-Identifier: MIT */
/*
 * first_use_test.c - many threads use a static object for the first time at one moment
 *
 * One of them opens the default client, and the others wait for it: were each to open one of its own, they would run
 * out of descriptors together, or fill the server.
 *
 * labels: memory threads
 * simulated: yes
 */
#include "descriptors.h"
#include "world.h"

#include <string.h>

enum { MANY = SANITIZED ? 200 : 500, FEW = 40 };

static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");

struct crowd {
    int64_t limit_ms;
    int codes[256]; /* how often each came back; atomic */
    int wordless;   /* failures without words; atomic */
};

static int lock_counted(int index, void *arg)
{
    struct crowd *crowd = arg;
    (void)index;
    int rc = lk_mutex_lockfor(&orders, crowd->limit_ms);
    __atomic_add_fetch(&crowd->codes[rc], 1, __ATOMIC_RELAXED);
    if (rc != 0 && lk_errortext()[0] == '\0')
        __atomic_add_fetch(&crowd->wordless, 1, __ATOMIC_RELAXED);
    return rc == 0 ? lk_mutex_unlock(&orders) : 0;
}

static int come_all(void *arg)
{
    return run_threads(MANY, lock_counted, arg);
}

static int come_few(void *arg)
{
    return run_threads(FEW, lock_counted, arg);
}

static void use_server(struct world *w, const char *options)
{
    use_default(world_url(w, options));
}

static void close_orders(void)
{
    assert_lk(0, lk_mutex_destroy(&orders));
    close_default();
}

/* The server needs a while to answer, as on a busy machine; the process may have few descriptors. */
static void five_hundred_threads_open_one_client(struct world *w)
{
    struct crowd crowd = { .limit_ms = 30000 };
    struct worker workers;
    use_server(w, "connect_timeout=10s&command_timeout=5s");
    descriptors_most(512);
    int64_t connections = world_counter(w, "total_connections_received");
    world_stop_server(w);
    worker_start(&workers, come_all, &crowd);
    sleep_ms(400);
    world_cont_server(w);
    assert_lk(0, worker_join(&workers));
    assert_int_equal(MANY, crowd.codes[0]);
    assert_between(world_counter(w, "total_connections_received") - connections, 1, 3);
    close_orders();
    descriptors_lift();
}

static lk_once_t work = LK_ONCE_INITIALIZER("work");
static lk_barrier_t stage = LK_BARRIER_INITIALIZER("stage", FEW);
static int runs; /* atomic */

static int run_it(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Whether it is a run or a round that they want. */
static int run_and_meet(int index, void *arg)
{
    int *serial = arg;
    (void)index;
    int rc = lk_once_call(&work, run_it, NULL);
    if (rc != 0)
        return rc;
    rc = lk_barrier_waitfor(&stage, 30000);
    if (rc == LK_BARRIER_SERIAL)
        __atomic_add_fetch(serial, 1, __ATOMIC_RELAXED);
    return rc == LK_BARRIER_SERIAL ? 0 : rc;
}

static void runs_and_rounds_begin_with_it(struct world *w)
{
    int serial = 0;
    world_allow(w, "latchkey:*");
    use_server(w, "connect_timeout=10s&command_timeout=5s");
    assert_int_equal(0, run_threads(FEW, run_and_meet, &serial));
    assert_int_equal(1, runs);
    assert_int_equal(1, serial);
    assert_lk(0, lk_once_destroy(&work));
    assert_lk(0, lk_barrier_destroy(&stage));
    close_default();
}

/* A server that is not there: everybody is told so, with words, and the next call tries again. */
static void a_failure_is_everybodys(struct world *w)
{
    struct crowd crowd = { .limit_ms = 30000 };
    use_server(w, "connect_timeout=10s");
    world_kill_server(w);
    int64_t began_ms = now_ms();
    assert_lk(0, come_few(&crowd));
    assert_between(now_ms() - began_ms, 0, 10000);
    assert_int_equal(FEW, crowd.codes[ENOTCONN]);
    assert_int_equal(0, crowd.wordless);
    world_restart_server(w);
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_unlock(&orders));
    close_orders();
}

/* One slow attempt fails who made it, and not all the others, who have time left. */
static void a_slow_attempt_fails_only_one(struct world *w)
{
    struct crowd crowd = { .limit_ms = 30000 };
    struct worker workers;
    use_server(w, "connect_timeout=2500ms&command_timeout=5s");
    world_stop_server(w);
    worker_start(&workers, come_few, &crowd);
    eventually(__atomic_load_n(&crowd.codes[ENOTCONN], __ATOMIC_RELAXED) == 1, 20000); /* the next one has begun */
    world_cont_server(w);
    assert_lk(0, worker_join(&workers));
    assert_int_equal(1, crowd.codes[ENOTCONN]);
    assert_int_equal(FEW - 1, crowd.codes[0]);
    close_orders();
}

/* Who has no time left is told after that attempt. */
static void it_fails_those_whose_time_is_up(struct world *w)
{
    struct crowd crowd = { .limit_ms = 10 };
    use_server(w, "connect_timeout=300ms");
    world_stop_server(w);
    assert_lk(0, come_few(&crowd));
    world_cont_server(w);
    assert_int_equal(FEW, crowd.codes[ENOTCONN]);
    assert_int_equal(0, crowd.wordless);
}

int main(void)
{
    return world_run(five_hundred_threads_open_one_client, runs_and_rounds_begin_with_it, a_failure_is_everybodys, a_slow_attempt_fails_only_one,
                     it_fails_those_whose_time_is_up);
}
