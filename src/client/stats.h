/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what a client counts
 *
 * stats.c    as JSON      metrics.c  as Prometheus reads it
 */
#ifndef LK__CLIENT_STATS_H
#define LK__CLIENT_STATS_H

#include "base/histogram.h"

#include <latchkey/events.h>

enum { LK__KINDS = LK_KIND_REDLOCK + 1, LK__REASONS = LK_REASON_FIXED + 1 /* those of losses */ };

const char *lk__kind_name(int kind);     /* "mutex"; NULL for a number that no kind has */
const char *lk__reason_name(int reason); /* "expired"; NULL for one of no loss */

/* All objects of a kind together, those that are gone as well. */
struct lk__kindstats {
    struct lk__histogram wait, hold;
    atomic_ullong contended, losses[LK__REASONS], long_waits, long_holds;
    atomic_int waiting, held; /* at this moment */
};

struct lk__member;

/*
 * Can the name of an object stand in a text? 0; EILSEQ: it is no UTF-8; ENOMEM. Under client->mu, as that of each member
 * when it is shown.
 */
int lk__member_show(const char *name);

#endif
