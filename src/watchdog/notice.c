/* SPDX-License-Identifier: MIT */
/*
 * notice.c - the notice that hangs at each server of a client: put up, put up again, taken down
 *
 * Guards: dog->mu, all of it. Runs on: the watchdog's thread, and the one that ends it.
 *
 * The notice goes over the connection for renewals and no other: while that is not up nobody needs it badly enough to have
 * it between callers. One connection also keeps the order: the server takes it down after it was put up.
 */
#include "watchdog/watchdog.h"

enum {
    FIRST_US = 100000,  /* who is through by then was seen by nobody, and costs the server nothing */
    PAUSE_US = 1000000, /* a server that ends connections all the time is not told by each of them */
    AWAY_US = 5000000   /* one that is away is called again, should nobody else do so */
};

static struct lk__command command_for(const struct lk__command *command, const struct lk__notesheet *sheet)
{
    struct lk__command placed = *command;
    placed.place = sheet->place;
    return placed;
}

/* --- when ---------------------------------------------------------------------------------------------------------- */

static int64_t next_time(const struct lk__notice *notice, int64_t now_us)
{
    int64_t third_us = notice->lasts_ms * 1000 / 3;
    return now_us + third_us - (int64_t)lk__random_below((uint64_t)third_us / 10 + 1);
}

/* It belongs at that server; a connection that was made since may lead to one that does not have it. */
static void look_where(struct lk__notesheet *sheet, struct lk__node *at, int64_t now_us)
{
    unsigned long long connects = lk__node_connects(at, LK__LANE_RENEWALS);
    if (sheet->at == at && sheet->connects == connects)
        return;
    int64_t due_us = sheet->sent_us != 0 ? sheet->sent_us + PAUSE_US : now_us + FIRST_US;
    sheet->at = at;
    sheet->connects = connects;
    sheet->due_us = due_us > now_us ? due_us : now_us;
}

/* When to put it up again after that. */
static int64_t again_at(struct lk__watchdog *dog, struct lk__notesheet *sheet, const struct lk__inflight *inflight,
                        int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__notice *notice = dog->notice;
    if (atomic_load(&inflight->request.state) != LK__ANSWERED)
        return now_us + AWAY_US; /* or by the next connection */
    if (inflight->request.judged.ruling == LK__AGAIN) {
        sheet->manner = inflight->request.manner;
        return lk__inflight_againat(dog, inflight, now_us);
    }
    if (inflight->request.judged.code == EACCES) { /* each attempt would be a line in ACL LOG */
        if (!notice->refused)
            lk__log(LK_LOG_INFO, "%s: access rules (ACL) keep it from the server; nothing else fails", notice->what);
        notice->refused = true;
        return LK__NEVER;
    }
    sheet->hangs |= inflight->request.judged.ruling == LK__ANSWER;
    return next_time(notice, now_us);
}

/* --- at the server -------------------------------------------------------------------------------------------------- */

static int send_it(struct lk__watchdog *dog, struct lk__notesheet *sheet, const struct lk__command *given)
{
    assert(lk__mu_held(&dog->mu));
    const struct lk__command command = command_for(given, sheet);
    const struct lk__sent sent = { .id = NULL };
    struct lk__inflight *inflight = lk__window_slot(dog, sheet->manner);
    inflight->sheet = sheet;
    return lk__window_send(dog, sheet->at, inflight, &command, &sent);
}

static void put_up(struct lk__watchdog *dog, struct lk__notesheet *sheet, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    sheet->due_us = now_us + AWAY_US;
    if (!lk__conn_isup(&sheet->at->lanes[LK__LANE_RENEWALS])) {
        lk__node_want(sheet->at, LK__LANE_RENEWALS); /* a node of a cluster may have nothing else of ours */
        return;
    }
    sheet->inflight = send_it(dog, sheet, &dog->notice->up) == 0;
    sheet->sent_us = now_us;
    sheet->manner = LK__BY_SHA1;
}

void lk__notice_serve(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__notice *notice = dog->notice;
    for (unsigned i = 0; notice != NULL && i < notice->count; i++) {
        struct lk__notesheet *sheet = &notice->sheets[i];
        const struct lk__command command = command_for(&notice->up, sheet);
        if (sheet->inflight)
            continue;
        look_where(sheet, lk__node_for(dog->node, &command, sheet->manner == LK__BY_ASKING), now_us);
        if (sheet->due_us <= now_us && !lk__window_isfull(dog, sheet->at))
            put_up(dog, sheet, now_us);
    }
}

int64_t lk__notice_dueat(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    const struct lk__notice *notice = dog->notice;
    int64_t due_us = LK__NEVER;
    for (unsigned i = 0; notice != NULL && i < notice->count; i++) {
        const struct lk__notesheet *sheet = &notice->sheets[i];
        if (!sheet->inflight && sheet->due_us < due_us && !lk__window_isfull(dog, sheet->at))
            due_us = sheet->due_us;
    }
    return due_us;
}

void lk__notice_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__notesheet *sheet = inflight->sheet;
    sheet->inflight = false;
    sheet->due_us = again_at(dog, sheet, inflight, now_us);
}

/* Is there a connection over which it was put up, or may just be? */
static bool is_there(struct lk__watchdog *dog, const struct lk__notesheet *sheet)
{
    assert(lk__mu_held(&dog->mu));
    return (sheet->hangs || sheet->inflight) && !lk__window_isfull(dog, sheet->at) &&
           sheet->connects == lk__node_connects(sheet->at, LK__LANE_RENEWALS) &&
           lk__conn_isup(&sheet->at->lanes[LK__LANE_RENEWALS]);
}

void lk__notice_takedown(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__notice *notice = dog->notice;
    for (unsigned i = 0; notice != NULL && i < notice->count; i++)
        if (is_there(dog, &notice->sheets[i]))
            (void)send_it(dog, &notice->sheets[i], &notice->down);
}
