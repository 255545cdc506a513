/* SPDX-License-Identifier: MIT */
/*
 * diary.h - who did what when: a hash of everything, and lines to read if somebody asked for them
 */
#ifndef TESTS_SIM_DIARY_H
#define TESTS_SIM_DIARY_H

#include "sim.h"

#include <stdio.h>

void diary_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void diary_hash(uint64_t value)
{
    world->hash = (world->hash ^ value) * 0x100000001b3ULL;
    world->hash ^= world->hash >> 29;
}

static inline uint64_t diary_text(const char *text)
{
    uint64_t value = 0;
    for (; *text != 0; text++)
        value = value * 31 + (unsigned char)*text;
    return value;
}

static inline void diary_point(const char *call, uint64_t detail)
{
    diary_hash((uint64_t)sim_me << 40 ^ world->now_ns ^ (uint64_t)(unsigned char)call[0] << 32 ^ detail << 8);
    if (__builtin_expect(world->set.trace, 0))
        diary_write("%s %lld", call, (long long)detail);
}

static inline void diary_block(const char *call, uint64_t deadline_ns)
{
    diary_hash(deadline_ns);
    if (__builtin_expect(world->set.trace, 0)) {
        if (deadline_ns == NEVER)
            diary_write("waits in %s", call);
        else
            diary_write("waits in %s, until %.6f", call, (double)deadline_ns / 1e9);
    }
}

static inline void diary_woken(const char *call, bool timed_out)
{
    diary_hash(world->now_ns ^ timed_out);
    if (__builtin_expect(world->set.trace, 0))
        diary_write("%s in %s", timed_out ? "time is over" : "woken", call);
}

#endif
