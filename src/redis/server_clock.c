/* SPDX-License-Identifier: MIT */
/*
 * server_clock.c - where the clock of a connection's server is, on ours
 *
 * Each answer tells the server's time. The request was sent before the server read its clock, so what is derived from
 * the moment of sending is an upper bound of the time there.
 */
#include "redis/connection_inside.h"

/* The server's clock showed `server_us` between these two local moments. */
void lk__conn_setclock(struct lk__conn *conn, int64_t before_us, int64_t after_us, int64_t server_us)
{
    assert(lk__mu_held(&conn->mu));
    if (!lk__is_servertime(server_us))
        return;
    conn->clock_before_us = before_us;
    conn->clock_server_us = server_us;
    conn->clock_slack_us = after_us - before_us;
}

bool lk__is_servertime(int64_t server_us)
{
    return server_us > 0 && server_us < (int64_t)1 << 53; /* what a script can count; the year 2255 */
}

bool lk__until_isover(const struct lk__until *until, struct lk__date date, int64_t now_us)
{
    if (until->date.us == 0)
        return true;
    return lk__date_comparable(until->date, date) ? date.us > until->date.us : now_us > until->here_us;
}

struct lk__date lk__conn_date(struct lk__conn *conn, int64_t now_us)
{
    lk__mu_lock(&conn->mu);
    struct lk__date date = { conn->clock_server_us + (now_us - conn->clock_before_us), conn->epoch };
    lk__mu_unlock(&conn->mu);
    return date;
}

int64_t lk__conn_passedby(struct lk__conn *conn, int64_t moment_us)
{
    int64_t now_us = lk__now_us(), ahead_us = moment_us > now_us ? moment_us - now_us : 0;
    lk__mu_lock(&conn->mu);
    int64_t passed_us = moment_us + conn->clock_slack_us + ahead_us / 100; /* clock rates may differ by as much */
    lk__mu_unlock(&conn->mu);
    return passed_us;
}
