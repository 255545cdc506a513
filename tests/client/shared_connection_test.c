/* SPDX-License-Identifier: MIT */
/*
 * shared_connection_test.c - who reads the connection for all others may leave, and nobody is left behind
 *
 * processors: 2
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 16
 */
#include "proxy.h"

#include <stdio.h>

enum { COMMAND_MS = 1500, PATIENT = 100, HASTY = 20 };

static struct proxy *p;
static lk_client_t *client;

static void open_client(struct world *w)
{
    p = proxy_begin(w);
    client = proxy_client(p, "lease=20s&command_timeout=1500ms");
}

/* Until no copy of a request can come any more, and the library knows it. */
static void let_copies_pass(void)
{
    eventually(client_settled(client), 10000);
}

/* What lockfor() says; 1000 more than the code of an unlock that failed, 2000 more than of a destroy. */
static int lock_own_for(int index, int64_t limit_ms)
{
    lk_mutex_t own;
    char name[16];
    int rc, after = 0;
    snprintf(name, sizeof name, "own-%d", index);
    rc = lk_mutex_init(&own, client, name, NULL);
    if (rc != 0)
        return 1000 + rc;
    rc = lk_mutex_lockfor(&own, limit_ms);
    if (rc == 0)
        after = lk_mutex_unlock(&own);
    rc = after != 0 ? 1000 + after : rc;
    after = lk_mutex_destroy(&own);
    return after != 0 ? 2000 + after : rc;
}

static int patient(int index, void *arg)
{
    (void)arg;
    return lock_own_for(index, 20000);
}

static int all_patient(void *arg)
{
    return run_threads(PATIENT, patient, arg);
}

static int reader_with_little_time(void *arg)
{
    (void)arg;
    return lock_own_for(1000, 1);
}

/* The first to wait reads for all. When its time is up a hundred others still wait for their answers. */
static void the_reader_leaves_while_a_hundred_wait(struct world *w)
{
    struct worker reader, others;
    open_client(w);
    for (int i = 0; i < 3; i++) {
        proxy_stall(p, PROXY_BOTH);
        worker_start(&reader, reader_with_little_time, NULL);
        sleep_ms(COMMAND_MS / 2);
        worker_start(&others, all_patient, NULL);
        assert_int_equal(EIO, worker_join(&reader));
        sleep_ms(50);
        proxy_resume(p);
        assert_int_equal(0, worker_join(&others));
        eventually(world_elements(w, "KEYS own-*") == 0, 5000);
    }
    let_copies_pass();
}

static int hasty(int index, void *arg)
{
    struct gate *stop = arg;
    while (!gate_is_open(stop)) {
        int rc = lock_own_for(2000 + index, 1);
        if (rc > 1000 && rc < 2000)
            rc -= 1000; /* it may as well be the unlock that meets the stop */
        if (rc != 0 && rc != EIO && rc != ETIMEDOUT && rc != ENOTCONN)
            return rc;
    }
    return 0;
}

static int all_hasty(void *arg)
{
    return run_threads(HASTY, hasty, arg);
}

/* Limits of a millisecond beside long ones, with a server that stops and goes: the long ones succeed. */
static void short_limits_do_not_spoil_long_ones(struct world *w)
{
    struct worker impatient, others;
    struct gate stop = { 0 };
    open_client(w);
    worker_start(&impatient, all_hasty, &stop);
    for (int i = 0; i < 3; i++) {
        world_stop_server(w);
        worker_start(&others, all_patient, NULL);
        sleep_ms(3 * COMMAND_MS / 2);
        world_cont_server(w);
        assert_int_equal(0, worker_join(&others));
    }
    gate_open(&stop);
    assert_int_equal(0, worker_join(&impatient));
    eventually(world_elements(w, "KEYS own-*") == 0, 5000);
    let_copies_pass();
}

/* All of them by one connection, however many: that is what keeps a fleet's connections countable. */
static void a_hundred_threads_share_one_connection(struct world *w)
{
    open_client(w);
    int64_t before = proxy_connections(p);
    assert_int_equal(0, run_threads(PATIENT, patient, NULL));
    assert_between(proxy_connections(p) - before, 0, 2); /* the renewals', and the one for messages */
    let_copies_pass();
}

int main(void)
{
    return world_run(the_reader_leaves_while_a_hundred_wait, short_limits_do_not_spoil_long_ones,
                     a_hundred_threads_share_one_connection);
}
