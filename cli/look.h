/* SPDX-License-Identifier: MIT */
/*
 * look.h - what is under a name: each kind of object that it may be is looked at, one round trip each
 */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include <latchkey/latchkey.h>

enum { ROWS_MAX = 5 };

/* An object that somebody uses. */
struct row {
    const char *kind, *mode;
    unsigned holders, waiters;
    int64_t ttl_ms; /* -1: no lease */
    int64_t count;  /* -1: none */
    uint64_t token;
    char owner[160];
};

struct rows {
    struct row row[ROWS_MAX];
    int count;
};

/* 0, or a code of the library. */
int look_at_name(struct rows *rows, lk_client_t *client, const char *name);

/* The first `most` of those who wait for the mutex, the read-write lock or permits of that name, and how many do. Likewise. */
int look_at_queue(lk_client_t *client, const char *kind, const char *name, lk_waiter_t *waiters, unsigned most,
                  unsigned *count);

#endif
