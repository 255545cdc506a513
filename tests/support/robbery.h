/* SPDX-License-Identifier: MIT */
/*
 * robbery.h - a server that forgets what it granted: what the robbed holder and the next one must see
 *
 * Here two holders may overlap, and for how long is what counts: until the robbed one's next renewal.
 */
#ifndef TESTS_ROBBERY_H
#define TESTS_ROBBERY_H

#include "subject.h"

struct robbery {
    const char *name;                                 /* "FLUSHALL"; NULL ends a list */
    void (*prepare)(struct world *w);                 /* before each hold; NULL: nothing */
    void (*commit)(struct world *w, const char *key); /* `key`: where the hold is, or the latch */
    void (*make_good)(struct world *w);               /* after each; NULL: nothing */
    int lease_ms;                                     /* 0: 1500 */
    bool leases_only;                                 /* what has no end of its own is not touched */
};

/*
 * Each robbery for each kind. Nobody waits: the hold is not made anew, whether the holder learns of it by its
 * renewal or its unlock. Somebody waits: it gets the object, with a larger token, and keeps it. And a latch,
 * which is never taken for open; what is done once, which is run by the next one, or again; a barrier, of which
 * no party waits on. What a main() returns; `robberies` ends with one without a name.
 */
int robbery_tests(const struct robbery *robberies);

/* The key in which the server keeps a hold of this kind; `key` has room for 80 bytes. */
void robbery_key(const struct subject *s, char *key);

#endif
