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
    HINT_PAUSE_US = 5000, /* hints are cheap to forge: ask at most this often */
    PASSED_OVER = -1,     /* the place of the first one, if it hears no message */
    SHORT_CLAIM_MS = 100, /* of who hears no message, and may not find it in time */
    SLEEP_MIN_US = 5000,  /* a lease that "has 0 ms left" has not ended yet */
    GARBLED_MAX = 2       /* the first unreadable answer may be an accident of the connection */
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct lk__step step(enum lk__act act, int64_t until_us)
{
    return (struct lk__step){ act, until_us, false };
}

static struct lk__step request(const struct lk__acquirefsm_state *a, enum lk__act act)
{
    return (struct lk__step){ act, 0, a->spelled };
}

static struct lk__step end(struct lk__acquirefsm_state *a, int code)
{
    a->phase = LK__ENDED;
    a->result.code = code;
    return step(LK__FINISHED, 0);
}

/* May an ask that got no answer still take effect? */
static bool has_duplicates(const struct lk__acquirefsm_state *a)
{
    return a->result.duplicates_until.date.us != 0;
}

/* What to do now, with nothing new. */
static struct lk__step proceed(struct lk__acquirefsm_state *a, int64_t now_us);
static struct lk__step use_grant(struct lk__acquirefsm_state *a, int64_t now_us);

/* End with `code`, after the server took us off its lists if we may be on one. */
static struct lk__step leave(struct lk__acquirefsm_state *a, int64_t now_us, int code)
{
    if (!a->listed && !has_duplicates(a))
        return end(a, code);
    a->phase = LK__LEAVING;
    a->result.code = code;
    a->next_us = now_us;
    a->hard_us = earlier(a->hard_us, lk__later(now_us, a->set.command_us));
    return proceed(a, now_us);
}

static struct lk__step give_up(struct lk__acquirefsm_state *a)
{
    if (a->listed || has_duplicates(a)) {
        a->result.unknown = true;
        return end(a, a->garbled > 0 ? EPROTO : EIO);
    }
    return end(a, a->last_error != 0 ? a->last_error : a->limit_code);
}

/* One that was stopped, or suspended, through its limit and its time to leave may still leave. */
static void allow_for_sleep(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->phase == LK__WAITING && now_us >= lk__later(a->hard_us, a->set.command_us))
        a->hard_us = lk__later(now_us, a->set.command_us);
}

/* Nothing is awaited any longer; a grant that came while the answer did not is one all the same. */
static struct lk__step out_of_time(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->sent && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return use_grant(a, now_us);
    return give_up(a);
}

static struct lk__step proceed(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (a->phase == LK__ENDED)
        return step(LK__FINISHED, 0);
    allow_for_sleep(a, now_us);
    if (now_us >= a->hard_us)
        return out_of_time(a, now_us);
    if (a->sent)
        return step(LK__AWAIT, a->hard_us);
    if (a->phase == LK__LEAVING)
        return now_us >= a->next_us ? request(a, LK__LEAVE) : step(LK__PARK, earlier(a->next_us, a->hard_us));
    if (a->limit_code != ETIMEDOUT)
        return leave(a, now_us, a->limit_code);
    if (now_us >= a->limit_us && a->asked)
        return leave(a, now_us, a->last_error != 0 ? a->last_error : a->limit_code);
    if (now_us >= a->next_us)
        return request(a, LK__ASK);
    return step(LK__PARK, earlier(a->next_us, a->asked ? a->limit_us : a->hard_us));
}

/* Wait longer after each refusal or cut in a row; the first is answered at once. */
static void pause_next(struct lk__acquirefsm_state *a, int64_t now_us)
{
    a->next_us = now_us + a->pause_ms * 1000;
    a->pause_ms = a->pause_ms == 0 ? a->set.retry_min_ms : earlier(2 * a->pause_ms, a->set.retry_max_ms);
}

/* 80 to 120 per cent, so that those who sleep equally long do not come at one moment. */
static int64_t jittered(int64_t us)
{
    return us * 4 / 5 + (int64_t)lk__random_below((uint64_t)us * 2 / 5 + 1);
}

/*
 * How long a queued waiter sleeps: the head aims at the end of the present lease, as does everybody at that of a short
 * claim; those far behind ask less often. The first one that was passed over, as it hears nothing, asks as often as it
 * may; one that hears nothing yet does not wait until it does.
 */
static int64_t nap(struct lk__acquirefsm_state *a, int64_t left_ms, int64_t rank)
{
    if (rank == PASSED_OVER)
        return jittered(a->set.retry_min_ms * 1000);
    if (a->hearing == LK__JOINING && a->join_ms < a->set.poll_ms) {
        a->join_ms = a->join_ms == 0 ? a->set.retry_min_ms : 2 * a->join_ms;
        return jittered(a->join_ms * 1000);
    }
    if (rank >= 2 && a->hearing != LK__UNHEARD && (left_ms < 0 || left_ms > SHORT_CLAIM_MS))
        return jittered(a->set.liveness_ms * 1000 / 3);
    int64_t us = jittered(a->set.poll_ms * 1000);
    if (left_ms >= 0 && left_ms < us / 1000)
        us = (left_ms + 1) * 1000;
    return us < SLEEP_MIN_US ? SLEEP_MIN_US : us;
}

/* Held: until then if nothing is renewed. */
static struct lk__step hold(struct lk__acquirefsm_state *a, int64_t valid_until_us, const struct lk__grant *grant)
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
static struct lk__step use_grant(struct lk__acquirefsm_state *a, int64_t now_us)
{
    struct lk__grant grant = a->grant;
    int64_t since_us = grant.server_us - a->anchor.us;
    a->grant.server_us = 0;
    if (a->limit_code != ETIMEDOUT) /* told to give up meanwhile */
        return proceed(a, now_us);
    if (!a->set.recorded && a->anchor_us != 0 && grant.epoch == a->anchor.epoch && since_us >= 0) {
        int64_t lease_ms = grant.lease_ms;
        if (has_duplicates(a) && a->set.lease_ms < lease_ms)
            lease_ms = a->set.lease_ms; /* a copy of an ask finds the claim, and sets its own lease */
        int64_t lasts_us = since_us + lease_ms * 1000;
        int64_t valid_until_us = a->anchor_us + lasts_us - lasts_us / 100 - 2000;
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

static struct lk__step on_granted(struct lk__acquirefsm_state *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    struct lk__grant grant = { asked->server_us, a->set.lease_ms, (uint64_t)asked->token,
                               asked->verdict == LK__GRANTED_OWNERDEAD, asked->epoch };
    int64_t valid_until_us = sent_us + a->set.lease_ms * 1000 - lk__guard_us(a->set.lease_ms);
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

static struct lk__step on_queued(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__asked *asked)
{
    a->listed = true;
    a->result.arrival = asked->arrival;
    a->last_error = 0;
    a->pause_ms = 0;
    if (a->grant.server_us > asked->server_us && a->grant.epoch == asked->epoch)
        return use_grant(a, now_us);
    a->again |= a->grant.server_us != 0 && a->grant.epoch != asked->epoch; /* of another server: a hint */
    a->grant.server_us = 0; /* older than this answer, which knows nothing of it */
    a->next_us = a->again ? now_us + HINT_PAUSE_US : now_us + nap(a, asked->left_ms, asked->place);
    a->again = false;
    return proceed(a, now_us);
}

/* Under this number it cannot be had any more, and whatever is left under it goes. Another number may do: ESTALE. */
static struct lk__step on_overtaken(struct lk__acquirefsm_state *a, int64_t now_us)
{
    if (has_duplicates(a)) /* an earlier copy may have been carried out, and its record is gone */
        return give_up(a);
    a->listed = true;
    return leave(a, now_us, a->limit_code != ETIMEDOUT ? a->limit_code : ESTALE);
}

/* Others have it: until when, as the server knows now. Permits of a recorded acquire have no lease. */
static void note_others(struct lk__acquirefsm_state *a, int64_t now_us, int64_t left_ms)
{
    int64_t left_us = left_ms > LK__NEVER / 1000 ? LK__NEVER : left_ms * 1000;
    if (a->set.recorded || left_ms == -1)
        a->result.others_until_us = 0;
    else
        a->result.others_until_us = left_ms < 0 ? now_us : lk__later(now_us, left_us);
}

static struct lk__step on_verdict(struct lk__acquirefsm_state *a, int64_t now_us, int64_t sent_us,
                                  const struct lk__asked *asked)
{
    a->anchor_us = sent_us;
    a->anchor = (struct lk__date){ asked->server_us, asked->epoch };
    if (lk__until_isover(&a->result.duplicates_until, a->anchor, now_us))
        a->result.duplicates_until = (struct lk__until){ 0 }; /* copies that got no answer are past their deadline */
    switch (asked->verdict) {
    case LK__GRANTED:
    case LK__GRANTED_OWNERDEAD:
        return on_granted(a, now_us, sent_us, asked);
    case LK__QUEUED:
        note_others(a, now_us, asked->left_ms);
        return on_queued(a, now_us, asked);
    case LK__BUSY:
        note_others(a, now_us, asked->left_ms);
        return leave(a, now_us, EBUSY);
    case LK__LATE: /* the server's clock moved; the sender knows it now */
        a->asked = a->listed;
        pause_next(a, now_us);
        return proceed(a, now_us);
    case LK__UNRECOVERABLE:
        return end(a, ENOTRECOVERABLE);
    case LK__IMPOSSIBLE:
        return end(a, EINVAL);
    case LK__OVERTAKEN:
        return on_overtaken(a, now_us);
    case LK__FULL:
        return leave(a, now_us, EAGAIN);
    default:
        a->listed = true;
        return leave(a, now_us, EPROTO);
    }
}

/* A verdict has what it comes with. */
static bool makes_sense(const struct lk__asked *asked)
{
    bool granted = asked->verdict == LK__GRANTED || asked->verdict == LK__GRANTED_OWNERDEAD;
    return (!granted || asked->token > 0) && (asked->verdict != LK__QUEUED || asked->arrival > 0);
}

/* The server would not, and an ask did nothing, or was stopped in its middle. */
static struct lk__step on_refusal(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__reply *reply)
{
    bool retry;
    int code = lk__reply_error(reply, &retry);
    if (retry) {
        a->last_error = code;
        if (a->pause_ms == 0)
            a->pause_ms = a->set.retry_min_ms;
        pause_next(a, now_us);
        return proceed(a, now_us);
    }
    bool unbegun = lk__reply_is(reply, "NOSCRIPT") || lk__acl_unbegun(reply);
    if ((code == EACCES || code == EPROTO) && !unbegun)
        a->listed = true; /* a rule, or a key of another type, may have stopped the script in its middle */
    return leave(a, now_us, code);
}

/* The same of a release. */
static struct lk__step on_kept(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__reply *reply)
{
    bool retry;
    lk__reply_error(reply, &retry);
    if (retry) {
        pause_next(a, now_us);
        return proceed(a, now_us);
    }
    if (lk__reply_is(reply, "WRONGTYPE") && !has_duplicates(a))
        return end(a, a->result.code); /* a release gives back first: there is nothing, or nothing any more */
    a->result.unknown = true;          /* and of the codes only those stand that do not say "not held" */
    return end(a, a->result.code == EACCES || a->result.code == EPROTO ? a->result.code : EIO);
}

/* What was sent is answered; `unheard_of`: by an error, the server does not know the script. */
static void note_answer(struct lk__acquirefsm_state *a, bool unheard_of)
{
    a->sent = false;
    a->garbled = 0;
    a->spelled = unheard_of && !a->spelled;
}

/* --- events ------------------------------------------------------------------------------------------------ */

void lk__acquirefsm_init(struct lk__acquirefsm *machine, const struct lk__acquirefsm_settings *settings)
{
    *machine = (struct lk__acquirefsm){ .private = { .set = *settings, .limit_us = settings->limit_us } };
}

const struct lk__acquirefsm_settings *lk__acquirefsm_settings(const struct lk__acquirefsm *machine)
{
    return &machine->private.set;
}

const struct lk__acquirefsm_result *lk__acquirefsm_result(const struct lk__acquirefsm *machine)
{
    return &machine->private.result;
}

enum lk__phase lk__acquirefsm_phase(const struct lk__acquirefsm *machine)
{
    return machine->private.phase;
}

void lk__acquirefsm_hears(struct lk__acquirefsm *machine, enum lk__hearing hearing)
{
    machine->private.hearing = hearing;
}

struct lk__step lk__acquirefsm_start(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = &machine->private;
    a->hard_us = lk__later(a->limit_us > now_us ? a->limit_us : now_us, a->set.command_us);
    a->limit_code = ETIMEDOUT;
    a->next_us = now_us;
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_sent(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__until *deadline)
{
    struct lk__acquirefsm_state *a = &machine->private;
    a->sent = true;
    if (a->phase == LK__WAITING) {
        a->asked = true;
        a->deadline = *deadline;
    }
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_answered(struct lk__acquirefsm *machine, int64_t now_us, int64_t sent_us,
                                        const struct lk__asked *asked)
{
    struct lk__acquirefsm_state *a = &machine->private;
    note_answer(a, false);
    if (asked == NULL || !makes_sense(asked)) {
        a->listed = true;
        return leave(a, now_us, EPROTO);
    }
    return on_verdict(a, now_us, sent_us, asked);
}

struct lk__step lk__acquirefsm_left(struct lk__acquirefsm *machine, int64_t now_us, unsigned epoch,
                                    const struct lk__answer *left)
{
    struct lk__acquirefsm_state *a = &machine->private;
    note_answer(a, false);
    if (left == NULL) {
        a->result.unknown = true;
        return end(a, EPROTO);
    }
    struct lk__date date = { left->server_us, epoch };
    if (!a->set.recorded && !lk__until_isover(&a->result.duplicates_until, date, now_us))
        return give_up(a); /* a copy of an ask may still come after this release */
    return end(a, a->result.code);
}

struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__reply *error)
{
    struct lk__acquirefsm_state *a = &machine->private;
    note_answer(a, lk__reply_is(error, "NOSCRIPT"));
    if (a->spelled) {
        a->next_us = now_us;
        a->asked = false;
        return proceed(a, now_us);
    }
    return a->phase == LK__LEAVING ? on_kept(a, now_us, error) : on_refusal(a, now_us, error);
}

struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *machine, int64_t now_us, enum lk__request_state how)
{
    struct lk__acquirefsm_state *a = &machine->private;
    a->sent = false;
    if (how != LK__UNSENT && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    a->garbled = how == LK__GARBLED ? a->garbled + 1 : 0;
    if (a->garbled == GARBLED_MAX)
        return give_up(a);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return use_grant(a, now_us);
    pause_next(a, now_us);
    if (!a->listed)
        a->asked = false; /* nothing was said yet: once more, while the time for an answer lasts */
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = &machine->private;
    if (a->phase == LK__ENDED || now_us >= a->hard_us)
        return proceed(a, now_us);
    bool limited = a->phase == LK__WAITING && now_us < a->limit_us;
    return step(LK__CONNECT, limited ? a->limit_us : a->hard_us);
}

struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *machine, int64_t now_us, int code)
{
    struct lk__acquirefsm_state *a = &machine->private;
    if (code == 0) {
        a->next_us = now_us;
        return proceed(a, now_us);
    }
    a->last_error = code == ETIMEDOUT ? ENOTCONN : code;
    bool known = !a->listed && !has_duplicates(a);
    if (known && (a->last_error != ENOTCONN || now_us >= a->limit_us))
        return end(a, a->last_error);
    return lk__acquirefsm_unsent(machine, now_us);
}

struct lk__step lk__acquirefsm_granted(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__grant *grant)
{
    struct lk__acquirefsm_state *a = &machine->private;
    if (a->phase != LK__WAITING)
        return proceed(a, now_us);
    a->grant = *grant;
    return a->sent ? proceed(a, now_us) : use_grant(a, now_us);
}

struct lk__step lk__acquirefsm_hinted(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = &machine->private;
    a->again = true;
    if (a->phase == LK__WAITING && !a->sent && a->listed && a->last_error == 0) {
        a->again = false;
        a->next_us = earlier(a->next_us, a->anchor_us + HINT_PAUSE_US);
    }
    return proceed(a, now_us);
}

struct lk__step lk__acquirefsm_tick(struct lk__acquirefsm *machine, int64_t now_us)
{
    return proceed(&machine->private, now_us);
}

struct lk__step lk__acquirefsm_cancel(struct lk__acquirefsm *machine, int64_t now_us, int code)
{
    struct lk__acquirefsm_state *a = &machine->private;
    if (a->phase != LK__WAITING)
        return proceed(a, now_us);
    allow_for_sleep(a, now_us);
    a->limit_code = code;
    a->last_error = 0;
    a->grant.server_us = 0;
    a->limit_us = earlier(a->limit_us, now_us);
    a->hard_us = earlier(a->hard_us, lk__later(now_us, a->set.command_us));
    if (a->sent)
        return proceed(a, now_us);
    return leave(a, now_us, code);
}
