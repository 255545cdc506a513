/* SPDX-License-Identifier: MIT */
/* histogram.h - how long things took, or what share: how many there were of each size. Any thread, no lock. */
#ifndef LK__BASE_HISTOGRAM_H
#define LK__BASE_HISTOGRAM_H

#include "base/base.h"

enum { LK__BUCKETS = 13 };

/* In millionths: of a second, or of a whole. */
struct lk__histogram {
    atomic_ullong count, sum, buckets[LK__BUCKETS];
};

/* Upper bounds; the last bucket has none. */
extern const int64_t lk__histogram_times[LK__BUCKETS - 1];
extern const int64_t lk__histogram_shares[LK__BUCKETS - 1];

/* Add a value to a histogram that has those bounds; a negative one as 0. */
void lk__histogram_add(struct lk__histogram *histogram, const int64_t *bounds, int64_t millionths);

#endif
