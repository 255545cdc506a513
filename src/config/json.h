/* SPDX-License-Identifier: MIT */
/*
 * json.h - JSON, read where it stands
 *
 * A string is decoded in place and a number moved by one to the left, so that each ends with a NUL. Reading asks for no
 * memory and copies no secret. jansson does both, and loses characters without an error where its buffer cannot grow.
 */
#ifndef LK__CONFIG_JSON_H
#define LK__CONFIG_JSON_H

#include "base/base.h"

struct lk__json {
    char *at;         /* what is read next */
    const char *end;  /* a NUL stands there */
    int line;         /* of `at`, from 1 on */
    const char *flaw; /* in words, once something was no JSON */
};

struct lk__jsonvalue {
    char form;        /* one of "[{tfn; 0 is a whole number, - another one */
    const char *text; /* of a string, number or word */
};

char lk__json_next(struct lk__json *json);         /* the next character that is no blank */
bool lk__json_skip(struct lk__json *json, char c); /* if `c` is next, it is read */

/* Read a string, decoded to `*to`, which is moved on and stands before the end of the string. False: it is no JSON. */
bool lk__json_string(struct lk__json *json, char **to);
/* Read a string, number or word; of a list or object only its form. False: it is no JSON. */
bool lk__json_value(struct lk__json *json, struct lk__jsonvalue *value);
/* Read a key and the colon behind it, on the line that is returned; 0: it is no JSON. */
int lk__json_key(struct lk__json *json, const char **key);
bool lk__json_ended(struct lk__json *json); /* nothing follows; else that is no JSON */
/* Something else than JSON is next. */
bool lk__json_bad(struct lk__json *json);

bool lk__json_isutf8(const char *text);
/* The value of a hexadecimal digit; -1: it is none. */
int lk__hexdigit(char c);

#endif
