/* SPDX-License-Identifier: MIT */
/* server_clock.c - moments of a server's clock, and of ours */
#include "redis/server_clock.h"

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
