/* SPDX-License-Identifier: MIT */
/*
 * interrupted_test.c - a signal during a wait for the server is no failure of the connection
 *
 * labels: threads memory
 */
#include "proxy.h"

#include <signal.h>
#include <sys/time.h>

static int alarms;

static void count_alarm(int number)
{
    (void)number;
    __atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
}

/* A signal each other millisecond, without SA_RESTART, to this thread: the library's threads block it. */
static void set_alarms(bool on)
{
    struct sigaction action = { .sa_handler = on ? count_alarm : SIG_DFL };
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    if (on)
        sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, on ? &often : &never, NULL);
    if (!on)
        sigaction(SIGALRM, &action, NULL);
}

/* Behind a slow network each answer is waited for long enough to be interrupted; yet none is asked for again. */
static void a_signal_costs_no_connection(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_client_t *client = proxy_client(p, "lease=20s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* all scripts are known and all connections made */
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(world_counter(w, "connected_clients") == 3, 5000); /* the test's, for commands, for renewals */
    int64_t connections = proxy_connections(p), commands = world_commands(w, "evalsha");
    proxy_delay(p, 50);
    set_alarms(true);
    int locked = lk_mutex_lockfor(orders, 1000), unlocked = lk_mutex_unlock(orders);
    set_alarms(false);
    proxy_delay(p, 0);
    assert_int_equal(0, locked);
    assert_int_equal(0, unlocked);
    assert_true(alarms > 10);
    assert_int_equal(connections, proxy_connections(p));
    assert_int_equal(commands + 2, world_commands(w, "evalsha"));
}

int main(void)
{
    return world_run(a_signal_costs_no_connection);
}
