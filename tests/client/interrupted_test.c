/* SPDX-License-Identifier: MIT */
/*
 * interrupted_test.c - a signal during a wait for the server is no failure of the connection
 *
 * labels: threads memory
 */
#include "process.h"
#include "proxy.h"

/* Behind a slow network each answer is waited for long enough to be interrupted; yet none is asked for again. */
static void a_signal_costs_no_connection(struct world *w)
{
    struct proxy *p = proxy_begin(w);
    lk_client_t *client = proxy_client(p, "lease=20s&command_timeout=5s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders)); /* all scripts are known and all connections made */
    assert_lk(0, lk_mutex_unlock(orders));
    eventually(world_counter(w, "connected_clients") == 3, 5000); /* the test's, for commands, for renewals */
    int64_t connections = proxy_connections(p), commands = world_commands(w, "evalsha");
    proxy_delay(p, 50);
    alarm_each_ms(2, 0); /* to this thread: the library's block it */
    int locked = lk_mutex_lockfor(orders, 1000), unlocked = lk_mutex_unlock(orders);
    alarm_each_ms(0, 0);
    proxy_delay(p, 0);
    assert_int_equal(0, locked);
    assert_int_equal(0, unlocked);
    assert_true(alarms() > 10);
    assert_int_equal(connections, proxy_connections(p));
    assert_int_equal(commands + 2, world_commands(w, "evalsha"));
}

int main(void)
{
    return world_run(a_signal_costs_no_connection);
}
