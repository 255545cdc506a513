/* SPDX-License-Identifier: MIT */
/* histogram.c - how long things took, or what share */
#include "base/histogram.h"

const int64_t lk__histogram_times[LK__BUCKETS - 1] = { 1000,    5000,    10000,    50000,    100000,   500000,
                                                       1000000, 5000000, 10000000, 30000000, 60000000, 300000000 };
const int64_t lk__histogram_shares[LK__BUCKETS - 1] = { 50000,  100000, 150000, 200000, 250000, 300000,
                                                        333333, 400000, 500000, 600000, 650000, 700000 };

void lk__histogram_add(struct lk__histogram *histogram, const int64_t *bounds, int64_t millionths)
{
    int bucket = 0;
    while (bucket < LK__BUCKETS - 1 && millionths > bounds[bucket])
        bucket++;
    atomic_fetch_add(&histogram->count, 1);
    atomic_fetch_add(&histogram->sum, millionths > 0 ? (unsigned long long)millionths : 0);
    atomic_fetch_add(&histogram->buckets[bucket], 1);
}
