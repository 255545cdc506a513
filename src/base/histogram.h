/* SPDX-License-Identifier: MIT */
/* histogram.h - how long things took: how many there were in each span of time. Any thread, no lock. */
#ifndef LK__BASE_HISTOGRAM_H
#define LK__BASE_HISTOGRAM_H

#include "base/base.h"

enum { LK__BUCKETS = 13 };

struct lk__histogram {
    atomic_ullong count, sum_us, buckets[LK__BUCKETS];
};

/* Upper bounds; the last bucket has none. */
extern const int64_t lk__histogram_bounds_us[LK__BUCKETS - 1];

void lk__histogram_add(struct lk__histogram *histogram, int64_t us);

#endif
