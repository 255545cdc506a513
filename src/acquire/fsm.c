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
#include "acquire/fsm_inside.h"
#include "watchdog/watchdog.h"

enum { HINT_PAUSE_US = 5000 }; /* hints are cheap to forge: ask at most this often */

static struct lk__step request(const struct lk__acquirefsm_state *a, enum lk__act act)
{
    return (struct lk__step){ act, 0, a->spelled };
}

struct lk__step lk__fsm_leave(struct lk__acquirefsm_state *a, int64_t now_us, int code)
{
    if (!a->listed && !lk__fsm_hasduplicates(a))
        return lk__fsm_end(a, code);
    a->phase = LK__LEAVING;
    a->result.code = code;
    a->next_us = now_us;
    a->hard_us = lk__fsm_earlier(a->hard_us, lk__later(now_us, a->set.command_us));
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__fsm_giveup(struct lk__acquirefsm_state *a)
{
    if (a->listed || lk__fsm_hasduplicates(a)) {
        a->result.unknown = true;
        return lk__fsm_end(a, a->garbled == LK__GARBLED_MAX ? EPROTO : EIO);
    }
    int code = a->limit_code == ETIMEDOUT ? ENOTCONN : a->limit_code; /* no server said that others have it */
    return lk__fsm_end(a, a->last_error != 0 ? a->last_error : code);
}

/* A thread or process that stood still past hard_us gets one more command timeout, so that it leaves the queue. */
static void allow_for_sleep(struct lk__acquirefsm_state *a, int64_t now_us)
{
    int64_t due_us = a->phase == LK__WAITING ? lk__fsm_earlier(a->hard_us, a->due_us) : a->hard_us;
    if (now_us >= a->hard_us && now_us >= lk__later(due_us, a->set.command_us))
        a->hard_us = lk__later(now_us, a->set.command_us);
}

/* It slept through its next ask, and whoever gave back since may have passed it over: it asks once more. */
static bool is_overdue(const struct lk__acquirefsm_state *a, int64_t now_us)
{
    return !a->late && a->result.arrival != 0 && a->last_error == 0 && a->due_us != LK__NEVER && now_us >= a->next_us;
}

/* The time for an answer is over. A grant that came by message meanwhile counts all the same. */
static struct lk__step out_of_time(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->sent && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return lk__fsm_usegrant(a, now_us);
    return lk__fsm_giveup(a);
}

static struct lk__step next_step(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->phase == LK__ENDED)
        return lk__fsm_step(LK__FINISHED, 0);
    allow_for_sleep(a, now_us);
    if (now_us >= a->hard_us)
        return out_of_time(a, now_us);
    if (a->sent)
        return lk__fsm_step(LK__AWAIT, a->hard_us);
    if (a->phase == LK__LEAVING)
        return now_us >= a->next_us ? request(a, LK__LEAVE)
                                    : lk__fsm_step(LK__PARK, lk__fsm_earlier(a->next_us, a->hard_us));
    if (a->limit_code != ETIMEDOUT)
        return lk__fsm_leave(a, now_us, a->limit_code);
    if (now_us >= a->limit_us && a->asked && !is_overdue(a, now_us))
        return lk__fsm_leave(a, now_us, a->last_error != 0 ? a->last_error : a->limit_code);
    if (now_us >= a->next_us)
        return request(a, LK__ASK);
    return lk__fsm_step(LK__PARK, lk__fsm_earlier(a->next_us, a->asked ? a->limit_us : a->hard_us));
}

struct lk__step lk__fsm_proceed(struct lk__acquirefsm_state *a, int64_t now_us)
{
    struct lk__step step = next_step(a, now_us);
    a->due_us = step.act == LK__PARK ? step.until_us : LK__NEVER;
    return step;
}

void lk__fsm_pausenext(struct lk__acquirefsm_state *a, int64_t now_us)
{
    a->next_us = now_us + a->pause_ms * 1000;
    a->pause_ms = a->pause_ms == 0 ? a->set.retry_min_ms : lk__fsm_earlier(2 * a->pause_ms, a->set.retry_max_ms);
}

/* The end: held, until `valid_until_us` if the lease is not renewed. */
static struct lk__step hold(struct lk__acquirefsm_state *a, int64_t valid_until_us, const struct lk__grant *grant)
{
    a->result.valid_until_us = valid_until_us;
    a->result.token = grant->token;
    a->result.granted = (struct lk__date){ grant->server_us, grant->epoch };
    return lk__fsm_end(a, grant->owner_died ? EOWNERDEAD : 0);
}

struct lk__step lk__fsm_usegrant(struct lk__acquirefsm_state *a, int64_t now_us)
{
    struct lk__grant grant = a->grant;
    int64_t since_us = grant.server_us - a->anchor.us;
    a->grant.server_us = 0;
    if (a->limit_code != ETIMEDOUT) /* told to give up meanwhile */
        return lk__fsm_proceed(a, now_us);
    if (!a->set.recorded && !a->set.confirmed && a->anchor_us != 0 && grant.epoch == a->anchor.epoch && since_us >= 0) {
        int64_t lease_ms = grant.lease_ms;
        if (lk__fsm_hasduplicates(a) && a->set.lease_ms < lease_ms)
            lease_ms = a->set.lease_ms; /* a copy of an ask finds the claim, and sets its own lease */
        int64_t lasts_us = since_us + lease_ms * 1000;
        int64_t valid_until_us = a->anchor_us + lasts_us - lasts_us / 100 - 2000 - a->set.skew_ms * INT64_C(1000);
        if (valid_until_us > now_us) {
            a->result.claimed = true;
            a->result.first_us = a->anchor_us + since_us + lease_ms * 1000 / 3;
            return hold(a, valid_until_us, &grant);
        }
    }
    a->next_us = now_us; /* too old, not to be dated, or to be confirmed: ask, even when the limit has passed */
    a->asked = false;
    return lk__fsm_proceed(a, now_us);
}

static struct lk__step on_granted(struct lk__acquirefsm_state *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    struct lk__grant grant = { asked->server_us, a->set.lease_ms, (uint64_t)asked->token,
                               asked->verdict == LK__GRANTED_OWNERDEAD, asked->epoch };
    int64_t valid_until_us = sent_us + a->set.lease_ms * 1000 - lk__guard_us(a->set.lease_ms, a->set.skew_ms);
    a->listed = true;
    if (a->limit_code != ETIMEDOUT) /* told to give up meanwhile */
        return lk__fsm_leave(a, now_us, a->limit_code);
    if (valid_until_us <= now_us) {
        a->next_us = now_us; /* the answer took longer than the lease: the same id finds its hold */
        return lk__fsm_proceed(a, now_us);
    }
    a->result.first_us = sent_us + a->set.lease_ms * 1000 / 3;
    return hold(a, valid_until_us, &grant);
}

static struct lk__step on_queued(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__asked *asked)
{
    a->listed = true;
    a->result.arrival = asked->arrival;
    a->last_error = 0;
    a->pause_ms = 0;
    if (a->grant.server_us > asked->server_us && a->grant.epoch == asked->epoch)
        return lk__fsm_usegrant(a, now_us);
    a->again |= a->grant.server_us != 0 && a->grant.epoch != asked->epoch; /* of another server: a hint */
    a->grant.server_us = 0; /* older than this answer, which knows nothing of it */
    a->may_rest = !a->again && lk__fsm_mayrest(a, asked->left_ms, asked->place);
    a->next_us = now_us + (a->again ? HINT_PAUSE_US : lk__fsm_nap(a, asked->left_ms, asked->place));
    a->again = false;
    return lk__fsm_proceed(a, now_us);
}

/* Another waiter of the client asks for this one, which looks now and then whether that is still so. */
static struct lk__step on_behind(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__asked *asked)
{
    a->result.arrival = asked->arrival;
    a->last_error = 0;
    a->pause_ms = 0;
    a->again |= a->grant.server_us != 0; /* of a copy of an ask: its place is one of its own */
    a->grant.server_us = 0;
    a->next_us = a->again ? now_us + HINT_PAUSE_US : now_us + lk__fsm_jittered(a->set.liveness_ms * 1000 / 2);
    a->again = false;
    return lk__fsm_proceed(a, now_us);
}

/* The slot went on to a later request: this one cannot be granted any more. ESTALE: a new request may be. */
static struct lk__step on_overtaken(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (lk__fsm_hasduplicates(a)) /* an earlier copy may have been carried out, and its record is gone */
        return lk__fsm_giveup(a);
    a->listed = true;
    return lk__fsm_leave(a, now_us, a->limit_code != ETIMEDOUT ? a->limit_code : ESTALE);
}

/* Others use the name with other settings. The caller was told; unless it is strict, the next ask says that it knows. */
static struct lk__step on_disagreement(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->marking != LK__COMPARE) {
        a->listed = true;
        return lk__fsm_leave(a, now_us, EPROTO);
    }
    a->result.disagreed = true;
    if (a->set.strict)
        return lk__fsm_leave(a, now_us, EINVAL);
    a->marking = LK__REPLACE;
    a->next_us = now_us;
    a->asked = false; /* even when the limit has passed */
    return lk__fsm_proceed(a, now_us);
}

/* The ask was answered by its script itself, which looked at the settings mark first. */
static void note_marked(struct lk__acquirefsm_state *a)
{
    a->result.marked |= a->marking != LK__UNMARKED;
    a->marking = LK__UNMARKED;
}

/* Others have it: until when, as the server knows now. Permits of a recorded acquire have no lease. */
static void note_others(struct lk__acquirefsm_state *a, int64_t now_us, int64_t left_ms)
{
    if (a->set.recorded || left_ms == -1)
        a->result.others_until_us = 0;
    else if (left_ms <= 0)
        a->result.others_until_us = now_us;
    else
        a->result.others_until_us = lk__later(now_us, left_ms > LK__NEVER / 1000 ? LK__NEVER : left_ms * 1000);
}

static struct lk__step on_verdict(struct lk__acquirefsm_state *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    a->anchor_us = sent_us;
    a->anchor = (struct lk__date){ asked->server_us, asked->epoch };
    a->listed |= asked->verdict == LK__DISAGREES && lk__fsm_hasduplicates(a); /* of earlier asks it says nothing */
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
        return lk__fsm_leave(a, now_us, EBUSY);
    case LK__LATE: /* the server's clock moved; the sender knows it now */
        a->asked = a->listed;
        lk__fsm_pausenext(a, now_us);
        return lk__fsm_proceed(a, now_us);
    case LK__DISAGREES:
        return on_disagreement(a, now_us);
    case LK__UNRECOVERABLE:
        return lk__fsm_end(a, ENOTRECOVERABLE);
    case LK__IMPOSSIBLE:
        return lk__fsm_end(a, EINVAL);
    case LK__OVERTAKEN:
        return on_overtaken(a, now_us);
    case LK__PRESENT:
        return lk__fsm_leave(a, now_us, EALREADY);
    case LK__GONE: /* what it was to begin with */
        return lk__fsm_leave(a, now_us, ESTALE);
    case LK__FULL:
        return lk__fsm_leave(a, now_us, EAGAIN);
    case LK__ABSENT: /* and its queue with it */
        a->listed = false;
        return lk__fsm_leave(a, now_us, ECANCELED);
    default:
        a->listed = true;
        return lk__fsm_leave(a, now_us, EPROTO);
    }
}

/* Has the answer what its verdict comes with? */
static bool makes_sense(const struct lk__asked *asked)
{
    bool granted = asked->verdict == LK__GRANTED || asked->verdict == LK__GRANTED_OWNERDEAD;
    bool placed = asked->verdict == LK__QUEUED || asked->verdict == LK__BEHIND;
    return (!granted || asked->token > 0) && (!placed || asked->arrival > 0);
}

/* --- events ------------------------------------------------------------------------------------------------ */

void lk__acquirefsm_init(struct lk__acquirefsm *machine, const struct lk__acquirefsm_settings *settings)
{
    *lk__fsm_state(machine) = (struct lk__acquirefsm_state){
        .set = *settings,
        .limit_us = settings->limit_us,
        .due_us = LK__NEVER,
        .marking = settings->compare ? LK__COMPARE : LK__UNMARKED,
    };
}

const struct lk__acquirefsm_settings *lk__acquirefsm_settings(const struct lk__acquirefsm *machine)
{
    return &lk__fsm_known(machine)->set;
}

const struct lk__acquirefsm_result *lk__acquirefsm_result(const struct lk__acquirefsm *machine)
{
    return &lk__fsm_known(machine)->result;
}

enum lk__phase lk__acquirefsm_phase(const struct lk__acquirefsm *machine)
{
    return lk__fsm_known(machine)->phase;
}

enum lk__marking lk__acquirefsm_marking(const struct lk__acquirefsm *machine)
{
    return lk__fsm_known(machine)->marking;
}

bool lk__acquirefsm_rests(const struct lk__acquirefsm *machine)
{
    return lk__fsm_known(machine)->may_rest;
}

void lk__acquirefsm_restsfrom(struct lk__acquirefsm *machine, bool rests)
{
    lk__fsm_state(machine)->rests = rests;
}

void lk__acquirefsm_hears(struct lk__acquirefsm *machine, enum lk__hearing hearing)
{
    lk__fsm_state(machine)->hearing = hearing;
}

struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    a->hard_us = lk__later(a->limit_us > now_us ? a->limit_us : now_us, a->set.command_us);
    a->limit_code = ETIMEDOUT;
    a->next_us = now_us;
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_led(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    a->next_us = now_us + lk__fsm_jittered(a->set.liveness_ms * 1000 / 2);
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_sent(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__until *deadline)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    a->sent = true;
    if (a->phase == LK__WAITING) {
        a->asked = true;
        a->late |= now_us >= a->limit_us;
        a->deadline = *deadline;
    }
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *machine, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    lk__fsm_noteanswer(a, false);
    if (asked == NULL || !makes_sense(asked)) {
        a->listed = true;
        return lk__fsm_leave(a, now_us, EPROTO);
    }
    return on_verdict(a, now_us, sent_us, asked);
}

struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *machine, int64_t now_us, unsigned epoch,
                                    const struct lk__answer *left)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    lk__fsm_noteanswer(a, false);
    if (left == NULL) {
        a->result.unknown = true;
        return lk__fsm_end(a, EPROTO);
    }
    struct lk__date date = { left->server_us, epoch };
    if (!a->set.recorded && !lk__until_isover(&a->result.duplicates_until, date, now_us))
        return lk__fsm_giveup(a); /* a copy of an ask may still come after this release */
    return lk__fsm_end(a, a->result.code);
}

struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__grant *grant)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    if (a->phase != LK__WAITING)
        return lk__fsm_proceed(a, now_us);
    a->grant = *grant;
    return a->sent ? lk__fsm_proceed(a, now_us) : lk__fsm_usegrant(a, now_us);
}

struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    a->again = true;
    a->may_rest = false; /* something changed, and the next answer tells what */
    if (a->phase == LK__WAITING && !a->sent && a->result.arrival != 0 && a->last_error == 0) {
        a->again = false;
        a->next_us = lk__fsm_earlier(a->next_us, a->anchor_us + HINT_PAUSE_US);
    } else if (a->phase == LK__WAITING && !a->sent && a->last_error != 0) { /* what made it pause may be over */
        a->next_us = lk__fsm_earlier(a->next_us, now_us + a->set.retry_min_ms * 1000);
    }
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *machine, int64_t now_us)
{
    return lk__fsm_proceed(lk__fsm_state(machine), now_us);
}

struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *machine, int64_t now_us, int code)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    if (a->phase != LK__WAITING)
        return lk__fsm_proceed(a, now_us);
    allow_for_sleep(a, now_us);
    a->limit_code = code;
    a->last_error = 0;
    a->grant.server_us = 0;
    a->limit_us = lk__fsm_earlier(a->limit_us, now_us);
    a->hard_us = lk__fsm_earlier(a->hard_us, lk__later(now_us, a->set.command_us));
    if (a->sent)
        return lk__fsm_proceed(a, now_us);
    return lk__fsm_leave(a, now_us, code);
}
