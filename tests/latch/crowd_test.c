/* SPDX-License-Identifier: MIT */
/*
 * crowd_test.c - many threads of one process wait for one latch: they look as one, each with its own time
 *
 * labels: threads memory noise
 * simulated: except tsan
 */
#include "proxy.h"

#include <signal.h>
#include <string.h>

enum { THREADS = SANITIZED ? 40 : 200, LONG_MS = 20000 };

static lk_latch_t *gate, *wanted;

struct crowd {
    struct worker workers[THREADS];
    lk_latch_t *latch;
    int waiting; /* reached with atomic builtins */
};

static int wait_for_it(void *arg)
{
    struct crowd *crowd = arg;
    __atomic_add_fetch(&crowd->waiting, 1, __ATOMIC_SEQ_CST);
    return lk_latch_waitfor(crowd->latch, LONG_MS);
}

static void open_gate(struct world *w, lk_client_t *client, const char *name)
{
    gate = world_latch(w, world_client(w, ""), name);
    wanted = world_latch(w, client, name);
    assert_lk(0, lk_latch_trysetcount(gate, 1));
}

/* All of them wait, and have looked as often as those do who have just come. */
static void gather(struct world *w, struct crowd *crowd)
{
    int64_t looks;
    *crowd = (struct crowd){ .latch = wanted };
    for (int i = 0; i < THREADS; i++)
        worker_start(&crowd->workers[i], wait_for_it, crowd);
    eventually(__atomic_load_n(&crowd->waiting, __ATOMIC_SEQ_CST) == THREADS, 20000);
    do {
        looks = world_commands(w, "evalsha");
        sleep_ms(300);
    } while (world_commands(w, "evalsha") > looks + 5);
}

static void all_return(struct crowd *crowd, int expected)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(expected, worker_join(&crowd->workers[i]));
}

/* However many wait, it is a look for each poll, and one at the end. */
static void they_look_as_one(struct world *w)
{
    struct crowd crowd;
    open_gate(w, world_client(w, "poll=500ms"), "gate");
    gather(w, &crowd);
    int64_t before = world_commands(w, "evalsha");
    sleep_ms(2000);
    assert_between(world_commands(w, "evalsha") - before, 2, 10);
    before = world_commands(w, "evalsha");
    assert_lk(0, lk_latch_countdown(gate));
    all_return(&crowd, 0);
    assert_between(world_commands(w, "evalsha") - before, 1, 4); /* the countdown, the look, polls of meanwhile */
}

/* What one of them finds all know, though no message came. */
static void a_lost_message_costs_one_poll(struct world *w)
{
    struct crowd crowd;
    open_gate(w, world_client(w, "pubsub=no&poll=1s"), "gate");
    gather(w, &crowd);
    int64_t before = world_commands(w, "evalsha"), began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(gate));
    all_return(&crowd, 0);
    assert_between(now_ms() - began_ms, 0, 1200 + SLACK_MS);
    assert_between(world_commands(w, "evalsha") - before, 1, 5);
}

/* A new count at once behind the end hides it from none of them. */
static void a_new_count_hides_no_opening(struct world *w)
{
    struct crowd crowd;
    open_gate(w, world_client(w, "poll=200ms"), "gate");
    gather(w, &crowd);
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    all_return(&crowd, 0);
    assert_lk(ETIMEDOUT, lk_latch_waitfor(wanted, 0));
    assert_lk(0, lk_latch_delete(gate));
}

static void all_hear_of_a_deletion(struct world *w)
{
    struct crowd crowd;
    open_gate(w, world_client(w, "poll=200ms"), "gate");
    gather(w, &crowd);
    assert_lk(0, lk_latch_delete(gate));
    all_return(&crowd, ECANCELED);
}

/* Each thread has a limit of its own, and is told by a look after that. */
static int wait_its_time(int index, void *arg)
{
    int64_t limit_ms = 100 + index % 20 * 40, began_ms = now_ms();
    int rc = lk_latch_waitfor(arg, limit_ms);
    int64_t took_ms = now_ms() - began_ms;
    return rc == ETIMEDOUT && took_ms >= limit_ms - 1 && took_ms <= limit_ms + 2 * SLACK_MS ? 0 : 1;
}

static void each_ends_with_its_time(struct world *w)
{
    open_gate(w, world_client(w, "poll=300ms"), "gate");
    assert_int_equal(0, run_threads(THREADS, wait_its_time, wanted));
    assert_lk(0, lk_latch_delete(gate));
}

/* A server that stands still costs a wait one command timeout, however many threads wait for the same look. */
static int wait_in_vain(int index, void *arg)
{
    (void)index;
    int64_t began_ms = now_ms();
    int rc = lk_latch_waitfor(arg, 1500);
    int64_t took_ms = now_ms() - began_ms;
    return rc == ENOTCONN && took_ms >= 1499 && took_ms <= 1500 + 600 + 2 * SLACK_MS ? 0 : rc;
}

static void a_silent_server_keeps_nobody(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    unsigned count;
    open_gate(w, proxy_client(p, "lease=20s&poll=200ms&command_timeout=500ms"), "gate");
    assert_lk(0, lk_latch_getcount(wanted, &count));
    proxy_stall(p, PROXY_BOTH);
    assert_int_equal(0, run_threads(THREADS, wait_in_vain, wanted));
    proxy_resume(p);
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_waitfor(wanted, LONG_MS));
}

/* Why nobody serves them is told to each, whoever looked. */
static int is_told_why(void *latch)
{
    int rc = lk_latch_waitfor(latch, 6000);
    return rc == ENOTCONN && strstr(lk_errortext(), "refused") != NULL ? 0 : 1;
}

static void all_are_told_why(struct world *w)
{
    struct worker workers[THREADS];
    struct proxy *p = proxy_begin(w);
    open_gate(w, proxy_client(p, "lease=20s&poll=100ms&command_timeout=1500ms"), "gate");
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], is_told_why, wanted);
    sleep_ms(500);
    proxy_refuse(p, true);
    proxy_cut(p);
    int told = 0;
    for (int i = 0; i < THREADS; i++)
        told += worker_join(&workers[i]) == 0;
    assert_int_equal(THREADS, told);
    proxy_refuse(p, false);
    assert_lk(0, lk_latch_delete(gate));
}

/* The connections end, again and again, and the message with them. */
static void cuts_lose_nobody(struct world *w)
{
    struct crowd crowd;
    struct proxy *p = proxy_begin(w);
    open_gate(w, proxy_client(p, "poll=500ms"), "gate");
    gather(w, &crowd);
    for (int i = 0; i < 5; i++) {
        proxy_cut(p);
        sleep_ms(50);
    }
    proxy_refuse(p, true);
    proxy_cut(p);
    assert_lk(0, lk_latch_countdown(gate));
    sleep_ms(300);
    proxy_refuse(p, false);
    all_return(&crowd, 0);
}

/* Some are cancelled at whatever moment, those who look for others among them; the others notice nothing. */
static void the_cancelled_take_nobody_with_them(struct world *w)
{
    struct crowd crowd;
    open_gate(w, world_client(w, "poll=200ms&pubsub=no"), "gate");
    gather(w, &crowd);
    for (int i = 0; i < THREADS; i += 2)
        assert_int_equal(0, pthread_cancel(crowd.workers[i].thread));
    for (int i = 0; i < THREADS; i += 2)
        assert_int_equal(0, pthread_join(crowd.workers[i].thread, NULL));
    assert_lk(0, lk_latch_countdown(gate));
    for (int i = 1; i < THREADS; i += 2)
        assert_int_equal(0, worker_join(&crowd.workers[i]));
}

/*
 * A signal handler that lasts keeps the thread that looks, and nobody else. It may interrupt a thread that has one of the
 * library's locks for a moment: then it is tried again.
 */
static void linger(int number)
{
    (void)number;
    sleep_ms(4000);
}

static bool keeps_nobody(struct world *w, struct proxy *p)
{
    struct crowd crowd;
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    gather(w, &crowd);
    proxy_delay(p, 200); /* most of the time somebody looks */
    sleep_ms(600);
    for (int i = 0; i < THREADS / 2; i++)
        assert_int_equal(0, pthread_kill(crowd.workers[i].thread, SIGUSR1));
    int64_t began_ms = now_ms();
    assert_lk(0, lk_latch_countdown(gate));
    for (int i = THREADS / 2; i < THREADS; i++)
        assert_int_equal(0, worker_join(&crowd.workers[i]));
    bool soon = now_ms() - began_ms < 3000;
    for (int i = 0; i < THREADS / 2; i++)
        assert_int_equal(0, worker_join(&crowd.workers[i]));
    proxy_delay(p, 0);
    return soon;
}

static void a_slow_handler_keeps_nobody(struct world *w)
{
    struct sigaction slow = { .sa_handler = linger }, before;
    struct proxy *p = proxy_begin(w);
    open_gate(w, proxy_client(p, "lease=20s&poll=300ms&command_timeout=500ms"), "gate");
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, sigaction(SIGUSR1, &slow, &before));
    int tries = 1;
    while (!keeps_nobody(w, p))
        assert_true(++tries <= 3);
    assert_int_equal(0, sigaction(SIGUSR1, &before, NULL));
}

int main(void)
{
    return world_run(they_look_as_one, a_lost_message_costs_one_poll, a_new_count_hides_no_opening,
                     all_hear_of_a_deletion, each_ends_with_its_time, a_silent_server_keeps_nobody, all_are_told_why,
                     cuts_lose_nobody, the_cancelled_take_nobody_with_them, a_slow_handler_keeps_nobody);
}
