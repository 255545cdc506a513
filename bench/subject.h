/* SPDX-License-Identifier: MIT */
/* subject.h - the kinds of things that can be taken and given back, behind one face */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <latchkey/latchkey.h>

struct subject {
    const struct subject_kind *kind;
    union {
        lk_mutex_t mutex;
        lk_rwlock_t rwlock;
        lk_sem_t sem;
    };
};

struct subject_kind {
    const char *name; /* as in the names of figures */
    int (*init)(struct subject *s, lk_client_t *client, const char *name);
    int (*take)(struct subject *s);
    int (*give)(struct subject *s);
    int (*destroy)(struct subject *s);
};

/* All kinds, ended by one without a name; the first is the mutex. */
extern const struct subject_kind subject_kinds[];

/* All of these end the program when the library says anything but 0. */
lk_client_t *open_client(const char *url);
void subject_init(struct subject *s, const struct subject_kind *kind, lk_client_t *client, const char *name);
void subject_pair(struct subject *s); /* take it and give it back */
void subject_destroy(struct subject *s);

/* A client whose pairs are compared with those of another. */
struct side {
    lk_client_t *client;
    const char *name;   /* of its mutex; as long as the other one's */
    const char *figure; /* the median of its pairs, in microseconds */
};

/* Pairs of both, one after the other, for so long; tells both figures. */
void compare_sides(const struct side sides[2], int64_t ms);

const struct subject_kind *subject_kind(const char *name); /* NULL: there is none */

#endif
