/* SPDX-License-Identifier: MIT */
/*
 * await_open.c - waiting until a connection is up and has room for a request
 *
 * Threads that wait so are on a list of the connection. While it is up and full, one of them leads, as somebody has
 * to read the answers that make room.
 */
#include "redis/connection_inside.h"

/* Why there is no connection. Want of memory is the connector's, not the caller's. */
static int down_reason(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    return conn->last_error == ENOMEM ? ENOTCONN : conn->last_error;
}

/* It waits no more, whether it is admitted or not. */
static void expect_no_more(struct lk__expecting *me)
{
    assert(lk__mu_held(&me->conn->mu));
    lk__list_remove(&me->link);
    if (me->admitted) {
        me->conn->admitted--;
        me->conn->admitted_bytes -= me->request->size;
    }
    me->admitted = false;
}

/* Cancelled while it was parked: conn->mu is not held. The room that was kept for it is somebody else's. */
static void cancelled(void *arg)
{
    struct lk__expecting *me = arg;
    lk__mu_lock(&me->conn->mu);
    expect_no_more(me);
    lk__conn_tellofroom(me->conn);
    lk__mu_unlock(&me->conn->mu);
}

/* Under conn->mu, left and taken again. The signals that came. */
static unsigned sleep_until(struct lk__expecting *me, int64_t until_us, int cancel_state)
{
    assert(lk__mu_held(&me->conn->mu));
    unsigned signals;
    lk__mu_unlock(&me->conn->mu);
    pthread_cleanup_push(cancelled, me);
    signals = lk__parker_parkopen(me->request->parker, until_us, cancel_state);
    pthread_cleanup_pop(0);
    lk__mu_lock(&me->conn->mu);
    return signals;
}

/* Under conn->mu, left and taken again: see that the server's answers are read, and what waits is written. */
static unsigned make_room(struct lk__expecting *me, int64_t until_us)
{
    assert(lk__mu_held(&me->conn->mu));
    struct lk__conn *conn = me->conn;
    struct lk__request leader = { .parker = me->request->parker };
    uint64_t term = lk__conn_beginterm(conn, &leader);
    unsigned signals = lk__conn_leadonce(conn, &leader, until_us);
    if (conn->term == term)
        lk__parker_wake(lk__conn_promote(conn)); /* under conn->mu: this is rare */
    return signals;
}

/* Likewise, until there is room or somebody has to lead. */
static unsigned await_room(struct lk__expecting *me, struct lk__leaderlook *look, int64_t until_us, int cancel_state)
{
    assert(lk__mu_held(&me->conn->mu));
    struct lk__conn *conn = me->conn;
    int64_t look_us = lk__now_us() + lk__conn_lookevery(conn);
    lk__conn_tellofroom(conn); /* it came up just now, or those who were told of some left without a request */
    if (me->admitted)
        return 0;
    if (conn->leader == NULL)
        return make_room(me, until_us);
    if (lk__conn_standsstill(conn, look)) {
        lk__conn_replaceleader(conn);
        return 0;
    }
    return sleep_until(me, look_us < until_us ? look_us : until_us, cancel_state);
}

int lk__conn_awaitopen(struct lk__conn *conn, struct lk__request *request, unsigned failures, int64_t until_us,
                       int cancel_state)
{
    struct lk__expecting me = { .request = request, .conn = conn };
    struct lk__parker *parker = request->parker;
    struct lk__leaderlook look = { 0 };
    unsigned signals = 0;
    int rc;
    lk__mu_lock(&conn->mu);
    lk__list_append(request->admitted ? conn->expecting.next : &conn->expecting, &me.link); /* whose turn it was is first */
    for (;;) {
        if (conn->closed)
            rc = ECANCELED;
        else if (conn->stream != NULL && (me.admitted || !conn->full))
            rc = 0;
        else if (conn->stream == NULL && conn->failures != failures && conn->last_error != 0)
            rc = down_reason(conn);
        else if (signals & LK__WOKEN || lk__parker_wasinterrupted(parker))
            rc = EINTR;
        else if (lk__now_us() >= until_us)
            rc = conn->last_error != 0 ? down_reason(conn) : ETIMEDOUT;
        else if (conn->stream != NULL) {
            signals = await_room(&me, &look, until_us, cancel_state);
            continue;
        } else {
            if (me.admitted) { /* the connection ended first: the next one is to tell this thread, before the others */
                expect_no_more(&me);
                lk__list_append(conn->expecting.next, &me.link);
            }
            lk__conn_wantlocked(conn);
            signals = sleep_until(&me, until_us, cancel_state);
            continue;
        }
        break;
    }
    expect_no_more(&me);
    request->admitted = rc == 0;
    if (rc != 0)
        lk__conn_tellofroom(conn);
    lk__mu_unlock(&conn->mu);
    if (signals & LK__WOKEN && rc != EINTR)
        lk__parker_signal(parker, LK__WOKEN); /* not ours to swallow */
    return rc;
}

int lk__conn_awaitup(struct lk__conn *conn, struct lk__parker *parker, unsigned failures, int64_t until_us)
{
    struct lk__request none = { .parker = parker };
    return lk__conn_awaitopen(conn, &none, failures, until_us, PTHREAD_CANCEL_DISABLE);
}
