/* SPDX-License-Identifier: MIT */
/*
 * words.c - what the log says of a wait, and the error text of its end
 */
#include "acquire/acquire.h"

#include <string.h>

/* --- the log ------------------------------------------------------------------------------------------------------ */

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

/* Where it asked last, or would. */
static struct lk__node *node_of(const struct lk__waiters *waiters, const struct lk__waiter *waiter)
{
    return waiter->at != NULL ? waiter->at : lk__node_for(waiters->node, &waiter->ask, false);
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
             lk__node_lasterror(node_of(waiters, waiter), LK__LANE_COMMANDS, errmsg, sizeof errmsg) != 0)
        warn_of_absence(waiters, waiter, time.text, errmsg);
    else
        return false;
    return true;
}

/* --- the error text ----------------------------------------------------------------------------------------------- */

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
        lk__node_lasterror(node_of(waiters, waiter), LK__LANE_COMMANDS, errmsg, sizeof errmsg);
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
