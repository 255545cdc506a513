/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what a client counts
 */
#ifndef LK__CLIENT_STATS_H
#define LK__CLIENT_STATS_H

#include "base/histogram.h"

#include <latchkey/events.h>

enum { LK__KINDS = LK_KIND_REDLOCK + 1 };

const char *lk__kind_name(int kind); /* "mutex"; NULL for a number that no kind has */

struct lk__kindstats {
    struct lk__histogram wait, hold;
};

#endif
