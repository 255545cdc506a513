/* SPDX-License-Identifier: MIT */
/*
 * fsm.c - an acquire as a state machine; fsm.h shows what each event does in each phase
 *
 * A grant that came beats a limit that passed meanwhile: the caller was delayed, not the grant.
 *
 * Two clocks: `limit_us` bounds waiting for other holders; what is under way by then is awaited up to
 * `hard_us`, one command timeout later. What is not known by then is reported as unknown.
 *
 * Dates of the server are compared with those of the same epoch only. A grant that another server dated than the one
 * that answered the last ask is a hint; so is one that overtakes the first answer of a new server. Copies of asks that
 * went to a server which is gone are over by our own clock.
 */
#include "acquire/fsm.h"
#include "watchdog/watchdog.h"

enum {
    HINT_PAUSE_US = 5000,        /* hints are cheap to forge: ask at most this often */
    MIGRATES_PAUSE_US = 1000000, /* no message tells a newcomer that its slot has moved */
    QUIET_PLACES = 16,           /* so far from the front, a waiter that no message reaches asks ... */
    QUIET_PAUSE_MS = 200,        /* ... so often, and a fifth sooner or later: its claims last LK__QUIET_CLAIM_MS */
    SLEEP_MIN_US = 5000          /* a lease that "has 0 ms left" has not ended yet */
};

static struct lk__step end(struct lk__acquirefsm *a, int code)
{
    a->phase = LK__ENDED;
    a->result.code = code;
    return (struct lk__step){ LK__FINISHED, 0 };
}

/* May an ask that got no answer still take effect? */
static bool has_duplicates(const struct lk__acquirefsm *a)
{
    return a->result.duplicates_until.date.us != 0;
}

/* The request that was sent has its answer. */
static void note_answer(struct lk__acquirefsm *a)
{
    a->sent = a->cut = false;
    a->garbled = 0;
}

/* Decide the next step by the time alone. */
static struct lk__step proceed(struct lk__acquirefsm *a, int64_t now_us);
static struct lk__step use_grant(struct lk__acquirefsm *a, int64_t now_us);

/* End with `code`, after the server took us off its lists if we may be on one. */
static struct lk__step leave(struct lk__acquirefsm *a, int64_t now_us, int code)
{
    if (!a->listed && !has_duplicates(a))
        return end(a, code);
    a->phase = LK__LEAVING;
    a->result.code = code;
    a->next_us = now_us;
    a->hard_us = lk__lesser(a->hard_us, lk__later(now_us, a->set.command_us));
    return proceed(a, now_us);
}

/* End now, without another request: as unknown if the server may have us. */
static struct lk__step give_up(struct lk__acquirefsm *a)
{
    if (a->listed || has_duplicates(a)) {
        a->result.unknown = true;
        return end(a, a->garbled == LK__GARBLED_MAX ? EPROTO : EIO);
    }
    int code = a->limit_code == ETIMEDOUT ? ENOTCONN : a->limit_code; /* no server said that others have it */
    return end(a, a->last_error != 0 ? a->last_error : code);
}

/* A thread or process that stood still past hard_us gets one more command timeout, so that it leaves the queue. */
static void allow_for_sleep(struct lk__acquirefsm *a, int64_t now_us)
{
    int64_t due_us = a->phase == LK__WAITING ? lk__lesser(a->hard_us, a->due_us) : a->hard_us;
    if (now_us >= a->hard_us && now_us >= lk__later(due_us, a->set.command_us))
        a->hard_us = lk__later(now_us, a->set.command_us);
}

/* It slept through its next ask, and whoever gave back since may have passed it over: it asks once more. */
static bool is_overdue(const struct lk__acquirefsm *a, int64_t now_us)
{
    return !a->late && a->result.arrival != 0 && a->last_error == 0 && a->due_us != LK__NEVER && now_us >= a->next_us;
}

/* The time for an answer is over. A grant that came by message meanwhile counts all the same. */
static struct lk__step out_of_time(struct lk__acquirefsm *a, int64_t now_us)
{
    if (a->sent && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return use_grant(a, now_us);
    return give_up(a);
}

static struct lk__step next_step(struct lk__acquirefsm *a, int64_t now_us)
{
    if (a->phase == LK__ENDED)
        return (struct lk__step){ LK__FINISHED, 0 };
    allow_for_sleep(a, now_us);
    if (now_us >= a->hard_us)
        return out_of_time(a, now_us);
    if (a->sent)
        return (struct lk__step){ LK__AWAIT, a->hard_us };
    if (a->phase == LK__LEAVING && now_us >= a->next_us)
        return (struct lk__step){ LK__LEAVE, 0 };
    if (a->phase == LK__LEAVING)
        return (struct lk__step){ LK__PARK, lk__lesser(a->next_us, a->hard_us) };
    if (a->limit_code != ETIMEDOUT)
        return leave(a, now_us, a->limit_code);
    if (now_us >= a->limit_us && a->asked && !is_overdue(a, now_us))
        return leave(a, now_us, a->last_error != 0 ? a->last_error : a->limit_code);
    if (now_us >= a->next_us)
        return (struct lk__step){ LK__ASK, 0 };
    return (struct lk__step){ LK__PARK, lk__lesser(a->next_us, a->asked ? a->limit_us : a->hard_us) };
}

static struct lk__step proceed(struct lk__acquirefsm *a, int64_t now_us)
{
    struct lk__step step = next_step(a, now_us);
    a->due_us = step.act == LK__PARK ? step.until_us : LK__NEVER;
    return step;
}

/* Wait longer after each refusal or cut in a row; the first is answered at once. */
static void pause_next(struct lk__acquirefsm *a, int64_t now_us)
{
    a->next_us = now_us + a->pause_ms * 1000;
    a->pause_ms = a->pause_ms == 0 ? a->set.retry_min_ms : lk__lesser(2 * a->pause_ms, a->set.retry_max_ms);
}

/* --- how long a queued waiter sleeps until it asks again by itself ---------------------------------------------------- */

/* 80 to 120 per cent, so that those who sleep equally long do not come at one moment. */
static int64_t jittered(int64_t us)
{
    return us * 4 / 5 + (int64_t)lk__random_below((uint64_t)us * 2 / 5 + 1);
}

/*
 * The pause of a waiter that no message reaches. It doubles, and begins anew when the waiter has moved up, because what it
 * wants changes hands then. The more waiters are before it, the longer is its first pause. Near the front the waiter asks
 * again before a claim ends that it was granted meanwhile, see queue.lua.
 */
static int64_t back_off(struct lk__acquirefsm *a, int64_t place)
{
    int64_t longest_ms = place < QUIET_PLACES ? lk__lesser(QUIET_PAUSE_MS, a->set.poll_ms) : a->set.poll_ms;
    if (place < a->place)
        a->backoff_ms = 0;
    a->place = place;
    int64_t ahead = place < 0 ? 0 : lk__lesser(place, QUIET_PLACES);
    a->backoff_ms = lk__backoff(a->backoff_ms, (1 + ahead) * LK__BACKOFF_MIN_MS, longest_ms);
    return a->backoff_ms;
}

/* How long a queued waiter sleeps: the head aims at the end of the present lease, those far behind ask less often. */
static int64_t nap(struct lk__acquirefsm *a, int64_t left_ms, int64_t place)
{
    if (place >= 2 && a->heard)
        return jittered(a->set.liveness_ms * 1000 / 3);
    int64_t us = jittered((a->heard ? a->set.poll_ms : back_off(a, place)) * 1000);
    if (left_ms >= 0 && left_ms < us / 1000)
        us = (left_ms + 1) * 1000;
    return us < SLEEP_MIN_US ? SLEEP_MIN_US : us;
}

/* --- answers ------------------------------------------------------------------------------------------------------- */

/* The end: held, until `valid_until_us` if the lease is not renewed. */
static struct lk__step hold(struct lk__acquirefsm *a, int64_t valid_until_us, const struct lk__grant *grant)
{
    a->result.valid_until_us = valid_until_us;
    a->result.token = grant->token;
    a->result.granted = (struct lk__date){ grant->server_us, grant->epoch };
    return end(a, grant->owner_died ? EOWNERDEAD : 0);
}

/*
 * A grant that came by message counts from the server's moment of it, brought to our clock by an answered
 * ask: that was sent before the server read the time in its answer, so the sum is never too late.
 */
static struct lk__step use_grant(struct lk__acquirefsm *a, int64_t now_us)
{
    struct lk__grant grant = a->grant;
    int64_t since_us = grant.server_us - a->anchor.us;
    a->grant.server_us = 0;
    if (a->limit_code != ETIMEDOUT) /* told to give up meanwhile */
        return proceed(a, now_us);
    bool dated = a->anchor_us != 0 && grant.epoch == a->anchor.epoch && since_us >= 0;
    if (!a->set.recorded && !a->set.confirmed && grant.lease_ms > LK__QUIET_CLAIM_MS && dated) {
        int64_t lease_ms = grant.lease_ms;
        if (has_duplicates(a) && a->set.lease_ms < lease_ms)
            lease_ms = a->set.lease_ms; /* a copy of an ask finds the claim, and sets its own lease */
        int64_t lasts_us = since_us + lease_ms * 1000;
        int64_t valid_until_us = lk__valid_until(a->anchor_us, lasts_us, a->set.skew_ms);
        if (valid_until_us > now_us) {
            a->result.claimed = true;
            a->result.first_us = a->anchor_us + since_us + lease_ms * 1000 / 3;
            return hold(a, valid_until_us, &grant);
        }
    }
    a->next_us = now_us; /* too old, not to be dated, or to be confirmed: ask, even when the limit has passed */
    a->asked = false;
    return proceed(a, now_us);
}

static struct lk__step on_granted(struct lk__acquirefsm *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    struct lk__grant grant = { asked->server_us, a->set.lease_ms, (uint64_t)asked->token,
                               asked->verdict == LK__GRANTED_OWNERDEAD, asked->epoch };
    int64_t valid_until_us = lk__valid_until(sent_us, a->set.lease_ms * 1000, a->set.skew_ms);
    a->listed = true;
    if (a->limit_code != ETIMEDOUT) /* told to give up meanwhile */
        return leave(a, now_us, a->limit_code);
    if (valid_until_us <= now_us) {
        a->next_us = now_us; /* the answer took longer than the lease: the same id finds its hold */
        return proceed(a, now_us);
    }
    a->result.first_us = sent_us + a->set.lease_ms * 1000 / 3;
    return hold(a, valid_until_us, &grant);
}

static struct lk__step on_queued(struct lk__acquirefsm *a, int64_t now_us, const struct lk__asked *asked)
{
    a->listed = true;
    a->result.arrival = asked->arrival;
    a->last_error = 0;
    a->pause_ms = 0;
    if (a->grant.server_us > asked->server_us && a->grant.epoch == asked->epoch)
        return use_grant(a, now_us);
    a->again |= a->grant.server_us != 0 && a->grant.epoch != asked->epoch; /* of another server: a hint */
    a->grant.server_us = 0; /* older than this answer, which knows nothing of it */
    a->next_us = now_us + (a->again ? HINT_PAUSE_US : nap(a, asked->left_ms, asked->place));
    a->again = false;
    return proceed(a, now_us);
}

/* Another waiter of the client asks for this one, which looks now and then whether that is still so. */
static struct lk__step on_behind(struct lk__acquirefsm *a, int64_t now_us, const struct lk__asked *asked)
{
    a->result.arrival = asked->arrival;
    a->last_error = 0;
    a->pause_ms = 0;
    a->again |= a->grant.server_us != 0; /* of a copy of an ask: its place is one of its own */
    a->grant.server_us = 0;
    a->next_us = a->again ? now_us + HINT_PAUSE_US : now_us + jittered(a->set.liveness_ms * 1000 / 2);
    a->again = false;
    return proceed(a, now_us);
}

/* The slot went on to a later request: this one cannot be granted any more. ESTALE: a new request may be. */
static struct lk__step on_overtaken(struct lk__acquirefsm *a, int64_t now_us)
{
    if (has_duplicates(a)) /* an earlier copy may have been carried out, and its record is gone */
        return give_up(a);
    a->listed = true;
    return leave(a, now_us, a->limit_code != ETIMEDOUT ? a->limit_code : ESTALE);
}

/* Others use the name with other settings. The caller was told; unless it is refused, the next ask says that it knows. */
static struct lk__step on_disagreement(struct lk__acquirefsm *a, int64_t now_us, bool refused)
{
    if (a->marking != LK__COMPARE) {
        a->listed = true;
        return leave(a, now_us, EPROTO);
    }
    a->result.disagreed = true;
    if (refused)
        return leave(a, now_us, EINVAL);
    a->marking = LK__REPLACE;
    a->next_us = now_us;
    a->asked = false; /* even when the limit has passed */
    return proceed(a, now_us);
}

/* The ask was answered by its script itself, which looked at the settings mark first. */
static void note_marked(struct lk__acquirefsm *a)
{
    a->result.marked |= a->marking != LK__UNMARKED;
    a->marking = LK__UNMARKED;
}

/* Others have it: until when, as the server knows now. Permits of a recorded acquire have no lease. */
static void note_others(struct lk__acquirefsm *a, int64_t now_us, int64_t left_ms)
{
    if (a->set.recorded || left_ms == -1)
        a->result.others_until_us = 0;
    else if (left_ms <= 0)
        a->result.others_until_us = now_us;
    else
        a->result.others_until_us = lk__later(now_us, left_ms > LK__NEVER / 1000 ? LK__NEVER : left_ms * 1000);
}

static struct lk__step on_verdict(struct lk__acquirefsm *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    a->anchor_us = sent_us;
    a->anchor = (struct lk__date){ asked->server_us, asked->epoch };
    a->listed |= asked->verdict == LK__DISAGREES && has_duplicates(a); /* of earlier asks it says nothing */
    if (lk__until_isover(&a->result.duplicates_until, a->anchor, now_us))
        a->result.duplicates_until = (struct lk__until){ 0 }; /* copies that got no answer are past their deadline */
    if (asked->verdict != LK__LATE && asked->verdict != LK__DISAGREES)
        note_marked(a);
    switch (asked->verdict) {
    case LK__GRANTED:
    case LK__GRANTED_OWNERDEAD:
        return on_granted(a, now_us, sent_us, asked);
    case LK__QUEUED:
        note_others(a, now_us, asked->left_ms);
        return on_queued(a, now_us, asked);
    case LK__BEHIND:
        note_others(a, now_us, asked->left_ms);
        return on_behind(a, now_us, asked);
    case LK__BUSY:
        note_others(a, now_us, asked->left_ms);
        return leave(a, now_us, EBUSY);
    case LK__LATE: /* the server's clock moved; the sender knows it now */
        a->asked = a->listed;
        pause_next(a, now_us);
        return proceed(a, now_us);
    case LK__DISAGREES:
        return on_disagreement(a, now_us, asked->refused);
    case LK__UNRECOVERABLE:
        return end(a, ENOTRECOVERABLE);
    case LK__IMPOSSIBLE:
        return end(a, EINVAL);
    case LK__OVERTAKEN:
        return on_overtaken(a, now_us);
    case LK__PRESENT:
        return leave(a, now_us, EALREADY);
    case LK__GONE: /* what it was to begin with */
        return leave(a, now_us, ESTALE);
    case LK__FULL:
        return leave(a, now_us, EAGAIN);
    case LK__ABSENT: /* and its queue with it */
        a->listed = false;
        return leave(a, now_us, ECANCELED);
    default:
        a->listed = true;
        return leave(a, now_us, EPROTO);
    }
}

/* Has the answer what its verdict comes with? */
static bool makes_sense(const struct lk__asked *asked)
{
    bool granted = asked->verdict == LK__GRANTED || asked->verdict == LK__GRANTED_OWNERDEAD;
    bool placed = asked->verdict == LK__QUEUED || asked->verdict == LK__BEHIND;
    return (!granted || asked->token > 0) && (!placed || asked->arrival > 0);
}

/* --- refusals ------------------------------------------------------------------------------------------------------ */

/* The server refused an ask. */
static struct lk__step on_refusal(struct lk__acquirefsm *a, int64_t now_us, const struct lk__judged *judged)
{
    a->listed |= judged->half;
    if (judged->ruling == LK__REFUSED)
        return leave(a, now_us, judged->code);
    a->last_error = judged->code;
    if (a->pause_ms == 0)
        a->pause_ms = a->set.retry_min_ms;
    pause_next(a, now_us);
    if (judged->scattered)
        a->next_us = lk__lesser(a->next_us, now_us + MIGRATES_PAUSE_US);
    return proceed(a, now_us);
}

/* The server refused a release. */
static struct lk__step on_kept(struct lk__acquirefsm *a, int64_t now_us, const struct lk__judged *judged)
{
    if (judged->ruling != LK__REFUSED) {
        pause_next(a, now_us);
        return proceed(a, now_us);
    }
    if (judged->code == EACCES && !has_duplicates(a)) /* each ask had its answer: this is what the matter is */
        a->result.code = EACCES;
    if (judged->wrong_type && !has_duplicates(a))
        return end(a, a->result.code); /* a release gives back first: there is nothing, or nothing any more */
    a->result.unknown = true;          /* and of the codes only those stand that do not say "not held" */
    return end(a, a->result.code == EACCES || a->result.code == EPROTO ? a->result.code : EIO);
}

/* --- events ------------------------------------------------------------------------------------------------ */

void lk__acquirefsm_init(struct lk__acquirefsm *a, const struct lk__acquirefsm_settings *settings)
{
    *a = (struct lk__acquirefsm){
        .set = *settings,
        .limit_us = settings->limit_us,
        .due_us = LK__NEVER,
        .marking = settings->compare ? LK__COMPARE : LK__UNMARKED,
    };
}

struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *a, int64_t now_us)
{
    a->hard_us = lk__later(a->limit_us > now_us ? a->limit_us : now_us, a->set.command_us);
    a->limit_code = ETIMEDOUT;
    a->next_us = now_us;
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_led(struct lk__acquirefsm *a, int64_t now_us)
{
    a->next_us = now_us + jittered(a->set.liveness_ms * 1000 / 2);
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_sent(struct lk__acquirefsm *a, int64_t now_us, const struct lk__until *deadline)
{
    a->sent = true;
    if (a->phase == LK__WAITING) {
        a->asked = true;
        a->late |= now_us >= a->limit_us;
        a->deadline = *deadline;
    }
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *a, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked)
{
    note_answer(a);
    if (asked == NULL || !makes_sense(asked)) {
        a->listed = true;
        return leave(a, now_us, EPROTO);
    }
    return on_verdict(a, now_us, sent_us, asked);
}

struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *a, int64_t now_us, unsigned epoch,
                                    const struct lk__answer *left)
{
    note_answer(a);
    if (left == NULL) {
        a->result.unknown = true;
        return end(a, EPROTO);
    }
    struct lk__date date = { left->server_us, epoch };
    if (!a->set.recorded && !lk__until_isover(&a->result.duplicates_until, date, now_us))
        return give_up(a); /* a copy of an ask may still come after this release */
    return end(a, a->result.code);
}

struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *a, int64_t now_us, const struct lk__judged *judged)
{
    note_answer(a);
    if (judged->ruling == LK__AGAIN) {
        a->next_us = now_us;
        a->asked = false;
        return proceed(a, now_us);
    }
    return a->phase == LK__LEAVING ? on_kept(a, now_us, judged) : on_refusal(a, now_us, judged);
}

struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *a, int64_t now_us, enum lk__request_state how)
{
    a->sent = false;
    if (how != LK__UNSENT && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    a->garbled = how == LK__GARBLED ? a->garbled + 1 : 0;
    if (a->garbled == LK__GARBLED_MAX)
        return give_up(a);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return use_grant(a, now_us);
    pause_next(a, now_us);
    if (!a->cut) /* refusals before say nothing of the connection, which may have ended unused */
        a->next_us = now_us;
    a->cut = true;
    if (!a->listed)
        a->asked = false; /* nothing was said yet: once more, while the time for an answer lasts */
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *a, int64_t now_us)
{
    if (a->phase == LK__ENDED || now_us >= a->hard_us)
        return proceed(a, now_us);
    bool limited = a->phase == LK__WAITING && now_us < a->limit_us;
    return (struct lk__step){ LK__CONNECT, limited ? a->limit_us : a->hard_us };
}

struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *a, int64_t now_us, int code)
{
    if (code == 0) {
        a->next_us = now_us;
        return proceed(a, now_us);
    }
    if (code == ETIMEDOUT && now_us >= lk__later(a->hard_us, a->set.command_us))
        return proceed(a, now_us); /* the process was stopped, and gets more time */
    bool may_come = code == ETIMEDOUT && a->last_error == 0 && now_us < a->hard_us; /* no attempt has failed yet */
    if (!may_come)
        a->last_error = code == ETIMEDOUT ? ENOTCONN : code;
    bool known = !a->listed && !has_duplicates(a);
    if (known && !may_come && (a->last_error != ENOTCONN || now_us >= a->limit_us))
        return end(a, a->last_error);
    return lk__acquirefsm_unsent(a, now_us);
}

struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *a, int64_t now_us, const struct lk__grant *grant)
{
    if (a->phase != LK__WAITING)
        return proceed(a, now_us);
    a->grant = *grant;
    return a->sent ? proceed(a, now_us) : use_grant(a, now_us);
}

struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *a, int64_t now_us)
{
    a->again = true;
    if (a->phase == LK__WAITING && !a->sent && a->result.arrival != 0 && a->last_error == 0) {
        a->again = false;
        a->next_us = lk__lesser(a->next_us, a->anchor_us + HINT_PAUSE_US);
    } else if (a->phase == LK__WAITING && !a->sent && a->last_error != 0) { /* what made it pause may be over */
        a->next_us = lk__lesser(a->next_us, now_us + a->set.retry_min_ms * 1000);
    }
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *a, int64_t now_us)
{
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *a, int64_t now_us, int code)
{
    if (a->phase != LK__WAITING)
        return proceed(a, now_us);
    allow_for_sleep(a, now_us);
    a->limit_code = code;
    a->last_error = 0;
    a->grant.server_us = 0;
    a->limit_us = lk__lesser(a->limit_us, now_us);
    a->hard_us = lk__lesser(a->hard_us, lk__later(now_us, a->set.command_us));
    if (a->sent)
        return proceed(a, now_us);
    return leave(a, now_us, code);
}
