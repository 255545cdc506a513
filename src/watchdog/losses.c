/* SPDX-License-Identifier: MIT */
/*
 * losses.c - the log's lines of leases that were lost
 *
 * Guards: dog->mu the list of losses that are not logged. Many leases may be lost at one moment, and work for each of
 * them delays renewals of others: so each second has few lines, and one for the rest.
 */
#include "watchdog/watchdog.h"

#include <latchkey/events.h>

enum { LINES_MAX = 8 }; /* losses that are logged one by one within a second */

static const char *words_of(int reason)
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

void lk__losses_add(struct lk__watchdog *dog, struct lk__lease *lease)
{
    assert(lk__mu_held(&dog->mu));
    if (lk__list_empty(&dog->losses.unlogged))
        lk__watchdog_wake(dog);
    lk__list_append(&dog->losses.unlogged, &lease->queue);
    lk__lease_ref(lease);
}

/* Log, when the second is over, how many losses it had beyond those with a line of their own. */
static void log_more(struct lk__losses *losses)
{
    if (losses->more > 0)
        lk__log(LK_LOG_WARNING, "%u more leases were lost", losses->more);
    losses->lines = losses->more = 0;
}

static void log_one(struct lk__losses *losses, const char *name, int reason, int64_t now_us)
{
    if (now_us >= losses->second_us) {
        log_more(losses);
        losses->second_us = now_us + 1000000;
    }
    if (losses->lines < LINES_MAX)
        lk__log(LK_LOG_WARNING, "%s: the lease was lost: %s", name, words_of(reason));
    losses->lines < LINES_MAX ? losses->lines++ : losses->more++;
}

void lk__losses_log(struct lk__watchdog *dog, int64_t now_us, bool last)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__losses *losses = &dog->losses;
    struct lk__link *link;
    while ((link = lk__list_first(&losses->unlogged)) != NULL) {
        struct lk__lease *lost = LK__CONTAINER(link, struct lk__lease, queue);
        int reason = lost->reason;
        lk__list_remove(link);
        lk__mu_unlock(&dog->mu);
        log_one(losses, lost->name, reason, now_us);
        lk__lease_unref(lost);
        lk__watchdog_locklast(dog);
    }
    if (losses->more > 0 && (last || now_us >= losses->second_us))
        log_more(losses);
}
