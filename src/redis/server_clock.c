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

int64_t lk__until_left(const struct lk__until *until, struct lk__date date, int64_t now_us)
{
    int64_t left_us = lk__date_comparable(until->date, date) ? until->date.us - date.us : until->here_us - now_us;
    return left_us > 0 ? left_us : 0;
}

/* A moment that is `here_us` on our clock, on a clock that shows `there_us` at `now_us`. */
static int64_t moment_there(int64_t here_us, int64_t there_us, int64_t now_us)
{
    return there_us + (here_us > now_us ? here_us - now_us : 0);
}

bool lk__sent_redate(struct lk__sent *sent, struct lk__date there, int64_t now_us)
{
    if ((sent->deadline_us != 0 && sent->deadline_here_us == 0) ||
        (sent->keep_until_us != 0 && sent->keep_here_us == 0))
        return false;
    if (sent->deadline_us != 0)
        sent->deadline_us = moment_there(sent->deadline_here_us, there.us, now_us);
    if (sent->keep_until_us != 0)
        sent->keep_until_us = moment_there(sent->keep_here_us, there.us, now_us);
    sent->epoch = there.epoch;
    return true;
}

void lk__until_extend(struct lk__until *until, const struct lk__until *more)
{
    struct lk__until both = *more;
    if (until->date.us != 0 && lk__date_comparable(until->date, more->date)) {
        if (until->date.us > more->date.us)
            return;
    } else if (until->date.us != 0 && until->here_us > more->here_us) {
        both.date.us += until->here_us - more->here_us; /* of a clock that is gone: by ours, on the new one */
        both.here_us = until->here_us;
    }
    *until = both;
}

struct lk__until lk__conn_until(struct lk__conn *conn, int64_t now_us, int64_t lasts_us)
{
    lk__mu_lock(&conn->mu);
    int64_t there_us = conn->clock_server_us + (now_us - conn->clock_before_us);
    struct lk__until until = {
        { there_us + lasts_us, conn->epoch }, now_us + lasts_us + conn->clock_slack_us + lasts_us / 100
    }; /* rates may differ by as much */
    lk__mu_unlock(&conn->mu);
    return until;
}
