/* SPDX-License-Identifier: MIT */
/*
 * fsm_trouble.c - requests of an acquire that are refused, get no answer, or cannot be sent
 *
 * Whatever passes is tried again after a pause that doubles. An ask without an answer may still take effect: until its
 * deadline the end is not "not held" but unknown.
 */
#include "acquire/fsm_inside.h"

enum { MIGRATES_PAUSE_US = 1000000 }; /* no message tells a newcomer that its slot has moved */

/* The server refused an ask: its script did nothing, or was stopped in its middle. */
static struct lk__step on_refusal(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__reply *reply)
{
    bool retry;
    int code = lk__reply_error(reply, &retry);
    if (retry) {
        a->listed |= lk__reply_ishalf(reply);
        a->last_error = code;
        if (a->pause_ms == 0)
            a->pause_ms = a->set.retry_min_ms;
        lk__fsm_pausenext(a, now_us);
        if (lk__reply_is(reply, "TRYAGAIN"))
            a->next_us = lk__fsm_earlier(a->next_us, now_us + MIGRATES_PAUSE_US);
        return lk__fsm_proceed(a, now_us);
    }
    bool unbegun = lk__reply_is(reply, "NOSCRIPT") || lk__acl_unbegun(reply);
    if ((code == EACCES || code == EPROTO) && !unbegun)
        a->listed = true; /* a rule, or a key of another type, may have stopped the script in its middle */
    return lk__fsm_leave(a, now_us, code);
}

/* The server refused a release. */
static struct lk__step on_kept(struct lk__acquirefsm_state *a, int64_t now_us, const struct lk__reply *reply)
{
    bool retry;
    int code = lk__reply_error(reply, &retry);
    if (retry) {
        lk__fsm_pausenext(a, now_us);
        return lk__fsm_proceed(a, now_us);
    }
    if (code == EACCES && !lk__fsm_hasduplicates(a)) /* each ask had its answer: this is what the matter is */
        a->result.code = EACCES;
    if (lk__reply_is(reply, "WRONGTYPE") && !lk__fsm_hasduplicates(a))
        return lk__fsm_end(a, a->result.code); /* a release gives back first: there is nothing, or nothing any more */
    a->result.unknown = true;                  /* and of the codes only those stand that do not say "not held" */
    return lk__fsm_end(a, a->result.code == EACCES || a->result.code == EPROTO ? a->result.code : EIO);
}

/* --- events ------------------------------------------------------------------------------------------------ */

struct lk__step lk__acquirefsm_refused(struct lk__acquirefsm *machine, int64_t now_us, const struct lk__reply *error)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    lk__fsm_noteanswer(a, lk__reply_is(error, "NOSCRIPT"));
    if (a->spelled) {
        a->next_us = now_us;
        a->asked = false;
        return lk__fsm_proceed(a, now_us);
    }
    return a->phase == LK__LEAVING ? on_kept(a, now_us, error) : on_refusal(a, now_us, error);
}

struct lk__step lk__acquirefsm_redirected(struct lk__acquirefsm *machine, int64_t now_us, bool as_text)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    lk__fsm_noteanswer(a, false);
    a->spelled = as_text;
    a->next_us = now_us;
    a->asked = false;
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_cut(struct lk__acquirefsm *machine, int64_t now_us, enum lk__request_state how)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    a->sent = false;
    if (how != LK__UNSENT && a->phase == LK__WAITING)
        lk__until_extend(&a->result.duplicates_until, &a->deadline);
    a->garbled = how == LK__GARBLED ? a->garbled + 1 : 0;
    if (a->garbled == LK__GARBLED_MAX)
        return lk__fsm_giveup(a);
    if (a->phase == LK__WAITING && a->grant.server_us != 0)
        return lk__fsm_usegrant(a, now_us);
    lk__fsm_pausenext(a, now_us);
    if (!a->cut) /* refusals before say nothing of the connection, which may have ended unused */
        a->next_us = now_us;
    a->cut = true;
    if (!a->listed)
        a->asked = false; /* nothing was said yet: once more, while the time for an answer lasts */
    return lk__fsm_proceed(a, now_us);
}

struct lk__step lk__acquirefsm_unsent(struct lk__acquirefsm *machine, int64_t now_us)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    if (a->phase == LK__ENDED || now_us >= a->hard_us)
        return lk__fsm_proceed(a, now_us);
    bool limited = a->phase == LK__WAITING && now_us < a->limit_us;
    return lk__fsm_step(LK__CONNECT, limited ? a->limit_us : a->hard_us);
}

struct lk__step lk__acquirefsm_connected(struct lk__acquirefsm *machine, int64_t now_us, int code)
{
    struct lk__acquirefsm_state *a = lk__fsm_state(machine);
    if (code == 0) {
        a->next_us = now_us;
        return lk__fsm_proceed(a, now_us);
    }
    if (code == ETIMEDOUT && now_us >= lk__later(a->hard_us, a->set.command_us))
        return lk__fsm_proceed(a, now_us); /* the process was stopped, and gets more time */
    bool may_come = code == ETIMEDOUT && a->last_error == 0 && now_us < a->hard_us; /* no attempt has failed yet */
    if (!may_come)
        a->last_error = code == ETIMEDOUT ? ENOTCONN : code;
    bool known = !a->listed && !lk__fsm_hasduplicates(a);
    if (known && !may_come && (a->last_error != ENOTCONN || now_us >= a->limit_us))
        return lk__fsm_end(a, a->last_error);
    return lk__acquirefsm_unsent(machine, now_us);
}
