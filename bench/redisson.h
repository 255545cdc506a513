/* SPDX-License-Identifier: MIT */
/*
 * redisson.h - what Redisson's fenced lock sends, as a yardstick: same keys, same effects, same messages
 *
 * The scripts are written after a description of that protocol. An unlock leaves its result in a latch key, which a
 * command of its own deletes, as Redisson does.
 */
#ifndef BENCH_REDISSON_H
#define BENCH_REDISSON_H

#include "wire.h"

struct redisson {
    char take[41], give[41]; /* SHA-1 of the scripts */
    char name[64], token[96], channel[96], latch[128], owner[64];
    int64_t turn;
};

/* Load the scripts, and name the keys of the lock `name`; owner `number` of it. */
void redisson_init(struct redisson *lock, struct wire *wire, const char *name, int number);

void redisson_put_take(struct redisson *lock, struct wire_out *out);
void redisson_put_give(struct redisson *lock, struct wire_out *out);   /* the script ... */
void redisson_put_forget(struct redisson *lock, struct wire_out *out); /* ... and what follows its answer */

#endif
