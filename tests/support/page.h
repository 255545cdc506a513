/* SPDX-License-Identifier: MIT */
/*
 * page.h - docs/keys.md, whose tables say what is in Redis: compared with what is there, key by key
 */
#ifndef TESTS_PAGE_H
#define TESTS_PAGE_H

#include "world.h"

/* A row of a table, without backquotes, and with the object's name for NAME. */
struct row {
    char key[96], type[40], content[400], ttl[240];
    bool seen;
};

struct page {
    char text[65536];
    struct row rows[10];
    int count;
    int64_t lease_ms; /* no lease is longer */
};

/* The table of "Keys of a mutex", say. */
void page_read(struct page *page, const char *of_what, const char *name, int64_t lease_ms);

/*
 * Each key that is there has its row, and its type and its time to live are as that says. Returns how many there are.
 * `also`, unless it is NULL, looks at each.
 */
int page_compare(struct world *w, struct page *page,
                 void (*also)(struct world *w, const char *key, const struct row *row));

/* Each row was of a key by now, but for those of anonymous ones. */
void page_was_seen(const struct page *page);

#endif
