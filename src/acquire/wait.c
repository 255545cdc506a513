/* SPDX-License-Identifier: MIT */
/*
 * wait.c - one acquire, driven by the thread that wants it
 *
 * Guards: waiters->mu who waits, and what came in for them. Order: after hub->mu, before a parker's.
 *
 * A waiter is in waiters->by_id before its first ask is sent, as a grant may overtake the answer.
 */
#include "acquire/acquire.h"
#include "base/probe.h"

#include <string.h>

/* --- life --------------------------------------------------------------------------------------------------------- */

void lk__waiter_init(struct lk__waiter *waiter)
{
    *waiter = (struct lk__waiter){ .patience.until_us = LK__NEVER };
    lk__parker_init(&waiter->parker);
    lk__request_init(&waiter->request, &waiter->parker, lk__replybuf_reply(&waiter->answer));
}

void lk__waiter_set(struct lk__waiters *waiters, struct lk__waiter *waiter, struct lk__acquirefsm_settings settings)
{
    const struct lk__options *options = waiters->options;
    settings.liveness_ms = waiter->terms->liveness_ms;
    settings.poll_ms = lk__lesser(options->poll_ms, settings.liveness_ms / 3);
    settings.command_us = options->command_timeout_ms * 1000;
    settings.retry_min_ms = options->retry_min_ms;
    settings.retry_max_ms = options->retry_max_ms;
    settings.skew_ms = (int)options->clock_skew_ms;
    lk__acquirefsm_init(&waiter->machine, &settings);
}

void lk__waiter_destroy(struct lk__waiter *waiter)
{
    lk__request_abandon(&waiter->request);
    lk__parker_destroy(&waiter->parker);
}

/* Is each channel heard where its slot is? */
static bool is_sharded(const struct lk__waiters *waiters)
{
    return waiters->node->server.pubsub == LK__PUBSUB_SHARDED;
}

/* A code that lets it in, or ends it for good, holds for its followers, too. Else one of them leads the others. */
static void go_out(struct lk__waiters *waiters, struct lk__waiter *waiter)
{
    int code = waiter->machine.result.code;
    atomic_fetch_sub(&waiters->hub->waiters, 1);
    lk__mu_lock(&waiters->mu);
    lk__map_remove(&waiters->by_id, &waiter->entry);
    lk__waiter_stopfollowing(waiter);
    if (code == 0 || code == EOWNERDEAD || code == ENOTRECOVERABLE)
        lk__waiter_bringin(waiter);
    else
        lk__waiter_handon(waiter, lk__now_us());
    lk__mu_unlock(&waiters->mu);
    if (is_sharded(waiters))
        lk__ear_leave(waiters, waiter);
}

/* Do messages to our channel reach us at present? */
static bool is_heard(struct lk__waiters *waiters, const struct lk__waiter *waiter)
{
    struct lk__ear *ear = waiter->ear;
    return ear != NULL && atomic_load(&ear->listening) && lk__hub_isopen(waiters->hub, &ear->subscription);
}

/* Have our channel heard, from the first wait on. Returns whether it is by now. */
static bool listen_here(struct lk__waiters *waiters, struct lk__waiter *waiter)
{
    if (waiters->options->no_pubsub)
        return false;
    struct lk__ear *ear = is_sharded(waiters) ? lk__ear_join(waiters, waiter) : &waiters->ear;
    if (ear == NULL)
        return false;
    if (!atomic_exchange(&ear->listening, true) && lk__hub_subscribe(waiters->hub, &ear->subscription) != 0) {
        atomic_store(&ear->listening, false);
        return false;
    }
    if (lk__hub_isrefused(waiters->hub, &ear->subscription))
        return false;
    return is_heard(waiters, waiter);
}

/* --- the acquire -------------------------------------------------------------------------------------------------- */

/* The settings mark, as the next ask sends it; NULL: not at all. */
static const struct lk__settingsmark *mark_of(const struct lk__waiter *waiter)
{
    enum lk__marking marking = waiter->machine.marking;
    if (marking == LK__UNMARKED)
        return NULL;
    waiter->settings->replace = marking == LK__REPLACE;
    return waiter->settings;
}

/* Where the next one goes. A request that a move of its slot sent elsewhere goes there as text. */
static struct lk__node *node_of(const struct lk__waiters *waiters, const struct lk__waiter *waiter)
{
    bool leaving = waiter->machine.phase == LK__LEAVING, asking = waiter->request.manner == LK__BY_ASKING;
    return lk__node_for(waiters->node, leaving ? &waiter->release->command : &waiter->ask, asking);
}

static struct lk__conn *conn_of(const struct lk__attempt *attempt)
{
    return &node_of(attempt->waiters, attempt->waiter)->lanes[LK__LANE_COMMANDS];
}

static struct lk__step ask(struct lk__attempt *attempt)
{
    struct lk__waiter *waiter = attempt->waiter;
    struct lk__acquirefsm *a = &waiter->machine;
    int64_t now_us = lk__now_us();
    if (attempt->led &&
        lk__waiter_isled(attempt->waiters, waiter, now_us, a->set.liveness_ms * 1000))
        return lk__acquirefsm_led(a, now_us);
    attempt->led = false;
    struct lk__conn *conn = conn_of(attempt);
    struct lk__until deadline = lk__conn_until(conn, now_us, a->set.command_us);
    unsigned flags = waiter->patience.over && !waiter->explained ? LK__SENT_TELL_HOLDER : 0;
    if (attempt->asks > 0)
        flags |= LK__SENT_AGAIN;
    struct lk__sent sent = {
        .id = waiter->release->id,
        .nth = waiter->release->nth,
        .deadline_us = deadline.date.us,
        .terms = waiter->terms->texts[!is_heard(attempt->waiters, waiter)],
        .arrival = a->result.arrival,
        .settings = mark_of(waiter),
        .flags = flags,
        .epoch = deadline.date.epoch,
    };
    int rc = lk__conn_send(conn, &waiter->request, &waiter->ask, &sent);
    if (rc == ENOTCONN)
        return lk__acquirefsm_unsent(a, now_us);
    if (rc != 0)
        return lk__acquirefsm_cancel(a, now_us, rc);
    attempt->asks++;
    return lk__acquirefsm_sent(a, now_us, &deadline);
}

/* It gives its place up; one of those for whom that is good, too, takes it at once. */
static void hand_on(struct lk__attempt *attempt)
{
    lk__mu_lock(&attempt->waiters->mu);
    lk__waiter_handon(attempt->waiter, lk__now_us());
    lk__mu_unlock(&attempt->waiters->mu);
}

static struct lk__step leave(struct lk__attempt *attempt)
{
    struct lk__waiter *waiter = attempt->waiter;
    struct lk__acquirefsm *a = &waiter->machine;
    struct lk__sent sent = lk__outboxentry_sent(waiter->release);
    hand_on(attempt);
    if (a->result.duplicates_until.date.us != 0)
        sent.flags |= LK__SENT_AGAIN;
    int rc = lk__conn_send(conn_of(attempt), &waiter->request, &waiter->release->command, &sent);
    return rc == 0 ? lk__acquirefsm_sent(a, lk__now_us(), NULL) : lk__acquirefsm_unsent(a, lk__now_us());
}

/* Say once who keeps us waiting for too long, or what. `asked` is an answer, or NULL: there is no connection. */
static void warn_of_wait(struct lk__attempt *attempt, int64_t now_us, const struct lk__asked *asked)
{
    struct lk__waiter *waiter = attempt->waiter;
    lk__patience_check(&waiter->patience, now_us);
    if (waiter->patience.over && !waiter->explained)
        waiter->explained = lk__wait_warn(attempt->waiters, waiter, asked);
}

/* It was queued, and finds by asking what a message should have told: the subscription may be dead. */
static void doubt_silence(struct lk__attempt *attempt, const struct lk__asked *asked)
{
    bool granted = asked->verdict == LK__GRANTED || asked->verdict == LK__GRANTED_OWNERDEAD;
    bool queued = attempt->waiter->machine.result.arrival != 0;
    if (granted && queued && !attempt->heard && is_heard(attempt->waiters, attempt->waiter))
        lk__hub_doubt(attempt->waiters->hub);
    attempt->heard = false;
}

/* It stands in the queue, perhaps for others, too. */
static void note_place(struct lk__attempt *attempt, int64_t now_us)
{
    struct lk__waiter *waiter = attempt->waiter;
    if (waiter->machine.set.try_only)
        return;
    if (waiter->machine.result.arrival == 0) /* the first answer that says so */
        LK__PROBE2(wait, waiter->name, waiter->release->id);
    waiter->machine.heard = listen_here(attempt->waiters, waiter);
    lk__mu_lock(&attempt->waiters->mu);
    waiter->heard_us = now_us;
    lk__mu_unlock(&attempt->waiters->mu);
}

/* The ask has an answer. */
static struct lk__step take_asked(struct lk__attempt *attempt, int64_t now_us)
{
    struct lk__waiter *waiter = attempt->waiter;
    struct lk__acquirefsm *a = &waiter->machine;
    struct lk__asked asked;
    waiter->read(waiter->request.reply, &asked);
    asked.epoch = waiter->request.epoch;
    doubt_silence(attempt, &asked);
    attempt->asks -= asked.verdict == LK__LATE;
    if (asked.total != 0)
        waiter->total = asked.total;
    if (asked.verdict == LK__ABSENT) {
        lk__fail(ECANCELED, "%s: deleted while this thread waited for it", waiter->what);
        attempt->explained = true;
        waiter->absent = true;
    }
    warn_of_wait(attempt, now_us, &asked);
    if (asked.verdict == LK__DISAGREES && a->marking == LK__COMPARE) {
        attempt->explained = asked.refused = waiter->disagrees(waiter, asked.found);
    }
    if (asked.verdict == LK__QUEUED)
        note_place(attempt, now_us);
    attempt->led = asked.verdict == LK__BEHIND;
    if (attempt->led)
        lk__waiter_follow(attempt->waiters, waiter, asked.ours, now_us);
    return lk__acquirefsm_answered(a, now_us, waiter->request.sent_us, &asked);
}

/* The server would not do what was sent. */
static struct lk__step take_refusal(struct lk__attempt *attempt, int64_t now_us, const struct lk__judged *judged)
{
    struct lk__waiter *waiter = attempt->waiter;
    if (judged->ruling == LK__AGAIN) {
        attempt->asks -= waiter->machine.phase == LK__WAITING;
    } else {
        attempt->explained = true;
        lk__judged_fail(judged, waiter->what, &waiter->ask, lk__reply_text(waiter->request.reply, 0));
    }
    return lk__acquirefsm_refused(&waiter->machine, now_us, judged);
}

/* The request is through: give the machine its answer. */
static struct lk__step take_answer(struct lk__attempt *attempt)
{
    struct lk__acquirefsm *a = &attempt->waiter->machine;
    struct lk__request *request = &attempt->waiter->request;
    bool leaving = a->phase == LK__LEAVING;
    int64_t now_us = lk__now_us();
    const struct lk__judged *judged = lk__request_over(request);
    if (judged->ruling == LK__UNANSWERED)
        return lk__acquirefsm_cut(a, now_us, atomic_load(&request->state));
    attempt->explained &= leaving; /* the way out explains nothing */
    bool senseless = judged->ruling == LK__SENSELESS;
    if (judged->ruling != LK__ANSWER && !senseless)
        return take_refusal(attempt, now_us, judged);
    if (leaving)
        return lk__acquirefsm_left(a, now_us, request->epoch, senseless ? NULL : &request->answer);
    return senseless ? lk__acquirefsm_answered(a, now_us, request->sent_us, NULL) : take_asked(attempt, now_us);
}

/* What came in since last time; false: nothing. */
static bool take_events(struct lk__attempt *attempt, struct lk__step *step)
{
    struct lk__waiter *waiter = attempt->waiter;
    struct lk__acquirefsm *a = &waiter->machine;
    if (!atomic_exchange(&waiter->told, false))
        return false;
    lk__mu_lock(&attempt->waiters->mu);
    struct lk__grant granted = waiter->granted;
    bool hinted = waiter->hinted, cancelled = waiter->cancelled;
    waiter->granted.server_us = 0;
    waiter->hinted = waiter->cancelled = false;
    lk__mu_unlock(&attempt->waiters->mu);
    attempt->heard |= hinted || granted.server_us != 0;
    if (cancelled)
        *step = lk__acquirefsm_cancel(a, lk__now_us(), ECANCELED);
    else if (granted.server_us != 0)
        *step = lk__acquirefsm_granted(a, lk__now_us(), &granted);
    else if (hinted)
        *step = lk__acquirefsm_hinted(a, lk__now_us());
    return cancelled || hinted || granted.server_us != 0;
}

static void run(struct lk__attempt *attempt);

/* The thread ends while it is parked: it gives up as if told to, and never returns. */
static void ended(void *arg)
{
    struct lk__attempt *attempt = arg;
    struct lk__waiter *waiter = attempt->waiter;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    waiter->cancel_state = PTHREAD_CANCEL_DISABLE;
    attempt->step = lk__acquirefsm_cancel(&waiter->machine, lk__now_us(), ECANCELED);
    run(attempt);
    go_out(attempt->waiters, waiter);
    waiter->unwind(waiter);
}

static int await_connection(struct lk__attempt *attempt, int64_t until_us)
{
    struct lk__conn *conn = conn_of(attempt);
    unsigned failures = lk__conn_failures(conn);
    int rc;
    pthread_cleanup_push(ended, attempt);
    /* A wait that began long ago hears of each attempt; nobody is told of failures from before it came. */
    rc = lk__conn_awaitopen(conn, &attempt->waiter->request, failures, until_us, attempt->waiter->cancel_state);
    pthread_cleanup_pop(0);
    if (rc != 0 && attempt->waiter->request.manner == LK__BY_ASKING) /* the node that an ASK named may be gone */
        attempt->waiter->request.manner = LK__BY_SHA1;
    return rc;
}

static struct lk__step connect_first(struct lk__attempt *attempt, int64_t until_us)
{
    int rc = await_connection(attempt, until_us);
    int64_t now_us = lk__now_us();
    warn_of_wait(attempt, now_us, NULL);
    if (rc == EINTR)
        return lk__acquirefsm_unsent(&attempt->waiter->machine, now_us);
    if (rc == ECANCELED)
        return lk__acquirefsm_cancel(&attempt->waiter->machine, now_us, ECANCELED);
    return lk__acquirefsm_connected(&attempt->waiter->machine, now_us, rc);
}

/* Until the patience is over at most. */
static void park(struct lk__attempt *attempt, int64_t until_us)
{
    struct lk__patience *patience = &attempt->waiter->patience;
    until_us = lk__lesser(until_us, patience->until_us);
    pthread_cleanup_push(ended, attempt);
    struct lk__node *at = node_of(attempt->waiters, attempt->waiter);
    lk__conn_listen(&at->lanes[LK__LANE_MESSAGES], &attempt->waiter->parker, until_us, attempt->waiter->cancel_state);
    pthread_cleanup_pop(0);
    if (patience->until_us != LK__NEVER)
        lk__patience_check(patience, lk__now_us());
}

/* Where the thread would sleep: did a signal handler run that ends the wait? A grant that came before is kept. */
static bool was_interrupted(const struct lk__attempt *attempt)
{
    return lk__parker_wasinterrupted(&attempt->waiter->parker) &&
           attempt->waiter->machine.phase == LK__WAITING;
}

/* The way out is not interrupted. */
static struct lk__step give_in(struct lk__attempt *attempt)
{
    lk__parker_beinterruptible(&attempt->waiter->parker, false);
    return lk__acquirefsm_cancel(&attempt->waiter->machine, lk__now_us(), EINTR);
}

/* What came in while it slept comes first: it may be a grant, where the time alone would have it leave. */
static struct lk__step drive(struct lk__attempt *attempt)
{
    struct lk__acquirefsm *a = &attempt->waiter->machine;
    struct lk__request *request = &attempt->waiter->request;
    struct lk__step step = attempt->step;
    if (take_events(attempt, &step) && step.act == LK__FINISHED)
        return step;
    switch (step.act) {
    case LK__ASK:
        return ask(attempt);
    case LK__LEAVE:
        return leave(attempt);
    case LK__AWAIT:
        lk__request_await(request, step.until_us);
        if (take_events(attempt, &step) && step.act == LK__FINISHED)
            return step;
        if (atomic_load(&request->state) != LK__INFLIGHT)
            return take_answer(attempt);
        return lk__acquirefsm_tick(a, lk__now_us());
    case LK__CONNECT:
        return was_interrupted(attempt) ? give_in(attempt) : connect_first(attempt, step.until_us);
    case LK__PARK:
        if (was_interrupted(attempt))
            return give_in(attempt);
        park(attempt, step.until_us);
        return take_events(attempt, &step) ? step : lk__acquirefsm_tick(a, lk__now_us());
    default:
        return step;
    }
}

static void run(struct lk__attempt *attempt)
{
    while (attempt->step.act != LK__FINISHED)
        attempt->step = drive(attempt);
}

void lk__waiters_begin(struct lk__waiters *waiters, struct lk__waiter *waiter, struct lk__attempt *attempt)
{
    *attempt = (struct lk__attempt){ .waiters = waiters, .waiter = waiter };
    lk__list_init(&waiter->followers);
    waiter->ear = is_sharded(waiters) ? NULL : &waiters->ear;
    waiter->entry.key = waiter->release->id;
    waiter->entry.length = (unsigned)strlen(waiter->release->id);
    lk__mu_lock(&waiters->mu);
    lk__map_insert(&waiters->by_id, &waiter->entry);
    waiter->cancelled = waiters->closed;
    atomic_store(&waiter->told, waiters->closed);
    lk__mu_unlock(&waiters->mu);
    atomic_fetch_add(&waiters->hub->waiters, 1);
    attempt->step = lk__acquirefsm_start(&waiter->machine, lk__now_us());
    attempt->step = drive(attempt);
}

int lk__waiters_end(struct lk__attempt *attempt)
{
    run(attempt);
    go_out(attempt->waiters, attempt->waiter);
    int code = attempt->waiter->machine.result.code;
    return code == 0 ? 0 : lk__wait_explain(attempt->waiters, attempt->waiter, attempt->explained);
}

/* --- what the log says of a wait --------------------------------------------------------------------------------- */

/* Everybody waits for the first one, that has to get as many as it wants. */
static void warn_of_first(const struct lk__waiter *waiter, const struct lk__asked *asked, const char *time)
{
    if (strcmp(asked->first, waiter->release->id) == 0)
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %s, as the first; wants %lld, and too few are free",
                waiter->what, time, (long long)asked->wants);
    else
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %s; the first is %s, which wants %lld, for %lld ms",
                waiter->what, time, asked->first, (long long)asked->wants, (long long)asked->since_ms);
}

/* All who wait for that server do so in vain: one line for all of them, until it is there again. */
static void warn_of_absence(const struct lk__waiters *waiters, const struct lk__waiter *waiter, const char *time,
                            const char *why)
{
    int others = atomic_load(&waiters->hub->waiters) - 1;
    if (!lk__node_tellaway(node_of(waiters, waiter)))
        return;
    if (others > 0)
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %s, as %d other threads wait; %s", waiter->what, time,
                others, why);
    else
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %s; %s", waiter->what, time, why);
}

bool lk__wait_warn(struct lk__waiters *waiters, const struct lk__waiter *waiter, const struct lk__asked *asked)
{
    char errmsg[LK__ERRMSG_MAX];
    struct lk__timetext time = lk__time_text(waiters->options->warn_wait_ms);
    if (asked != NULL && asked->holder != NULL && asked->holder[0] != '\0')
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %s; held by %s", waiter->what, time.text, asked->holder);
    else if (asked != NULL && asked->first != NULL && asked->first[0] != '\0')
        warn_of_first(waiter, asked, time.text);
    else if (asked == NULL &&
             lk__conn_lasterror(&node_of(waiters, waiter)->lanes[LK__LANE_COMMANDS], errmsg, sizeof errmsg) != 0)
        warn_of_absence(waiters, waiter, time.text, errmsg);
    else
        return false;
    return true;
}

/* --- the error text of its end ----------------------------------------------------------------------------------- */

/* Others have it. */
static int refused(const struct lk__waiter *waiter, int code, const char *how)
{
    lk__fail(code, "%s: %sheld by someone else", waiter->what, how);
    lk__error_leaves(waiter->machine.result.others_until_us);
    return code;
}

int lk__wait_explain(struct lk__waiters *waiters, const struct lk__waiter *waiter, bool explained)
{
    const struct lk__acquirefsm_settings *settings = &waiter->machine.set;
    int code = waiter->machine.result.code;
    const char *what = waiter->what;
    char errmsg[LK__ERRMSG_MAX];
    switch (code) {
    case ETIMEDOUT:
        return refused(waiter, ETIMEDOUT, "not within the time; ");
    case EBUSY:
        return refused(waiter, EBUSY, "");
    case EIO:
        return lk__fail(EIO, "%s: the answer got lost; what was granted unseen is given back, within %lld ms at most",
                        what, (long long)(2 * settings->command_us / 1000 + settings->lease_ms));
    case ENOTCONN:
    case EACCES:
        if (explained)
            return code;
        lk__conn_lasterror(&node_of(waiters, waiter)->lanes[LK__LANE_COMMANDS], errmsg, sizeof errmsg);
        return lk__fail(code, "%s: %s", what, errmsg[0] != '\0' ? errmsg : "no connection in time");
    case EPROTO:
        return explained ? EPROTO : lk__fail(EPROTO, "%s: the server's answer could not be read", what);
    case ECANCELED:
        if (explained)
            return code;
        return lk__fail(ECANCELED, "%s: the client was closed", what);
    case ENOTRECOVERABLE:
        return lk__fail(ENOTRECOVERABLE, "%s: its holder died, and the next one gave it back unrepaired", what);
    case EINVAL:
        return explained ? EINVAL : lk__fail(EINVAL, "%s: asks for more than there are in total", what);
    case EALREADY:
        return lk__fail(EALREADY, "%s: is done", what);
    case EINTR:
        return lk__fail(EINTR, "%s: a signal handler ran while this thread waited", what);
    case EAGAIN:
        return lk__fail(EAGAIN, "%s: held by as many as it may be", what);
    case EOWNERDEAD:
        return lk__fail(EOWNERDEAD, "%s: held, but its previous holder died holding it", what);
    default:
        return code;
    }
}
