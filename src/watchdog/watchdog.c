/* SPDX-License-Identifier: MIT */
/*
 * watchdog.c - one thread that renews leases, ends those that ran out, and sends late releases
 *
 * Guards: dog->mu the heap and what the header marks so. Order: after an object's mu, before the
 * connection's. The thread waits and reads without it.
 *
 * A hold is lost when its validity ends, by the local clock alone: no network is asked. Whoever looks
 * first, the thread or a caller, decides it under dog->mu, and the loss is told exactly once.
 *
 * The hard case: a renewal that the server obeyed after the hold was lost here. Its lease then lives on
 * at the server with no holder, so it is answered by a release.
 */
#include "watchdog/watchdog.h"

#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    WINDOW = 48,            /* requests under way at once: as text, too, they fit into the lane's buffer, with places */
    LOOK_US = 5000,         /* so often are answers looked for on the connection of the callers ... */
    LOOK_AGAIN_US = 100000, /* ... and whether it came up before the own */
    LINES_MAX = 8           /* losses that are logged one by one within a second */
};

_Static_assert(WINDOW *LK__COMMAND_MAX + LK__ECHO_LENGTH <= LK__OUT_BYTES && WINDOW < (int)LK__RENEWALS_MAX,
               "the window fits");

/* --- states; all under dog->mu ------------------------------------------------------------------------------ */

static void schedule(struct lk__watchdog *dog, struct lk__hold *hold)
{
    int64_t due_us = LK__NEVER;
    if (hold->state == LK__HELD || hold->state == LK__AT_RISK) {
        due_us = atomic_load(&hold->valid_until_us);
        if (hold->renew_us < due_us && hold->inflight == NULL && !lk__listed(&hold->ready))
            due_us = hold->renew_us;
    } else if (hold->sweeping && hold->inflight == NULL && !lk__listed(&hold->ready)) {
        due_us = hold->renew_us;
    }
    if (due_us == LK__NEVER)
        lk__heap_remove(&dog->heap, &hold->timer);
    else
        lk__heap_set(&dog->heap, &hold->timer, due_us);
}

static void wake_thread(struct lk__watchdog *dog)
{
    if (dog->started)
        lk__eventfd_set(dog->wake_fd);
}

/* Tells those who wait for a renewal of `hold`, the first `upto` of them, how it went; not those who know it. */
static void answer(struct lk__watchdog *dog, struct lk__hold *hold, unsigned upto, int result)
{
    if (upto == hold->answered)
        return;
    hold->result = result;
    hold->answered = upto;
    pthread_cond_broadcast(&dog->renewed);
}

/* May anybody give it back, by its id? */
static bool is_anybodys(const struct lk__hold *hold)
{
    return hold->owner == 0;
}

/* Lost, and no thread will come to give it back: its object drops it when it comes to it. */
static void leave_to_nobody(struct lk__hold *hold)
{
    bool left = hold->ownerless || is_anybodys(hold);
    if (hold->state == LK__LOST && left && hold->nobodys != NULL && !lk__listed(&hold->for_nobody))
        lk__list_append(hold->nobodys, &hold->for_nobody);
}

static void tell_log(struct lk__watchdog *dog, struct lk__hold *hold)
{
    if (lk__list_empty(&dog->unlogged))
        wake_thread(dog);
    lk__list_append(&dog->unlogged, &hold->news);
    lk__hold_ref(hold);
}

static void lose(struct lk__watchdog *dog, struct lk__hold *hold, int reason)
{
    if (hold->state != LK__HELD && hold->state != LK__AT_RISK)
        return;
    hold->state = LK__LOST;
    hold->reason = reason;
    hold->renew_us = LK__NEVER;
    atomic_store(&hold->valid_until_us, 0);
    schedule(dog, hold);
    lk__list_remove(&hold->ready);
    lk__list_remove(&hold->all);
    lk__list_append(&dog->lost, &hold->all);
    leave_to_nobody(hold);
    if (reason != LK_REASON_RELEASED) /* which is as it should be */
        tell_log(dog, hold);
    answer(dog, hold, hold->asked, ESTALE);
    dog->notify(dog->arg, hold, LK_EVENT_LOST);
}

static bool good(struct lk__watchdog *dog, struct lk__hold *hold, int64_t now_us)
{
    if (hold->state != LK__HELD && hold->state != LK__AT_RISK)
        return false;
    if (now_us < atomic_load(&hold->valid_until_us))
        return true;
    lose(dog, hold, hold->reason != LK_REASON_NONE ? hold->reason : LK_REASON_EXPIRED);
    return false;
}

static void set_state(struct lk__watchdog *dog, struct lk__hold *hold, enum lk__hold_state state)
{
    if (hold->state == state)
        return;
    hold->state = state;
    dog->notify(dog->arg, hold, state == LK__AT_RISK ? LK_EVENT_AT_RISK : LK_EVENT_RECOVERED);
}

/* What a request at `now_us` may ask for: that lease, but not beyond the cap. */
static int64_t lease_at(const struct lk__hold *hold, int64_t lease_ms, int64_t now_us)
{
    if (hold->cap_us != LK__NEVER && (hold->cap_us - now_us) / 1000 < lease_ms)
        lease_ms = (hold->cap_us - now_us) / 1000;
    return lease_ms;
}

/* Copies of a request that got no answer may come until then, and set this lease. */
static void expect_duplicates(struct lk__hold *hold, int64_t now_us, int64_t until_us, int64_t lease_ms)
{
    if (now_us >= hold->duplicates_until_us || lease_ms < hold->duplicates_lease_ms)
        hold->duplicates_lease_ms = lease_ms;
    if (until_us > hold->duplicates_until_us)
        hold->duplicates_until_us = until_us;
}

/* A request with this lease is about to be sent: no more is believed, as the server may hear of it at once. */
static void believe_no_more(struct lk__hold *hold, int64_t now_us, int64_t lease_ms)
{
    int64_t shorter_us = now_us + lease_ms * 1000 - lk__guard_us(lease_ms);
    if (shorter_us < atomic_load(&hold->valid_until_us))
        atomic_store(&hold->valid_until_us, shorter_us);
}

/* A third of the lease from `from_us` on, spread so that many holds are not renewed at one moment. */
static int64_t next_renewal(const struct lk__hold *hold, int64_t from_us, int64_t lease_ms)
{
    if (hold->ownerless || hold->fixed)
        return LK__NEVER;
    if (hold->cap_us != LK__NEVER && from_us + lease_ms * 1000 >= hold->cap_us)
        return LK__NEVER; /* the present lease reaches the cap */
    int64_t third_us = lease_ms * 1000 / 3;
    return from_us + third_us - (int64_t)lk__random_below((uint64_t)third_us / 10 + 1);
}

/* --- sending and reading; on the watchdog's thread ------------------------------------------------------------ */

/*
 * For the next request: the own connection, or while that is not up the one of the callers. A server that takes no more
 * clients would otherwise grant what nobody can renew.
 */
static enum lk__lane best_lane(struct lk__watchdog *dog)
{
    bool own = lk__node_isup(dog->node, LK__LANE_RENEWALS) || !lk__node_isup(dog->node, LK__LANE_COMMANDS);
    return own ? LK__LANE_RENEWALS : LK__LANE_COMMANDS;
}

static const struct lk__script *script_of(const struct lk__inflight *inflight)
{
    return inflight->releasing ? inflight->hold->release.script : inflight->hold->renew.script;
}

/* Under a connection's mu: what is to be known of the answer. Its hold stays, and its commands never change. */
static void take_answer(struct lk__request *request, const struct lk__reply *reply)
{
    struct lk__inflight *inflight = LK__CONTAINER(request, struct lk__inflight, request);
    bool retry;
    inflight->error = reply->type == LK__ERROR;
    inflight->good = !inflight->error && lk__answer_read(script_of(inflight), reply, &inflight->said);
    inflight->unknown = lk__reply_is(reply, "NOSCRIPT");
    inflight->redisson = lk__reply_is(reply, "WRONGTYPE");
    inflight->code = inflight->error ? lk__reply_error(reply, &retry) : 0;
}

/* Under dog->mu, and one is idle. 0: under way. */
static int send_inflight(struct lk__watchdog *dog, struct lk__hold *hold, bool release, int64_t lease_ms,
                         const struct lk__sent *sent)
{
    struct lk__link *link = lk__list_first(&dog->idle);
    struct lk__inflight *inflight = LK__CONTAINER(link, struct lk__inflight, link);
    *inflight = (struct lk__inflight){ .link = inflight->link,
                                       .request = { .take = take_answer, .urgent = true },
                                       .hold = hold,
                                       .via = best_lane(dog),
                                       .lease_ms = lease_ms,
                                       .releasing = release,
                                       .as_text = hold->eval };
    int rc = lk__node_send(dog->node, inflight->via, &inflight->request, release ? &hold->release : &hold->renew, sent,
                           hold->eval);
    hold->eval = false;
    if (rc != 0)
        return rc;
    hold->requested = hold->asked;
    hold->inflight = inflight;
    lk__hold_ref(hold);
    lk__list_remove(link);
    lk__list_append(inflight->via == LK__LANE_RENEWALS ? &dog->in_flight : &dog->beside, link);
    return 0;
}

static int64_t retry_at(const struct lk__watchdog *dog, int64_t now_us)
{
    int64_t pause_ms = dog->options->command_timeout_ms;
    if (pause_ms > dog->options->retry_max_ms)
        pause_ms = dog->options->retry_max_ms;
    return now_us + pause_ms * 1000;
}

static void renewal_failed(struct lk__watchdog *dog, struct lk__hold *hold, int result, int64_t again_us)
{
    answer(dog, hold, hold->requested, result);
    if (hold->state != LK__HELD && hold->state != LK__AT_RISK)
        return;
    if (!hold->fixed)
        set_state(dog, hold, LK__AT_RISK);
    if (!hold->ownerless)
        hold->renew_us = again_us;
}

static void send_renewal(struct lk__watchdog *dog, struct lk__hold *hold, int64_t now_us)
{
    int64_t lease_ms = lease_at(hold, hold->wanted_ms, now_us);
    int64_t believed_us = atomic_load(&hold->valid_until_us);
    hold->renew_us = LK__NEVER;
    if (lease_ms <= 0)
        return; /* capped: ends with what it has */
    if (hold->duplicates_lease_ms != lease_ms && now_us < hold->duplicates_until_us) {
        hold->renew_us = hold->duplicates_until_us; /* an older request with another lease might come last */
        return;
    }
    if (hold->call_lease_ms != 0 && hold->call_lease_ms != lease_ms) {
        hold->put_off = true; /* likewise the owner's, which is on its way */
        return;
    }
    int64_t deadline_us =
        lk__node_servertime(dog->node, best_lane(dog), now_us) + dog->options->command_timeout_ms * 1000;
    struct lk__sent sent = { .id = hold->id, .lease_ms = lease_ms, .deadline_us = deadline_us, .parts = hold->parts };
    believe_no_more(hold, now_us, lease_ms);
    int rc = send_inflight(dog, hold, false, lease_ms, &sent);
    if (rc == 0)
        hold->lease_ms = hold->wanted_ms;
    else
        atomic_store(&hold->valid_until_us, believed_us); /* nothing was sent */
    hold->unsent = rc == ENOTCONN;
    dog->unsent |= hold->unsent;
    if (hold->unsent && lk__node_connects(dog->node, LK__LANE_RENEWALS) == 0 &&
        lk__node_failures(dog->node, LK__LANE_RENEWALS) == 0)
        return; /* it is coming up for the first time: nothing failed yet */
    if (rc != 0)
        renewal_failed(dog, hold, rc, hold->unsent ? LK__NEVER : retry_at(dog, now_us));
}

/* The reference that a sweep had is then the caller's to drop, without the lock. */
static void end_sweep(struct lk__watchdog *dog, struct lk__hold *hold)
{
    hold->sweeping = false;
    dog->sweeps--;
    pthread_cond_broadcast(&dog->renewed);
}

static void send_release(struct lk__watchdog *dog, struct lk__hold *hold, int64_t now_us)
{
    struct lk__sent sent = lk__hold_torelease(hold);
    hold->renew_us = retry_at(dog, now_us);
    if (now_us >= hold->sweep_end_us)
        end_sweep(dog, hold);
    else
        send_inflight(dog, hold, true, 0, &sent);
}

static void begin_sweep(struct lk__watchdog *dog, struct lk__hold *hold, int64_t past_us, int64_t end_us)
{
    if (!hold->sweeping) {
        lk__hold_ref(hold);
        dog->sweeps++;
    }
    hold->sweeping = true;
    hold->sweep_past_us = past_us;
    hold->sweep_end_us = end_us;
    hold->renew_us = 0;
    schedule(dog, hold);
    wake_thread(dog);
}

/* A release was answered: a copy of the ask can come no more, or once more when it cannot. */
static void swept(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__hold *hold = inflight->hold;
    int64_t server_us = inflight->said.server_us;
    if (!inflight->good)
        hold->renew_us = retry_at(dog, now_us);
    else if (server_us > hold->sweep_past_us)
        end_sweep(dog, hold);
    else
        hold->renew_us = now_us + (hold->sweep_past_us - server_us) + 1000;
}

static bool is_renewal(const struct lk__inflight *inflight)
{
    enum lk__verdict verdict = inflight->said.verdict;
    return inflight->good && (verdict == LK__DONE || verdict == LK__GONE || verdict == LK__LATE);
}

/* A renewal was answered. */
static void renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__hold *hold = inflight->hold;
    const struct lk__request *request = &inflight->request;
    const struct lk__answer *said = &inflight->said;
    int64_t lease_ms = inflight->lease_ms;
    int64_t until_us = request->sent_us + lease_ms * 1000 - lk__guard_us(lease_ms);

    if (said->verdict == LK__LATE) { /* the server's clock moved; it is known again now */
        renewal_failed(dog, hold, EIO, now_us);
        return;
    }
    if (!good(dog, hold, now_us)) {
        if (said->verdict == LK__DONE && hold->state == LK__LOST) /* too late: nobody holds it any more */
            begin_sweep(dog, hold, 0, now_us + lease_ms * 1000);
        return;
    }
    if (said->verdict == LK__GONE) {
        lose(dog, hold, is_anybodys(hold) ? LK_REASON_RELEASED : LK_REASON_GONE);
        return;
    }
    atomic_fetch_add(&hold->renewals, 1);
    atomic_store(&hold->valid_until_us, until_us);
    if (lease_at(hold, hold->lease_ms, now_us) < hold->lease_ms && !hold->ownerless)
        hold->reason = LK_REASON_MAX_HOLD;
    hold->renew_us = next_renewal(hold, request->sent_us, lease_ms);
    if (hold->asked != hold->requested)
        hold->renew_us = now_us; /* somebody asked for another lease meanwhile */
    set_state(dog, hold, LK__HELD);
    answer(dog, hold, hold->requested, 0);
}

/* A renewal was refused, or never answered. */
static void not_renewed(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__hold *hold = inflight->hold;
    const struct lk__request *request = &inflight->request;
    int state = atomic_load(&request->state);
    if (state == LK__UNSENT) {
        renewal_failed(dog, hold, ENOTCONN, now_us);
    } else if (state == LK__CUT || state == LK__GARBLED) {
        int64_t until_us = request->sent_us + 2 * dog->options->command_timeout_ms * 1000;
        expect_duplicates(hold, now_us, until_us, inflight->lease_ms);
        if (state == LK__CUT)
            renewal_failed(dog, hold, EIO, now_us);
        else
            renewal_failed(dog, hold, EPROTO, retry_at(dog, now_us));
    } else if (inflight->unknown && !inflight->as_text) {
        hold->eval = true;
        hold->renew_us = now_us;
    } else if (!inflight->error) {
        renewal_failed(dog, hold, EPROTO, retry_at(dog, now_us));
    } else if (inflight->redisson) {
        lose(dog, hold, LK_REASON_GONE);
    } else {
        renewal_failed(dog, hold, inflight->code, retry_at(dog, now_us));
    }
}

/* Under dog->mu: the request is over. */
static void landed(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    struct lk__hold *hold = inflight->hold;
    int state = atomic_load(&inflight->request.state);
    bool answered = state == LK__ANSWERED;
    bool held = hold->state == LK__HELD || hold->state == LK__AT_RISK;

    if (inflight->releasing && answered && inflight->unknown && !inflight->as_text) {
        hold->eval = true;
        hold->renew_us = now_us;
    } else if (inflight->releasing && answered && !inflight->error) {
        swept(dog, inflight, now_us);
    } else if (inflight->releasing) {
        hold->renew_us = answered || state == LK__GARBLED ? retry_at(dog, now_us) : now_us;
    } else if (answered && is_renewal(inflight)) {
        renewed(dog, inflight, now_us);
    } else if (held && good(dog, hold, now_us)) {
        not_renewed(dog, inflight, now_us);
    }
}

/* The flight is over; the reference that it had is then the caller's to drop, without the lock. */
static struct lk__hold *end_flight(struct lk__watchdog *dog, struct lk__inflight *inflight)
{
    struct lk__hold *hold = inflight->hold;
    hold->inflight = NULL;
    lk__list_remove(&inflight->link);
    lk__list_append(&dog->idle, &inflight->link);
    return hold;
}

/* A request of `hold` is due: renew, or send a release. */
static void serve_hold(struct lk__watchdog *dog, struct lk__hold *hold, int64_t now_us)
{
    bool swept_before = hold->sweeping;
    if (hold->state == LK__HELD || hold->state == LK__AT_RISK) {
        if (good(dog, hold, now_us) && hold->inflight == NULL && hold->renew_us <= now_us)
            send_renewal(dog, hold, now_us);
    } else if (hold->sweeping && hold->inflight == NULL && hold->renew_us <= now_us) {
        send_release(dog, hold, now_us);
    }
    schedule(dog, hold);
    if (swept_before && !hold->sweeping) {
        lk__mu_unlock(&dog->mu);
        lk__hold_unref(hold);
        lk__mu_lock(&dog->mu);
    }
}

/*
 * Those whose timer came. A request that finds too many under way waits for one of them to land; its hold's timer is
 * then that of the loss, so that losses are told in time meanwhile.
 */
static void serve_due(struct lk__watchdog *dog, int64_t now_us)
{
    struct lk__timer *timer;
    while ((timer = lk__heap_first(&dog->heap)) != NULL && timer->due_us <= now_us) {
        struct lk__hold *hold = LK__CONTAINER(timer, struct lk__hold, timer);
        bool over = (hold->state == LK__HELD || hold->state == LK__AT_RISK) && !good(dog, hold, now_us);
        if (!over && !lk__listed(&hold->ready))
            lk__list_append(&dog->ready, &hold->ready);
        schedule(dog, hold);
    }
}

/* The requests that are due, as many as may be under way. */
static void serve_ready(struct lk__watchdog *dog, int64_t now_us)
{
    struct lk__link *link;
    while ((link = lk__list_first(&dog->ready)) != NULL && !lk__list_empty(&dog->idle)) {
        lk__list_remove(link);
        serve_hold(dog, LK__CONTAINER(link, struct lk__hold, ready), now_us);
    }
}

/* Requests land in the order in which they flew. */
static void serve_landed(struct lk__watchdog *dog, struct lk__link *in_flight, int64_t now_us)
{
    struct lk__link *link;
    while ((link = lk__list_first(in_flight)) != NULL) {
        struct lk__inflight *inflight = LK__CONTAINER(link, struct lk__inflight, link);
        if (atomic_load(&inflight->request.state) == LK__INFLIGHT)
            return;
        bool swept_before = inflight->hold->sweeping;
        struct lk__hold *hold = end_flight(dog, inflight);
        landed(dog, inflight, now_us);
        schedule(dog, hold);
        bool drop_sweep = swept_before && !hold->sweeping;
        lk__mu_unlock(&dog->mu);
        if (drop_sweep)
            lk__hold_unref(hold);
        lk__hold_unref(hold); /* the flight's */
        lk__mu_lock(&dog->mu);
    }
}

/* Renewals that wait for the connection go out at once when it is up; until an attempt failed they are no risk. */
static void serve_unsent(struct lk__watchdog *dog, int64_t now_us, bool up)
{
    dog->unsent &= !up;
    for (struct lk__link *l = lk__list_first(&dog->holds), *next; l != NULL; l = next) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, all);
        next = lk__list_next(&dog->holds, l); /* one that is lost now leaves the list */
        if (!hold->unsent || hold->ownerless || !good(dog, hold, now_us))
            continue;
        if (up) {
            hold->unsent = false;
            hold->renew_us = now_us;
            schedule(dog, hold);
        } else if (!hold->fixed) {
            set_state(dog, hold, LK__AT_RISK);
        }
    }
}

/* What the connection went through since the last look. */
static void serve_connection(struct lk__watchdog *dog, int64_t now_us)
{
    unsigned long long connects = lk__node_connects(dog->node, LK__LANE_RENEWALS);
    unsigned failures = lk__node_failures(dog->node, LK__LANE_RENEWALS);
    if (connects != dog->connects_seen || (dog->unsent && lk__node_isup(dog->node, LK__LANE_COMMANDS)))
        serve_unsent(dog, now_us, true);
    else if (failures != dog->failures_seen && failures > 0)
        serve_unsent(dog, now_us, false);
    dog->connects_seen = connects;
    dog->failures_seen = failures;
}

static const char *errmsg_of(int reason)
{
    switch (reason) {
    case LK_REASON_GONE:
        return "the server no longer knows it";
    case LK_REASON_THREAD_EXIT:
        return "its thread ended while holding it";
    case LK_REASON_MAX_HOLD:
        return "held as long as max_hold_ms allows";
    case LK_REASON_FIXED:
        return "its fixed lease ran out";
    default:
        return "no renewal succeeded in time";
    }
}

/* The second is over: how many losses it had beyond those with a line of their own. */
static void log_more(struct lk__watchdog *dog)
{
    if (dog->more > 0)
        lk__log(LK_LOG_WARNING, "%u more leases were lost", dog->more);
    dog->lines = dog->more = 0;
}

/*
 * Under dog->mu, left and taken again: the log's sink is a user's function. Many are lost at one moment as easily as
 * one, and whatever is done for each of them keeps the renewals of the others.
 */
static void log_losses(struct lk__watchdog *dog, int64_t now_us)
{
    struct lk__link *link;
    if (now_us >= dog->second_us && dog->more > 0) {
        lk__mu_unlock(&dog->mu);
        log_more(dog);
        lk__mu_lock(&dog->mu);
    }
    while ((link = lk__list_first(&dog->unlogged)) != NULL) {
        struct lk__hold *lost = LK__CONTAINER(link, struct lk__hold, news);
        int reason = lost->reason;
        lk__list_remove(link);
        lk__mu_unlock(&dog->mu);
        if (now_us >= dog->second_us) {
            dog->second_us = now_us + 1000000;
            dog->lines = 0;
        }
        if (dog->lines < LINES_MAX)
            lk__log(LK_LOG_WARNING, "%s: the lease was lost: %s", lost->name, errmsg_of(reason));
        dog->lines < LINES_MAX ? dog->lines++ : dog->more++;
        lk__hold_unref(lost);
        lk__mu_lock(&dog->mu);
    }
}

/* Sleep until the earliest timer; the timerfd makes that moment count suspended time too. */
static void sleep_until_due(struct lk__watchdog *dog, int timer_fd, int64_t due_us)
{
    struct itimerspec when = { { 0, 0 }, { 0, 0 } };
    if (due_us != LK__NEVER)
        when.it_value = (struct timespec){ (time_t)(due_us / 1000000), (long)(due_us % 1000000) * 1000 + 1 };
    if (timer_fd >= 0)
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    struct pollfd extra[2] = { { dog->wake_fd, POLLIN, 0 }, { timer_fd, POLLIN, 0 } };
    lk__node_serve(dog->node, LK__LANE_RENEWALS, extra, 2, due_us);
    if (extra[0].revents != 0)
        lk__eventfd_clear(dog->wake_fd);
}

/* Under dog->mu: the oldest request on the connection of the callers, who read it for us or do not. */
static struct lk__request *first_beside(const struct lk__watchdog *dog)
{
    struct lk__link *link = lk__list_first(&dog->beside);
    return link != NULL ? &LK__CONTAINER(link, struct lk__inflight, link)->request : NULL;
}

/* Under dog->mu: when something is to be done, if nothing happens before. */
static int64_t next_look(const struct lk__watchdog *dog, int64_t now_us)
{
    int64_t due_us = dog->more > 0 ? dog->second_us : LK__NEVER;
    if (lk__heap_first(&dog->heap) != NULL && lk__heap_first(&dog->heap)->due_us < due_us)
        due_us = lk__heap_first(&dog->heap)->due_us;
    if (!lk__list_empty(&dog->beside) && now_us + LOOK_US < due_us)
        due_us = now_us + LOOK_US;
    if (dog->unsent && now_us + LOOK_AGAIN_US < due_us)
        due_us = now_us + LOOK_AGAIN_US;
    return due_us;
}

static void *run(void *arg)
{
    struct lk__watchdog *dog = arg;
    /* Without one the poll's own limit serves. */
    int timer_fd = lk__fd_ours(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    lk__mu_lock(&dog->mu);
    while (!dog->stopping) {
        int64_t now_us = lk__now_us();
        serve_landed(dog, &dog->in_flight, now_us);
        serve_landed(dog, &dog->beside, now_us);
        serve_connection(dog, now_us);
        serve_due(dog, now_us);
        serve_ready(dog, now_us);
        log_losses(dog, now_us);
        struct lk__request *awaited = first_beside(dog);
        int64_t due_us = dog->asleep_us = next_look(dog, now_us);
        lk__mu_unlock(&dog->mu);
        sleep_until_due(dog, timer_fd, due_us);
        if (awaited != NULL)
            lk__node_look(dog->node, awaited);
        lk__mu_lock(&dog->mu);
    }
    lk__mu_unlock(&dog->mu);
    if (timer_fd >= 0)
        lk__fd_close(timer_fd);
    return NULL;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int lk__watchdog_init(struct lk__watchdog *dog, struct lk__node *node, lk__notify_t notify, void *arg)
{
    *dog = (struct lk__watchdog){ .node = node, .options = &node->server.options, .notify = notify, .arg = arg };
    dog->wake_fd = lk__eventfd_open();
    if (dog->wake_fd < 0)
        return lk__fail(ENOMEM, "no descriptor left for a client");
    lk__node_own(node, LK__LANE_RENEWALS, dog->wake_fd, NULL, NULL);
    lk__mu_init(&dog->mu, LK__MU_WATCHDOG);
    lk__cond_init(&dog->renewed);
    lk__list_init(&dog->holds);
    lk__list_init(&dog->lost);
    lk__list_init(&dog->ready);
    lk__list_init(&dog->spares);
    lk__list_init(&dog->idle);
    lk__list_init(&dog->in_flight);
    lk__list_init(&dog->beside);
    lk__list_init(&dog->unlogged);
    return 0;
}

bool lk__watchdog_stop(struct lk__watchdog *dog)
{
    lk__mu_lock(&dog->mu);
    bool started = dog->started;
    dog->stopping = true;
    wake_thread(dog);
    lk__mu_unlock(&dog->mu);
    if (started)
        pthread_join(dog->thread, NULL);
    lk__node_close(dog->node, LK__LANE_RENEWALS);

    /* Nothing flies and nothing is due any more. */
    lk__mu_lock(&dog->mu);
    dog->started = false;
    log_losses(dog, lk__now_us());
    bool clean = true;
    struct lk__link *link;
    while ((link = lk__list_first(&dog->ready)) != NULL) {
        lk__list_remove(link);
        schedule(dog, LK__CONTAINER(link, struct lk__hold, ready)); /* one that is swept is found on the heap below */
    }
    while ((link = lk__list_first(&dog->in_flight)) != NULL || (link = lk__list_first(&dog->beside)) != NULL) {
        struct lk__inflight *inflight = LK__CONTAINER(link, struct lk__inflight, link);
        lk__node_abandon(dog->node, inflight->via, &inflight->request);
        struct lk__hold *hold = end_flight(dog, inflight);
        schedule(dog, hold); /* one that is swept is found on the heap below */
        lk__mu_unlock(&dog->mu);
        lk__hold_unref(hold);
        lk__mu_lock(&dog->mu);
    }
    struct lk__timer *timer;
    while ((timer = lk__heap_first(&dog->heap)) != NULL) {
        struct lk__hold *hold = LK__CONTAINER(timer, struct lk__hold, timer);
        bool sweeping = hold->sweeping;
        lk__heap_remove(&dog->heap, timer);
        clean = clean && !sweeping;
        if (sweeping)
            end_sweep(dog, hold);
        lk__mu_unlock(&dog->mu);
        if (sweeping)
            lk__hold_unref(hold);
        lk__mu_lock(&dog->mu);
    }
    pthread_cond_broadcast(&dog->renewed);
    lk__mu_unlock(&dog->mu);
    log_more(dog);
    return clean;
}

void lk__watchdog_destroy(struct lk__watchdog *dog)
{
    assert(dog->reserved == 0);
    lk__heap_free(&dog->heap);
    lk__hold_freespares(dog);
    lk__free(dog->inflights);
    pthread_cond_destroy(&dog->renewed);
    lk__mu_destroy(&dog->mu);
    lk__fd_close(dog->wake_fd);
}

/* Under dog->mu. */
static int make_flights(struct lk__watchdog *dog)
{
    if (dog->inflights != NULL)
        return 0;
    dog->inflights = lk__alloc(WINDOW * sizeof *dog->inflights);
    if (dog->inflights == NULL)
        return ENOMEM;
    for (int i = 0; i < WINDOW; i++)
        lk__list_append(&dog->idle, &dog->inflights[i].link);
    return 0;
}

int lk__watchdog_reserve(struct lk__watchdog *dog)
{
    if (dog->stopping)
        return lk__fail(ECANCELED, "the client was closed");
    if (lk__heap_reserve(&dog->heap, dog->reserved + 1) != 0 || make_flights(dog) != 0)
        return lk__fail(ENOMEM, "out of memory for a hold");
    if (!dog->started) {
        int rc = lk__thread_start(&dog->thread, "lk-watchdog", run, dog);
        if (rc != 0)
            return rc;
        dog->started = true;
        lk__node_want(dog->node, LK__LANE_RENEWALS);
    }
    dog->reserved++;
    return 0;
}

/* --- what callers tell it --------------------------------------------------------------------------------------- */

void lk__watchdog_take(struct lk__watchdog *dog, struct lk__hold *hold, int64_t valid_until_us, int64_t first_us)
{
    lk__mu_lock(&dog->mu);
    hold->state = LK__HELD;
    atomic_store(&hold->valid_until_us, valid_until_us);
    hold->renew_us = first_us;
    lk__list_append(&dog->holds, &hold->all);
    schedule(dog, hold);
    if (hold->timer.due_us < dog->asleep_us) {
        dog->asleep_us = hold->timer.due_us;
        wake_thread(dog);
    }
    lk__mu_unlock(&dog->mu);
}

bool lk__watchdog_good(struct lk__watchdog *dog, struct lk__hold *hold, int64_t *remaining_us)
{
    int64_t now_us = lk__now_us(), left_us = atomic_load(&hold->valid_until_us) - now_us;
    if (left_us <= 0) {
        lk__mu_lock(&dog->mu);
        left_us = good(dog, hold, now_us) ? atomic_load(&hold->valid_until_us) - now_us : 0;
        lk__mu_unlock(&dog->mu);
    }
    if (remaining_us != NULL)
        *remaining_us = left_us;
    return left_us > 0;
}

void lk__watchdog_shrink(struct lk__watchdog *dog, struct lk__hold *hold, int parts)
{
    lk__mu_lock(&dog->mu);
    hold->parts = parts;
    lk__mu_unlock(&dog->mu);
}

/*
 * All requests that may meet at the server ask for one lease, so that it does not matter which of them comes last. So
 * the owner's asks for what the last one asked for, or in doubt for less; what is wanted meanwhile waits.
 */
int64_t lk__watchdog_begincall(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    int64_t now_us = lk__now_us(), lease_ms = lease_at(hold, hold->lease_ms, now_us);
    if (now_us < hold->duplicates_until_us && hold->duplicates_lease_ms < lease_ms)
        lease_ms = hold->duplicates_lease_ms;
    if (lease_ms < 1)
        lease_ms = 1; /* PEXPIRE with less deletes the key */
    hold->call_lease_ms = lease_ms;
    if (hold->state == LK__HELD || hold->state == LK__AT_RISK) {
        believe_no_more(hold, now_us, lease_ms);
        schedule(dog, hold);
    }
    lk__mu_unlock(&dog->mu);
    return lease_ms;
}

void lk__watchdog_endcall(struct lk__watchdog *dog, struct lk__hold *hold, bool unsure, int64_t sent_us)
{
    lk__mu_lock(&dog->mu);
    int64_t now_us = lk__now_us(), lease_ms = hold->call_lease_ms;
    int64_t until_us = sent_us + lease_ms * 1000 - lk__guard_us(lease_ms);
    bool held = good(dog, hold, now_us);
    hold->call_lease_ms = 0;
    if (unsure)
        expect_duplicates(hold, now_us, now_us + 2 * dog->options->command_timeout_ms * 1000, lease_ms);
    if (held && sent_us != 0 && until_us > atomic_load(&hold->valid_until_us))
        atomic_store(&hold->valid_until_us, until_us);
    if (held && hold->put_off) {
        hold->renew_us = now_us;
        wake_thread(dog);
    }
    hold->put_off = false;
    schedule(dog, hold);
    lk__mu_unlock(&dog->mu);
}

void lk__watchdog_expectduplicates(struct lk__watchdog *dog, struct lk__hold *hold, int64_t lease_ms)
{
    lk__mu_lock(&dog->mu);
    int64_t now_us = lk__now_us();
    expect_duplicates(hold, now_us, now_us + 2 * dog->options->command_timeout_ms * 1000, lease_ms);
    lk__mu_unlock(&dog->mu);
}

void lk__watchdog_lose(struct lk__watchdog *dog, struct lk__hold *hold, int reason)
{
    lk__mu_lock(&dog->mu);
    lose(dog, hold, reason);
    lk__mu_unlock(&dog->mu);
}

void lk__watchdog_wasgone(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    hold->state = LK__LOST;
    hold->reason = LK_REASON_GONE;
    dog->notify(dog->arg, hold, LK_EVENT_LOST);
    lk__mu_unlock(&dog->mu);
}

bool lk__watchdog_waslost(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    bool lost = hold->state == LK__LOST;
    lk__mu_unlock(&dog->mu);
    return lost;
}

struct lk__hold *lk__watchdog_nextofnobody(struct lk__watchdog *dog, struct lk__link *nobodys)
{
    lk__mu_lock(&dog->mu);
    struct lk__link *link = lk__list_first(nobodys);
    struct lk__hold *hold = link != NULL ? lk__hold_ref(LK__CONTAINER(link, struct lk__hold, for_nobody)) : NULL;
    if (link != NULL)
        lk__list_remove(link);
    lk__mu_unlock(&dog->mu);
    return hold;
}

bool lk__watchdog_isownerless(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    bool ownerless = hold->ownerless;
    lk__mu_unlock(&dog->mu);
    return ownerless;
}

void lk__watchdog_forget(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    lk__list_remove(&hold->for_nobody);
    hold->nobodys = NULL;
    lk__mu_unlock(&dog->mu);
}

bool lk__watchdog_end(struct lk__watchdog *dog, struct lk__hold *hold)
{
    lk__mu_lock(&dog->mu);
    int64_t now_us = lk__now_us();
    bool was_good = good(dog, hold, now_us);
    if (was_good)
        hold->state = LK__OVER;
    atomic_store(&hold->valid_until_us, 0);
    if (!hold->sweeping)
        hold->renew_us = LK__NEVER;
    lk__list_remove(&hold->all);
    if (!hold->sweeping)
        lk__list_remove(&hold->ready);
    lk__list_remove(&hold->for_nobody);
    hold->nobodys = NULL; /* the object may go */
    schedule(dog, hold);
    answer(dog, hold, hold->asked, was_good ? EPERM : ESTALE);
    if (hold->state == LK__LOST && hold->ask_duplicates_until_us != 0 &&
        !dog->stopping) /* no release follows; a copy may */
        begin_sweep(dog, hold, hold->ask_duplicates_until_us,
                    now_us + (2 * dog->options->command_timeout_ms + lk__hold_longest(hold)) * 1000);
    lk__mu_unlock(&dog->mu);
    return was_good;
}

void lk__watchdog_sweep(struct lk__watchdog *dog, struct lk__hold *hold, int64_t past_us, int64_t end_us)
{
    lk__mu_lock(&dog->mu);
    if (!dog->stopping)
        begin_sweep(dog, hold, past_us, end_us);
    lk__mu_unlock(&dog->mu);
}

void lk__watchdog_sweepduplicates(struct lk__watchdog *dog, struct lk__hold *hold, int64_t server_us)
{
    if (!lk__is_servertime(server_us))
        server_us = hold->ask_duplicates_until_us; /* nothing is known: not past it */
    if (hold->ask_duplicates_until_us == 0 || server_us > hold->ask_duplicates_until_us)
        return;
    lk__mu_lock(&dog->mu);
    int64_t end_us = lk__now_us() + (hold->ask_duplicates_until_us - server_us) + lk__hold_longest(hold) * 1000;
    lk__mu_unlock(&dog->mu);
    lk__watchdog_sweep(dog, hold, hold->ask_duplicates_until_us, end_us);
}

void lk__watchdog_settle(struct lk__watchdog *dog, int64_t until_us)
{
    lk__mu_lock(&dog->mu);
    while (dog->sweeps > 0 && lk__cond_wait(&dog->renewed, &dog->mu, until_us) != ETIMEDOUT)
        ;
    lk__mu_unlock(&dog->mu);
}

int lk__watchdog_renew(struct lk__watchdog *dog, struct lk__hold *hold, int64_t lease_ms, int64_t until_us)
{
    lk__mu_lock(&dog->mu);
    int rc = ESTALE;
    if (good(dog, hold, lk__now_us())) {
        unsigned mine = ++hold->asked;
        hold->wanted_ms = lease_ms;
        hold->renew_us = 0;
        schedule(dog, hold);
        wake_thread(dog);
        while ((int)(hold->answered - mine) < 0 && !dog->stopping &&
               lk__cond_wait(&dog->renewed, &dog->mu, until_us) != ETIMEDOUT)
            ;
        if ((int)(hold->answered - mine) >= 0)
            rc = hold->result;
        else if (dog->stopping)
            rc = ECANCELED;
        else
            rc = (int)(hold->requested - mine) >= 0 ? EIO : ENOTCONN;
    }
    lk__mu_unlock(&dog->mu);
    return rc;
}

/* Under dog->mu: those of that owner in one of the lists. */
static void orphan(struct lk__watchdog *dog, struct lk__link *list, uint64_t owner)
{
    for (struct lk__link *l = lk__list_first(list); l != NULL; l = lk__list_next(list, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, all);
        if (!hold->tied || hold->owner != owner)
            continue;
        hold->ownerless = true;
        hold->renew_us = LK__NEVER;
        if (hold->reason == LK_REASON_NONE || hold->reason == LK_REASON_MAX_HOLD)
            hold->reason = LK_REASON_THREAD_EXIT;
        leave_to_nobody(hold);
        schedule(dog, hold);
    }
}

void lk__watchdog_ownergone(struct lk__watchdog *dog, uint64_t owner)
{
    lk__mu_lock(&dog->mu);
    orphan(dog, &dog->holds, owner);
    orphan(dog, &dog->lost, owner);
    lk__mu_unlock(&dog->mu);
}
