/* SPDX-License-Identifier: MIT */
/* walks.h - all calls of each kind that ask the server, one after the other */
#ifndef WALKS_H
#define WALKS_H

#include "world.h"

struct proxy;

enum { WALKS = 12, WALK_WORDS = 256 };

/* A thread that goes through a row, or all of them, with names of its own. */
struct walker {
    lk_client_t *client;
    void (*before)(struct walker *walker); /* each call, or NULL */
    struct world *w;
    struct proxy *proxy;
    char name[32];
    int failed;             /* calls */
    char first[WALK_WORDS]; /* of them, in words */
};

/* All calls of kind `row`, below WALKS, of objects whose names end with `number`. */
void walk_row(struct walker *walker, int row, int number);

#endif
