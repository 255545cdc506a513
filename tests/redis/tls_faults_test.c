/* SPDX-License-Identifier: MIT */
/*
 * tls_faults_test.c - a bad network under TLS: it ends in the middle of a record, stands still, or brings a byte at a time
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 15
 */
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CUTS = SANITIZED ? 10 : 30, HOLDS = SANITIZED || NOISY ? 300 : 3000, CONNECT_MS = 400 };

static struct proxy *p;
static lk_client_t *client;
static lk_mutex_t *orders;

static void begin(struct world *w, const char *options)
{
    p = proxy_begin(w);
    client = proxy_client(p, options);
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lock_and_unlock(orders));
}

/* --- the handshake -------------------------------------------------------------------------------------------- */

static int try_to_open(const char *options)
{
    lk_client_t *opened = NULL;
    int rc = lk_client_open(&opened, proxy_url(p, options));
    if (rc == 0)
        assert_lk(0, lk_client_close(opened));
    return rc;
}

static void a_handshake_that_stands_still(struct world *w)
{
    p = proxy_begin(w);
    proxy_stall(p, PROXY_DOWN);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, try_to_open("connect_timeout=400ms"));
    assert_between(now_ms() - began_ms, CONNECT_MS, CONNECT_MS + SLACK_MS);
    assert_true(strstr(lk_errortext(), "does not begin TLS in time") != NULL ||
                strstr(lk_errortext(), "connect_timeout") != NULL); /* its attempt began late */
    proxy_resume(p);
    assert_lk(0, try_to_open(""));
    proxy_dribble(p, PROXY_DOWN, 1); /* some thousand bytes, and each but a little late */
    began_ms = now_ms();
    assert_lk(ENOTCONN, try_to_open("connect_timeout=400ms"));
    assert_between(now_ms() - began_ms, CONNECT_MS, CONNECT_MS + SLACK_MS);
}

static void a_handshake_that_is_cut_short(struct world *w)
{
    p = proxy_begin(w);
    for (int direction = PROXY_UP; direction <= PROXY_DOWN; direction++)
        for (int bytes = 0; bytes < 1200; bytes += bytes / 3 + 1) {
            proxy_cut_after(p, direction, bytes);
            assert_lk(ENOTCONN, try_to_open("lease=20s"));
        }
    proxy_cut_after(p, PROXY_UP, -1);
    proxy_cut_after(p, PROXY_DOWN, -1);
    assert_lk(0, try_to_open(""));
}

/* A client that is closed does not wait for the handshake that is on its way. */
static void a_close_during_a_handshake(struct world *w)
{
    begin(w, "connect_timeout=5s&lease=20s&command_timeout=200ms");
    proxy_stall(p, PROXY_BOTH);
    proxy_cut(p);
    int rc = lk_mutex_lockfor(orders, 100);
    assert_true(rc == ENOTCONN || rc == EIO);
    int64_t began_ms = now_ms();
    rc = close_by_hand(w, client);
    assert_true(rc == 0 || rc == EIO); /* what was asked may be granted unseen */
    assert_between(now_ms() - began_ms, 0, 400 + SLACK_MS);
    world_close(w, orders);
    world_allow(w, "*");
}

/* --- in use ------------------------------------------------------------------------------------------------------ */

/* What is cut anywhere, also within a record, is asked again, and done once. */
static void cut_anywhere(struct world *w)
{
    begin(w, "lease=20s&command_timeout=2s&retry_max=20ms");
    for (int direction = PROXY_UP; direction <= PROXY_DOWN; direction++)
        for (int bytes = 1; bytes < 700; bytes += 43) {
            uint64_t before, after;
            assert_lk(0, lk_mutex_lock(orders));
            assert_lk(0, lk_mutex_token(orders, &before));
            assert_lk(0, lk_mutex_unlock(orders));
            proxy_cut_after(p, direction, bytes);
            int rc = lk_mutex_lock(orders);
            if (rc == 0) {
                assert_lk(0, lk_mutex_token(orders, &after));
                assert_true(after > before);
                rc = lk_mutex_unlock(orders);
            }
            assert_int_equal(rc, 0);
            proxy_cut_after(p, direction, -1);
            eventually(!world_exists(w, "orders"), 2000);
        }
}

static int inside, met;

static int visit(int index, void *arg)
{
    struct gate *stop = arg;
    (void)index;
    while (!gate_is_open(stop)) {
        int rc = lk_mutex_lock(orders);
        if (rc != 0)
            return rc;
        met += inside++ != 0;
        inside--;
        rc = lk_mutex_unlock(orders);
        if (rc != 0)
            return rc;
    }
    return 0;
}

struct crowd {
    struct gate stop;
    struct worker worker;
};

static int visit_all(void *arg)
{
    return run_threads(THREADS, visit, arg);
}

static void one_at_a_time_whatever_happens(struct world *w)
{
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    begin(w, "lease=20s&command_timeout=2s&retry_max=20ms");
    worker_start(&crowd.worker, visit_all, &crowd.stop);
    for (int i = 0; i < CUTS; i++) {
        sleep_ms(20);
        switch (i % 5) {
        case 0:
            proxy_cut(p);
            break;
        case 1:
            proxy_reset(p);
            break;
        case 2:
            proxy_half_close(p);
            break;
        case 3:
            proxy_stall(p, PROXY_BOTH);
            sleep_ms(100);
            proxy_resume(p);
            break;
        default:
            proxy_dribble(p, PROXY_BOTH, 0);
            sleep_ms(50);
            proxy_dribble(p, PROXY_BOTH, -1);
            break;
        }
    }
    gate_open(&crowd.stop);
    assert_int_equal(0, worker_join(&crowd.worker));
    assert_int_equal(0, met);
    assert_lk(0, lock_and_unlock(orders));
}

static void a_server_is_killed(struct world *w)
{
    begin(w, "lease=20s&retry_max=50ms");
    world_kill_server(w);
    int rc = lk_mutex_lockfor(orders, 200);
    assert_true(rc == ENOTCONN || rc == EIO);
    world_restart_server(w);
    assert_lk(0, lk_mutex_lockfor(orders, 5000));
    assert_lk(0, lk_mutex_unlock(orders));
}

static int losses;

static void count_losses(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&losses, 1, __ATOMIC_SEQ_CST);
}

/* The renewals of many holds wait for a network that takes nothing for a while, and none of them is lost. */
static void many_renewals_wait_for_room(struct world *w)
{
    static lk_mutex_t *held[HOLDS];
    begin(w, SANITIZED || NOISY ? "lease=9s&command_timeout=2s" : "lease=6s&command_timeout=1s");
    assert_lk(0, lk_client_addlistener(client, count_losses, NULL, NULL));
    for (int i = 0; i < HOLDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "order-%d", i);
        held[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(held[i]));
    }
    for (int i = 0; i < 8; i++) {
        proxy_stall(p, PROXY_BOTH);
        sleep_ms(600);
        proxy_resume(p);
        sleep_ms(400);
    }
    for (int i = 0; i < HOLDS; i++) {
        int64_t left_ms;
        assert_lk(0, lk_mutex_remaining(held[i], &left_ms));
        assert_lk(0, lk_mutex_unlock(held[i]));
    }
    assert_int_equal(0, __atomic_load_n(&losses, __ATOMIC_SEQ_CST));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(a_handshake_that_stands_still, a_handshake_that_is_cut_short, a_close_during_a_handshake,
                     cut_anywhere, one_at_a_time_whatever_happens, a_server_is_killed, many_renewals_wait_for_room);
}
