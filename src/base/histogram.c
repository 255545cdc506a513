/* SPDX-License-Identifier: MIT */
/* histogram.c - how long things took */
#include "base/histogram.h"

const int64_t lk__histogram_bounds_us[LK__BUCKETS - 1] = { 1000,    5000,    10000,    50000,    100000,   500000,
                                                           1000000, 5000000, 10000000, 30000000, 60000000, 300000000 };

void lk__histogram_add(struct lk__histogram *histogram, int64_t us)
{
    int bucket = 0;
    while (bucket < LK__BUCKETS - 1 && us > lk__histogram_bounds_us[bucket])
        bucket++;
    atomic_fetch_add(&histogram->count, 1);
    atomic_fetch_add(&histogram->sum_us, us > 0 ? (unsigned long long)us : 0);
    atomic_fetch_add(&histogram->buckets[bucket], 1);
}
