/* SPDX-License-Identifier: MIT */
/*
 * server_clock.h - moments of a server's clock
 *
 * Each belongs to an epoch of its node. Moments of two epochs are of two clocks, and are never compared: what would
 * follow from that is a hint, and the server is asked.
 */
#ifndef LK__SERVER_CLOCK_H
#define LK__SERVER_CLOCK_H

#include "base/base.h"
#include "redis/vocabulary.h"

struct lk__date {
    int64_t us; /* 0: none */
    unsigned epoch;
};

/* How far a server's clock is ahead of ours, in microseconds, between these two. */
struct lk__ahead {
    int64_t least_us, most_us;
};

/* Two moments of one clock? */
static inline bool lk__date_comparable(struct lk__date a, struct lk__date b)
{
    return a.epoch == b.epoch;
}

/* Until then something may happen: by the server's clock, or by ours when that is gone. */
struct lk__until {
    struct lk__date date; /* us 0: nothing may happen */
    int64_t here_us;      /* on our clock, the server's is past `date` by then */
};

/* Is it over, when the server's clock shows `date` and ours `now_us`? Nothing may happen: yes. */
static inline bool lk__until_isover(const struct lk__until *until, struct lk__date date, int64_t now_us)
{
    if (until->date.us == 0)
        return true;
    return lk__date_comparable(until->date, date) ? date.us > until->date.us : now_us > until->here_us;
}

/*
 * What is sent has dates of another epoch, and the server's clock shows `there`, ours `now_us`: say the same moments on
 * that clock. False: one of them is not known on ours.
 */
bool lk__sent_redate(struct lk__sent *sent, struct lk__date there, int64_t now_us);
/* How long it lasts yet. */
int64_t lk__until_left(const struct lk__until *until, struct lk__date date, int64_t now_us);
/* It lasts until both are over. `more` is of the same epoch or a later one. */
void lk__until_extend(struct lk__until *until, const struct lk__until *more);

/* Could a server's clock show that? What could not is left alone, so that sums of times stay in range. */
static inline bool lk__is_servertime(int64_t server_us)
{
    return server_us > 0 && server_us < (int64_t)1 << 53; /* what a script can count; the year 2255 */
}

#endif
