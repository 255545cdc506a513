/* SPDX-License-Identifier: MIT */
/*
 * extend_test.c - setting the lease of whatever has one, also while the connection fails: the shorter one of what may be
 * true counts
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 25
 */
#include "proxy.h"
#include "subject.h"

#include <string.h>

enum { COMMAND_MS = 300, LEASE_MS = 2000 };

static struct proxy *p;
static lk_client_t *client;
static struct subject *orders;

static void open_with(struct world *w, const struct subject_kind *kind, const char *options)
{
    p = proxy_begin(w);
    client = proxy_client(p, options);
    orders = world_subject(w, client, kind, "orders");
    assert_lk(0, subject_take(orders, PATIENT_MS));
    assert_lk(0, subject_extend(orders, LEASE_MS)); /* the watchdog's connection is up, its script is known */
}

static void open_orders(struct world *w, const struct subject_kind *kind)
{
    open_with(w, kind, "lease=2s&command_timeout=300ms");
}

/* Where each request is answered, that may take its time. */
static void open_patient(struct world *w, const struct subject_kind *kind)
{
    open_with(w, kind, "lease=2s&command_timeout=650ms");
}

static int64_t remaining(void)
{
    int64_t left_ms;
    assert_lk(0, subject_remaining(orders, &left_ms));
    return left_ms;
}

/* Of the lease that the server has; below 1: it is over. */
static int64_t server_left(struct world *w)
{
    static const char last[] = "local t = redis.call('TIME') "
                               "local last = redis.call('ZRANGE', KEYS[1] .. '{orders}', -1, -1, 'WITHSCORES')[2] "
                               "return (last or 0) - t[1] * 1000 - math.floor(t[2] / 1000)";
    if (strstr(orders->kind->name, "mutex") != NULL)
        return world_pttl(w, "orders");
    bool permits = strstr(orders->kind->name, "semaphore") != NULL;
    return world_int(w, "EVAL %s 1 %s", last, permits ? "latchkey:permits:" : "latchkey:rw:");
}

/* Longer or shorter than before, and renewals keep it so. */
static void a_lease_is_set(struct world *w, const struct subject_kind *kind)
{
    open_patient(w, kind);
    assert_lk(0, subject_check(orders));
    assert_lk(0, subject_extend(orders, 60000));
    assert_between(server_left(w), 60000 - SLACK_MS, 60000);
    assert_between(remaining(), LEASE_MS + 1, 60000);
    assert_lk(0, subject_extend(orders, 700));
    assert_between(server_left(w), 1, 700);
    sleep_ms(1000);
    assert_between(server_left(w), 1, 700);
    assert_between(remaining(), 1, 700);
    assert_int_equal(1, subject_held(w, orders));
    assert_lk(EINVAL, subject_extend(orders, 99));
    assert_lk(EINVAL, subject_extend(orders, 24LL * 60 * 60 * 1000 + 1));
    assert_lk(0, subject_give(orders));
    assert_lk(EPERM, subject_extend(orders, LEASE_MS));
    assert_lk(EPERM, subject_check(orders));
    assert_int_equal(0, subject_held(w, orders));
}

/* What the server no longer knows is lost, whichever call finds it out, and is not made again. */
static void a_lost_hold_is_not_revived(struct world *w, const struct subject_kind *kind)
{
    int64_t left_ms;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            open_patient(w, kind);
        else
            assert_lk(0, subject_take(orders, PATIENT_MS));
        world_redis(w, "DEL orders latchkey:rw:{orders} latchkey:permits:{orders}");
        assert_lk(0, subject_remaining(orders, &left_ms)); /* cannot know yet */
        assert_lk(ESTALE, i == 0 ? subject_check(orders) : subject_extend(orders, LEASE_MS));
        assert_lk(ESTALE, subject_remaining(orders, &left_ms));
        assert_lk(ESTALE, subject_extend(orders, LEASE_MS));
        assert_lk(ESTALE, subject_check(orders));
        assert_int_equal(0, subject_held(w, orders));
        assert_lk(ESTALE, subject_give(orders));
    }
}

/* A check whose answer is lost with its connection is asked again; without an answer nothing is known, or lost. */
static void a_check_is_asked_again(struct world *w, const struct subject_kind *kind)
{
    open_orders(w, kind);
    assert_lk(0, subject_check(orders));
    proxy_once(p, PROXY_CUT_REPLY, 1, "orders");
    assert_lk(0, subject_check(orders));
    proxy_once(p, PROXY_DROP_REPLY, 1, "orders");
    assert_lk(EIO, subject_check(orders));
    assert_int_equal(0, lk_errorsettles());
    assert_between(remaining(), 1, LEASE_MS);
    assert_lk(0, subject_check(orders));
    assert_lk(0, subject_give(orders));
}

/* The validity is no longer than what the server has. Asked again if it was renewed meanwhile. */
static void assert_no_longer_than_there(struct world *w)
{
    int64_t there_ms, here_ms;
    do {
        there_ms = server_left(w);
        here_ms = remaining();
    } while (server_left(w) > there_ms);
    assert_between(here_ms, 1, there_ms + 1);
}

/* The outcome is unknown: the validity is that of the shorter lease, and what the server has is no less. */
static void an_answer_is_lost(struct world *w, const struct subject_kind *kind)
{
    open_orders(w, kind);
    proxy_once(p, PROXY_DROP_REPLY, 1, "orders");
    int64_t began_ms = now_ms();
    int rc = subject_extend(orders, 900); /* its connection ends with its time, and a last one may just be in time */
    assert_true(rc == 0 || rc == EIO);
    assert_between(now_ms() - began_ms, COMMAND_MS - 1, COMMAND_MS + SLACK_MS);
    assert_between(remaining(), 1, 900);
    assert_no_longer_than_there(w);
    sleep_ms(1500); /* renewed with the lease that was asked for */
    assert_between(remaining(), 100, 900);
    assert_between(server_left(w), 100, 900);
    assert_lk(0, subject_give(orders));
}

/* A longer lease whose request is still on its way must not come after the shorter one that followed it. */
static void a_copy_comes_late(struct world *w, const struct subject_kind *kind)
{
    open_orders(w, kind);
    proxy_once(p, PROXY_PARK_REQUEST, 1, "orders");
    int rc = subject_extend(orders, 5000); /* again on a new connection: it is the same request */
    assert_true(rc == 0 || rc == EIO);
    rc = subject_extend(orders, 700);
    assert_true(rc == 0 || rc == EIO || rc == ENOTCONN);
    proxy_release(p);
    sleep_ms(5 * COMMAND_MS);
    assert_between(remaining(), 1, 700);
    assert_between(server_left(w), 1, 700);
    assert_lk(0, subject_give(orders));
}

/* Without a server nothing is sent, and the hold goes on as long as it has. */
static void there_is_no_server(struct world *w, const struct subject_kind *kind)
{
    open_orders(w, kind);
    proxy_refuse(p, true);
    proxy_cut(p);
    sleep_ms(50);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, subject_extend(orders, 5000));
    assert_between(now_ms() - began_ms, 0, COMMAND_MS + SLACK_MS);
    assert_between(remaining(), 1, 2000);
    proxy_refuse(p, false);
    eventually(server_left(w) > 3000, 3000); /* the renewals know it */
    assert_lk(0, subject_give(orders));
}

static int extend(void *arg)
{
    (void)arg;
    int rc = subject_take(orders, LK_FOREVER);
    return rc != 0 ? rc : subject_extend(orders, 3000);
}

/* Its client is closed meanwhile. */
static void the_client_is_closed(struct world *w, const struct subject_kind *kind)
{
    struct worker worker;
    open_orders(w, kind);
    assert_lk(0, subject_give(orders));
    proxy_delay(p, 60);
    worker_start(&worker, extend, NULL);
    eventually(subject_held(w, orders) == 1, 2000);
    sleep_ms(80); /* the lock is answered; the new lease is on its way */
    int64_t began_ms = now_ms();
    int rc = close_by_hand(w, client);
    assert_between(now_ms() - began_ms, 0, 3 * COMMAND_MS + SLACK_MS);
    assert_true(rc == 0 || rc == EIO);
    rc = worker_join(&worker);
    assert_true(rc == 0 || rc == ECANCELED || rc == EIO || rc == ENOTCONN);
    eventually(server_left(w) < 1, 4000);
    world_close(w, orders);
    proxy_end(p);
}

int main(void)
{
    return leased_run(a_lease_is_set, a_lost_hold_is_not_revived, a_check_is_asked_again, an_answer_is_lost,
                      a_copy_comes_late, there_is_no_server, the_client_is_closed);
}
