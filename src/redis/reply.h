/* SPDX-License-Identifier: MIT */
/*
 * reply.h - one reply, flat
 */
#ifndef LK__REPLY_H
#define LK__REPLY_H

#include "redis/script.h"

enum { LK__REPLY_MAX = 64, LK__REPLY_BYTES_MAX = 1 << 20 };

enum lk__type { LK__NONE, LK__NIL, LK__INTEGER, LK__TEXT, LK__ERROR, LK__ARRAY };

struct lk__value {
    enum lk__type type;
    unsigned length; /* of a text */
    union {
        int64_t number; /* of an integer */
        size_t at;      /* of a text: its offset in the reply's memory */
    };
};

struct lk__reply {
    enum lk__type type;
    unsigned count;                         /* elements of an array; 1 for anything else */
    struct lk__value values[LK__REPLY_MAX]; /* what an array holds in arrays of its own is left out */
    char *text;                             /* NUL after each text */
    size_t text_used, text_capacity;
    bool cut_short;  /* there was no memory for a text */
    int64_t came_us; /* when it was read */
};

struct lk__reply *lk__reply_new(void);        /* for a parser: its text grows. NULL when out of memory */
void lk__reply_free(struct lk__reply *reply); /* accepts NULL */

/*
 * Make `copy`, whose text has a room, the same as `reply`. A text that does not go in is shortened: what our scripts
 * answer does, and errors are told apart by how they begin.
 */
void lk__reply_copy(struct lk__reply *copy, const struct lk__reply *reply);

/* Where one who asks has an answer put: on its stack. */
enum { LK__REPLYBUF_BYTES = 384 };

struct lk__replybuf {
    struct lk__reply reply;
    char text[LK__REPLYBUF_BYTES];
};
/* The reply of one that is empty. */
struct lk__reply *lk__replybuf_reply(struct lk__replybuf *buf);

const char *lk__reply_text(const struct lk__reply *reply, unsigned index); /* "" for what is no text */
int64_t lk__reply_number(const struct lk__reply *reply, unsigned index);   /* 0 for what is no integer */
/* True when it is an array that begins with `count` integers. */
bool lk__reply_integers(const struct lk__reply *reply, unsigned count);

/* What every script answers first; the number of the request comes third. */
struct lk__answer {
    enum lk__verdict verdict;
    int64_t server_us; /* the server's time in it */
};
enum { LK__ANSWER_LEAST = 3 };

/* Does it take a deadline? */
bool lk__script_islimited(const struct lk__script *script);
/* False: this is no answer that the script gives. */
bool lk__answer_read(const struct lk__script *script, const struct lk__reply *reply, struct lk__answer *answer);

/* The code for an error reply; `retry` tells that nothing was done and it may work later. */
int lk__reply_error(const struct lk__reply *reply, bool *retry);
bool lk__reply_is(const struct lk__reply *reply, const char *error_code); /* "NOSCRIPT" */

#endif
