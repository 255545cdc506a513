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
    unsigned count;           /* elements of an array; 1 for anything else */
    unsigned most;            /* of values */
    struct lk__value *values; /* what an array holds in arrays of its own is left out */
    char *text;               /* NUL after each text */
    size_t text_used, text_capacity;
    bool cut_short;  /* there was no memory for a text */
    int64_t came_us; /* when it was read */
};

struct lk__reply *lk__reply_new(void);        /* for a parser: its text grows. NULL when out of memory */
void lk__reply_free(struct lk__reply *reply); /* accepts NULL */

/* An empty one, with room there. */
static inline struct lk__reply *lk__reply_in(struct lk__reply *reply, struct lk__value *values, unsigned most, char *text,
                                             size_t size)
{
    *reply = (struct lk__reply){ .most = most, .values = values, .text = text, .text_capacity = size };
    return reply;
}

/* Where one who asks has an answer put: on its stack. More values than any of our scripts has for one who asks so. */
enum { LK__REPLYBUF_VALUES = 16, LK__REPLYBUF_BYTES = 384 };

struct lk__replybuf {
    struct lk__reply reply;
    struct lk__value values[LK__REPLYBUF_VALUES];
    char text[LK__REPLYBUF_BYTES];
};
static inline struct lk__reply *lk__replybuf_reply(struct lk__replybuf *buf)
{
    return lk__reply_in(&buf->reply, buf->values, LK__REPLYBUF_VALUES, buf->text, sizeof buf->text);
}

static inline bool lk__value_istext(const struct lk__value *value)
{
    return value->type == LK__TEXT || value->type == LK__ERROR;
}

/* "" for what is no text. */
static inline const char *lk__reply_text(const struct lk__reply *reply, unsigned index)
{
    if (index >= reply->count || !lk__value_istext(&reply->values[index]))
        return "";
    return reply->text + reply->values[index].at;
}

/* 0 for what is no integer. */
static inline int64_t lk__reply_number(const struct lk__reply *reply, unsigned index)
{
    return index < reply->count && reply->values[index].type == LK__INTEGER ? reply->values[index].number : 0;
}

/* True when it is an array that begins with `count` integers. */
static inline bool lk__reply_integers(const struct lk__reply *reply, unsigned count)
{
    if (reply->type != LK__ARRAY || reply->count < count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (reply->values[i].type != LK__INTEGER)
            return false;
    return true;
}

/* What every script answers first: its verdict, the server's time or 0, the number of the request. */
enum { LK__ANSWER_LEAST = 3 };

struct lk__answer {
    enum lk__verdict verdict;
    int64_t server_us; /* the server's time in it; 0: it does not say */
    int64_t number;    /* the first one behind; 0: there is none */
};

/* False: this is no answer that the script gives. */
bool lk__answer_read(const struct lk__script *script, const struct lk__reply *reply, struct lk__answer *answer);

/* Scripts answer with an array, or with a text of integers and single blanks: make that the array. Other replies stay. */
void lk__reply_spread(struct lk__reply *reply);

/* The code for an error reply. */
int lk__reply_error(const struct lk__reply *reply);
/* Nothing was done because of such an error, and it may work later. */
static inline bool lk__error_passes(int code)
{
    return code == ENOTCONN || code == ENOSPC;
}
/* A script was stopped in its middle, as a key of its slot went to another node: it may work there, and passes. */
bool lk__reply_ishalf(const struct lk__reply *reply);
bool lk__reply_is(const struct lk__reply *reply, const char *error_code); /* "NOSCRIPT" */

#endif
