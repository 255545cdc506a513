/* SPDX-License-Identifier: MIT */
/*
 * lend.c - a connection with a thread of its own, its owner, is read by whoever waits for its messages
 *
 * A message that its owner reads has to wake another thread, which costs as much as half a round trip. So the one
 * thread that listens reads the connection itself, the owner rests meanwhile, and looks now and then whether its
 * reader stands still. The reader leaves without a word: while nobody listens nobody misses what is not read, so the
 * owner comes back to its connection late, and finds mostly that somebody listens again.
 *
 * The rule: while a thread listens and there is a stream, it is read by that thread, by another one that listens, or
 * by the owner. A reader that leaves others behind tells the owner; that then keeps the connection for a while, as a
 * crowd would pass it on all the time. A thread that may be cancelled where it sleeps does not read.
 *
 * Who reads is decided under conn->mu. A new reader begins a new term: the owner, if it was at the stream, finds that
 * when it comes back from its poll, and leaves what it found there to the reader.
 */
#include "redis/connection_inside.h"

#include <string.h>

enum {
    REST_US = 100000,  /* so long the owner rests after a reader left, or before it looks whether that one stays */
    SLICE_US = 1000000 /* of a poll: that does not count the time of a suspend */
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Have the owner look now. */
static void tell_owner(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    conn->owner_until_us = 0;
    lk__eventfd_set(conn->owner_wake_fd);
}

/* --- a thread that listens ---------------------------------------------------------------------------------------- */

/* May the calling thread, which listens, read? Only if the owner is not at it, or if nobody else listens. */
static bool may_read(const struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream == NULL || conn->reader != NULL || conn->dispatching)
        return false;
    return !conn->owner_polls || (conn->listening == 0 && now_us - conn->crowded_us > REST_US);
}

/* If the calling thread is the reader, it is so no longer. */
static void return_role(struct lk__conn *conn, const struct lk__parker *parker)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader != parker)
        return;
    conn->reader = NULL;
    conn->returned_us = lk__now_us();
    if (conn->listening > 0)
        conn->crowded_us = conn->returned_us;
    if (conn->listening > 0 || conn->expects || conn->owner_until_us > conn->returned_us + REST_US)
        tell_owner(conn);
}

/* A poll of the reader. */
struct reading {
    struct lk__conn *conn;
    struct lk__parker *parker;
    struct lk__polling polling;
};

/* A signal handler ended the thread there. No lock is held. */
static void end_to_read(void *arg)
{
    struct reading *reading = arg;
    struct lk__conn *conn = reading->conn;
    lk__parker_pollwith(reading->parker, -1);
    lk__mu_lock(&conn->mu);
    lk__conn_endpoll(conn, &reading->polling);
    return_role(conn, reading->parker);
    lk__mu_unlock(&conn->mu);
}

static bool poll_as_reader(struct reading *reading, int64_t until_us)
{
    bool interrupted;
    pthread_cleanup_push(end_to_read, reading);
    interrupted = lk__poll(reading->polling.polled, reading->polling.count, until_us);
    pthread_cleanup_pop(0);
    return interrupted;
}

/* Under conn->mu, left and taken again: read once. The signals that came. */
static unsigned read_once(struct lk__conn *conn, struct lk__parker *parker, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    struct pollfd polled[2] = { { -1, 0, 0 }, { conn->wake_fd, POLLIN, 0 } };
    struct reading reading = { conn, parker, { .polled = polled, .count = 2 } };
    unsigned signals = lk__parker_pollwith(parker, conn->wake_fd);
    if (signals == 0) {
        until_us = earlier(earlier(until_us, lk__now_us() + SLICE_US), lk__conn_beginpoll(conn, &reading.polling));
        lk__mu_unlock(&conn->mu);
        if (poll_as_reader(&reading, until_us))
            lk__parker_interrupted(parker);
        signals = lk__parker_pollwith(parker, -1); /* what it reads for itself needs no waking */
        lk__mu_lock(&conn->mu);
        lk__conn_endpoll(conn, &reading.polling);
        if (polled[1].revents != 0) /* and it is still the reader: else that is for the next one */
            lk__eventfd_clear(conn->wake_fd);
    }
    return signals | lk__parker_pollwith(parker, -1);
}

/* Under conn->mu, left and taken again: read for all, until a signal comes, or as long as there is something to read. */
static unsigned read_for_all(struct lk__conn *conn, struct lk__parker *parker, int64_t until_us)
{
    assert(lk__mu_held(&conn->mu));
    unsigned signals = 0;
    conn->term++;
    conn->reader = parker;
    conn->lent_us = lk__now_us();
    conn->look.since_us = 0;
    if (conn->owner_polls)
        tell_owner(conn);
    while (signals == 0 && conn->reader == parker && conn->stream != NULL && lk__now_us() < until_us &&
           !lk__parker_wasinterrupted(parker))
        signals = read_once(conn, parker, until_us);
    return_role(conn, parker);
    return signals;
}

/* The calling thread sleeps, and somebody else reads. */
static void begin_to_hear(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    conn->listening++;
    if (conn->stream != NULL && conn->reader == NULL && !conn->owner_polls)
        tell_owner(conn);
}

/* No lock is held; it may have been cancelled. */
static void end_to_hear(void *arg)
{
    struct lk__conn *conn = arg;
    lk__mu_lock(&conn->mu);
    conn->listening--;
    lk__mu_unlock(&conn->mu);
}

unsigned lk__conn_listen(struct lk__conn *conn, struct lk__parker *parker, int64_t until_us, int cancel_state)
{
    unsigned signals = 0;
    lk__mu_lock(&conn->mu);
    if (cancel_state == PTHREAD_CANCEL_DISABLE && may_read(conn, lk__now_us()))
        signals = read_for_all(conn, parker, until_us);
    if (signals != 0) {
        lk__mu_unlock(&conn->mu);
        return signals;
    }
    begin_to_hear(conn);
    lk__mu_unlock(&conn->mu);
    pthread_cleanup_push(end_to_hear, conn);
    signals = lk__parker_parkopen(parker, until_us, cancel_state);
    pthread_cleanup_pop(1);
    return signals;
}

/* --- the owner ---------------------------------------------------------------------------------------------------- */

/* A reader that stands still, in a signal handler say, loses the role. */
static void look_after_reader(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->reader == NULL || !lk__conn_standsstill(conn, &conn->look))
        return;
    conn->reader = NULL;
    lk__conn_replaceleader(conn);
}

/* Until when the owner leaves the stream alone; 0: it reads. */
static int64_t rests_until(const struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream == NULL)
        return 0;
    if (conn->reader != NULL)
        return now_us + (now_us - conn->lent_us > REST_US ? lk__conn_lookevery(conn) : REST_US);
    if (conn->listening > 0 || conn->expects)
        return 0;
    return conn->returned_us == 0 ? 0 : conn->returned_us + REST_US;
}

/* One of those that the owner serves. */
struct served {
    struct lk__polling polling;
    bool rests; /* somebody else reads it, or soon will */
};

/* Returns until when to poll. */
static int64_t begin_one(struct lk__conn *conn, struct served *served, struct pollfd *polled, int64_t until_us,
                         bool expects)
{
    *polled = (struct pollfd){ -1, 0, 0 };
    served->polling = (struct lk__polling){ .polled = polled, .count = 1 };
    lk__mu_lock(&conn->mu);
    conn->expects = expects;
    look_after_reader(conn);
    int64_t now_us = lk__now_us(), rest_us = rests_until(conn, now_us);
    served->rests = rest_us > now_us;
    if (served->rests) {
        conn->owner_until_us = earlier(rest_us, until_us);
        until_us = conn->owner_until_us;
    } else {
        conn->owner_polls = true;
        until_us = earlier(until_us, lk__conn_beginpoll(conn, &served->polling));
    }
    lk__mu_unlock(&conn->mu);
    return until_us;
}

static void end_one(struct lk__conn *conn, struct served *served)
{
    if (served->rests)
        return;
    lk__mu_lock(&conn->mu);
    lk__conn_endpoll(conn, &served->polling);
    conn->owner_polls = false;
    lk__mu_unlock(&conn->mu);
}

enum { SERVED_MAX = 256, EXTRA_MAX = 3 };

void lk__conn_serveall(struct lk__conn *const conns[], int count, struct pollfd *extra, int extra_count,
                       int64_t until_us, bool expects)
{
    struct pollfd polled[EXTRA_MAX + SERVED_MAX];
    struct served served[SERVED_MAX];
    assert(extra_count <= EXTRA_MAX && count <= SERVED_MAX);
    memcpy(polled, extra, (size_t)extra_count * sizeof *extra);
    for (int i = 0; i < count; i++)
        until_us = begin_one(conns[i], &served[i], &polled[extra_count + i], until_us, expects);
    lk__poll(polled, extra_count + count, until_us);
    for (int i = 0; i < count; i++)
        end_one(conns[i], &served[i]);
    memcpy(extra, polled, (size_t)extra_count * sizeof *extra);
}

void lk__conn_serve(struct lk__conn *conn, struct pollfd *extra, int extra_count, int64_t until_us, bool expects)
{
    lk__mu_lock(&conn->mu);
    if (conn->stream == NULL && !conn->closed)
        lk__conn_wantlocked(conn);
    lk__mu_unlock(&conn->mu);
    lk__conn_serveall(&conn, 1, extra, extra_count, until_us, expects);
}
