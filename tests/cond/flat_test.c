/* SPDX-License-Identifier: MIT */
/*
 * flat_test.c - what a signal and a broadcast send does not grow with who waits, and no script moves more than 100
 *
 * labels: threads
 * simulated: yes
 * seconds: 10
 */
#include "world.h"

enum { CROWD = 250, MOVES_MAX = 100, POLLS = 2 /* of those who wait, meanwhile */ };

static lk_mutex_t *jobs;
static lk_cond_t *some;
static int leave, woken; /* reached with atomic builtins */

static int wait_once(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(jobs);
    if (rc == 0)
        rc = lk_cond_wait(some, jobs);
    if (rc != 0)
        return rc;
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&leave, __ATOMIC_SEQ_CST) == 0)
        sleep_ms(1);
    return lk_mutex_unlock(jobs);
}

static bool is_quiet(struct world *w)
{
    int64_t before = world_commands(w, "evalsha");
    sleep_ms(300);
    return world_commands(w, "evalsha") == before;
}

/* They wait, and have asked all that they ask at first. */
static void start_waiters(struct world *w, struct worker *crowd, int count)
{
    lk_client_t *client = world_client(w, "lease=60s&poll=30s&command_timeout=10s");
    jobs = world_mutex(w, client, "jobs", NULL);
    some = world_cond(w, client, "jobs", NULL);
    leave = woken = 0;
    for (int i = 0; i < count; i++)
        worker_start(&crowd[i], wait_once, NULL);
    eventually(world_condqueued(w, "jobs") == count, 30000);
    eventually(is_quiet(w), 30000);
}

static void let_all_go(struct worker *crowd, int count)
{
    __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
    assert_lk(0, lk_cond_broadcast(some));
    for (int i = 0; i < count; i++)
        assert_lk(0, worker_join(&crowd[i]));
}

/* The holder's signal and unlock, and the confirmation of the one that is woken. */
static void a_signal_is_one_command(struct world *w)
{
    static struct worker crowd[MOVES_MAX];
    for (int count = 1; count <= MOVES_MAX; count *= 10) {
        start_waiters(w, crowd, count);
        assert_lk(0, lk_mutex_lock(jobs));
        int64_t sent = world_commands(w, "evalsha");
        assert_lk(0, lk_cond_signal(some));
        assert_lk(0, lk_mutex_unlock(jobs));
        eventually(__atomic_load_n(&woken, __ATOMIC_SEQ_CST) == 1, 10000);
        eventually(is_quiet(w), 10000);
        assert_between(world_commands(w, "evalsha") - sent, 3, 3 + POLLS);
        assert_int_equal(1, __atomic_load_n(&woken, __ATOMIC_SEQ_CST));
        let_all_go(crowd, count);
    }
}

/*
 * How long a script holds the server follows from how many it moves. Fewer commands than these would move more at once.
 * The holder keeps all others from doing anything meanwhile.
 */
static void a_broadcast_is_one_command_for_each_hundred(struct world *w)
{
    static struct worker crowd[CROWD];
    static const int counts[] = { 1, 10, MOVES_MAX, CROWD };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int scripts = (counts[i] + MOVES_MAX - 1) / MOVES_MAX;
        start_waiters(w, crowd, counts[i]);
        assert_lk(0, lk_mutex_lock(jobs));
        int64_t sent = world_commands(w, "evalsha");
        assert_lk(0, lk_cond_broadcast(some));
        assert_between(world_commands(w, "evalsha") - sent, scripts, scripts + POLLS);
        assert_int_equal(0, world_condqueued(w, "jobs"));
        assert_int_equal(counts[i], world_queued(w, "jobs"));
        __atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
        assert_lk(0, lk_mutex_unlock(jobs));
        let_all_go(crowd, counts[i]);
        assert_int_equal(counts[i], __atomic_load_n(&woken, __ATOMIC_SEQ_CST));
    }
}

int main(void)
{
    return world_run(a_signal_is_one_command, a_broadcast_is_one_command_for_each_hundred);
}
