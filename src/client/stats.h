/* SPDX-License-Identifier: MIT */
/* stats.h - what a client counts */
#ifndef LK__CLIENT_STATS_H
#define LK__CLIENT_STATS_H

#include "base/histogram.h"

#include <latchkey/events.h>

enum { LK__KINDS = LK_KIND_REDLOCK + 1, LK__REASONS = LK_REASON_FIXED + 1 /* those of losses */ };

extern const char *const lk__kind_names[LK__KINDS]; /* of kinds.def: "mutex"; NULL for a number that no kind has */

/* All objects of a kind together, those that are gone as well. */
struct lk__kindstats {
    struct lk__histogram wait, hold;
    atomic_llong contended, losses[LK__REASONS], long_waits, long_holds;
    atomic_llong waiting, held; /* at this moment */
};

/* An object so far. */
struct lk__memberstats {
    const char *name;
    long long acquisitions, contended, renewals, losses, waiting;
};

#endif
